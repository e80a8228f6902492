"""A history as text, for the model that is to summarise it: it needs no tools, and its thinking is not in question."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from looplatch.recovery.compression.cutting import cut_text, waterline
from looplatch.recovery.compression.exchanges import THINKING, blocks_of
from looplatch.recovery.weights import BYTES_PER_TOKEN, Message, encoded, size_of


def transcript(messages: Iterable[Message], budget_tokens: int | None = None) -> str:
    """The messages as text, without thinking. Where they have more than `budget_tokens`, the longest parts are cut."""
    parts = list(_parts(messages))
    if budget_tokens is not None:
        heads = sum(size_of(head) + 2 for head, _ in parts)
        level = waterline([size_of(text) for _, text in parts], budget_tokens * BYTES_PER_TOKEN - heads)
        parts = [(head, cut_text(text, level)) for head, text in parts]
    return "\n".join(f"{head}\n{text}" for head, text in parts)


def _parts(messages: Iterable[Message]) -> Iterator[tuple[str, str]]:
    """Each block as a heading and a text."""
    names: dict[object, str] = {}
    for message in messages:
        role = str(message["role"])
        for block in blocks_of(message):
            match block:
                case {"type": "text", "text": str(text)}:
                    yield f"[{role}]", text
                case {"type": "tool_result", "tool_use_id": answers}:
                    failed = " (an error)" if block.get("is_error") else ""
                    yield f"[result of {names.get(answers, 'a tool')}{failed}]", _content(block.get("content"))
                case {"type": "tool_use" | "server_tool_use" | "mcp_tool_use", "id": own, "name": str(name)}:
                    names[own] = name
                    yield f"[{role} calls {name}]", _json(block.get("input"))
                case {"type": str(kind)} if kind in THINKING:
                    pass
                case {"type": str(kind)}:
                    yield f"[{role}: {kind}]", _other(block)
                case _:
                    pass


def _content(content: object) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    blocks = cast("list[Mapping[str, Any]]", content)
    return "\n".join(str(block["text"]) if "text" in block else f"[{block.get('type')}]" for block in blocks)


def _json(value: object) -> str:
    return encoded(value).decode()


def _other(block: Mapping[str, Any]) -> str:
    """What the server's own tools brought, and the like. The data of pictures and files says nothing as text."""
    return "" if "source" in block else _json({name: block[name] for name in block if name != "type"})
