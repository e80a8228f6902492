"""Where logs are kept on disk: the name of the file tells which kind of store it is."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Protocol

import attrs

from looplatch.audit.errors import LogDamaged
from looplatch.audit.jsonl import JsonlLog
from looplatch.audit.payloads import FilePayloads, payloads_of
from looplatch.audit.prefix import Prefix, prefix_of
from looplatch.audit.protocol import AuditLog, PayloadSource
from looplatch.audit.segmented import SegmentedLog
from looplatch.audit.segments import Fault, SegmentPayloads, faults_of, first_of, lines_of, segments_of
from looplatch.audit.sqlite import SqliteLog
from looplatch.audit.sqlitefile import SqlitePayloads, stored_lines
from looplatch.audit.torn import torn_beside
from looplatch.paths import path_of
from looplatch.states.errors import UsageError

_LONGEST_CHECKPOINT: Final = 1_024  # bytes
SQLITE_SUFFIXES: Final = (".sqlite", ".sqlite3", ".db")


class Place(Protocol):
    """A place on disk that holds one log, or is about to. All raise UsageError where it cannot be read or written."""

    @property
    def file(self) -> Path:
        """The path that the caller gave."""
        ...

    def lines(self) -> Iterator[bytes]:
        """The lines of the log, each with its newline; a torn rest comes last, without."""
        ...

    @property
    def payloads(self) -> PayloadSource:
        """Its payloads."""
        ...

    @property
    def absent(self) -> tuple[Path, ...]:
        """The files of payloads that should be there, and are not."""
        ...

    @property
    def torn(self) -> tuple[Path, ...]:
        """The files into which contents were moved that a crash had torn off."""
        ...

    @property
    def is_unsettled(self) -> bool:
        """Whether some of what was written, or deleted, is yet to be put into the file itself."""
        ...

    def faults(self) -> tuple[Fault, ...]:
        """Segments that are missing, or stand in the place of others."""
        ...

    def create(self, run: str, *, max_bytes: int | None = None, **settings: Any) -> AuditLog:
        """A new log there; it goes on in another file after `max_bytes`."""
        ...

    def reopen(self, kept: Prefix, *, max_bytes: int | None = None, **settings: Any) -> AuditLog:
        """The log of a run that goes on from `kept`, or gets tombstones."""
        ...


@attrs.frozen
class JsonlPlace:
    """JSON Lines, and a file of payloads beside it; or several such segments. `is_new`: nothing is there yet."""

    file: Path
    is_new: bool = False

    def lines(self) -> Iterator[bytes]:
        """See `Place`."""
        return lines_of(self.file)

    @property
    def payloads(self) -> FilePayloads | SegmentPayloads:
        """See `Place`."""
        return SegmentPayloads(self.file) if self._is_cut else FilePayloads(payloads_of(self.file))

    @property
    def absent(self) -> tuple[Path, ...]:
        """See `Place`."""
        beside = (payloads_of(path) for path in segments_of(self.file))
        return tuple(path for path in beside if not path.exists())

    @property
    def torn(self) -> tuple[Path, ...]:
        """See `Place`."""
        return torn_beside(payloads_of(path) for path in segments_of(self.file))

    @property
    def is_unsettled(self) -> bool:
        """See `Place`: it is written where it stays."""
        return False

    def faults(self) -> tuple[Fault, ...]:
        """See `Place`."""
        return tuple(faults_of(self.file)) if self._is_cut else ()

    def create(self, run: str, *, max_bytes: int | None = None, **settings: Any) -> JsonlLog:
        """See `Place`."""
        if max_bytes is None and not self._is_cut:
            return JsonlLog(self.file, run, **settings)
        return SegmentedLog(self.file, run, max_bytes=max_bytes, **settings)

    def reopen(self, kept: Prefix, *, max_bytes: int | None = None, **settings: Any) -> JsonlLog:
        """See `Place`."""
        if max_bytes is None and not self._is_cut:
            return JsonlLog.reopen(self.file, kept, **settings)
        return SegmentedLog.reopen(self.file, kept, max_bytes=max_bytes, **settings)

    @property
    def _is_cut(self) -> bool:
        return not self.is_new and self._has_segments

    @property
    def _has_segments(self) -> bool:
        return segments_of(self.file) != (self.file,) or _ends_in_a_checkpoint(self.file)


def _ends_in_a_checkpoint(file: Path) -> bool:
    """Whether the only segment is closed, so that another one is missing."""
    try:
        with file.open("rb") as opened:
            opened.seek(max(0, opened.seek(0, os.SEEK_END) - _LONGEST_CHECKPOINT))
            return b'"kind":"checkpoint"' in opened.read().rpartition(b"\n")[0].rpartition(b"\n")[2]
    except (OSError, ValueError):
        return False


@attrs.frozen
class SqlitePlace:
    """A database."""

    file: Path

    def lines(self) -> Iterator[bytes]:
        """See `Place`."""
        return stored_lines(self.file)

    @property
    def payloads(self) -> SqlitePayloads:
        """See `Place`."""
        return SqlitePayloads(self.file)

    @property
    def absent(self) -> tuple[Path, ...]:
        """See `Place`: they are in the same file."""
        return ()

    @property
    def torn(self) -> tuple[Path, ...]:
        """See `Place`: a transaction is whole, or is not there."""
        return ()

    @property
    def is_unsettled(self) -> bool:
        """See `Place`: it writes ahead, and tidies up as it is closed."""
        return self.file.with_name(f"{self.file.name}-wal").exists()

    def faults(self) -> tuple[Fault, ...]:
        """See `Place`: a database is one file."""
        return ()

    def create(self, run: str, *, max_bytes: int | None = None, **settings: Any) -> SqliteLog:
        """See `Place`. Raises UsageError for a `max_bytes`."""
        _refuse_segments(max_bytes)
        return SqliteLog(self.file, run, **settings)

    def reopen(self, kept: Prefix, *, max_bytes: int | None = None, **settings: Any) -> SqliteLog:
        """See `Place`. Raises UsageError for a `max_bytes`."""
        _refuse_segments(max_bytes)
        return SqliteLog.reopen(self.file, kept, **settings)


def place_of(path: str | os.PathLike[str]) -> Place:
    """The place that `path` names: `.sqlite`, `.sqlite3` and `.db` are databases, all else is JSON Lines.

    Raises UsageError where it is no path.
    """
    file = first_of(path_of("log", path))
    return SqlitePlace(file) if file.suffix.lower() in SQLITE_SUFFIXES else JsonlPlace(file)


def place_for(run: str, folder: Path) -> Place:
    """The place of a new run in a folder of logs, by its id: no other run has that, so that nothing is looked for.

    To look for segments is to list the folder, which takes the longer the more runs have left their logs in it.
    """
    return JsonlPlace(folder / f"{run}.jsonl", is_new=True)


def _refuse_segments(max_bytes: int | None) -> None:
    if max_bytes is not None:
        raise UsageError("segment_bytes", "a database is one file", "Leave it out, or log to a file of JSON Lines")


def whole_lines(place: Place) -> tuple[tuple[bytes, ...], bytes]:
    """The whole lines of the log in a place, and the torn rest apart.

    Raises UsageError where it cannot be read, LogDamaged where its files do not belong together.
    """
    for fault in place.faults():
        raise LogDamaged(fault.file, 1, f"{fault.problem}; expected {fault.expected}, found {fault.found}")
    whole = tuple(place.lines())
    return (whole[:-1], whole[-1]) if whole and not whole[-1].endswith(b"\n") else (whole, b"")


def prefix_at(place: Place) -> Prefix:
    """The good prefix of the log in a place.

    Raises UsageError where it cannot be read or holds no record, LogDamaged where good records follow a damage.
    """
    lines, torn = whole_lines(place)
    return prefix_of(lines, torn, place.file)
