"""A program, all that it starts, and what they print: read as it comes, and ended whole."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

__all__ = ["Process"]

_DRAIN_S: Final = 1.0  # for what is still in the pipe when a program has ended, should another hold the pipe open


class Process:
    """A running program. Made by `start`; whoever has it must `await close()`."""

    def __init__(
        self, process: asyncio.subprocess.Process, pipe: asyncio.ReadTransport, out: asyncio.StreamReader
    ) -> None:
        self._process = process
        self._pipe = pipe
        self._out = out
        self._watch = asyncio.create_task(self._watched(), name=f"watch the process {process.pid}")

    @classmethod
    async def start(
        cls, words: Sequence[str], *, folder: Path, environment: Mapping[str, str], feed: bool = False
    ) -> "Process":
        """Start a program in `folder`. `feed`: its input is what `write` gives it; otherwise it has none.

        Raises OSError where it cannot be started.
        """
        starting = asyncio.ensure_future(cls._started(words, folder, environment, feed))
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            with contextlib.suppress(OSError):
                await (await starting).close()  # half started, nobody could end it
            raise

    @classmethod
    async def _started(
        cls, words: Sequence[str], folder: Path, environment: Mapping[str, str], feed: bool
    ) -> "Process":
        # A pipe of our own: one of asyncio's cannot be closed while another program holds its other end.
        reading, writing = os.pipe()
        reader = os.fdopen(reading, "rb", buffering=0)
        out = asyncio.StreamReader()
        loop = asyncio.get_running_loop()
        pipe: asyncio.ReadTransport | None = None
        try:
            pipe, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(out), reader)
            process = await asyncio.create_subprocess_exec(
                *words,
                stdin=asyncio.subprocess.PIPE if feed else asyncio.subprocess.DEVNULL,
                stdout=writing,
                stderr=asyncio.subprocess.STDOUT,
                cwd=folder,
                env=dict(environment),
                start_new_session=True,  # a group of its own: what it starts is ended with it
            )
        except BaseException:
            (pipe or reader).close()
            raise
        finally:
            os.close(writing)
        return cls(process, pipe, out)

    @property
    def code(self) -> int | None:
        """How it ended: its exit code, or minus the number of a signal; None while it runs."""
        return self._process.returncode

    async def write(self, data: bytes) -> None:
        """Give it input. Raises OSError where it takes none any more."""
        assert self._process.stdin is not None
        self._process.stdin.write(data)
        await self._process.stdin.drain()

    async def read(self) -> bytes:
        """The next piece of what it and its children print; empty when it has ended and all was read."""
        piece = await self._out.read(64 * 1024)
        if not piece:
            await self._process.wait()  # it lets go of the pipe before it ends, or closes it and works on
        return piece

    async def _watched(self) -> None:
        """When it has ended, end the rest of its group, which would hold the pipe open."""
        await self._process.wait()
        self.kill()
        await asyncio.sleep(_DRAIN_S)
        self._out.feed_eof()  # one that has left the group holds it

    def kill(self) -> None:
        """End it and all that it started, at once."""
        _kill(self._process)

    async def close(self) -> None:
        """End it and all that it started, and let go of it."""
        self.kill()
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._pipe.close()
        self._watch.cancel()
        await asyncio.wait([self._watch])
        await self._process.wait()


def _kill(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
