"""Turns in which the server ran tools of its own, and how they are closed when the server does not come back to them.

A paused turn, and one that asks for our tools and the server's at once, ends in calls that the server has yet to carry
out. It does so when the turn is sent back and nothing but tool results follows; when anything else is said after them,
it refuses calls without a result.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

SERVER_CALLS: Final = ("server_tool_use", "mcp_tool_use")  # the types of the calls that the server runs by itself

# The result type of each of the server's tools; its error type is this and `_error`.
_RESULT_TYPES: Final = {
    name: f"{name}_tool_result"
    for name in (
        "advisor",
        "bash_code_execution",
        "code_execution",
        "text_editor_code_execution",
        "web_fetch",
        "web_search",
    )
} | dict.fromkeys(("tool_search_tool_bm25", "tool_search_tool_regex"), "tool_search_tool_result")


def open_server_results(blocks: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Results for the server's own calls among the `blocks` of a turn that have none: not available.

    For a tool that is not known here there is none, since each tool has its own type of result.
    """
    return [made for call in open_server_calls(blocks) if (made := _unavailable(call)) is not None]


def open_server_calls(blocks: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The server's own calls among the `blocks` of a turn that have no result."""
    answered = {block.get("tool_use_id") for block in blocks}
    return [block for block in blocks if block.get("type") in SERVER_CALLS and block.get("id") not in answered]


def with_turns_closed(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages, with results for the server's own calls wherever the user said more than results after them."""
    made = list(messages)
    turn: list[dict[str, Any]] = []  # the blocks of the assistant's messages in a row
    place = -1  # of the last one of them
    for index, message in enumerate(made):
        blocks = _blocks(message)
        if message.get("role") == "assistant":
            turn = [*turn, *blocks] if index and place == index - 1 else blocks
            place = index
        elif any(block.get("type") != "tool_result" for block in blocks):
            if results := open_server_results(turn):
                made[place] = {**made[place], "content": [*_blocks(made[place]), *results]}
            turn = []
    return made


def _blocks(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content")
    if not isinstance(content, list):
        return [{"type": "text", "text": content}]
    return [block for block in content if isinstance(block, dict)]  # pyright: ignore[reportUnknownVariableType]


def _unavailable(call: Mapping[str, Any]) -> dict[str, Any] | None:
    own = {"tool_use_id": call.get("id")}
    if call.get("type") == "mcp_tool_use":
        return {"type": "mcp_tool_result", **own, "is_error": True, "content": "unavailable: the turn was not finished"}
    kind = _RESULT_TYPES.get(str(call.get("name")))
    if kind is None:
        return None
    return {"type": kind, **own, "content": {"type": f"{kind}_error", "error_code": "unavailable"}}
