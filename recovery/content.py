"""What the API refuses in a single message: blocks in the wrong role, errors without a text, too many cache marks."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

CACHE_MARKS: Final = 4  # blocks of a request that may carry `cache_control`
_ASSISTANTS: Final = ("tool_use", "thinking", "redacted_thinking", "server_tool_use", "mcp_tool_use")

Block = Mapping[str, Any]


def is_object(value: object) -> bool:
    """Whether a value is an object of JSON. Most are dicts, and looking through the abstract class is dear."""
    return type(value) is dict or isinstance(value, Mapping)


def content_problems(place: int, role: str, blocks: Sequence[Block]) -> Iterator[str]:
    """Every reason why the API would refuse the content of the message at `place`, as text."""
    for index, block in enumerate(blocks):
        kind = block["type"]
        if kind == "text":
            if isinstance(block.get("text"), str) and block["text"]:
                continue
        elif kind == "tool_use" and role == "assistant":
            continue
        where = f"messages.{place}.content.{index}"
        if kind == "text":
            yield f"{where}: a text must not be empty"
        elif kind == "tool_result":
            if role != "user":
                yield f"{where}: a tool_result belongs in a message of the user's"
            if not isinstance(block.get("content"), str) or not block["content"]:
                yield from _result_problems(where, block)
        elif kind == "thinking" and role == "assistant" and not block.get("signature"):
            yield f"{where}: thinking without its signature cannot be sent; leave it out"
        elif kind in _ASSISTANTS and role != "assistant":
            yield f"{where}: a {kind} belongs in a message of the assistant's"


def cache_marks(blocks: Sequence[Block]) -> int:
    """How many blocks carry `cache_control`, those inside of results included."""
    marks = 0
    for block in blocks:
        if "cache_control" in block and is_object(block["cache_control"]):
            marks += 1
        if block.get("type") == "tool_result" and isinstance(block.get("content"), list):
            inner = cast("list[object]", block["content"])
            marks += cache_marks([cast("Block", item) for item in inner if is_object(item)])
    return marks


def _result_problems(where: str, block: Block) -> Iterator[str]:
    content = block.get("content")
    if block.get("is_error") and not content:
        yield f"{where}: a tool_result that is an error must say something"
    if not isinstance(content, list):
        return
    for item in cast("list[object]", content):
        if not isinstance(item, Mapping):
            yield f"{where}: the content of a tool_result must be a text or a list of content blocks"
            continue
        part = cast("Block", item)
        kind = part.get("type")
        if kind == "text" and not part.get("text"):
            yield f"{where}: a text in a tool_result must not be empty"
        if kind != "text" and block.get("is_error"):
            yield f"{where}: a tool_result that is an error may hold nothing but text, no {kind}"
