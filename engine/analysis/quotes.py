"""Contents of a run, quoted shortly: safe to show whatever a model, a tool or a file has put into them."""

from typing import Any, Final, cast

from looplatch.audit import PayloadSource
from looplatch.cleaning import one_line
from looplatch.encoding import DecodeError, decode, encode
from looplatch.states.counted import counted
from looplatch.states.errors import UsageError

QUOTED: Final = 100  # characters of a content that are quoted

Skeleton = dict[str, Any]


class Quotes:
    """Finds contents by what the records say of them."""

    def __init__(self, payloads: PayloadSource) -> None:
        self._payloads = payloads

    def value(self, commitment: str | None) -> Any:
        """The content, decoded; None where it is not kept, or is no JSON any more."""
        if commitment is None:
            return None
        try:
            found = self._payloads.find(commitment)
            return None if found is None else decode(found[1])
        except (DecodeError, UsageError):
            return None

    def text(self, commitment: str | None, size: int) -> str:
        """A content of `size` bytes in quotation marks."""
        return _quoted(self.value(commitment), size)

    def block(self, skeleton: Skeleton) -> str:
        """A content block: what it says, without its frame."""
        value = self.value(skeleton.get("commitment"))
        size: int = skeleton.get("bytes", 0)
        match value:
            case {"type": "text", "text": said} | {"type": "thinking", "thinking": said}:
                return _quoted(said, size)
            case {"type": "tool_use" | "server_tool_use" | "mcp_tool_use", "input": given}:
                return _quoted(given, size)
            case {"type": "tool_result"}:
                return _quoted(_result(value.get("content")), size)
            case _:
                return _quoted(value, size)


def _result(content: object) -> object:
    """What a result says: its texts, one after the other, and what else is in it by its type."""
    if not isinstance(content, list):
        return content
    return " ".join(_part(part) for part in cast("list[object]", content))


def _part(part: object) -> str:
    match part:
        case {"text": str(text)}:
            return text
        case {"type": str(kind)}:
            return f"[{kind}]"
        case _:
            return str(part)


def _quoted(value: object, size: int) -> str:
    if value is None:
        return f"({counted(size, 'byte')}, not kept)"
    return f'"{one_line(value, QUOTED)}"' if isinstance(value, str) else one_line(encode(value).decode(), QUOTED)
