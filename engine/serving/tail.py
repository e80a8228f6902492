"""The tail of a log: the whole lines that have come since someone last looked."""

import asyncio
from pathlib import Path
from typing import Final

import attrs

CHUNK: Final = 1 << 20  # bytes of one look, but for a line that is longer
LONGEST: Final = 64 << 20  # bytes of a line
WAIT_S: Final = 20.0  # that a look waits for something to come
_LOOK_S: Final = 0.1  # between two looks at the file's size


class Replaced(Exception):
    """The file is shorter than what was read of it: it is another log now, or none."""


@attrs.frozen
class Piece:
    """Whole lines; `more` are there already."""

    lines: bytes
    more: bool


class Tail:
    """The lines of the file at `path`, however far it has been written."""

    def __init__(self, path: Path) -> None:
        self.path = path

    async def after(self, place: int, wait: float = WAIT_S) -> Piece:
        """The whole lines that begin at byte `place`; none if none has come within `wait` seconds. Raises Replaced."""
        for _ in range(max(1, round(wait / _LOOK_S))):
            piece = self._piece(place)
            if piece.lines:
                return piece
            await asyncio.sleep(_LOOK_S)
        return Piece(b"", more=False)

    def _piece(self, place: int) -> Piece:
        try:
            size = self.path.stat().st_size
            if size < place:
                raise Replaced
            if size == place:
                return Piece(b"", more=False)
            with self.path.open("rb") as file:
                file.seek(place)
                data = file.read(CHUNK)
                if b"\n" not in data:
                    data += file.readline(LONGEST)
        except FileNotFoundError:
            raise Replaced from None
        return Piece(data[: data.rfind(b"\n") + 1], more=place + len(data) < size)
