"""A connection to an MCP server, held by a task of its own."""

import asyncio
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, TextIO

from looplatch.tools.servers.failures import ServerFailed, described

__all__ = ["Connection", "error_stream"]


class Connection:
    """Opens a client in a task of its own and closes it there: its task groups must not be left by another task, and
    none of their cancellations is to hit whoever uses the connection. `open_client` makes a new client."""

    def __init__(self, server: str, open_client: Callable[[], AbstractAsyncContextManager[Any]]) -> None:
        self.server = server
        self._open_client = open_client
        self._leave = asyncio.Event()
        self._client: Any = None
        self._task: asyncio.Task[None] | None = None

    @property
    def client(self) -> Any:
        """The client. Raises ServerFailed once the connection was closed."""
        if self._client is None:
            raise ServerFailed(
                self.server, "its connection is closed; use its tools within `async with mcp_server(...)`"
            )
        return self._client

    async def open(self) -> None:
        """Connect. Raises ServerFailed."""
        opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._hold(opened), name=f"MCP server {self.server}")
        try:
            await asyncio.wait([opened, self._task], return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self._task.cancel()
            await self.close()
            raise
        if not opened.done():
            await self.close()

    async def close(self) -> None:
        """Disconnect. Raises ServerFailed where that fails."""
        self._leave.set()
        self._client = None
        task, self._task = self._task, None
        if task is None:
            return
        cancelled: asyncio.CancelledError | None = None
        while not task.done():
            try:
                await asyncio.wait([task])
            except asyncio.CancelledError as outer:
                cancelled = outer
                task.cancel()
        if cancelled is not None:
            raise cancelled
        if not task.cancelled() and (error := task.exception()) is not None:
            raise ServerFailed(self.server, described(error)) from error

    async def _hold(self, opened: "asyncio.Future[None]") -> None:
        async with self._open_client() as client:
            self._client = client
            if not opened.done():
                opened.set_result(None)
            await self._leave.wait()


def error_stream() -> TextIO | None:
    """Where a server's errors go: to ours, if that is one that a program can write to."""
    try:
        sys.stderr.fileno()
    except (AttributeError, OSError, ValueError):
        return sys.__stderr__
    return sys.stderr
