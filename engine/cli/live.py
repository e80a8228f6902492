"""The live view of a run: its text, its tools and its states, as they come."""

import contextlib
import time
from collections.abc import Callable
from typing import Any, Final

import attrs

from looplatch.blocks import Block, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock
from looplatch.cleaning import Cleaner, cleaned, one_line
from looplatch.cli.panel import PanelScreen
from looplatch.cli.screen import Screen, Style
from looplatch.cli.status import Status
from looplatch.diagrams.elapsed import spent
from looplatch.messages import (
    AssistantMessage,
    Message,
    ResultMessage,
    StreamEvent,
    SystemMessage,
    ToolMessage,
    ToolPhase,
    TransitionMessage,
    UserMessage,
)
from looplatch.states.counted import counted
from looplatch.states.record import Kind, Record

_INPUT: Final = 60  # characters of a call's input that are shown
_DELTAS: Final = {"text_delta": "text", "thinking_delta": "thinking"}
_MARKS: Final = {ToolPhase.START: ">", ToolPhase.PROGRESS: ".", ToolPhase.END: "<"}


_TOOLS: Final = 6  # running calls that have a row each


@attrs.define
class _Running:
    """A call that has not ended: what stands in its row."""

    call: str
    since: float
    progress: str = ""


class LiveView:
    """Shows each message of a run on a screen: on a terminal text as it is written, else in whole lines.

    On a screen with a panel, a row for each call that runs, and one for the run itself, stand at its foot.
    """

    def __init__(self, screen: Screen, now: Callable[[], float] = time.monotonic) -> None:
        self._screen = screen
        self.partial = screen.terminal
        self._cleaner = Cleaner()
        self._written = False  # something of the current block is on the screen
        self._calls: dict[str, str] = {}
        self._running: dict[str, _Running] = {}
        self._status = Status()
        self._now = now
        self._since = now()
        self._panel = screen if isinstance(screen, PanelScreen) else None
        if self._panel is not None:
            self._panel.rows = self._rows

    def tick(self) -> None:
        """Show how time passes."""
        if self._panel is not None:
            self._panel.refresh()

    def following(self) -> contextlib.AbstractContextManager[None]:
        """Inside, the view has the foot of the screen for itself."""
        return contextlib.nullcontext() if self._panel is None else self._panel.follow()

    def paused(self) -> contextlib.AbstractContextManager[None]:
        """Inside, somebody else has the screen."""
        if self._panel is not None:
            return self._panel.paused()
        self._screen.end_line()
        return contextlib.nullcontext()

    def show(self, message: Message) -> None:
        """Show a message."""
        match message:
            case SystemMessage():
                self._system(message.subtype, message.data)
            case AssistantMessage():
                for block in message.content:
                    self._block(block)
            case UserMessage():
                for block in message.content:
                    self._said(block)
            case StreamEvent(parent_tool_use_id=None):
                self._status.stream(message.event)
                self._event(message.event)
            case StreamEvent():
                pass  # a sub-agent writes beside the model: its texts are shown when they are whole
            case TransitionMessage():
                self._status.move(message.record)
                self._move(message.record)
            case ToolMessage():
                self._tool(message)
            case ResultMessage():
                self._result(message)
        self.tick()

    def _line(self, text: str, style: Style = Style.PLAIN) -> None:
        self._screen.line(one_line(text, self._screen.width), style)

    def _system(self, subtype: str, data: dict[str, Any]) -> None:
        match subtype:
            case "init":
                self._line(f"run {data['run_id']}", Style.FAINT)
                self._line(f"model {data['model']}, tools: {', '.join(data['tools']) or 'none'}", Style.FAINT)
            case "api_retry":
                delay = data["delay_ms"] / 1000
                self._line(f"retry {data['attempt']} in {delay:.1f} s: {data['error']}", Style.BAD)
            case _:
                self._line(f"{subtype}: {data}", Style.FAINT)

    # --- text

    def _event(self, event: dict[str, Any]) -> None:
        match event:
            case {"type": "content_block_start"}:
                self._cleaner = Cleaner()
                self._written = False
            case {"type": "content_block_delta", "delta": {"type": "text_delta" | "thinking_delta" as kind} as delta}:
                self._write(self._cleaner.feed(str(delta.get(_DELTAS[kind], ""))), kind)
            case {"type": "content_block_stop"}:
                self._write(self._cleaner.rest(), "text_delta")
            case _:
                pass

    def _write(self, text: str, kind: str) -> None:
        self._screen.write(text, Style.FAINT if kind == "thinking_delta" else Style.PLAIN)
        self._written = self._written or bool(text)

    def _block(self, block: Block) -> None:
        match block:
            case TextBlock(text=text) if not self._written:
                self._whole(text, Style.PLAIN)
            case ThinkingBlock(thinking=thinking) if not self._written:
                self._whole(thinking, Style.FAINT)
            case ToolUseBlock():
                given = ", ".join(f"{name}={value!r}" for name, value in block.input.items())
                self._calls[block.id] = one_line(f"{block.name} {given}", len(block.name) + _INPUT)
            case dict():
                self._line(f"{block.get('type')} {block.get('name') or ''}", Style.TOOL)  # the server does it by itself
            case _:
                pass
        self._screen.end_line()
        self._written = False

    def _whole(self, text: str, style: Style) -> None:
        if shown := cleaned(text).strip("\n"):
            for line in shown.split("\n"):
                self._screen.line(line, style)

    # --- tools

    def _tool(self, message: ToolMessage) -> None:
        call = self._calls.get(message.tool_use_id, message.name)
        detail = ""
        running = self._running.get(message.tool_use_id)
        match message.phase:
            case ToolPhase.START:
                self._running[message.tool_use_id] = _Running(call, self._now())
            case ToolPhase.PROGRESS:
                detail = f": {' '.join(map(str, message.progress))}"
                if running is not None:
                    running.progress = detail
            case ToolPhase.END:
                detail = f": {message.cause}"
                self._running.pop(message.tool_use_id, None)
                if self._panel is not None and running is not None:
                    detail += f", {self._lasted(running.since)}"
        if self._panel is None or message.phase is ToolPhase.END:
            self._line(f"{_MARKS[message.phase]} {call}{detail}", Style.BAD if message.is_error else Style.TOOL)

    def _rows(self, width: int) -> list[tuple[str, Style]]:
        """The foot of the screen: a row for each call that runs, and at last one for the run."""
        running = list(self._running.values())
        rows = [
            (one_line(f"> {self._lasted(one.since)} {one.call}{one.progress}", max(width, 1)), Style.TOOL)
            for one in running[:_TOOLS]
        ]
        if len(running) > _TOOLS:
            rows.append((f"> and {counted(len(running) - _TOOLS, 'more call')}", Style.TOOL))
        return [*rows, (self._status.line(self._now() - self._since, width), Style.STRONG)]

    def _lasted(self, since: float) -> str:
        return spent(max(int((self._now() - since) * 1e9), 0))

    def _said(self, block: Block) -> None:
        match block:
            case ToolResultBlock():
                call = self._calls.get(block.tool_use_id, block.tool_use_id)
                text = _text_of(block.content)
                style = Style.BAD if block.is_error else Style.FAINT
                self._line(f"= {call}: {counted(len(text), 'character')}: {text[:1_000].strip()}", style)
            case TextBlock(text=text):
                self._line(f"user: {text}", Style.FAINT)
            case _:
                pass

    # --- states

    def _move(self, record: Record) -> None:
        if record.kind is Kind.REJECTED:
            self._line(f"{record.source}: {record.event} was refused", Style.BAD)
        elif record.target != record.source:
            why = record.strategy or record.reason or record.terminal
            if self._panel is not None and why is None:
                return  # the panel tells the state
            self._line(f"[{record.source} -> {record.target}] {record.event}{f', {why}' if why else ''}", Style.FAINT)

    def _result(self, result: ResultMessage) -> None:
        turns = counted(result.num_turns, "turn")
        read = sum(tokens for name, tokens in result.usage.items() if name != "output_tokens")
        tokens = f"{counted(read, 'token')} read, {result.usage.get('output_tokens', 0):,} written"
        style = Style.BAD if result.is_error else Style.STRONG
        self._screen.line()
        self._line(f"{result.subtype}: {result.terminal or 'no terminal reason'}, {turns}, {tokens}", style)
        if result.error:
            self._whole(result.error, Style.BAD)


def _text_of(content: str | list[dict[str, Any]]) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(str(block.get("text") or f"[{block.get('type')}]") for block in content)
