"""Micro, done by the API: it clears old tool results in what it reads, and leaves the history as it is."""

from collections.abc import Mapping
from typing import Any, Final, cast

from looplatch.recovery.compression.settings import Compression
from looplatch.states.record import MAX_INT

CLEAR_TOOL_USES: Final = "clear_tool_uses_20250919"
BETA: Final = "context-management-2025-06-27"
_COUNTS: Final = ("cleared_input_tokens", "cleared_thinking_turns", "cleared_tool_uses")


def context_management(settings: Compression, window: int | None, max_tokens: int) -> dict[str, Any] | None:
    """What a request asks for, so that the API clears when the level would be due here; None where it is not wanted.

    window: the model's, in tokens; None: not known, and the API clears where it does so by itself. max_tokens: of the
    answer, which counts here and not there.
    """
    if not settings.server_edits or settings.micro_at is None:
        return None
    edit: dict[str, Any] = {"type": CLEAR_TOOL_USES, "keep": {"type": "tool_uses", "value": settings.keep_results}}
    if window is not None:
        edit["trigger"] = _tokens(max(1, int(settings.micro_at * window) - max_tokens))
        if least := int(settings.micro_frees * window):
            edit["clear_at_least"] = _tokens(least)
    return {"edits": [edit]}


def applied_edits(response: object) -> list[dict[str, Any]]:
    """The edits that an answer's `context_management` tells of: a type each, and what went, counted."""
    match response:
        case {"applied_edits": list()}:
            told = cast("Mapping[str, list[object]]", response)["applied_edits"]
            return [_applied(cast("Mapping[str, Any]", edit)) for edit in told if isinstance(edit, Mapping)]
        case _:
            return []


def _applied(edit: Mapping[str, Any]) -> dict[str, Any]:
    counts = {name: min(value, MAX_INT) for name in _COUNTS if type(value := edit.get(name)) is int and value >= 0}
    kind = edit.get("type")
    return {"type": kind if isinstance(kind, str) else "unknown", **counts}


def _tokens(value: int) -> dict[str, Any]:
    return {"type": "input_tokens", "value": value}
