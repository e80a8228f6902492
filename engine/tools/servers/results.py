"""What an MCP server returned, as content that the API takes."""

from typing import Any

from looplatch.tools.tool import ToolResult

__all__ = ["result_of"]


def result_of(result: Any) -> ToolResult:
    """The result of an MCP tool: its blocks by the SDK's own helper, and what the API has no block for by its name.

    Structured content counts where there is no other; servers repeat it as text for those who know no better.
    """
    blocks = [_block(item) for item in result.content]
    content: object = blocks
    if not blocks and result.structured_content is not None:
        content = result.structured_content
    return ToolResult(content if content else "", is_error=bool(result.is_error))


def _block(item: Any) -> dict[str, Any]:
    from anthropic.lib.tools.mcp import UnsupportedMCPValueError, mcp_content

    try:
        return dict(mcp_content(item))
    except (UnsupportedMCPValueError, ValueError):  # ValueError: text that is none
        return {"type": "text", "text": _named(item)}


def _named(item: Any) -> str:
    """What the model is told of a block that it cannot be shown."""
    resource = getattr(item, "resource", item)
    uri = getattr(resource, "uri", None)
    kind = getattr(resource, "mime_type", None)
    named = [
        str(item.type).replace("_", " "),
        *(str(part) for part in (getattr(item, "name", None), kind, uri) if part),
    ]
    description = getattr(item, "description", None)
    return f"[{', '.join(named)}: cannot be shown]" + (f" {description}" if description else "")
