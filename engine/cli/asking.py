"""Asking someone at the terminal: whether a call may run."""

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable
from typing import Final, TextIO

from looplatch.blocks import ToolUseBlock
from looplatch.cleaning import cleaned, one_line
from looplatch.hooks import Allow, Ask, Deny, ToolCallContext
from looplatch.states.counted import counted
from looplatch.tools.plain import json_text

NOBODY: Final = "nobody is there to allow it"
REFUSED: Final = "the user does not allow it"
_SHOWN: Final = 1_500  # characters of one field of an input
_NAME: Final = 200  # characters of a tool's name
_LONGEST: Final = 4_096  # bytes of an answer

Verdict = Allow | Deny | Ask


class Asking:
    """The hook that asks before each write. One question at a time; what was said of a tool for good is remembered.

    keeps: the run can be suspended, as its log is kept; then "later" is an answer. ask_at, show_at: the terminal,
    standard input and standard error by default. Where they are none, writes are denied. `make_room` is entered around
    each question, so that nothing else is drawn meanwhile.
    """

    def __init__(self, *, keeps: bool, ask_at: TextIO | None = None, show_at: TextIO | None = None) -> None:
        self._in = sys.stdin if ask_at is None else ask_at
        self._out = sys.stderr if show_at is None else show_at
        self._keeps = keeps
        self._for_good: dict[str, Verdict] = {}
        self._turn = asyncio.Lock()
        self.make_room: Callable[[], contextlib.AbstractContextManager[None]] = contextlib.nullcontext

    @property
    def answerable(self) -> bool:
        """Whether someone is there."""
        return self._in is not None and not self._in.closed and self._in.isatty() and self._out.isatty()

    async def before_tool(self, call: ToolCallContext) -> Verdict:
        """See `Hooks.before_tool`."""
        if call.read_only:
            return Allow()
        return await self.decide(ToolUseBlock(id=call.tool_use_id, name=call.name, input=call.input))

    async def decide(self, call: ToolUseBlock) -> Verdict:
        """What someone says of a call; Ask: nothing yet."""
        async with self._turn:
            known = self._for_good.get(call.name)
            if known is not None:
                return known
            if not self.answerable:
                return Deny(NOBODY)
            with self.make_room():
                self._show(_described(call))
                return await self._said_of(call.name)

    async def quiet(self) -> None:
        """Wait until no question is open: what is shown meanwhile would stand in the middle of it."""
        async with self._turn:
            pass

    async def _said_of(self, tool: str) -> Verdict:
        while True:
            match (await self._answer(tool)).strip().lower():
                case "y" | "yes":
                    return Allow()
                case "n" | "no":
                    return Deny(REFUSED)
                case "a" | "always":
                    return self._for_good.setdefault(tool, Allow())
                case "v" | "never":
                    return self._for_good.setdefault(tool, Deny(REFUSED))
                case "l" | "later" if self._keeps:
                    return Ask()
                case _:
                    pass

    def _show(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()

    async def _answer(self, tool: str) -> str:
        later = ", [l]ater" if self._keeps else ""
        _forget_keys(self._in.fileno())
        self._show(f"allow it? [y]es, [n]o, [a]lways or ne[v]er for {one_line(tool, _NAME)}{later}: ")
        line = await _line(self._in.fileno())
        if not line:
            self._show("\n")
            return "no"  # the terminal was closed
        return line.decode(errors="replace")


def _forget_keys(fd: int) -> None:
    """Drop what was typed before a question stood there: it is no answer to it."""
    if sys.platform == "win32":
        import msvcrt

        while msvcrt.kbhit():
            msvcrt.getwch()
    else:
        import termios

        with contextlib.suppress(termios.error):  # the terminal was closed, which reading from it tells
            termios.tcflush(fd, termios.TCIFLUSH)


async def _line(fd: int) -> bytes:
    """A line from the terminal, without a thread that would be left behind: nothing at its end."""
    loop = asyncio.get_running_loop()
    came: asyncio.Future[bytes] = loop.create_future()

    def read() -> None:
        if not came.done():
            try:
                came.set_result(os.read(fd, _LONGEST))
            except OSError:
                came.set_result(b"")

    try:
        loop.add_reader(fd, read)
    except NotImplementedError:  # the event loop of Windows cannot wait for a console
        return await asyncio.to_thread(os.read, fd, _LONGEST)
    try:
        return await came
    finally:
        loop.remove_reader(fd)


def _described(call: ToolUseBlock) -> str:
    """A call, field by field, as it may be shown."""
    lines = [f"\nThe model wants to call {one_line(call.name, _NAME)}:"]
    for name, value in call.input.items():
        text = cleaned(value if isinstance(value, str) else json_text(value))
        more = f"\n    ... and {counted(len(text) - _SHOWN, 'more character')}" if len(text) > _SHOWN else ""
        lines.append(f"  {cleaned(name)}: " + "\n    ".join(text[:_SHOWN].split("\n")) + more)
    return "\n".join(lines) + "\n"
