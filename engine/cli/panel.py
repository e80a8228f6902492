"""A screen with a panel at its foot: what is done scrolls above it, what goes on is written anew in it."""

import contextlib
import os
import shutil
import sys
import time
from collections.abc import Callable, Generator, Sequence
from typing import Final, TextIO

from looplatch.cli.cells import cells, fitted, wrapped
from looplatch.cli.screen import Screen, Style

_EVERY_S: Final = 0.05  # between two pictures
_TAB: Final = "    "

Rows = Sequence[tuple[str, Style]]


def screen_for(out: TextIO | None = None) -> Screen:
    """The screen for `out`, standard output by default: one with a panel where that is a terminal that can move."""
    to: TextIO = sys.stdout if out is None else out
    moves = to.isatty() and os.name != "nt" and os.environ.get("TERM", "dumb") != "dumb"
    return PanelScreen(to) if moves else Screen(to)


class PanelScreen(Screen):
    """A terminal whose last rows are a panel.

    Lines, and texts that are still being written, scroll as ever; the row that is not ended yet stands above the panel.
    No row of the panel is as wide as the window, so that it is never broken in two; `rows` gives them, most important
    last, and of those that the window does not hold the first are left out.
    """

    def __init__(self, out: TextIO, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__(out)
        self.rows: Callable[[int], Rows] = lambda _width: ()
        self._now = now
        self._ready: list[str] = []  # lines that are to be written above
        self._segments: list[tuple[str, Style]] = []  # of the row that is not ended
        self._drawn: list[int] = []  # the columns of each row that stands there
        self._last = float("-inf")
        self._held = True  # nothing is drawn before `follow`

    def line(self, text: str = "", style: Style = Style.PLAIN) -> None:
        """Write a line, below whatever is being written."""
        if self._held:
            super().line(text, style)
            return
        self.end_line()
        self._ready.append(f"{self._styled(text, style)}\n")
        self.refresh()

    def write(self, text: str, style: Style = Style.PLAIN) -> None:
        """Go on with a text."""
        if self._held:
            super().write(text, style)
            return
        first, *others = text.replace("\t", _TAB).split("\n")
        self._go_on(first, style)
        for part in others:
            self._end()
            self._go_on(part, style)
        self.refresh()

    def end_line(self) -> None:
        """End the line that has begun, if one has."""
        if self._held:
            super().end_line()
        elif self._segments:
            self._end()

    @contextlib.contextmanager
    def follow(self) -> Generator[None]:
        """Show the panel inside; afterwards all that was written stands there, and the panel is gone."""
        self._held = False
        try:
            yield
        finally:
            self._release()

    @contextlib.contextmanager
    def paused(self) -> Generator[None]:
        """Leave the terminal to somebody else inside: the panel is gone and nothing is drawn."""
        if self._held:
            yield
            return
        self._release()
        try:
            yield
        finally:
            self._held = False
            self.refresh(now=True)

    def refresh(self, *, now: bool = False) -> None:
        """Draw what has changed, unless that was just done; `now`: in any case."""
        if self._held or not (now or self._now() - self._last >= _EVERY_S):
            return
        columns, height = shutil.get_terminal_size()
        width = max(columns - 1, 1)
        rows = [*self._open_row(width), *self.rows(width)[-max(height - 2, 1) :]]
        shown = [(fitted(text, width), style) for text, style in rows]
        panel = "\n".join(self._styled(text, style) for text, style in shown)
        self._put(self._erased(columns) + "".join(self._ready) + panel)
        self._ready.clear()
        self._drawn = [cells(text) for text, _style in shown]
        self._last = self._now()

    def _release(self) -> None:
        """Take the panel away; what was written stays."""
        if self._held:
            return
        if self._segments:
            self._end()
        columns, _height = shutil.get_terminal_size()
        self._put(self._erased(columns) + "".join(self._ready))
        self._ready.clear()
        self._drawn = []
        self._held = True

    def _put(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()

    def _erased(self, columns: int) -> str:
        """Moves to the panel's first row and clears what is below. A window made narrower has broken its rows."""
        if not self._drawn:
            return ""
        up = sum(max(-(-wide // max(columns, 1)), 1) for wide in self._drawn) - 1
        return f"\r\x1b[{up}A\x1b[J" if up else "\r\x1b[J"

    def _go_on(self, text: str, style: Style) -> None:
        if text:
            self._segments.append((text, style))
        width = max(shutil.get_terminal_size().columns - 1, 1)
        whole = "".join(part for part, _style in self._segments)
        while (parts := wrapped(whole, width))[0]:
            done, whole = parts
            self._ready.append(f"{self._styled(done, style)}\n")
            self._segments = [(whole, style)] if whole else []

    def _end(self) -> None:
        self._ready.append("".join(self._styled(text, style) for text, style in self._segments) + "\n")
        self._segments = []

    def _open_row(self, width: int) -> Rows:
        if not self._segments:
            return ()
        return (("".join(text for text, _style in self._segments)[-4 * width :], self._segments[-1][1]),)
