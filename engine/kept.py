"""A content block that is in the payload store."""

from typing import Any, Final

import attrs

from looplatch.audit.protocol import Commitment
from looplatch.names import Names

_CALLS: Final = frozenset(("tool_use", "server_tool_use", "mcp_tool_use"))


@attrs.frozen
class Kept:
    """A content block, encoded once, and what a record says of it."""

    encoded: bytes = attrs.field(repr=False)
    skeleton: dict[str, Any]


def skeleton_of(block: dict[str, Any] | str, kept: Commitment, names: Names) -> dict[str, Any]:
    """What a record says of a content block, or of a text that is all the content of a message."""
    if isinstance(block, str):
        return {"type": "text", "commitment": kept.hex, "bytes": kept.size}
    kind = names.of(str(block.get("type")))
    skeleton: dict[str, Any] = {"type": kind, "commitment": kept.hex, "bytes": kept.size}
    if kind == "tool_result":
        if isinstance(id_ := block.get("tool_use_id"), str):
            skeleton["tool_use_id"] = names.of(id_)
            skeleton["is_error"] = block.get("is_error") is True
    elif kind in _CALLS:
        id_, name = block.get("id"), block.get("name")
        if isinstance(id_, str) and isinstance(name, str):
            skeleton |= {"id": names.of(id_), "name": names.of(name)}
            if (caller := _caller(block)) is not None:
                skeleton["caller"] = names.of(caller)
    return skeleton


def _caller(block: dict[str, Any]) -> str | None:
    """Who made the call, where that was not the model itself."""
    match block.get("caller"):
        case {"type": str(kind)} if kind != "direct":
            return kind
        case _:
            return None
