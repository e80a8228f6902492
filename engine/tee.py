"""Several consumers of one run, each of which sees every message."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from typing import Self

from looplatch.messages import Message
from looplatch.states.given import check_count


class Branch:
    """One consumer's view of a run: an async iterator. Leave it by `aclose()`, or the others wait for it for ever."""

    def __init__(self, tee: "Tee") -> None:
        self._tee = tee
        self.buffer: deque[Message] = deque()
        self.closed = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Message:
        """The next message of the run. Raises what the run raised."""
        if self.closed:
            raise StopAsyncIteration
        return await self._tee.next_of(self)

    async def aclose(self) -> None:
        """Take part no more; the run goes on for the others."""
        self.closed = True
        self.buffer.clear()
        self._tee.changed()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()


class Tee:
    """Pulls the run for all branches. The slowest bounds the others: none is more than `max_buffer` messages ahead."""

    def __init__(self, source: AsyncIterator[Message], n: int, max_buffer: int) -> None:
        """Raises UsageError for less than one branch, or no room in the buffer."""
        for name, value in (("n", n), ("max_buffer", max_buffer)):
            check_count(f"tee({name})", value)
        self._source = source
        self._max_buffer = max_buffer
        self._pulling = False
        self._over: BaseException | None = None
        self._changed = asyncio.Event()
        self.branches = tuple(Branch(self) for _ in range(n))

    def changed(self) -> None:
        """Wake all branches that wait."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def next_of(self, branch: Branch) -> Message:
        """The next message for `branch`: pulled by it, or by another one before."""
        while not branch.buffer:
            if branch.closed:
                raise StopAsyncIteration
            if self._over is not None:
                raise self._over
            if self._pulling or any(len(other.buffer) >= self._max_buffer for other in self.branches):
                await self._changed.wait()
                continue
            await self._pull()
        message = branch.buffer.popleft()
        self.changed()
        return message

    async def _pull(self) -> None:
        self._pulling = True
        try:
            message = await anext(self._source)
        except asyncio.CancelledError:
            raise  # of the branch that pulled; the run has ended with it, which the others find out by themselves
        except BaseException as error:
            self._over = error
        else:
            for branch in self.branches:
                if not branch.closed:
                    branch.buffer.append(message)
        finally:
            self._pulling = False
            self.changed()
