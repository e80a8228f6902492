"""Where logs are kept on disk: the name of the file tells which kind of store it is."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, Protocol

import attrs

from looplatch.audit.jsonl import JsonlLog
from looplatch.audit.payloads import FilePayloads, payloads_of
from looplatch.audit.prefix import Prefix, prefix_of
from looplatch.audit.protocol import AuditLog, PayloadSource
from looplatch.audit.sqlite import SqliteLog
from looplatch.audit.sqlitefile import SqlitePayloads, stored_lines
from looplatch.states.errors import UsageError

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

    def create(self, run: str, **settings: Any) -> AuditLog:
        """A new log there."""
        ...

    def reopen(self, kept: Prefix, **settings: Any) -> AuditLog:
        """The log of a run that goes on from `kept`, or gets tombstones."""
        ...


@attrs.frozen
class JsonlPlace:
    """JSON Lines, and a file of payloads beside it."""

    file: Path

    def lines(self) -> Iterator[bytes]:
        """See `Place`."""
        try:
            with self.file.open("rb") as opened:
                yield from opened
        except (OSError, ValueError) as error:  # ValueError: a path with a null character
            why = error.strerror if isinstance(error, OSError) else error
            raise UsageError("log", f"{self.file} cannot be read ({why})", "Give the path of a log") from error

    @property
    def payloads(self) -> FilePayloads:
        """See `Place`."""
        return FilePayloads(payloads_of(self.file))

    @property
    def absent(self) -> tuple[Path, ...]:
        """See `Place`."""
        beside = payloads_of(self.file)
        return () if beside.exists() else (beside,)

    def create(self, run: str, **settings: Any) -> JsonlLog:
        """See `Place`."""
        return JsonlLog(self.file, run, **settings)

    def reopen(self, kept: Prefix, **settings: Any) -> JsonlLog:
        """See `Place`."""
        return JsonlLog.reopen(self.file, kept, **settings)


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

    def create(self, run: str, **settings: Any) -> SqliteLog:
        """See `Place`."""
        return SqliteLog(self.file, run, **settings)

    def reopen(self, kept: Prefix, **settings: Any) -> SqliteLog:
        """See `Place`."""
        return SqliteLog.reopen(self.file, kept, **settings)


def place_of(path: str | os.PathLike[str]) -> Place:
    """The place that `path` names: `.sqlite`, `.sqlite3` and `.db` are databases, all else is JSON Lines."""
    file = Path(path)
    return SqlitePlace(file) if file.suffix.lower() in SQLITE_SUFFIXES else JsonlPlace(file)


def whole_lines(lines: Iterable[bytes]) -> tuple[tuple[bytes, ...], bytes]:
    """Lines as a place gives them, and the torn rest apart."""
    whole = tuple(lines)
    return (whole[:-1], whole[-1]) if whole and not whole[-1].endswith(b"\n") else (whole, b"")


def prefix_at(place: Place) -> Prefix:
    """The good prefix of the log in a place.

    Raises UsageError where it cannot be read or holds no record, LogDamaged where good records follow a damage.
    """
    lines, torn = whole_lines(place.lines())
    return prefix_of(lines, torn, place.file)
