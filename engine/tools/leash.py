"""Running code that is not ours so that it can always be left: it ends, or is asked to, or is abandoned."""

import asyncio
from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Any, Protocol

import attrs

from looplatch.tools.context import AbortSignal
from looplatch.tools.threads import ThreadLeft

__all__ = ["GRACE_S", "Ending", "Stop", "Timer", "TimerHandle", "leashed"]

GRACE_S = 2.0
"""How long code that was asked to end may take for it, in seconds, before it is abandoned."""


class TimerHandle(Protocol):
    """A callback that is to come."""

    def cancel(self) -> object:
        """Take it back."""
        ...


Timer = Callable[[float, Callable[[], None]], TimerHandle]
"""Call back after so many seconds, as `loop.call_later` does."""


class Stop(StrEnum):
    """Why code was asked to end."""

    ABORTED = "aborted"
    TIMED_OUT = "timed_out"


@attrs.frozen(kw_only=True)
class Ending:
    """How leashed code ended.

    `value` is what it returned, `error` what it raised (`finished` tells which of them counts when both are None).
    `stop` is set if it was asked to end and did so by no result of its own; `began` tells whether any of it has run,
    `abandoned` whether it is still running. `cancelled` is the cancellation of the caller that came meanwhile, which
    the caller has to raise again.
    """

    value: Any = None
    error: BaseException | None = None
    finished: bool = False
    stop: Stop | None = None
    began: bool = True
    abandoned: bool = False
    cancelled: asyncio.CancelledError | None = None


@attrs.frozen
class _Kept:
    """What the code came to. Kept as a value: an exit raised out of a task would stop the event loop."""

    value: Any = None
    error: BaseException | None = None


# The event loop itself holds tasks weakly; these run on although nobody waits for them.
_abandoned: set[asyncio.Task[None]] = set()


async def leashed(
    code: Callable[[], Awaitable[Any]],
    *,
    abort: AbortSignal,
    timeout_s: float | None = None,
    grace_s: float = GRACE_S,
    timer: Timer | None = None,
    name: str | None = None,
) -> Ending:
    """Run `code` in a task of its own until it ends, `abort` is set, `timeout_s` is over or the caller is cancelled.

    Code that is to end is cancelled, and once more when half the grace is over; after `grace_s` it is abandoned. Code
    that returns a value in spite of it has finished, and the value counts. Raises nothing of the code's, and no
    cancellation: both are in the `Ending`. By then the task has ended, unless it was abandoned.
    """
    loop = asyncio.get_running_loop()
    timer = timer or loop.call_later
    woken: asyncio.Future[Stop | None] = loop.create_future()
    begun = False
    ended: list[_Kept] = []  # not the task's own result: code that cancels its task, and returns, would lose it

    def wake(why: Stop | None) -> None:
        if not woken.done():
            woken.set_result(why)

    def stop_now() -> None:
        if not begun:
            task.cancel()  # now: its first step may be nearer than our own
        wake(Stop.ABORTED)

    async def run() -> None:
        nonlocal begun
        begun = True
        try:
            ended.append(_Kept(value=await code()))
        except GeneratorExit:
            raise
        except BaseException as error:
            ended.append(_Kept(error=error))
        finally:
            wake(None)  # a step of the event loop before the callback of a task that has ended

    task = loop.create_task(run(), name=name)
    task.add_done_callback(lambda _: wake(None))  # it may end without a first step
    forget = abort.on_set(stop_now)
    bound = None if timeout_s is None else timer(timeout_s, lambda: wake(Stop.TIMED_OUT))
    cancelled: asyncio.CancelledError | None = None
    try:
        stop = await woken
    except asyncio.CancelledError as outer:
        cancelled = outer
        stop = Stop.ABORTED
    finally:
        forget()
        if bound is not None:
            bound.cancel()
    if stop is not None and not task.done():
        abort.set()  # what runs in a thread sees only this
        cancelled = await _end(task, grace_s, timer) or cancelled
    else:
        stop = None  # it ended in the same tick, by itself
    if not task.done():
        _abandoned.add(task)
        task.add_done_callback(_abandoned.discard)
        return Ending(stop=stop, abandoned=True, cancelled=cancelled)
    if not ended and task.cancelled():
        # Only a task that was cancelled before its first step ends so: `run` catches all else.
        return Ending(stop=stop or Stop.ABORTED, began=False, cancelled=cancelled)
    kept = ended[0] if ended else _broken(task)
    if kept.error is None:
        return Ending(value=kept.value, finished=True, cancelled=cancelled)
    if cancelled is not None and isinstance(kept.error, asyncio.CancelledError):
        stop = stop or Stop.ABORTED  # the event loop is shutting down and has cancelled both tasks
    return Ending(error=kept.error, stop=stop, abandoned=isinstance(kept.error, ThreadLeft), cancelled=cancelled)


def _broken(task: asyncio.Task[None]) -> _Kept:
    """What a task came to whose code raised GeneratorExit, which is its own, too, unless it was never finished."""
    error = task.exception()
    wrapped = RuntimeError(f"the code raised {type(error).__name__}, which ends a coroutine and is no error to raise")
    wrapped.__cause__ = error
    return _Kept(error=wrapped)


async def _end(task: asyncio.Task[None], grace_s: float, timer: Timer) -> asyncio.CancelledError | None:
    """Ask the task to end, twice, and wait for it; returns the last cancellation of ours that came meanwhile."""
    cancelled: asyncio.CancelledError | None = None
    for _ in range(2):
        task.cancel()
        cancelled = await _ended_within(task, grace_s / 2, timer) or cancelled
        if task.done():
            break
    return cancelled


async def _ended_within(task: asyncio.Task[None], seconds: float, timer: Timer) -> asyncio.CancelledError | None:
    over = asyncio.Event()
    cancelled: asyncio.CancelledError | None = None

    def ended(_: object) -> None:
        over.set()

    task.add_done_callback(ended)
    bound = timer(seconds, over.set)
    while not over.is_set():
        try:
            await over.wait()
        except asyncio.CancelledError as outer:
            cancelled = outer  # leaving now would leave the task behind
    bound.cancel()
    task.remove_done_callback(ended)
    return cancelled
