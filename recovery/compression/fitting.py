"""Fitting new results into the window: what is too big for it is cut, with a reference to where the whole is kept."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from looplatch.recovery.compression.cutting import Content, content_tokens, cut_content, text_tokens, waterline
from looplatch.recovery.compression.edits import Edit, lowering
from looplatch.recovery.compression.exchanges import has_results
from looplatch.recovery.compression.markers import media_left_out
from looplatch.recovery.weights import Message

_MEDIA: Final = ("image", "document")
_MARKER_TOKENS: Final = 40  # what a marker with a reference weighs


def fit_results(
    blocks: Sequence[dict[str, Any]], budget_tokens: int, references: Mapping[str, str] | None = None
) -> list[dict[str, Any]]:
    """The content of a user message with its results cut so that they have about `budget_tokens` tokens together.

    The largest are cut first: their texts to head and tail; where that is not enough, pictures and documents go.
    `references`: by tool_use_id, what the markers name as the place of the full content. Other blocks, and results that
    fit, are the same objects as before; markers come on top of the budget.
    """
    results = [block for block in blocks if block.get("type") == "tool_result"]
    level = waterline([content_tokens(block.get("content")) for block in results], budget_tokens)
    named = references or {}
    return [
        _fitted(block, level, named.get(str(block.get("tool_use_id")))) if block.get("type") == "tool_result" else block
        for block in blocks
    ]


def fit_newest(
    messages: Sequence[Message], budget_tokens: int, references: Mapping[str, str] | None = None
) -> tuple[Edit, ...]:
    """The edits that cut the newest results so that they have about `budget_tokens` tokens together, as `fit_results`.

    Those are the results that the model has not read yet: what stands behind the last answer. None where they fit.
    """
    places = newest_results(messages)
    blocks = [block for place in places for block in messages[place]["content"]]
    cut = fit_results(blocks, max(0, budget_tokens - _MARKER_TOKENS * _results_in(blocks)), references)
    edits: list[Edit] = []
    for place in places:
        old = messages[place]["content"]
        new, cut = cut[: len(old)], cut[len(old) :]
        if any(now is not was for now, was in zip(new, old, strict=True)):
            edits.append(Edit(start=place, stop=place + 1, messages=({**messages[place], "content": new},)))
    return lowering(messages, edits)


def newest_results(messages: Sequence[Message]) -> tuple[int, ...]:
    """The places of the messages that answer the last answer's calls."""
    last = next((place for place in reversed(range(len(messages))) if messages[place]["role"] == "assistant"), -1)
    return tuple(place for place in range(last + 1, len(messages)) if last >= 0 and has_results(messages[place]))


def newest_tokens(messages: Sequence[Message]) -> int:
    """What the newest results weigh together, in tokens."""
    blocks = [block for place in newest_results(messages) for block in messages[place]["content"]]
    return sum(content_tokens(block.get("content")) for block in blocks if block.get("type") == "tool_result")


def _results_in(blocks: Sequence[Mapping[str, Any]]) -> int:
    return sum(block.get("type") == "tool_result" for block in blocks)


def _fitted(block: dict[str, Any], tokens: int, reference: str | None) -> dict[str, Any]:
    content = cast("Content | None", block.get("content"))
    whole = content_tokens(content)
    if not content or whole <= tokens:
        return block
    rest = whole - text_tokens(content)  # pictures and documents, and what is no text of blocks
    if rest > tokens and not isinstance(content, str):
        content = [_without_media(item, reference) for item in content]
        rest = content_tokens(content) - text_tokens(content)
    cut = cut_content(content, max(0, tokens - rest), reference)
    return {**block, "content": cut} if content_tokens(cut) < whole else block


def _without_media(item: dict[str, Any], reference: str | None) -> dict[str, Any]:
    kind = item.get("type")
    if kind not in _MEDIA:
        return item
    return {"type": "text", "text": media_left_out(f"{'an' if kind == 'image' else 'a'} {kind}", reference)}
