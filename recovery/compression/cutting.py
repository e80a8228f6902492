"""Cutting content to a size: the head and the tail of each text stay, around a marker that says how much went."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

from looplatch.recovery.compression.markers import left_out
from looplatch.recovery.weights import BYTES_PER_TOKEN, encoded, size_of, weigh_json

Content = str | list[dict[str, Any]]
"""What a tool_result may hold."""


def content_tokens(content: Content | None) -> int:
    """The tokens of the content of a result, estimated; a picture or a document weighs the same whatever its size."""
    if isinstance(content, str):
        return size_of(content) // BYTES_PER_TOKEN
    return weigh_json(encoded(content)) if content else 0


def text_tokens(content: Content | None) -> int:
    """The tokens of all the texts in the content: what `cut_content` can cut."""
    if isinstance(content, str):
        return size_of(content) // BYTES_PER_TOKEN
    return sum(size_of(holder[name]) for holder, name in _texts(content or ())) // BYTES_PER_TOKEN


def cut_content(content: Content, tokens: int, reference: str | None = None) -> Content:
    """The content with its texts cut so that they have `tokens` tokens together, markers not counted.

    What fits is returned as it is, the same object. `reference` is named in the markers.
    """
    if text_tokens(content) <= tokens:
        return content
    if isinstance(content, str):
        return cut_text(content, tokens * BYTES_PER_TOKEN, reference)
    copies = [_copied(block) for block in content]
    texts = list(_texts(copies))
    level = waterline([size_of(holder[name]) for holder, name in texts], tokens * BYTES_PER_TOKEN)
    for holder, name in texts:
        holder[name] = cut_text(holder[name], level, reference)
    return copies


def cut_text(text: str, size: int, reference: str | None = None) -> str:
    """The text, or its head and tail (three to one) with at most `size` bytes in UTF-8, around a marker."""
    whole = size_of(text)
    if whole <= size:
        return text
    size = max(size, 0)
    tail = size // 4
    gone = left_out((whole - size) // BYTES_PER_TOKEN, whole // BYTES_PER_TOKEN, reference)
    if text.isascii():
        return text[: size - tail] + gone + text[len(text) - tail :]
    data = text.encode(errors="replace")
    head = data[: size - tail].decode(errors="ignore")
    return head + gone + data[len(data) - tail :].decode(errors="ignore")


def waterline(sizes: Iterable[int], budget: int) -> int:
    """The most that each may have so that all together keep within `budget`: the small stay whole, the large share."""
    ascending = sorted(sizes)
    for place, size in enumerate(ascending):
        share = max(budget, 0) // (len(ascending) - place)
        if size > share:
            return share
        budget -= size
    return ascending[-1] if ascending else 0


def _copied(block: dict[str, Any]) -> dict[str, Any]:
    """A copy that shares no holder of text with the block."""
    match block:
        case {"type": "search_result", "content": list()}:
            return {**block, "content": [{**part} for part in cast("list[dict[str, Any]]", block["content"])]}
        case {"type": "document", "source": dict()}:
            return {**block, "source": {**cast("dict[str, Any]", block["source"])}}
        case _:
            return {**block}


def _texts(content: Sequence[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], str]]:
    """Where the content holds text that may be cut. Half of a picture's data would be refused."""
    for block in content:
        match block:
            case {"type": "text", "text": str()}:
                yield block, "text"
            case {"type": "search_result", "content": list()}:
                yield from _texts(cast("list[dict[str, Any]]", block["content"]))
            case {"type": "document", "source": {"type": "text", "data": str()} as source}:
                yield cast("dict[str, Any]", source), "data"
            case _:
                pass
