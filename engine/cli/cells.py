"""How many columns of a terminal a text takes, and where it is cut to fit."""

import unicodedata
from typing import Final

_CUT: Final = "..."


def cells(text: str) -> int:
    """The columns that `text` takes: none for what is laid over another character, two for wide ones."""
    return len(text) if text.isascii() else sum(map(_width, text))


def fitted(text: str, width: int) -> str:
    """`text` in at most `width` columns; what is cut off is said by dots."""
    if cells(text) <= width:
        return text
    return text[: _reach(text, max(width - len(_CUT), 0))] + _CUT[: max(width, 0)]


def wrapped(text: str, width: int) -> tuple[str, str]:
    """The first line of `text`, where it is longer than `width` columns, and the rest; broken at a space if it has one.

    A text that fits is no line yet: ("", text).
    """
    if cells(text) <= width:
        return "", text
    reach = max(_reach(text, width), 1)
    space = text.rfind(" ", 1, reach + 1)
    if space > 0:
        return text[:space], text[space + 1 :]
    return text[:reach], text[reach:]


def _width(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _reach(text: str, width: int) -> int:
    """How many characters fit into `width` columns."""
    taken = 0
    for index, char in enumerate(text):
        taken += _width(char)
        if taken > width:
            return index
    return len(text)
