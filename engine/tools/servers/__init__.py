"""looplatch.tools.servers: the tools of MCP servers (Model Context Protocol), over stdio and HTTP."""

from looplatch.tools.servers.failures import ServerFailed
from looplatch.tools.servers.server import mcp_server

__all__ = ["ServerFailed", "mcp_server"]
