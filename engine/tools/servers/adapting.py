"""The tools of an MCP server as tools of ours."""

import re
from collections.abc import Collection
from typing import Any, Final

from looplatch.states.brief import brief
from looplatch.states.errors import UsageError
from looplatch.tools.context import ToolContext
from looplatch.tools.servers.connection import Connection
from looplatch.tools.servers.failures import ServerFailed, described
from looplatch.tools.servers.results import result_of
from looplatch.tools.tool import Tool, ToolCall

__all__ = ["adapted", "listed"]

_NOT_IN_A_NAME: Final = re.compile(r"[^a-zA-Z0-9_-]")
_MAX_NAME: Final = 128
_MAX_PAGES: Final = 100


async def listed(connection: Connection) -> list[Any]:
    """All tools that the server offers, as it describes them. Raises ServerFailed."""
    found: list[Any] = []
    cursor: str | None = None
    try:
        for _ in range(_MAX_PAGES):
            page = await connection.client.list_tools(cursor=cursor)
            found += page.tools
            cursor = page.next_cursor
            if cursor is None:
                return found
    except Exception as error:
        raise ServerFailed(connection.server, f"its tools cannot be listed: {described(error)}") from error
    raise ServerFailed(connection.server, f"its list of tools does not end ({_MAX_PAGES} pages)")


def adapted(
    connection: Connection,
    found: list[Any],
    *,
    prefix: str,
    only: Collection[str] | None,
    timeout_s: float | None,
    trust_hints: bool,
) -> list[Tool]:
    """The tools of the server, those in `only` if that is given. Raises UsageError, naming the server and the tool."""
    missing = sorted(set(only or ()) - {tool.name for tool in found})
    if missing:
        there = ", ".join(sorted(tool.name for tool in found)) or "none"
        raise UsageError("only", f"{connection.server} has no tool {missing[0]!r}", f"Its tools are: {there}")
    return [
        _adapted(connection, tool, prefix, timeout_s, trust_hints=trust_hints)
        for tool in found
        if only is None or tool.name in only
    ]


def _adapted(connection: Connection, tool: Any, prefix: str, timeout_s: float | None, *, trust_hints: bool) -> Tool:
    hints = tool.annotations if trust_hints else None
    # A tool that says both, that it only reads and that it destroys, is taken at its worse word.
    reads = getattr(hints, "read_only_hint", None) is True and getattr(hints, "destructive_hint", None) is not True
    try:
        return Tool(
            name=_NOT_IN_A_NAME.sub("_", prefix + tool.name)[:_MAX_NAME],
            description=tool.description or tool.title or "",
            input_schema=tool.input_schema,
            call=_call_of(connection, tool.name),
            read_only=reads,
            timeout_s=timeout_s,
            idempotent=getattr(hints, "idempotent_hint", None) is True,
        )
    except UsageError as error:
        mend = f"{error.mend}, on the server, or leave the tool out by `only`"
        raise UsageError(f"MCP server {connection.server}, tool {brief(tool.name)}", error.problem, mend) from error


def _call_of(connection: Connection, name: str) -> ToolCall:
    async def call(given: dict[str, Any], ctx: ToolContext) -> object:
        from mcp import MCPError

        async def report(progress: float, total: float | None, message: str | None) -> None:
            ctx.progress(progress, total, message)

        client = connection.client
        try:
            return result_of(await client.call_tool(name, given, progress_callback=report))
        except MCPError as error:
            raise ServerFailed(connection.server, described(error)) from error

    return call
