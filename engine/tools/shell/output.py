"""What a program prints, bounded whatever it prints."""

import re
from typing import Final

__all__ = ["MAX_OUTPUT", "Output"]

MAX_OUTPUT: Final = 100 * 1024
"""The most bytes of a program's output that are kept: of longer ones the first three quarters of that, and the last."""

_TAIL: Final = MAX_OUTPUT // 4
_HEAD: Final = MAX_OUTPUT - _TAIL
_HALF_AT_END: Final = re.compile(rb"(?<=\s)\S{1,4096}\Z")  # longer words are no secrets
_HALF_AT_START: Final = re.compile(rb"\A\S{1,4096}(?=\s)")
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
            # No word is cut, unless it is very long: half of a secret looks like none, and would be kept.
            head = _HALF_AT_END.sub(b"", self._head)
            tail = _HALF_AT_START.sub(b"", self._tail)
            gone = self._gone + len(self._head) - len(head) + len(self._tail) - len(tail)
            whole = f"{_decoded(head)}\n[... {gone:,} bytes left out ...]\n{_decoded(tail)}"
        else:
            whole = _decoded(self._head + self._tail)
        return _COLOURS.sub("", whole)


def _decoded(data: bytes | bytearray) -> str:
    return data.decode("utf-8", errors="replace")
