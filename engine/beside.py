"""Reading an answer beside the tools that it has started: whatever happens first is told first."""

import asyncio
from typing import Any, Final

from looplatch.calls import Calls
from looplatch.outbox import Outbox
from looplatch.ports import ModelStream

WOKEN: Final[dict[str, Any]] = {}
"""Stands for an event where something else wants the driver first."""

_STEPS_OF_A_CALL: Final = 3  # of the event loop: the call's task begins, its tool runs, the call ends


class Beside:
    """The reading of one stream beside the calls of its answer."""

    def __init__(self, outbox: Outbox, calls: Calls) -> None:
        self._outbox = outbox
        self._calls = calls
        self._reading: asyncio.Task[dict[str, Any] | None] | None = None
        self._given_way = 0  # how many calls were given their first steps

    async def read(self, stream: ModelStream, calls: int) -> dict[str, Any] | None:
        """The next event of the stream; `WOKEN` when something else comes first. `calls`: how many have come so far."""
        if self._reading is None and self._calls.settled:
            return await stream.read()
        changed = self._outbox.changed
        if self._reading is None:
            await self._give_way(calls)
            if self._calls.settled:
                return WOKEN if self._outbox else await stream.read()
            self._reading = asyncio.ensure_future(stream.read())
            self._reading.add_done_callback(lambda _: changed.set())
        changed.clear()
        self._calls.tell()
        if not self._reading.done() and not self._outbox:
            await changed.wait()
        if self._reading.done():
            reading, self._reading = self._reading, None
            return reading.result()
        return WOKEN

    async def _give_way(self, calls: int) -> None:
        """Let a new call begin, and end if its tool waits for nothing: no task has to read beside it then."""
        if self._given_way < calls:
            self._given_way = calls
            for _ in range(_STEPS_OF_A_CALL):
                if self._calls.settled:
                    break
                await asyncio.sleep(0)
            self._calls.tell()

    async def stop(self) -> None:
        """Read no further; no task is left when this returns."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)
            self._reading = None
