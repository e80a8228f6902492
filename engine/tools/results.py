"""What a tool returned, as content that the API takes and that fits a request."""

import copy
import re
from collections.abc import Mapping
from typing import Any, cast

import attrs

from looplatch.encoding import decode, encode, mend_surrogates
from looplatch.tools.calls import Content
from looplatch.tools.plain import json_text, plain
from looplatch.tools.tool import ToolResult

__all__ = ["MAX_RESULT_CHARS", "Rendered", "render", "with_reference"]

MAX_RESULT_CHARS = 200_000
"""The longest text of one result that is sent, in characters: some 50,000 tokens, a quarter of a window of 200,000."""

# The fields without which the API refuses a block, by the types that a tool_result may hold.
_BLOCKS: Mapping[str, Mapping[str, type]] = {
    "text": {"text": str},
    "image": {"source": dict},
    "document": {"source": dict},
    "search_result": {"source": str, "title": str, "content": list},
    "tool_reference": {"tool_name": str},
    "browser_state": {"tabs": list},
}


# The fields that the API takes in a block; others are refused, so they are left out. Caching is marked by looplatch.
_FIELDS: Mapping[str, frozenset[str]] = {
    "text": frozenset({"type", "text", "citations"}),
    "image": frozenset({"type", "source"}),
    "document": frozenset({"type", "source", "title", "context", "citations"}),
    "search_result": frozenset({"type", "source", "title", "content", "citations"}),
    "tool_reference": frozenset({"type", "tool_name"}),
}

_LEFT_OUT = re.compile(r"(\[… [\d,]+ (?:of [\d,]+ characters|more text blocks) left out) …\]")


@attrs.frozen(kw_only=True)
class Rendered:
    """A result that can be sent. `full_text` is its whole text when `content` holds only the ends of it, else None."""

    content: Content
    is_error: bool = False
    full_text: str | None = None


def render(value: object, *, max_chars: int = MAX_RESULT_CHARS) -> Rendered:
    """Turn anything that a tool may return into content for a tool_result. Never raises an `Exception`.

    A str stays. A list of content blocks (text, image, document, search_result, tool_reference) stays, less its empty
    text blocks, which the API refuses. Bytes that are UTF-8 become their text. Anything else becomes JSON text; what
    has no JSON form is shown by its `repr`. A `ToolResult` gives the content and the mark.
    Text beyond `max_chars` characters is cut to its head and tail around a marker that says how much was left out.
    """
    if type(value) is str and len(value) <= max_chars:
        return Rendered(content=mend_surrogates(value))
    try:
        return _rendered(value, max_chars)
    except Exception:  # a value that fails whatever it is asked, even its class
        return _text(json_text(value), max_chars)


def _rendered(value: object, max_chars: int) -> Rendered:
    if isinstance(value, ToolResult):
        inner = render(value.content, max_chars=max_chars)
        return _as_error(inner) if inner.is_error or value.is_error else inner
    if isinstance(value, bytes | bytearray | memoryview):
        made = plain(cast("object", value))
        return _text(made if isinstance(made, str) else json_text(made), max_chars)
    if isinstance(value, str):
        return _text(str.__str__(value), max_chars)
    blocks = _blocks(value)
    if blocks is not None:
        return _bounded_blocks(blocks, max_chars)
    return _text(json_text(value), max_chars)


def _as_error(rendered: Rendered) -> Rendered:
    """The result as an error: the API takes only text there, and some of it."""
    content = rendered.content
    if not isinstance(content, str):
        content = [block if block["type"] == "text" else _stand_in(block["type"]) for block in content]
    if not content or (isinstance(content, str) and not content.strip()):
        content = "The tool reported an error and said nothing about it."
    return attrs.evolve(rendered, content=content, is_error=True)


def _stand_in(kind: str) -> dict[str, Any]:
    return {"type": "text", "text": f"[{kind} left out: an error can only be told in text]"}


def _text(text: str, max_chars: int) -> Rendered:
    text = mend_surrogates(text)
    cut = cut_middle(text, max_chars)
    return Rendered(content=cut, full_text=None if cut is text else text)


def cut_middle(text: str, max_chars: int) -> str:
    """The text itself, or its head and tail (three to one) around a marker when it is longer than `max_chars`.

    The marker comes on top of `max_chars`.
    """
    if len(text) <= max_chars:
        return text
    tail = max_chars // 4
    head = max_chars - tail
    gone = len(text) - max_chars
    marker = f"\n[… {gone:,} of {len(text):,} characters left out …]\n"
    return text[:head] + marker + text[len(text) - tail :]


def with_reference(content: Content, reference: str) -> Content:
    """The content of a cut result, which now names where the whole text is kept: in the marker, or at the end."""
    if isinstance(content, str):
        named, done = _named(content, reference)
        return named if done else f"{content}\n[the full text is kept as {reference}]"
    blocks = copy.deepcopy(content)
    for block in blocks:
        for holder, name in _text_holders(block):
            holder[name], done = _named(holder[name], reference)
            if done:
                return blocks
    return [*blocks, {"type": "text", "text": f"[the full text is kept as {reference}]"}]


def _named(text: str, reference: str) -> tuple[str, bool]:
    named = _LEFT_OUT.sub(rf"\1; the full text is kept as {reference} …]", text, count=1)
    return named, named != text


def _blocks(value: object) -> list[dict[str, Any]] | None:
    """A copy of a list of content blocks that shares nothing with the tool's; None for anything else."""
    if not isinstance(value, list | tuple):
        return None
    items = cast("list[object] | tuple[object, ...]", value)
    if not items or not all(_is_block(item) for item in items):
        return None
    try:
        blocks = cast("list[dict[str, Any]]", decode(encode(list(items))))
    except (TypeError, ValueError):
        return None
    return [_known_fields(block) for block in blocks]


def _known_fields(block: dict[str, Any]) -> dict[str, Any]:
    """The block less what the API would refuse, in what it holds, too; null says no more than nothing."""
    fields = _FIELDS.get(block["type"])
    if fields is None:
        return block
    kept = {name: value for name, value in block.items() if name in fields and value is not None}
    if isinstance(kept.get("content"), list):
        kept["content"] = _known_items(kept["content"])
    return kept


def _known_items(items: list[Any]) -> list[Any]:
    return [_known_fields(item) if _is_block(item) else item for item in items]


def _is_block(item: object) -> bool:
    if not isinstance(item, dict):
        return False
    block = cast("dict[str, object]", item)
    kind = block.get("type")
    fields = _BLOCKS.get(kind) if isinstance(kind, str) else None
    return fields is not None and all(isinstance(block.get(name), needed) for name, needed in fields.items())


def _bounded_blocks(blocks: list[dict[str, Any]], max_chars: int) -> Rendered:
    kept = [block for block in blocks if block.get("text") != ""]
    if not kept:
        return Rendered(content="")
    texts = [holder for block in kept for holder in _text_holders(block)]
    total = sum(len(holder[name]) for holder, name in texts)
    if total <= max_chars:
        return Rendered(content=kept)
    full_text = json_text(kept)
    left = max_chars
    sent: list[dict[str, Any]] = []
    gone = 0
    for block in kept:
        if left == 0 and block["type"] == "text":
            gone += 1
            continue
        for holder, name in _text_holders(block):
            text = holder[name]
            holder[name] = cut_middle(text, left)
            left = max(0, left - len(text))
        sent.append(block)
    if gone:
        sent.append({"type": "text", "text": f"[… {gone:,} more text blocks left out …]"})
    return Rendered(content=sent, full_text=full_text)


def _text_holders(block: dict[str, Any]) -> list[tuple[dict[str, Any], str]]:
    """Where the block holds text that may be cut. Data of images and files is not: half of it would be refused."""
    match block:
        case {"type": "text"}:
            return [(block, "text")]
        case {"type": "search_result", "content": list()}:
            texts = [_holder(part) for part in cast("list[object]", block["content"])]
            return [found for found in texts if found is not None]
        case {"type": "document", "source": {"type": "text", "data": str()} as source}:
            return [(cast("dict[str, Any]", source), "data")]
        case {"type": "document", "source": {"type": "content", "content": str()} as source}:
            return [(cast("dict[str, Any]", source), "content")]
        case _:
            return []


def _holder(part: object) -> tuple[dict[str, Any], str] | None:
    match part:
        case {"type": "text", "text": str()}:
            return cast("dict[str, Any]", part), "text"
        case _:
            return None
