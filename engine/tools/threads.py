"""Sync tools run in worker threads, so that none of them holds up the event loop."""

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["ThreadLeft", "run_in_thread"]

Result = TypeVar("Result")


class ThreadLeft(asyncio.CancelledError):
    """The wait for a thread was cancelled; the thread cannot be ended and runs on."""


async def run_in_thread(function: Callable[[], Result], *, name: str) -> Result:
    """Run `function` in a thread of its own, with the caller's context variables; returns or raises what it does.

    A thread of its own, and a daemon: a pool would be clogged by functions that never end, and the interpreter would
    wait for them at exit. Raises `ThreadLeft` when cancelled before the function has ended.
    """
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[Callable[[], Result]] = loop.create_future()
    context = contextvars.copy_context()

    def settle(answer: Callable[[], Result]) -> None:
        if not ended.done():
            ended.set_result(answer)

    def work() -> None:
        try:
            value = context.run(function)
        except BaseException as error:
            answer = _raising(error)
        else:
            answer = _returning(value)
        with contextlib.suppress(RuntimeError):  # the loop was closed: nobody waits for this any more
            loop.call_soon_threadsafe(settle, answer)

    threading.Thread(target=work, name=name, daemon=True).start()
    try:
        answer = await ended
    except asyncio.CancelledError:
        if ended.cancelled():
            raise ThreadLeft from None
        answer = ended.result()  # it ended in the same tick: what it did is known, and kept
    return answer()


def _returning(value: Result) -> Callable[[], Result]:
    return lambda: value


def _raising(error: BaseException) -> Callable[[], Any]:
    def answer() -> Any:
        raise error

    return answer
