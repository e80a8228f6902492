"""The calls of one answer, and how far each of them is: what the scheduler knows, without any waiting."""

from heapq import heappop, heappush
from itertools import count

from looplatch.tools.calls import Call, Outcome
from looplatch.tools.entry import Entry
from looplatch.tools.order import Failures, Line

__all__ = ["Roster"]


class Roster:
    """Keeps entries in the model's order. Each step costs O(log n), however many calls an answer has."""

    def __init__(self, max_parallel: int) -> None:
        self._entries: dict[str, Entry] = {}
        self._open: dict[str, Entry] = {}  # those that have not ended, in the model's order
        self._line: Line[Entry] = Line(max_parallel)
        self._moved_on = 0
        self._unsure: list[tuple[int, int, Entry]] = []  # a heap, by index: those that the model has not moved on from
        self._numbers = count()
        self._unasked: dict[Entry, None] = {}  # those that permission was not asked for
        self._awaited: set[Entry] = set()
        self._running: set[Entry] = set()
        self.interrupts = False  # a call was denied so that all is to end
        self._failures = Failures()
        self._actions: dict[str, list[Entry]] = {}  # by toolset

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All calls, in the model's order."""
        return tuple(self._entries.values())

    @property
    def open(self) -> tuple[Entry, ...]:
        """Those that have not ended, in the model's order."""
        return tuple(self._open.values())

    @property
    def settled(self) -> bool:
        """Whether every call has its outcome."""
        return not self._open

    @property
    def awaits(self) -> bool:
        """Whether a call waits for someone's approval."""
        return bool(self._awaited)

    @property
    def held(self) -> bool:
        """Whether nothing runs and an approval is awaited."""
        return bool(self._awaited) and not self._running

    def __contains__(self, call_id: object) -> bool:
        return call_id in self._entries

    def is_open(self, entry: Entry) -> bool:
        """Whether the call has not ended, and was not dropped."""
        return self._open.get(entry.call.id) is entry

    def add(self, call: Call) -> Entry:
        """The next call of the model. Raises ValueError for an id that was added before."""
        if call.id in self._entries:
            raise ValueError(f"a call with the id {call.id!r} was added before; ids must be told apart first")
        entry = Entry(call, moved_on=call.index < self._moved_on)
        if not entry.moved_on:
            heappush(self._unsure, (call.index, next(self._numbers), entry))
        self._join(entry)
        return entry

    def restore(self, entry: Entry) -> None:
        """A call as an earlier process left it."""
        if entry.outcome is None:
            self._join(entry)
        else:
            self._entries[entry.call.id] = entry
            self.interrupts |= entry.outcome.interrupt
            self._failed(entry.outcome)

    def moved_on(self, index: int) -> list[Entry]:
        """The model has moved on from its first `index` blocks; returns the calls that are certain since then."""
        self._moved_on = max(index, self._moved_on)
        certain: list[Entry] = []
        while self._unsure and self._unsure[0][0] < index:
            *_, entry = heappop(self._unsure)
            was_decided, entry.moved_on = entry.decided, True
            if not was_decided:
                self._line.readied(entry)
                certain.append(entry)
        return certain

    def startable(self) -> list[Entry]:
        """The calls that start now, in order. Each must be begun, at once."""
        return self._line.start()

    def unasked(self) -> list[Entry]:
        """The calls that are certain, and that permission was not asked for."""
        return [entry for entry in self._unasked if entry.moved_on]

    def begin(self, entry: Entry) -> None:
        """A call runs, or permission for it is being asked for."""
        entry.running = True
        self._running.add(entry)
        self._unasked.pop(entry, None)

    def await_word(self, entry: Entry) -> None:
        """The call waits for someone's approval."""
        entry.awaited = True
        self._awaited.add(entry)

    def permit(self, entry: Entry, call: Call) -> None:
        """The call may run, as `call`."""
        entry.call, entry.permitted, entry.awaited = call, True, False
        self._awaited.discard(entry)
        self._line.readied(entry)

    def wait(self, entry: Entry) -> None:
        """A call that was begun waits, for its turn or for someone's approval."""
        entry.running = False
        self._running.discard(entry)
        if self.is_open(entry):
            self._line.returned(entry)

    def halts(self, entry: Entry) -> bool:
        """Whether the call is an action of a toolset of which an earlier one failed."""
        return self._failures.halt(entry.call.toolset, entry.call.index)

    def end(self, entry: Entry, outcome: Outcome) -> list[Entry]:
        """A call has its outcome; returns those that are not to run since it failed."""
        entry.outcome = outcome
        self.interrupts |= outcome.interrupt
        self._leave(entry)
        return self._failed(outcome)

    def unbegun(self) -> list[Entry]:
        """All calls after the last one begun."""
        kept = list(self._entries.values())
        while kept and not kept[-1].begun:
            kept.pop()
        return list(self._entries.values())[len(kept) :]

    def seal(self) -> list[Entry]:
        """Drop all calls after the last one begun, and return them."""
        dropped = self.unbegun()
        for entry in dropped:
            del self._entries[entry.call.id]
            if self.is_open(entry):
                self._leave(entry)
        return dropped

    def _join(self, entry: Entry) -> None:
        call = entry.call
        self._entries[call.id] = self._open[call.id] = entry
        if call.toolset is not None:
            self._actions.setdefault(call.toolset, []).append(entry)
        if call.problem is not None:
            return
        self._line.add(entry)
        if entry.awaited:
            self._awaited.add(entry)
        elif not entry.permitted:
            self._unasked[entry] = None

    def _leave(self, entry: Entry) -> None:
        entry.running = entry.awaited = False
        del self._open[entry.call.id]
        self._line.left(entry)
        self._running.discard(entry)
        self._awaited.discard(entry)
        self._unasked.pop(entry, None)

    def _failed(self, outcome: Outcome) -> list[Entry]:
        call = outcome.call
        toolset = call.problem.fails if call.problem is not None and call.problem.fails else call.toolset
        if not outcome.is_error or toolset is None or not self._failures.add(toolset, call.index):
            return []
        return [entry for entry in self._actions.get(toolset, ()) if self.is_open(entry) and self.halts(entry)]
