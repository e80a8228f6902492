"""The messages of a run as JSON, one a line, for programs."""

import contextlib
import json
from typing import Any, Final, TextIO

import attrs

from looplatch.blocks import Block, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock
from looplatch.messages import (
    AssistantMessage,
    Message,
    ResultMessage,
    StreamEvent,
    SystemMessage,
    ToolMessage,
    TransitionMessage,
    UserMessage,
)
from looplatch.tools.plain import plain

_TYPES: Final[dict[type, str]] = {
    SystemMessage: "system",
    AssistantMessage: "assistant",
    UserMessage: "user",
    StreamEvent: "stream_event",
    TransitionMessage: "transition",
    ToolMessage: "tool",
    ResultMessage: "result",
    TextBlock: "text",
    ThinkingBlock: "thinking",
    ToolUseBlock: "tool_use",
    ToolResultBlock: "tool_result",
}


class JsonLines:
    """Writes each message as a line of JSON: its fields, and its kind as `type`. Content blocks have the API's form."""

    def __init__(self, out: TextIO) -> None:
        self.partial = False
        self._out = out

    def tick(self) -> None:
        """Time is not shown."""

    def following(self) -> contextlib.AbstractContextManager[None]:
        """Lines need no preparation."""
        return contextlib.nullcontext()

    def paused(self) -> contextlib.AbstractContextManager[None]:
        """Nor do they stand in the way of others."""
        return contextlib.nullcontext()

    def show(self, message: Message) -> None:
        """Write a message."""
        # Only ASCII: neither the encoding of a pipe matters, nor a terminal that obeys control characters.
        self._out.write(json.dumps(as_json(message), separators=(",", ":")) + "\n")
        self._out.flush()


def as_json(message: Message) -> dict[str, Any]:
    """A message as plain data; the log of a result is its file, None where it was in memory."""
    match message:
        case TransitionMessage():
            fields: dict[str, Any] = {"record": message.record.data}
        case AssistantMessage() | UserMessage():
            fields = {**_fields(message), "content": [_block(block) for block in message.content]}
        case ToolMessage():
            fields = {**_fields(message), "progress": plain(message.progress)}
        case ResultMessage():
            fields = {**_fields(message), "log": None if message.log.file is None else str(message.log.file)}
        case SystemMessage() | StreamEvent():
            fields = _fields(message)
    return {"type": _TYPES[type(message)], **fields}


def _block(block: Block) -> dict[str, Any]:
    return block if isinstance(block, dict) else {"type": _TYPES[type(block)], **_fields(block)}


def _fields(value: attrs.AttrsInstance) -> dict[str, Any]:
    return {field.name: getattr(value, field.name) for field in attrs.fields(type(value))}
