"""Where the commands write: a terminal, or a file or pipe, which gets plain lines."""

import os
import shutil
import sys
from enum import StrEnum
from typing import Final, TextIO

_RESET: Final = "\x1b[0m"
_NARROWEST: Final = 24
_WITHOUT_TERMINAL: Final = 160


class Style(StrEnum):
    """How a text looks on a terminal with colours."""

    PLAIN = ""
    FAINT = "\x1b[2m"
    STRONG = "\x1b[1m"
    TOOL = "\x1b[36m"
    BAD = "\x1b[31m"


class Screen:
    """Writes lines, and text that is still being written. What it is given is shown as it is: clean it first.

    terminal: whether someone watches; then text is shown as it comes. Colours are used on terminals, unless NO_COLOR is
    set or TERM is dumb. A character that the encoding lacks is written as its escape.
    """

    def __init__(self, out: TextIO | None = None) -> None:
        self._out: TextIO = sys.stdout if out is None else out
        if (reconfigure := getattr(self._out, "reconfigure", None)) is not None:
            reconfigure(errors="backslashreplace")
        self.terminal = self._out.isatty()
        self._colours = self.terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        self._colours = self._colours and os.name != "nt"  # a console there may not know escape sequences
        self._open = False  # a line has begun and not ended

    @property
    def width(self) -> int:
        """The characters of one line, as a bound for what is shortened."""
        return max(shutil.get_terminal_size().columns - 1, _NARROWEST) if self.terminal else _WITHOUT_TERMINAL

    def line(self, text: str = "", style: Style = Style.PLAIN) -> None:
        """Write a line, below whatever is being written."""
        self.end_line()
        self._out.write(f"{self._styled(text, style)}\n")
        self._out.flush()

    def write(self, text: str, style: Style = Style.PLAIN) -> None:
        """Go on with a text."""
        if text:
            self._out.write(self._styled(text, style))
            self._out.flush()
            self._open = not text.endswith("\n")

    def end_line(self) -> None:
        """End the line that has begun, if one has."""
        if self._open:
            self._out.write("\n")
            self._open = False

    def _styled(self, text: str, style: Style) -> str:
        return f"{style}{text}{_RESET}" if self._colours and style and text else text
