"""The tail of a log: the whole lines that have come since someone last looked."""

import asyncio
from pathlib import Path
from typing import Final, Protocol

import attrs

from looplatch.audit.places import SQLITE_SUFFIXES
from looplatch.audit.sqlitefile import stored_lines

CHUNK: Final = 1 << 20  # bytes of one look, but for a line that is longer
LONGEST: Final = 64 << 20  # bytes of a line
ROWS: Final = 1_000  # records of one look into a database
WAIT_S: Final = 20.0  # that a look waits for something to come
_LOOK_S: Final = 0.1  # between two looks


class Replaced(Exception):
    """The log is shorter than what was read of it: it is another one now, or none."""


@attrs.frozen
class Piece:
    """Whole lines. `next`: where to look for what comes after them. `more`: it is there already."""

    lines: bytes
    next: int
    more: bool


class Tail(Protocol):
    """The lines of a log, however far it has been written."""

    def piece(self, place: int) -> Piece:
        """The whole lines after `place`, 0 or the `next` of another piece; none if there are none. Raises Replaced."""
        ...


def tail_of(path: Path) -> Tail:
    """The tail of the log at `path`, whichever store it is in."""
    return Rows(path) if path.suffix.lower() in SQLITE_SUFFIXES else Lines(path)


async def awaited(tail: Tail, place: int, wait: float = WAIT_S) -> Piece:
    """The lines after `place`; none if none has come within `wait` seconds. Raises Replaced."""
    for _ in range(max(1, round(wait / _LOOK_S))):
        piece = await asyncio.to_thread(tail.piece, place)  # it reads a file, or a database
        if piece.lines:
            return piece
        await asyncio.sleep(_LOOK_S)
    return Piece(b"", place, more=False)


@attrs.frozen
class Lines:
    """A file of JSON Lines; places are bytes."""

    path: Path

    def piece(self, place: int) -> Piece:
        """See `Tail`."""
        try:
            size = self.path.stat().st_size
            if size < place:
                raise Replaced
            if size == place:
                return Piece(b"", place, more=False)
            with self.path.open("rb") as file:
                file.seek(place)
                data = file.read(CHUNK)
                if b"\n" not in data:
                    data += file.readline(LONGEST)
        except FileNotFoundError:
            raise Replaced from None
        lines = data[: data.rfind(b"\n") + 1]
        return Piece(lines, place + len(lines), more=place + len(data) < size)


@attrs.frozen
class Rows:
    """A database; places count records."""

    path: Path

    def piece(self, place: int) -> Piece:
        """See `Tail`. A database that was replaced by a shorter one looks like one in which nothing happens."""
        if not self.path.is_file():
            raise Replaced
        lines = tuple(stored_lines(self.path, ROWS, after=place))
        return Piece(b"".join(lines), place + len(lines), more=len(lines) == ROWS)
