"""The clock of a playback: it shows the time of the log, and nobody waits."""

import asyncio
import contextlib
from collections.abc import Callable

from looplatch.audit.stamps import unix_ns
from looplatch.ports import Timer
from looplatch.states.record import Record


class RecordedClock:
    """Shows the time of the recorded move that is to come. A sleep is over at once; timers are real ones."""

    def __init__(self) -> None:
        self._now_ns = 0
        self._monotonic_ns = 0

    def show(self, record: Record) -> None:
        """The time of this record is now."""
        self._monotonic_ns = max(self._monotonic_ns, record["mono_ns"])
        with contextlib.suppress(TypeError, ValueError):  # a time that is none changes nothing
            self._now_ns = unix_ns(record["ts"])

    def now_ns(self) -> int:
        """Nanoseconds since the epoch of Unix."""
        return self._now_ns

    def monotonic_ns(self) -> int:
        """Nanoseconds since the process of that part began."""
        return self._monotonic_ns

    async def sleep(self, seconds: float) -> None:
        """Let others go on, and return."""
        await asyncio.sleep(0)

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        """Call back after so many real seconds: what hangs is left in the end."""
        return asyncio.get_running_loop().call_later(seconds, callback)
