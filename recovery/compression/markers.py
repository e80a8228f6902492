"""The texts that stand where something was taken out of a history, and how they are told from what they replace."""

from collections.abc import Mapping
from typing import Any, Final, cast

SPAN_OPENING: Final = "[Summary of steps that are no longer shown]"
CONVERSATION_OPENING: Final = "[Summary of the conversation so far, which is no longer shown]"
QUOTE_OPENING: Final = "[The latest step, quoted]"
SAID_MEANWHILE: Final = "[What was said during these steps follows word by word]"

_CLEARED: Final = "[cleared: "
_SUPERSEDED: Final = "[superseded: "
_REPEATED: Final = "[repeated: "
_LEFT_OUT: Final = " tokens left out"


def cleared(tokens: int) -> str:
    """Of an old result."""
    return f"{_CLEARED}{tokens:,} tokens; call the tool again if they are needed]"


def superseded(tokens: int) -> str:
    """Of a result that a later call brought again."""
    return f"{_SUPERSEDED}{tokens:,} tokens; the same was asked for again later]"


def repeated(tokens: int) -> str:
    """Of a result that a later one is equal to."""
    return f"{_REPEATED}{tokens:,} tokens; a later result is the same, word by word]"


def left_out(tokens: int, of: int, reference: str | None) -> str:
    """Of the middle of a text. `reference` names where the whole of it is kept."""
    kept = "" if reference is None else f"; the full text is kept as {reference}"
    return f"\n[… {tokens:,} of {of:,}{_LEFT_OUT}{kept} …]\n"


def media_left_out(kind: str, reference: str | None) -> str:
    """Of a picture or a document."""
    kept = "" if reference is None else f"; it is kept as {reference}"
    return f"[… {kind} left out{kept} …]"


def is_whole(content: object) -> bool:
    """Whether the content of a result is nothing but one of these texts."""
    return isinstance(content, str) and content.startswith((_CLEARED, _SUPERSEDED, _REPEATED))


def is_cut(content: object) -> bool:
    """Whether the content of a result is one of these texts, or has one in it."""
    if isinstance(content, str):
        return is_whole(content) or (_LEFT_OUT in content and "[… " in content)
    if isinstance(content, list):
        return any(is_cut(block.get("text")) for block in cast("list[Mapping[str, Any]]", content))
    return False


def is_summary(block: Mapping[str, Any]) -> bool:
    """Whether a block is one that compression itself wrote into a user message."""
    text = block.get("text")
    return isinstance(text, str) and text.startswith((SPAN_OPENING, CONVERSATION_OPENING, QUOTE_OPENING))
