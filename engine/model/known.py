"""The block types that the API has always had: what their fields must be, and which of them a delta may bring."""

from collections.abc import Mapping
from typing import Any, Final

from looplatch.model.shapes import is_array, is_object

# The fields that a delta may add to, by the type of the block.
_BY_DELTA: Final[Mapping[str, frozenset[str]]] = {
    "text": frozenset({"text", "citations"}),
    "thinking": frozenset({"thinking", "signature"}),
    "redacted_thinking": frozenset({"data"}),
    "tool_use": frozenset({"input"}),
    "server_tool_use": frozenset({"input"}),
    "mcp_tool_use": frozenset({"input"}),
}
# The fields that mean something of their own: none of them gets into a block of another type.
_MEANT: Final = frozenset({"id", "name", "caller", "toolset_name", "tool_use_id", "content", "is_error"}).union(
    *_BY_DELTA.values()
)
# The texts of a type, which need not come: what never came is empty.
_EMPTY: Final[Mapping[str, str]] = {"text": "text", "thinking": "thinking"}
_TEXTS: Final[Mapping[str, tuple[str, ...]]] = {
    "text": ("text",),
    "thinking": ("thinking", "signature"),
    "redacted_thinking": ("data",),
    "tool_use": ("toolset_name",),
}
_CALLS: Final = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})


def fits_delta(kind: str, field: str) -> bool:
    """Whether a delta may bring `field` to a block of the type `kind`; one that nobody knows may go anywhere."""
    own = _BY_DELTA.get(kind)
    return own is None or field in own or field not in _MEANT


def with_texts(block: dict[str, Any]) -> dict[str, Any]:
    """The block with an empty text in the place of one that never came."""
    field = _EMPTY.get(block["type"])
    return block if field is None or block.get(field) is not None else {**block, field: ""}


def problem_of(block: Mapping[str, Any]) -> str | None:
    """Why the API would not take the block back, in words that follow its type; None where nothing is wrong.

    What a block lacks altogether is none of this: it is just not sent back.
    """
    kind = block["type"]
    if kind in _CALLS and not (_is_name(block.get("id")) and _is_name(block.get("name"))):
        return "without id or name"
    if kind == "tool_result":
        return "block, which is not the model's to write"
    for field in _TEXTS.get(kind, ()):
        if not isinstance(block.get(field), str | None):
            return f"block whose {field} is no text"
    citations = block.get("citations")
    if kind == "text" and citations is not None and not (is_array(citations) and all(map(is_object, citations))):
        return "block whose citations are no list of objects"
    match block.get("caller"):
        case None | {"type": str()}:
            return None
        case _:
            return "block whose caller is no object with a type"


def _is_name(value: object) -> bool:
    return isinstance(value, str) and value != ""
