"""An event loop of its own time: nothing waits, and the same run takes the same steps each time."""

import asyncio
import random
import selectors
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any, Final, TypeVar, TypeVarTuple, Unpack

from looplatch.states.brief import brief
from looplatch.testing.errors import ScriptError

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_OWN: Final = 1  # the socket by which a loop wakes itself


def run(main: Coroutine[Any, Any, T], *, seed: int | None = None) -> T:
    """Run `main` to its end in a `DeterministicLoop`, as `asyncio.run` does in the usual one; the value is its result.

    seed: each number gives another order among the tasks that are ready, the same one every time; None: the usual one.
    """
    with asyncio.Runner(loop_factory=lambda: DeterministicLoop(seed)) as runner:
        return runner.run(main)


class DeterministicLoop(asyncio.SelectorEventLoop):
    """An event loop for what stays in the process, such as a run over `ScriptedAPI(...).client()`.

    Its `time` stands still while anything is ready, and jumps to the next timer when nothing is: sleeps and timeouts
    take no real time, and end in their right order. What is handed to a thread is done at once. When nothing is ready
    and no timer is left, nothing can ever happen: ScriptError says so where asyncio would hang.

    seed: the tasks that are ready together go on in an order drawn from it, round by round, so that each seed tries
    another interleaving; callbacks keep theirs, which asyncio promises. None: all go on first come, first served.
    """

    def __init__(self, seed: int | None = None) -> None:
        self._now = 0.0
        self._coming: list[_Ready] = []
        self._round: list[_Ready] = []
        super().__init__(_Jumping(self._jump))
        if seed is not None and not isinstance(seed, int):  # pyright: ignore[reportUnnecessaryIsInstance]
            self.close()
            raise ScriptError(f"DeterministicLoop(seed) is {brief(seed)}; give a whole number, or None")
        self._random = None if seed is None else random.Random(seed)

    def time(self) -> float:
        """Seconds since the loop was made, of its own time."""
        return self._now

    def call_soon(
        self, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        """Call back in the next round."""
        ready = _Ready(callback, args, self, context)
        self._coming.append(ready)
        super().call_soon(self._one)
        return ready

    def run_in_executor(self, executor: object, func: Callable[[Unpack[Ts]], T], *args: *Ts) -> asyncio.Future[T]:
        """Call `func` at once; the future is done."""
        future: asyncio.Future[T] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future

    def _one(self) -> None:
        """Run one callback of this round: as many are scheduled as are held."""
        if not self._round:
            self._round, self._coming = self._ordered(self._coming), []
        self._round.pop(0).run()

    def _ordered(self, ready: list["_Ready"]) -> list["_Ready"]:
        if self._random is None:
            return ready
        places = [place for place, one in enumerate(ready) if one.is_step]
        drawn = self._random.sample(places, len(places))
        ordered = list(ready)
        for place, other in zip(places, drawn, strict=True):
            ordered[place] = ready[other]
        return ordered

    def _jump(self, seconds: float | None) -> None:
        if seconds is None:
            waiting = ", ".join(sorted(task.get_name() for task in asyncio.all_tasks(self)))
            raise ScriptError(
                f"nothing can happen any more: no task is ready, and no timer is set. These tasks wait: {waiting}. "
                "What another thread or process would do is not waited for; use asyncio.run for that"
            )
        self._now += seconds


class _Ready(asyncio.Handle):
    """A callback whose time has come."""

    def __init__(
        self, callback: Callable[..., object], args: Any, loop: asyncio.AbstractEventLoop, context: Any
    ) -> None:
        super().__init__(callback, args, loop, context)
        self.is_step = isinstance(getattr(callback, "__self__", None), asyncio.Task)

    def run(self) -> None:
        if not self.cancelled():
            self._run()


class _Jumping(selectors.DefaultSelector):
    """Looks at the sockets, and moves the time instead of waiting for them."""

    def __init__(self, jump: Callable[[float | None], None]) -> None:
        super().__init__()
        self._jump_by = jump

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        found = super().select(0)
        if found or timeout == 0:
            return found
        if timeout is None and len(self.get_map()) > _OWN:
            return super().select(None)
        self._jump_by(timeout)
        return []
