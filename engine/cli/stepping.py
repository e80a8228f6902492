"""`looplatch replay --step`: the moves of a log, one at a time, forwards and backwards."""

import bisect
import contextlib
import os
import sys
from collections.abc import Generator, Sequence
from typing import Any, Final

from looplatch.analysis.fields import list_in, object_in
from looplatch.cleaning import cleaned, one_line
from looplatch.cli.screen import Screen, Style
from looplatch.proving.replaying import Replayed
from looplatch.states.context import FIELDS, Context

_HELP: Final = "n or Enter: next   b: back   a number and Enter: to that record   q: quit"
_LONGEST: Final = 400  # characters of a line
_NEXT: Final = ("n", "", " ", "j")
_BACK: Final = ("b", "p", "k")
_QUIT: Final = ("q", "\x04", "\x1b")


class Stepper:
    """Shows moves that were made again. sentences: about the records, by their numbers."""

    def __init__(self, screen: Screen, moves: Sequence[Replayed], sentences: Sequence[tuple[int, str]]) -> None:
        self._screen = screen
        self._moves = moves
        self._seqs = [made.record.seq for made in moves]
        self._sentences = sentences
        self._place = 0

    def walk(self, keys: Generator[str]) -> None:
        """Show the first move, then what the keys ask for, until they end or ask for the end."""
        screen = self._screen
        if not self._moves:
            screen.line("the log has no move")
            return
        screen.line(_HELP, Style.FAINT)
        self._show()
        for key in keys:
            if key in _QUIT:
                return
            if (place := self._wanted(key)) is None:
                screen.line(_HELP, Style.FAINT)
            elif place < 0:
                screen.line("this is the first move", Style.FAINT)
            elif place >= len(self._moves):
                screen.line("this is the last move", Style.FAINT)
            else:
                self._place = place
                self._show()

    def _wanted(self, key: str) -> int | None:
        """The place that a key leads to; None for a key that leads nowhere."""
        if key in _NEXT:
            return self._place + 1
        if key in _BACK:
            return self._place - 1
        if key.isascii() and key.isdigit():  # the move at that record, or the next one after it
            return min(bisect.bisect_left(self._seqs, int(key)), len(self._moves) - 1)
        return None

    def _show(self) -> None:
        made, screen = self._moves[self._place], self._screen
        record = made.record
        screen.line()
        for text in self._since(self._seqs[self._place - 1] if self._place else -1, record.seq):
            screen.line(f"  {text}", Style.FAINT)
        fields = ", ".join(f"{name}={value!r}" for name, value in object_in(record, "fields").items())
        head = (
            f"[{self._place + 1}/{len(self._moves)}] record {record.seq}: {record.source} -- {record.event}({fields})"
        )
        self._line(head, Style.STRONG)
        for name, verdict in list_in(record, "guards"):
            self._line(f"  {'+' if verdict else '-'} {name}", Style.PLAIN if verdict else Style.FAINT)
        self._line(f"  -> {record.target}{_why(record)}" + (" (refused)" if record["kind"] == "rejected" else ""))
        for name, value in object_in(record, "change").items():
            self._line(f"  {name} = {value!r}")
        self._line(f"  context: {_context(made.context)}", Style.FAINT)
        if made.difference is None:
            self._line("  the machine does the same", Style.FAINT)
            return
        self._line(f"  the machine does not do that: {made.difference.field}", Style.BAD)
        self._line(f"    expected: {made.difference.expected!r}", Style.BAD)
        self._line(f"    recorded: {made.difference.recorded!r}", Style.BAD)

    def _since(self, after: int, until: int) -> list[str]:
        return [f"{seq}  {text}" for seq, text in self._sentences if after < seq < until]

    def _line(self, text: str, style: Style = Style.PLAIN) -> None:
        indent = text[: len(text) - len(text.lstrip())]
        self._screen.line(indent + one_line(text, _LONGEST), style)


def _why(record: Any) -> str:
    words = [str(word) for word in (record.reason, record.strategy, record.terminal) if word is not None]
    return f": {', '.join(dict.fromkeys(words))}" if words else ""


def _context(context: Context) -> str:
    """What of a context is not as at the beginning."""
    start = Context()
    changed = ((name, getattr(context, name)) for name in FIELDS if getattr(context, name) != getattr(start, name))
    return ", ".join(f"{name}={value}" for name, value in changed) or "as at the beginning"


@contextlib.contextmanager
def pressed(screen: Screen) -> Generator[Generator[str]]:
    """The keys that are pressed: single ones at a terminal, else the lines of standard input."""
    if not sys.stdin.isatty():
        yield (line.strip() for line in sys.stdin)
        return
    try:
        import termios
        import tty
    except ImportError:  # no such terminals here: a key counts with Enter
        yield (line.strip() for line in sys.stdin)
        return
    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    try:
        tty.setcbreak(terminal)
        yield _keys(terminal, screen)
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


_ARROWS: Final = {b"\x1b[C": "n", b"\x1b[B": "n", b"\x1b[D": "b", b"\x1b[A": "b"}


def _keys(terminal: int, screen: Screen) -> Generator[str]:
    """Keys as they are pressed; digits are gathered up to Enter, and shown meanwhile."""
    digits = ""
    while data := os.read(terminal, 16):
        if (arrow := _ARROWS.get(data)) is not None:
            yield arrow
            continue
        for key in data.decode("ascii", "ignore"):
            if key.isdigit():
                digits += key
                screen.write(key)
            elif key in "\r\n":
                screen.end_line()
                yield digits
                digits = ""
            else:
                digits = ""
                yield cleaned(key) or key
