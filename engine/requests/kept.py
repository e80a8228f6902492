"""A content block that is in the payload store."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from looplatch.audit.protocol import Commitment
from looplatch.names import Names

_CALLS: Final = frozenset(("tool_use", "server_tool_use", "mcp_tool_use"))
_OF_RESULTS: Final = frozenset(("type", "tool_use_id", "content", "is_error"))


class Kept(NamedTuple):
    """A content block, encoded once, and what a record says of it."""

    encoded: bytes
    skeleton: dict[str, Any]

    def __repr__(self) -> str:
        return f"Kept({self.skeleton})"  # contents stay out of tracebacks


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


def new_in(part: dict[str, Any] | str, encoded: bytes, told: Mapping[str, Any] | None) -> bytes:
    """What may have secrets in a content block: of a result whose content alone is new, that is its content."""
    if told is None or isinstance(part, str) or not part.keys() <= _OF_RESULTS:
        return encoded
    if told.get("tool_use_id") != part["tool_use_id"]:
        return encoded  # a secret was taken out of the id
    content = part["content"]
    return content.encode(errors="replace") if isinstance(content, str) else encoded
