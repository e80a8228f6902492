"""Which calls may start now: the one rule of order among tools, without any waiting."""

from collections import OrderedDict
from enum import StrEnum
from heapq import heappop, heappush
from typing import Generic, Protocol, TypeVar

__all__ = ["Access", "Failures", "Line", "Place"]


class Access(StrEnum):
    """What a call does to the world, as far as the order of calls depends on it."""

    READ = "read"  # it only reads: it runs beside other reads
    WRITE = "write"  # it runs alone
    MEMBER = "member"  # an action of a toolset: it runs alone, and not at all once one before it has failed


class Place(Protocol):
    """A call that stands in line."""

    @property
    def access(self) -> Access:
        """How it may run."""
        ...

    @property
    def ready(self) -> bool:
        """Whether it may start when its turn comes: what may yet be cut waits for the model, or for someone's word."""
        ...


Standing = TypeVar("Standing", bound=Place)


class Line(Generic[Standing]):
    """The calls that have not ended, in the model's order, and which of them run.

    Reads run in parallel, at most `max_parallel`. Any other call runs alone: nothing runs beside it, and everything
    before it has ended. No call overtakes an earlier one that is no read; a read may overtake an earlier read that is
    not ready. However many stand in line, each step costs O(log n).
    """

    def __init__(self, max_parallel: int) -> None:
        self._max_parallel = max_parallel
        self._count = 0
        self._open: OrderedDict[Standing, int] = OrderedDict()  # all that have not ended, in order, by position
        # A heap of those that wait for their turn. What changed since it was pushed is passed over when it comes up.
        self._turns: list[tuple[int, int, Standing]] = []
        self._pushed = 0
        self._running: set[Standing] = set()
        self._alone = False  # what runs suffers nothing beside it

    def add(self, place: Standing) -> None:
        """A call joins at the end."""
        self._count += 1
        self._open[place] = self._count
        if place.ready or place.access is not Access.READ:
            self._wait(place)

    def readied(self, place: Standing) -> None:
        """A call that was not ready is so now."""
        if place in self._open and place.access is Access.READ:
            self._wait(place)

    def returned(self, place: Standing) -> None:
        """A call that was to start does not run yet: it waits for its turn again, as what it is now."""
        self._stopped(place)
        self._wait(place)

    def left(self, place: Standing) -> None:
        """A call has ended, or is not to run after all."""
        self._stopped(place)
        self._open.pop(place, None)

    def start(self) -> list[Standing]:
        """The calls that start now, in order; they count as running until they have left or returned."""
        started: list[Standing] = []
        while self._turns and not self._alone:
            *_, place = self._turns[0]
            if place in self._open and place not in self._running:
                if place.access is not Access.READ:
                    if self._running or next(iter(self._open)) is not place or not place.ready:
                        break
                    self._alone = True
                    self._running.add(place)
                    started.append(place)
                elif place.ready:
                    if len(self._running) >= self._max_parallel:
                        break
                    self._running.add(place)
                    started.append(place)
            heappop(self._turns)
        return started

    def _wait(self, place: Standing) -> None:
        self._pushed += 1
        heappush(self._turns, (self._open[place], self._pushed, place))

    def _stopped(self, place: Standing) -> None:
        if place in self._running:
            self._running.discard(place)
            self._alone = False


class Failures:
    """Which toolsets have failed in one answer: after that, no later action of theirs is to run.

    The model planned the actions of a toolset as one sequence; what follows one that did not happen rarely makes sense.
    """

    def __init__(self) -> None:
        self._first: dict[str, int] = {}

    def add(self, toolset: str, index: int) -> bool:
        """An action failed, at this position of the answer. Returns whether it is the first one, as far as known."""
        if index >= self._first.get(toolset, index + 1):
            return False
        self._first[toolset] = index
        return True

    def halt(self, toolset: str | None, index: int) -> bool:
        """Whether the action at this position is not to run."""
        return toolset is not None and self._first.get(toolset, index) < index
