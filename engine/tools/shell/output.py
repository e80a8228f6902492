"""What a program prints, bounded whatever it prints."""

import re
from typing import Final

__all__ = ["MAX_OUTPUT", "Output"]

MAX_OUTPUT: Final = 100 * 1024
"""The most bytes of a program's output that are kept: of longer ones the first three quarters of that, and the last."""

_TAIL: Final = MAX_OUTPUT // 4
_HEAD: Final = MAX_OUTPUT - _TAIL
_COLOURS: Final = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")


class Output:
    """Takes output in pieces."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._tail = bytearray()
        self._gone = 0

    def add(self, piece: bytes) -> None:
        """Take the next piece."""
        room = _HEAD - len(self._head)
        self._head += piece[:room]
        self._tail += piece[room:]
        if (over := len(self._tail) - _TAIL) > 0:
            del self._tail[:over]
            self._gone += over

    def text(self) -> str:
        """All that was kept, as text without colours."""
        if self._gone:
            middle = f"\n[... {self._gone:,} bytes left out ...]\n"
            whole = f"{_decoded(self._head)}{middle}{_decoded(self._tail)}"
        else:
            whole = _decoded(self._head + self._tail)
        return _COLOURS.sub("", whole)


def _decoded(data: bytes | bytearray) -> str:
    return data.decode("utf-8", errors="replace")
