"""Text from a model, a tool or a file, made safe to show: it may not steer the terminal, nor hide or reorder text."""

import re
from collections.abc import Callable
from typing import Final

_HELD: Final = 4_096  # the longest escape sequence that is waited for

# ECMA-48: a sequence of parameters and a final byte; a string with its end; an escape of two or three characters.
_SEQUENCE: Final = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"
    r"|\x1b(?![\[\]PX^_])[ -/]*[0-~]"
)
_BEGUN: Final = re.compile(
    r"(?:(?:\x1b\[|\x9b)[0-?]*[ -/]*|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*\x1b?|\x1b[ -/]*)\Z"
)
_BREAK: Final = re.compile(r"\r\n?|[\x0b\x0c\x85\u2028\u2029]")
# Control characters but tab and newline; what changes the direction of text; what is not seen at all.
_UNSAFE: Final = re.compile(
    r"[\x00-\x08\x0e-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
_LONE: Final = re.compile(r"[\ud800-\udfff]")
# Those, and line breaks that few take for one.
_UNSEEN: Final = re.compile(rf"{_UNSAFE.pattern}|[\x0b\x0c\u2028\u2029\ud800-\udfff]")


def cleaned(text: str) -> str:
    """The text without escape sequences and control characters; line breaks are newlines."""
    text = _SEQUENCE.sub("", text)
    return _LONE.sub("\ufffd", _UNSAFE.sub("", _BREAK.sub("\n", text)))


def one_line(text: str, width: int) -> str:
    """The text in one line of at most `width` characters."""
    shown = " ".join(cleaned(text[: 8 * width + _HELD]).split())
    return shown if len(shown) <= width else shown[: max(width - 3, 0)] + "..."


def visible(text: str, escape: Callable[[str], str] = lambda _: "\ufffd") -> str:
    """The text with something to be seen, or what `escape` makes of it, for each character that cleaning takes out."""
    return _UNSEEN.sub(lambda match: escape(match.group()), text)


def json_escape(char: str) -> str:
    """A character as a JSON text names it."""
    pair = char.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{pair[start : start + 4]}" for start in range(0, len(pair), 4))


class Cleaner:
    """Cleans a text that comes in pieces, wherever they are cut."""

    def __init__(self) -> None:
        self._held = ""

    def feed(self, piece: str) -> str:
        """The part of the text that can be shown now."""
        text = self._held + piece
        begun = _BEGUN.search(text, max(0, len(text) - _HELD))
        # A `\r` may be half of a line break.
        end = begun.start() if begun is not None else len(text) - text.endswith("\r")
        self._held = text[end:]
        return cleaned(text[:end])

    def rest(self) -> str:
        """What is left at the end of the text."""
        held, self._held = self._held, ""
        return cleaned(held)
