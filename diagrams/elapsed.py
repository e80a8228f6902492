"""How long a run was at work, record by record. Time in which no process owned it does not count."""

from typing import Any, Protocol

_MS = 1_000_000
_SECOND = 1_000 * _MS


class Fields(Protocol):
    """A record, or the plain fields of one."""

    def get(self, name: str, /) -> Any:
        """The field `name`; None where there is none."""
        ...


class Elapsed:
    """Counts the nanoseconds of work: `mono_ns` counts from the opening of each epoch, so a new one goes on from there.

    timed: whether any record told the time. away: how often another process took the run over.
    """

    def __init__(self) -> None:
        self.now = 0
        self.timed = False
        self.away = 0
        self._epoch = 0
        self._last = 0

    def at(self, record: Fields) -> int:
        """The time of `record`; it never falls, whatever the records say."""
        stamp: object = record.get("mono_ns")
        epoch: object = record.get("epoch")
        if not isinstance(stamp, int) or isinstance(stamp, bool):
            return self.now
        if isinstance(epoch, int) and epoch != self._epoch:
            self._epoch, self._last = epoch, 0
            self.away += 1
        self.timed = True
        self.now += max(stamp - self._last, 0)
        self._last = max(stamp, self._last)
        return self.now


def spent(ns: int) -> str:
    """A time as people read it, in two or three digits."""
    seconds = ns / _SECOND
    if seconds >= 99.5:
        return _long(round(seconds))
    if seconds >= 9.95:
        return f"{seconds:.0f} s"
    if seconds >= 0.9995:
        return f"{seconds:.1f} s"
    if ns >= _MS:
        return f"{ns / _MS:.0f} ms"
    return "<1 ms" if ns else "0 ms"


def _long(seconds: int) -> str:
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    if hours >= 100:
        return f"{hours:,} h"
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s"
