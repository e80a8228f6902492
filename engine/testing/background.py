"""The loopback server beside the caller: in a thread, or in a process whose work does not count as the caller's."""

import asyncio
import multiprocessing
import threading
from collections.abc import Callable, Generator
from concurrent.futures import Future
from contextlib import contextmanager
from multiprocessing.connection import Connection

from looplatch.testing.exchange import Service
from looplatch.testing.server import serve


@contextmanager
def serve_in_thread(service: Service, host: str = "127.0.0.1", port: int = 0) -> Generator[str]:
    """Serve from a thread with an event loop of its own; the value is the base URL.

    The thread alone uses `service` until the block is left: do not read its requests before.
    """
    ready: Future[tuple[str, asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def run() -> None:
        stop = asyncio.Event()
        async with serve(service, host, port) as url:
            ready.set_result((url, asyncio.get_running_loop(), stop))
            await stop.wait()

    def main() -> None:
        try:
            asyncio.run(run())
        except BaseException as error:
            if ready.done():
                raise
            ready.set_exception(error)

    thread = threading.Thread(target=main, name="looplatch-scripted-api", daemon=True)
    thread.start()
    try:
        url, loop, stop = ready.result()
        try:
            yield url
        finally:
            loop.call_soon_threadsafe(stop.set)
    finally:
        thread.join()


@contextmanager
def serve_in_process(make: Callable[[], Service]) -> Generator[str]:
    """Serve `make()` from a fresh process; the value is the base URL. `make` is a function of an importable module."""
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    process = spawn.Process(target=_serve, args=(make, theirs), daemon=True)
    process.start()
    theirs.close()
    try:
        yield ours.recv()
    finally:
        ours.close()
        process.join()


def _serve(make: Callable[[], Service], parent: "Connection[str, None]") -> None:
    async def run() -> None:
        async with serve(make()) as url:
            parent.send(url)
            await asyncio.to_thread(parent.poll, None)  # ready only when the parent has closed its end, or has died

    asyncio.run(run())
