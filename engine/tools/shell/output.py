"""What a program prints, bounded whatever it prints."""

import re
from typing import Final

from looplatch.tools.cut_ends import without_half_at_end, without_half_at_start

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
            # As Latin-1, every byte is a character.
            head = without_half_at_end(self._head.decode("latin-1")).encode("latin-1")
            tail = without_half_at_start(self._tail.decode("latin-1")).encode("latin-1")
            gone = self._gone + len(self._head) - len(head) + len(self._tail) - len(tail)
            whole = f"{_decoded(head)}\n[... {gone:,} bytes left out ...]\n{_decoded(tail)}"
        else:
            whole = _decoded(self._head + self._tail)
        return _COLOURS.sub("", whole)


def _decoded(data: bytes | bytearray) -> str:
    return data.decode("utf-8", errors="replace")
