"""A value of whatever kind, as an error can name it."""

import reprlib
from typing import Any, Final

_CHARS: Final = 200
_ITEMS: Final = 20
_CUT: Final = "..."


class _Briefly(reprlib.Repr):
    def __init__(self) -> None:
        super().__init__()
        self.maxdict = self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = _ITEMS
        self.maxdeque = self.maxarray = _ITEMS
        self.maxstring = self.maxother = self.maxlong = _CHARS


def brief(value: Any) -> str:  # Any: what is refused may be of a type that is known in part only
    """The repr of `value`, of at most 200 characters.

    Never raises and makes no text of all that a long value holds: the value is one that was refused, so it may be
    nested without end, be of megabytes, or have a repr that raises.
    """
    try:
        text = _Briefly().repr(value)
        return text if len(text) <= _CHARS else text[: _CHARS - len(_CUT)] + _CUT
    except Exception:  # a number too long to be written, or a class whose own name cannot be had
        return object.__repr__(value)[:_CHARS]
