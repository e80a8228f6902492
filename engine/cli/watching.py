"""Watching a run to its end, and ending it by Ctrl-C."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable, Generator
from typing import Final, Protocol

from looplatch.cli.exits import Exit
from looplatch.messages import Message, ResultMessage, Subtype
from looplatch.run import Run
from looplatch.states.reasons import Terminal

_TICK_S: Final = 0.1


class Asking(Protocol):
    """Who asks someone at the terminal. `make_room` is entered around each question."""

    make_room: Callable[[], contextlib.AbstractContextManager[None]]

    async def quiet(self) -> None:
        """Wait until no question is open."""
        ...


class View(Protocol):
    """What shows a run."""

    @property
    def partial(self) -> bool:
        """Whether it shows the raw events of the stream."""
        ...

    def show(self, message: Message) -> None:
        """Show a message."""
        ...

    def tick(self) -> None:
        """Show how time passes; called several times a second."""
        ...

    def following(self) -> contextlib.AbstractContextManager[None]:
        """Entered around all messages of a run."""
        ...

    def paused(self) -> contextlib.AbstractContextManager[None]:
        """Entered around whatever else uses the terminal while a run is shown."""
        ...


async def watch(run: Run, view: View, asking: Asking | None = None) -> Exit:
    """Pull the run to its end and show all of it, but for while `asking` has a question open.

    Ctrl-C aborts the run; the second one ends the process at once.
    """
    async with run:
        with view.following(), _interrupts(run, view):
            if asking is not None:
                asking.make_room = view.paused
            ticking = asyncio.create_task(_tick(view))
            try:
                async for message in run:
                    if asking is not None:
                        await asking.quiet()
                    view.show(message)
            finally:
                ticking.cancel()
                await asyncio.gather(ticking, return_exceptions=True)
    return exit_of(run.result)


def exit_of(result: ResultMessage | None) -> Exit:
    """The exit code for a result. Only Ctrl-C aborts a run of the command line."""
    if result is None:
        return Exit.FAILED
    if result.terminal is Terminal.ABORTED:
        return Exit.INTERRUPTED
    match result.subtype:
        case Subtype.SUCCESS:
            return Exit.GOOD
        case Subtype.SUSPENDED:
            return Exit.SUSPENDED
        case Subtype.ERROR_MAX_TURNS | Subtype.ERROR_MAX_BUDGET_USD | Subtype.ERROR_DURING_EXECUTION:
            return Exit.FAILED


async def _tick(view: View) -> None:
    with contextlib.suppress(OSError):  # who watched has left; the next message says so
        while True:
            await asyncio.sleep(_TICK_S)
            view.tick()


@contextlib.contextmanager
def _interrupts(run: Run, view: View) -> Generator[None]:
    """Hand Ctrl-C to the run. A signal handler of the process, so that it also comes when the event loop is stuck."""
    loop = asyncio.get_running_loop()
    came = False

    def abort() -> None:
        with view.paused():
            print("\naborting; Ctrl-C again ends at once", file=sys.stderr, flush=True)
        run.abort()

    def on_interrupt(_number: int, _frame: object) -> None:
        nonlocal came
        if came:
            os._exit(Exit.INTERRUPTED)  # the log is left open, as after a crash
        came = True
        loop.call_soon_threadsafe(abort)

    try:
        before = signal.signal(signal.SIGINT, on_interrupt)
    except ValueError:  # not the main thread: there is no Ctrl-C to handle
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
