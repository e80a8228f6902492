"""An MCP server of the `mcp` package, run over stdio by the tests, and in their own process over HTTP."""

import base64
import os
from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import (
    AudioContent,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
    ToolAnnotations,
)

READS = ToolAnnotations(read_only_hint=True)


def made() -> MCPServer[Any]:
    """The server."""
    server: MCPServer[Any] = MCPServer("tests", log_level="ERROR")

    @server.tool(annotations=READS)
    def add(a: int, b: int) -> str:
        """Add two numbers."""
        return str(a + b)

    @server.tool(annotations=ToolAnnotations(read_only_hint=True, destructive_hint=True))
    def contradict() -> str:
        """Say both."""
        return "both"

    @server.tool(annotations=ToolAnnotations(read_only_hint=False, idempotent_hint=True))
    def put(value: str) -> str:
        """Write, once or twice."""
        return value

    @server.tool(name="dotted.name/x")
    def dotted() -> str:
        """Have a name that the API does not take."""
        return "dotted"

    @server.tool()
    def fail() -> str:
        """Fail."""
        raise ToolError("it broke")

    @server.tool()
    def facts() -> dict[str, int]:
        """Tell facts."""
        return {"rain": 3}

    @server.tool()
    def show() -> CallToolResult:
        """Show one of each."""
        data = base64.b64encode(b"data").decode()
        page = TextResourceContents(uri="test://page", mime_type="text/plain", text="a page")
        return CallToolResult(
            content=[
                TextContent(type="text", text="look"),
                ImageContent(type="image", data=data, mime_type="image/png"),
                ImageContent(type="image", data=data, mime_type="image/tiff"),
                AudioContent(type="audio", data=data, mime_type="audio/wav"),
                ResourceLink(type="resource_link", name="more", uri="test://more", description="More of it."),
                EmbeddedResource(type="resource", resource=page),
            ]
        )

    @server.tool()
    def refuse() -> CallToolResult:
        """Refuse, with a picture."""
        image = ImageContent(type="image", data=base64.b64encode(b"no").decode(), mime_type="image/png")
        return CallToolResult(content=[TextContent(type="text", text="no"), image], is_error=True)

    @server.tool()
    def structured() -> CallToolResult:
        """Return structured content only."""
        return CallToolResult(content=[], structured_content={"only": "this"})

    @server.tool()
    async def step(ctx: Context[Any]) -> str:
        """Tell of every step."""
        await ctx.report_progress(1, 2, "half")
        return "done"

    @server.tool()
    def place(variable: str) -> str:
        """Tell a variable, and where the server runs."""
        return f"{os.environ.get(variable, '-')} {os.getcwd()}"

    @server.tool()
    def die() -> str:
        """End the server."""
        os._exit(3)

    return server


if __name__ == "__main__":
    made().run("stdio")
