"""Reading a log as far as it can be read: one record after the other, up to the first line that is none."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from looplatch.audit import AuditLog, Log, LogDamaged, PayloadSource
from looplatch.audit.places import place_of
from looplatch.audit.protocol import check_is_log
from looplatch.audit.reader import parse
from looplatch.states.errors import UsageError
from looplatch.states.record import Record

Readable = Log | AuditLog | str | os.PathLike[str]
"""What a log may be given as: the log, or the path of its file."""


class Reading:
    """The records of a log, read once and in order; none is kept, so that a log of any length can be gone through.

    payloads: where contents are found. damage: once the records are read, the first line that was none, if there was
    one; nothing behind it is read. torn: the bytes after the last newline, left of a write that a crash broke off.
    """

    def __init__(self, lines: Iterable[bytes], payloads: PayloadSource, file: Path | None = None) -> None:
        self.payloads = payloads
        self.file = file
        self.damage: LogDamaged | None = None
        self.torn = 0
        self._lines = lines

    def __iter__(self) -> Iterator[Record]:
        for number, line in enumerate(self._lines, 1):
            if not line.endswith(b"\n"):
                self.torn = len(line)
                return
            try:
                record = parse(line, number, self.file)
            except LogDamaged as damage:
                self.damage = damage
                return
            yield record


def reading(log: Readable) -> Reading:
    """Begin to read a log. Raises UsageError, here or at the first record, where its file cannot be read."""
    if isinstance(log, Log):
        return Reading((*log.lines, log.torn) if log.torn else log.lines, log.payloads, log.file)
    if isinstance(log, str | os.PathLike):
        place = place_of(log)
        return Reading(place.lines(), place.payloads, place.file)
    check_is_log(log)
    return Reading(log.lines(), log.payloads, log.file)


def nothing_in(log: Reading) -> UsageError:
    """The error for a log without a single record."""
    why = "it holds no record" if log.damage is None else f"its first line is no record ({log.damage.problem})"
    return UsageError("log", why, "Give the log of a run")
