"""The good prefix of a log: what a run can go on from, and what a crash left behind it.

A crash tears the end off a log, and nothing else: what follows the last good record is kept aside and the run goes on
before it. Damage that good records follow is no crash's; such a log is refused.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

import attrs

from looplatch.audit.errors import LogDamaged
from looplatch.audit.reader import parse, read_bytes, split
from looplatch.states.errors import UsageError
from looplatch.states.record import ZEROS, Kind, Record, canonical, digest


@attrs.frozen(kw_only=True, eq=False)
class Prefix:
    """The records of a log up to its first damage, at least a genesis. `torn` is all that came after them."""

    file: Path | None
    lines: tuple[bytes, ...] = attrs.field(repr=False)
    records: tuple[Record, ...] = attrs.field(repr=False)
    torn: bytes = attrs.field(repr=False)

    @property
    def run(self) -> str:
        """The run that the log belongs to."""
        return self.records[0].run

    @property
    def genesis(self) -> Record:
        """The first record."""
        return self.records[0]

    @property
    def data(self) -> bytes:
        """The bytes of the good records."""
        return b"".join(self.lines)


def read_prefix(file: Path) -> Prefix:
    """The good prefix of the log in `file`.

    Raises UsageError where it cannot be read or holds no record, LogDamaged where good records follow a damage.
    """
    lines, torn = split(read_bytes(file))
    return prefix_of(lines, torn, file)


def prefix_of(lines: Sequence[bytes], torn: bytes = b"", file: Path | None = None) -> Prefix:
    """The same of a log given as its whole lines and what follows the last newline."""
    records: list[Record] = []
    head = ZEROS
    for number, line in enumerate(lines, 1):
        try:
            record = _following(line, number, head, records, file)
        except LogDamaged as damage:
            _check_tail(lines[number:], damage)
            break
        records.append(record)
        head = record.hash
    if not records:
        raise UsageError("log", f"{file or 'the log'} holds no run", "Give the log of a run that was begun")
    good = len(records)
    rest = b"".join(lines[good:]) + torn
    return Prefix(file=file, lines=tuple(lines[:good]), records=tuple(records), torn=rest)


def _following(line: bytes, number: int, head: str, before: Sequence[Record], file: Path | None) -> Record:
    """The record in `line`, which follows those `before`. Raises LogDamaged where it does not."""
    record = parse(line, number, file)
    if not _is_whole(record, line):
        raise LogDamaged(file, number, "its hash is not that of its content")
    if record["prev"] != head or record.seq != len(before):
        raise _Spliced(file, number, "it does not follow the record before it")
    if (record.kind is Kind.GENESIS) != (not before) or (before and record.run != before[0].run):
        raise _Spliced(file, number, "it is no record of this run at this place")
    return record


class _Spliced(LogDamaged):
    """A good record in the wrong place: that is never a crash."""


def _is_whole(record: Record, line: bytes) -> bool:
    bare = {name: value for name, value in record.data.items() if name != "hash"}
    return record.hash == digest(canonical(bare)) and canonical(record.data) + b"\n" == line


def _check_tail(rest: Iterable[bytes], damage: LogDamaged) -> None:
    """Raise where what follows a damage shows that it was no crash."""
    if isinstance(damage, _Spliced) or any(map(_stands_alone, rest)):
        problem = f"{damage.problem}, and good records stand there or after it: that is no crash's doing"
        raise LogDamaged(damage.file, damage.line, problem) from damage


def _stands_alone(line: bytes) -> bool:
    """Whether a line is a whole record by itself."""
    try:
        return _is_whole(parse(line, 1, None), line)
    except (LogDamaged, TypeError):
        return False
