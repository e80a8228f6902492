"""Reading an answer beside the tools that it has started: whatever happens first is told first."""

import asyncio
from collections import deque
from typing import Any, Final

from looplatch.answering.calls import Calls
from looplatch.outbox import Outbox
from looplatch.ports import ModelStream

WOKEN: Final[list[dict[str, Any]]] = [{}]
"""Stands for events where something else wants the driver first."""

_STEPS_OF_A_CALL: Final = 3  # of the event loop: the call's task begins, its tool runs, the call ends
_STEPS_TO_ITS_TOOL: Final = 2
_AHEAD: Final = 64  # reads, at most, whose events wait for the driver


class Beside:
    """The reading of one stream beside the calls of its answer.

    As long as a tool runs, the driver cannot wait for the stream alone, so that a task of its own reads. It goes on
    while the driver waits: what has come already is then read in one step of the event loop, and once the driver has
    something to hand out nothing more is read but what the reader was waiting for.
    """

    def __init__(self, outbox: Outbox, calls: Calls) -> None:
        self._outbox = outbox
        self._calls = calls
        self._reader: asyncio.Task[None] | None = None
        self._reading = False  # the reader is in the middle of a read
        self._wanted = asyncio.Event()
        self._read: deque[list[dict[str, Any]]] = deque()
        self._given_way = 0  # how many of the calls that were started had their first steps

    async def read(self, stream: ModelStream) -> list[dict[str, Any]]:
        """What `stream.read` gives; `WOKEN` when something else comes first."""
        if self._given_way < self._calls.started and not self._calls.settled:
            await self._give_way()
        if self._read:
            return self._read.popleft()
        if self._reader is not None and self._reader.done():
            self._reader.result()  # what it raised is told before anything else of the stream
        if self._calls.settled and not self._reading:
            return WOKEN if self._outbox else await stream.read()
        changed = self._outbox.changed
        if self._reader is None:
            self._reader = asyncio.get_running_loop().create_task(self._read_on(stream))
            self._reader.add_done_callback(lambda _: changed.set())
        changed.clear()
        self._calls.tell()
        if not self._outbox and not self._reader.done():
            self._wanted.set()
            try:
                await changed.wait()
            finally:
                self._wanted.clear()
            self._calls.tell()
        if self._outbox:
            return WOKEN
        return self._read.popleft() if self._read else WOKEN

    async def _read_on(self, stream: ModelStream) -> None:
        """Read as long as the driver waits, and to the end of the stream at most."""
        changed, events = self._outbox.changed, WOKEN
        while events and events[-1].get("type") != "message_stop":
            await self._wanted.wait()
            self._reading = True
            try:
                events = await stream.read()
            finally:
                self._reading = False
            self._read.append(events)
            changed.set()
            if len(self._read) >= _AHEAD:
                self._wanted.clear()

    async def _give_way(self) -> None:
        """Let what was started begin, whatever has come already: it does not depend on how an answer arrives in pieces.

        A tool that waits for nothing ends as well, and no task has to read beside it then.
        """
        # Where one waits already, there is a reader all the same.
        steps = _STEPS_OF_A_CALL if self._reader is None else _STEPS_TO_ITS_TOOL
        self._given_way = self._calls.started
        for _ in range(steps):
            if self._calls.settled:
                break
            await asyncio.sleep(0)
        self._calls.tell()

    async def stop(self) -> None:
        """Read no further; no task is left when this returns."""
        if self._reader is not None and not self._reader.done():
            self._reader.cancel()
            await asyncio.gather(self._reader, return_exceptions=True)
        elif self._reader is not None and not self._reader.cancelled():
            self._reader.exception()  # it is known, or of no interest any more
