"""The text of files, whatever they hold."""

import codecs
import io
import os
from typing import BinaryIO, Final

from looplatch.tools.cut_ends import without_half_at_end, without_half_at_start

__all__ = ["MAX_BYTES", "read_lines", "read_text"]

MAX_BYTES: Final = 4 * 1024 * 1024
"""The most bytes that are read of one file."""

_LOOKED_AT: Final = 8 * 1024
_MARKED: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_GAP: Final = "\n[... the middle of the file is not shown ...]\n"


def read_text(opened: BinaryIO) -> tuple[str | None, bool]:
    """The text of a file, or None where it is binary, and whether that is all of it. Closes the file.

    Of a file beyond `MAX_BYTES`, these are the first three quarters of that, and the last quarter.
    """
    with opened:
        head = opened.read(_LOOKED_AT)
        encoding = _encoding(head)
        if encoding is None:
            return None, True
        data = head + opened.read(MAX_BYTES + 1 - len(head))
        if len(data) <= MAX_BYTES:
            return _decoded(data, encoding), True
        quarter = MAX_BYTES // 4
        opened.seek(-quarter, os.SEEK_END)
        start = without_half_at_end(_decoded(data[: MAX_BYTES - quarter], encoding))
        end = without_half_at_start(_decoded(opened.read(quarter), encoding))
    return f"{start}{_GAP}{end}", False


def read_lines(opened: BinaryIO, first: int, last: int | None) -> tuple[str | None, bool]:
    """The lines `first` to `last` (from 1 on; None: to the end), or None where the file is binary, and whether that is
    all of them. Closes the file. Reads on to them through a file of any size, and takes no more than `MAX_BYTES`."""
    with opened:
        encoding = _encoding(opened.read(_LOOKED_AT))
        if encoding is None:
            return None, True
        opened.seek(0)
        lines = io.TextIOWrapper(opened, encoding=encoding, errors="replace", newline="\n")
        found: list[str] = []
        left, number = MAX_BYTES, 1
        while last is None or number <= last:
            piece = lines.readline(_LOOKED_AT)
            if not piece:
                break
            if number >= first:
                if left < len(piece):
                    return without_half_at_end("".join(found)), False
                left -= len(piece)
                found.append(piece)
            number += piece.endswith("\n")
        lines.detach()
    return "".join(found).removeprefix("\ufeff"), True


def _decoded(data: bytes, encoding: str) -> str:
    return data.decode(encoding, errors="replace").removeprefix("\ufeff")


def _encoding(head: bytes) -> str | None:
    marked = next((name for mark, name in _MARKED if head.startswith(mark)), None)
    return marked or (None if b"\0" in head else "utf-8")
