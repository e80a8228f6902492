"""Where a text was cut: half of a secret looks like none, so that no half of anything that may be one is left there."""

import re
from typing import Final

__all__ = ["without_half_at_end", "without_half_at_start"]

_AT_END: Final = re.compile(r"(?<=\s)\S{1,4096}\Z", re.ASCII)  # longer words are no secrets
_AT_START: Final = re.compile(r"\A\S{1,4096}(?=\s)", re.ASCII)
_END_OF_KEY: Final = re.compile(r"-----END (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----")


def without_half_at_end(text: str) -> str:
    """A text that was cut at its end, without the word that the cut may have halved, unless it is very long."""
    return _AT_END.sub("", text)


def without_half_at_start(text: str) -> str:
    """The same for a text whose beginning was cut off, which may also have been the beginning of a private key."""
    end = _END_OF_KEY.search(text)
    if end is not None and "-----BEGIN " not in text[: end.start()]:
        text = text[end.end() :]
    return _AT_START.sub("", text)
