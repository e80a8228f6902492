"""Content blocks as the consumer of a run sees them: small frozen classes; blocks of other types stay dicts."""

from typing import Any

import attrs

from looplatch.encoding import copied


@attrs.frozen(kw_only=True)
class TextBlock:
    """Text of the model, or of the user."""

    text: str


@attrs.frozen(kw_only=True)
class ThinkingBlock:
    """The model's thinking; `signature` proves to the API that it is the model's own."""

    thinking: str
    signature: str


@attrs.frozen(kw_only=True)
class ToolUseBlock:
    """A call that the model makes."""

    id: str
    name: str
    input: dict[str, Any]


@attrs.frozen(kw_only=True)
class ToolResultBlock:
    """The answer to a call: a text, or a list of content blocks as the API knows them."""

    tool_use_id: str
    content: str | list[dict[str, Any]]
    is_error: bool = False


Block = TextBlock | ThinkingBlock | ToolUseBlock | ToolResultBlock | dict[str, Any]


def read_block(block: dict[str, Any]) -> Block:
    """Return the class for a content block of the API, or a dict when it has none; it shares nothing with `block`.

    The consumer may do with it what it likes: what is carried out and sent does not change.
    """
    get = block.get
    match get("type"):  # alone: a pattern over several keys is tried at several times the cost
        case "text" if isinstance(text := get("text"), str):
            return TextBlock(text=text)
        case "thinking" if isinstance(thinking := get("thinking"), str) and isinstance(sign := get("signature"), str):
            return ThinkingBlock(thinking=thinking, signature=sign)
        case "tool_use" if (
            isinstance(id_ := get("id"), str) and isinstance(name := get("name"), str) and "input" in block
        ):
            return ToolUseBlock(id=id_, name=name, input=copied(block["input"]))
        case "tool_result" if isinstance(id_ := get("tool_use_id"), str):
            content = block.get("content") or ""
            return ToolResultBlock(tool_use_id=id_, content=copied(content), is_error=block.get("is_error") is True)
        case _:
            return copied(block)


def blocks_of(message: dict[str, Any]) -> list[dict[str, Any]]:
    """The content blocks of a message; a content that is one text is one block."""
    content: str | list[dict[str, Any]] = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content
