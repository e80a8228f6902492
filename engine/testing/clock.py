"""A clock whose time moves when it is told to, for tests of waits, retries and deadlines."""

import asyncio
import heapq
import itertools
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from attrs import define

from looplatch.testing.errors import ScriptError, check_kind

_SECOND = 1_000_000_000

ROUNDS: Final = 32
"""How many rounds of the event loop go by before time jumps: what one wake-up sets going may take as many steps."""


@define(eq=False)
class Timer:
    """A callback that waits for its time; `cancel` takes it back, and is harmless afterwards."""

    due_ns: int
    callback: Callable[[], object] | None

    def cancel(self) -> None:
        """Do not call back."""
        self.callback = None

    @property
    def cancelled(self) -> bool:
        """Whether it will not call back (any more)."""
        return self.callback is None


class FakeClock:
    """A clock of its own time, starting at `start`.

    With `autoadvance` (the default) time jumps to the end of the earliest sleep after a few rounds of the event loop,
    in which the tasks that are ready go on. So sleeps take no real time and end in their right order; timers on the way
    fire on the way. Timers alone never move the time. Without it, time moves by `advance` only.

    `slept` lists the seconds of every sleep asked for, in order.
    """

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC), *, autoadvance: bool = True) -> None:
        check_kind("FakeClock(start)", start, datetime, "a datetime with a zone")
        check_kind("FakeClock(autoadvance)", autoadvance, bool, "True or False")
        if start.tzinfo is None:
            raise ScriptError("FakeClock(start): the time has no zone; write datetime(..., tzinfo=UTC)")
        elapsed = start - datetime(1970, 1, 1, tzinfo=UTC)
        self._start_ns = (elapsed.days * 86_400 + elapsed.seconds) * _SECOND + elapsed.microseconds * 1_000
        self._elapsed_ns = 0
        self._autoadvance = autoadvance
        self._order = itertools.count()
        self._timers: list[tuple[int, int, Timer]] = []
        self._sleepers: set[Timer] = set()
        self._stepping: asyncio.AbstractEventLoop | None = None
        self.slept: list[float] = []

    def now_ns(self) -> int:
        """Nanoseconds since the epoch."""
        return self._start_ns + self._elapsed_ns

    def monotonic_ns(self) -> int:
        """Nanoseconds since this clock was made."""
        return self._elapsed_ns

    async def sleep(self, seconds: float) -> None:
        """Wait until `seconds` of this clock's time have gone by."""
        self.slept.append(seconds)
        loop = asyncio.get_running_loop()
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        woken: asyncio.Future[None] = loop.create_future()
        timer = self._add(seconds, lambda: None if woken.done() else woken.set_result(None))
        self._sleepers.add(timer)
        if self._autoadvance and self._stepping is not loop:
            self._stepping = loop
            loop.call_soon(self._step, loop, ROUNDS)
        try:
            await woken
        finally:
            timer.cancel()
            self._sleepers.discard(timer)

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        """Call back once, after `seconds` of this clock's time."""
        return self._add(max(0.0, seconds), callback)

    def advance(self, seconds: float) -> None:
        """Move the time on, firing what falls due in its order, each at its own time."""
        if seconds < 0:
            raise ScriptError(f"advance({seconds}): time does not run backwards")
        self._run_until(self._elapsed_ns + round(seconds * _SECOND))

    def _add(self, seconds: float, callback: Callable[[], object]) -> Timer:
        timer = Timer(self._elapsed_ns + round(seconds * _SECOND), callback)
        heapq.heappush(self._timers, (timer.due_ns, next(self._order), timer))
        return timer

    def _step(self, loop: asyncio.AbstractEventLoop, rounds: int) -> None:
        """Wait for so many rounds, jump to the end of the earliest sleep, and begin again while there are sleepers."""
        waiting = [timer.due_ns for timer in self._sleepers if not timer.cancelled]
        if not self._sleepers:
            self._stepping = None
        elif rounds or not waiting:
            loop.call_soon(self._step, loop, max(0, rounds - 1))
        else:
            self._run_until(min(waiting))
            loop.call_soon(self._step, loop, ROUNDS)

    def _run_until(self, until_ns: int) -> None:
        while self._timers and self._timers[0][0] <= until_ns:
            due_ns, _, timer = heapq.heappop(self._timers)
            self._elapsed_ns = max(self._elapsed_ns, due_ns)
            if (callback := timer.callback) is not None:
                timer.cancel()
                callback()
        self._elapsed_ns = max(self._elapsed_ns, until_ns)
