"""What stamps each record: which process epoch wrote it, and when."""

import time
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol

_SECOND: Final = 1_000_000_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


class TimeSource(Protocol):
    """The part of a clock that a log needs."""

    def now_ns(self) -> int:
        """Nanoseconds since the epoch of Unix."""
        ...

    def monotonic_ns(self) -> int:
        """Nanoseconds since some moment; never falls."""
        ...


class SystemTime:
    """The machine's own clocks."""

    now_ns = staticmethod(time.time_ns)
    monotonic_ns = staticmethod(time.monotonic_ns)


SYSTEM_TIME: Final = SystemTime()


def unix_ns(ts: str) -> int:
    """A record's `ts` in nanoseconds since the epoch of Unix. Raises TypeError or ValueError for no such time."""
    return (datetime.fromisoformat(ts) - _EPOCH) // _MICROSECOND * 1_000


class Stamps:
    """The stamps of one epoch of a run: `epoch` rises by one with each process that takes the run over.

    `mono_ns` counts from the opening of the epoch, so that it stays far below 2**53, and never falls, whatever the
    clock does; from `last` on, where another process opened the epoch. `ts` is RFC 3339, UTC, to the microsecond.
    """

    __slots__ = ("_last", "_monotonic", "_now", "_origin", "_prefix", "_second", "clock", "epoch")

    def __init__(self, clock: TimeSource = SYSTEM_TIME, epoch: int = 0, last: int = 0) -> None:
        self.epoch = epoch
        self.clock = clock
        self._now = clock.now_ns
        self._monotonic = clock.monotonic_ns
        self._origin = self._monotonic()
        self._last = last
        self._second = -1  # the second that `_prefix` spells: consecutive records mostly share it
        self._prefix = ""

    def now(self) -> tuple[str, int]:
        """The time of day now (`ts`), and the nanoseconds since the epoch was opened (`mono_ns`)."""
        second, rest = divmod(self._now(), _SECOND)
        if second != self._second:
            self._prefix = datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S.")
            self._second = second
        elapsed = self._monotonic() - self._origin
        if elapsed > self._last:
            self._last = elapsed
        return f"{self._prefix}{rest // 1000:06d}Z", self._last
