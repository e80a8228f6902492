"""The files of a log that grows beyond one: `run.jsonl`, `run.jsonl.2`, `run.jsonl.3` and so on.

They are one log, cut into pieces: the last record of each but the last is a checkpoint that names the segment which it
closes, and the first record of the next one follows it by its hash.
"""

import itertools
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import attrs

from looplatch.audit.disk import Disk
from looplatch.audit.payloads import SECOND, FilePayloads, StrangeLine, payloads_of
from looplatch.audit.reader import fields_of
from looplatch.states.errors import UsageError

SMALLEST: Final = 1_024
"""The fewest bytes after which a log goes on in another file."""

_NUMBERED: Final = re.compile(r"(?P<first>.+)\.(?P<number>[2-9]|[1-9][0-9]{1,8})").fullmatch


def first_of(path: Path) -> Path:
    """The first segment of the log that `path` is any segment of."""
    found = _NUMBERED(path.name)
    if found is None:
        return path
    first = path.with_name(found["first"])
    return first if first.suffix == ".jsonl" or first.exists() else path


def segment(first: Path, number: int) -> Path:
    """Where the segment of this number is, from 1."""
    return first if number == 1 else first.with_name(f"{first.name}.{number}")


def numbers_of(first: Path) -> tuple[int, ...]:
    """The numbers of the segments that are there, in order."""
    own = first.name
    try:
        names = [name for name in os.listdir(first.parent) if name.startswith(own)]
    except (OSError, ValueError):  # no folder, or none that may be listed: then the first alone is asked for
        names = []
    found = {int(match["number"]) for name in names if (match := _NUMBERED(name)) and match["first"] == own}
    return tuple(sorted({*found, *([1] if own in names or not found else [])}))


def segments_of(first: Path) -> tuple[Path, ...]:
    """The segments that are there, in order; the first, if there is none."""
    return tuple(segment(first, number) for number in numbers_of(first))


def lines_of(first: Path) -> Iterator[bytes]:
    """The lines of all segments. Raises UsageError where one cannot be read."""
    for path in segments_of(first):
        try:
            with path.open("rb") as opened:
                yield from opened
        except (OSError, ValueError) as error:  # ValueError: a path with a null character
            why = error.strerror if isinstance(error, OSError) else error
            raise UsageError("log", f"{path} cannot be read ({why})", "Give the path of a log") from error


@attrs.frozen
class Fault:
    """A segment that is not the one that belongs in its place. `line`: of the whole log, from 1."""

    file: Path
    line: int
    problem: str
    expected: str
    found: str


def faults_of(first: Path) -> Iterator[Fault]:
    """The segments that are missing, or stand in the place of others."""
    there = numbers_of(first)
    line, head = 1, None
    for number in range(1, there[-1] + 1):
        path = segment(first, number)
        if number not in there:
            yield Fault(path, line, "a segment of the log is missing", path.name, "nothing")
            head = None
            continue
        size, begin, end = _ends(path)
        if size and head is not None and begin.get("prev") != head:
            yield Fault(path, line, "the segment does not follow the one before it", head, str(begin.get("prev")))
        line += size
        head = end.get("hash") if size else None
        closed = end.get("segment") if end.get("kind") == "checkpoint" else None
        if size and closed != number and not (closed is None and _is_last(first, number, there)):
            problem = f"{path.name} is not closed as the segment {number}"
            yield Fault(path, line - 1, problem, f"a checkpoint of the segment {number}", _described(closed))
        if closed == number == there[-1]:
            after = segment(first, number + 1)
            yield Fault(after, line, "the segment after a closed one is missing", after.name, "nothing")


def _is_last(first: Path, number: int, there: tuple[int, ...]) -> bool:
    """Whether no record stands in a later segment; the next one is there before this one is closed."""
    return not any(segment(first, later).stat().st_size for later in there if later > number)


def _described(closed: object) -> str:
    return "none" if closed is None else f"that of the segment {closed}"


def _ends(path: Path) -> tuple[int, dict[str, Any], dict[str, Any]]:
    """How many lines a file has, and its first and last whole record."""
    size, first, last = 0, b"", b""
    with path.open("rb") as file:
        for line in file:
            size += 1
            first = first or line
            last = line if line.endswith(b"\n") else last
    return size, fields_of(first), fields_of(last)


class SegmentPayloads:
    """The payloads of all segments."""

    def __init__(self, first: Path) -> None:
        self.path = payloads_of(first)
        self._first = first
        self._parts: dict[Path, FilePayloads] = {}

    def find(self, commitment: str) -> tuple[bytes, bytes] | None:
        """The salt and the payload that `commitment` stands for, or None. Raises UsageError for an unreadable file."""
        part = self._part_of(commitment)
        return None if part is None else part.find(commitment)

    def commitments(self) -> list[str]:
        """The commitments of all payloads that are kept. Raises UsageError for an unreadable file."""
        parts = (*self._parts.values(), *self._unread())
        return [one for part in parts for one in part.commitments()]

    def strange(self) -> list[StrangeLine]:
        """The lines that keep no payload; see `FilePayloads`."""
        found: list[StrangeLine] = []
        seen: set[str] = set()
        for part in (*self._parts.values(), *self._unread()):
            found += part.strange()
            own = set(part.commitments())
            found += [StrangeLine(part.path, part.line_of(one), SECOND) for one in sorted(own & seen)]
            seen |= own
        return found

    def blank(self, commitment: str, disk: Disk) -> bool:
        """Overwrite the payload where it stands, durably; whether there was one. Raises OSError."""
        part = self._part_of(commitment)
        return part is not None and part.blank(commitment, disk)

    def _part_of(self, commitment: str) -> FilePayloads | None:
        known = itertools.chain(self._parts.values(), self._unread())
        return next((part for part in known if part.find(commitment) is not None), None)

    def _unread(self) -> Iterator[FilePayloads]:
        for path in segments_of(self._first):
            if path not in self._parts:
                part = self._parts[path] = FilePayloads(payloads_of(path))
                yield part
