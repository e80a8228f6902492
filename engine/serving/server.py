"""The server: bound to the loopback of this machine, for a few connections at a time."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

from looplatch.serving.connection import converse
from looplatch.serving.site import Site
from looplatch.states.errors import UsageError

HOST: Final = "127.0.0.1"
MOST: Final = 32  # connections at a time; one more is closed at once


@asynccontextmanager
async def serve(site: Site, port: int = 0) -> AsyncGenerator[str]:
    """Serve `site` in the running loop, on a free port by default; the value is its address, with the secret.

    On leaving, open connections are cut. Raises UsageError where the port cannot be had.
    """
    tasks: set[asyncio.Task[None]] = set()
    bound = port

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(tasks) >= MOST:
            writer.close()
            return
        task = asyncio.create_task(converse(site, reader, writer, bound))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    try:
        server = await asyncio.start_server(accept, HOST, port)
    except (OSError, OverflowError) as error:
        why = (error.strerror if isinstance(error, OSError) else None) or error
        raise UsageError("--port", f"{port} cannot be had ({why})", "Name a free port, or none at all") from error
    bound = server.sockets[0].getsockname()[1]
    try:
        yield f"http://{HOST}:{bound}/{site.token}/"
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()
