"""An MCP server, connected to for as long as its tools are used."""

import importlib.util
import os
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Any, cast

from looplatch.states.brief import brief
from looplatch.states.errors import UsageError
from looplatch.tools.servers.adapting import adapted, listed
from looplatch.tools.servers.connection import Connection, error_stream
from looplatch.tools.tool import Tool

__all__ = ["mcp_server"]

_WHAT = "mcp_server"


def mcp_server(
    server: str | Sequence[str] | Any,
    *,
    prefix: str = "",
    only: Collection[str] | None = None,
    env: Mapping[str, str] | None = None,
    folder: str | os.PathLike[str] | None = None,
    headers: Mapping[str, str] | None = None,
    timeout_s: float | None = None,
    trust_hints: bool = True,
) -> AbstractAsyncContextManager[list[Tool]]:
    """Connect to an MCP server: `async with mcp_server(...) as tools:`, with loops and runs of them inside.

    server: the address of one over HTTP ("https://..."), or the words of a command that starts one over stdio
    (["python", "server.py"]), or anything else that `mcp.Client` takes. prefix: put before the name of each tool;
    characters that a name cannot hold become `_`. only: the names of the tools that are wanted; None: all.
    env, folder: the environment of a command beside the few variables that it inherits, and where it runs.
    headers: of each HTTP request. timeout_s: of each call, in seconds.
    trust_hints: a tool that says that it only reads (`readOnlyHint`, without `destructiveHint`) is a read, and one that
    says that it can be repeated (`idempotentHint`) is idempotent; else all are writes. Hints are the server's word:
    leave them out of account for servers that you do not trust.
    Needs `looplatch[mcp]`. Raises UsageError without it, for what cannot be a server, and for a tool that cannot be
    offered to the model; ServerFailed where the server cannot be reached.
    """
    if importlib.util.find_spec("mcp") is None:
        raise UsageError(_WHAT, "it needs a package that is not installed", "Install it: pip install 'looplatch[mcp]'")
    if isinstance(server, str) and not server.startswith(("http://", "https://")):
        raise UsageError(
            _WHAT,
            f"{brief(server)} is no address",
            "Give one with http:// or https://, or the words of a command as a list",
        )
    words = _words(server)
    if words is not None:
        name, open_client = " ".join(words), partial(_over_stdio, words, env, folder)
    elif isinstance(server, str):
        name, open_client = server, partial(_over_http, server, headers)
    else:
        name, open_client = type(server).__name__, partial(_over_any, server)
    return _connected(
        Connection(name, open_client), prefix=prefix, only=only, timeout_s=timeout_s, trust_hints=trust_hints
    )


def _words(server: object) -> list[str] | None:
    if isinstance(server, str) or not isinstance(server, Sequence):
        return None
    words = list(cast("Sequence[object]", server))
    if not words or not all(isinstance(word, str) for word in words):
        raise UsageError(_WHAT, f"{brief(server)} is no command", "Give its words as texts: ['python', 'server.py']")
    return cast("list[str]", words)


@asynccontextmanager
async def _connected(
    connection: Connection,
    *,
    prefix: str,
    only: Collection[str] | None,
    timeout_s: float | None,
    trust_hints: bool,
) -> AsyncGenerator[list[Tool]]:
    await connection.open()
    try:
        found = await listed(connection)
        yield adapted(connection, found, prefix=prefix, only=only, timeout_s=timeout_s, trust_hints=trust_hints)
    finally:
        await connection.close()


@asynccontextmanager
async def _over_stdio(
    words: list[str], env: Mapping[str, str] | None, folder: str | os.PathLike[str] | None
) -> AsyncGenerator[Any]:
    from mcp import Client, StdioServerParameters, stdio_client

    command, *arguments = words
    parameters = StdioServerParameters(
        command=command,
        args=arguments,
        env=None if env is None else dict(env),
        cwd=None if folder is None else os.fspath(folder),
    )
    errors = error_stream()
    transport = stdio_client(parameters) if errors is None else stdio_client(parameters, errors)
    async with Client(transport) as client:
        yield client


@asynccontextmanager
async def _over_http(url: str, headers: Mapping[str, str] | None) -> AsyncGenerator[Any]:
    import httpx2
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    # A call may take as long as its own timeout allows; what waits is a stream.
    timeout = httpx2.Timeout(30, read=None)
    async with (
        httpx2.AsyncClient(headers=dict(headers or {}), timeout=timeout) as http_client,
        Client(streamable_http_client(url, http_client=http_client)) as client,
    ):
        yield client


@asynccontextmanager
async def _over_any(server: Any) -> AsyncGenerator[Any]:
    from mcp import Client

    async with Client(server) as client:
        yield client
