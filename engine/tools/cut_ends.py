"""Where a text was cut: half of a secret looks like none, so that no half of anything that may be one is left there."""

import re
from typing import Final

__all__ = ["without_half_at_end", "without_half_at_start"]

_LONGEST: Final = 4096  # characters; longer words are no secrets, and of longer lines only a word is taken
_AT_END: Final = re.compile(rf"(?<=\s)\S{{1,{_LONGEST}}}\Z", re.ASCII)
_AT_START: Final = re.compile(rf"\A\S{{1,{_LONGEST}}}(?=\s)", re.ASCII)
_BEGIN_OF_KEY: Final = "-----BEGIN "
_END_OF_KEY: Final = re.compile(r"-----END (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----")


def without_half_at_end(text: str) -> str:
    """A text that was cut at its end, without the word that the cut may have halved, unless it is very long."""
    return _AT_END.sub("", text)


def without_half_at_start(text: str) -> str:
    """The same for a text whose beginning was cut off: without the rest of its line, unless that is very long.

    The name that tells that what follows is secret may have been cut off, as may have been the beginning of a private
    key.
    """
    end = _END_OF_KEY.search(text)
    if end is not None and _BEGIN_OF_KEY not in text[: end.start()]:
        text = text[end.end() :]
    ends = [place for mark in ("\n", _BEGIN_OF_KEY) if (place := text.find(mark, 0, _LONGEST)) >= 0]
    return text[min(ends) :] if ends else _AT_START.sub("", text)
