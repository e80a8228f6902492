"""What a tool is given beside its input: who calls, the signal to stop, a way to report progress."""

import asyncio
import threading
from collections.abc import Callable

import attrs

__all__ = ["AbortSignal", "ToolContext"]


_making = threading.Lock()  # few threads ever wait for a signal: one lock does for all of them


class AbortSignal:
    """Says that a call should end. It is set once, by the engine, and may be read in any thread.

    A tool in a worker thread cannot be killed: it should look at `is_set()` or wait in `wait_in_thread()`.
    """

    __slots__ = ("_callbacks", "_flag", "_in_threads")

    def __init__(self) -> None:
        self._flag = False
        self._in_threads: threading.Event | None = None  # made by the first thread that waits
        self._callbacks: dict[object, Callable[[], None]] = {}

    def is_set(self) -> bool:
        """Whether the call should end."""
        return self._flag

    def set(self) -> None:
        """Ask the call to end. For the thread of the event loop; a second time does nothing."""
        if self._flag:
            return
        self._flag = True
        with _making:
            waited = self._in_threads
        if waited is not None:
            waited.set()
        callbacks, self._callbacks = self._callbacks, {}
        for callback in callbacks.values():
            callback()

    def on_set(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` when the signal is set, at once if it is; returns what takes the callback back."""
        if self._flag:
            callback()
            return _nothing
        key = object()
        self._callbacks[key] = callback

        def forget() -> None:
            self._callbacks.pop(key, None)

        return forget

    async def wait(self) -> None:
        """Wait until the signal is set. For async tools."""
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        forget = self.on_set(lambda: None if woken.done() else woken.set_result(None))
        try:
            await woken
        finally:
            forget()

    def wait_in_thread(self, timeout_s: float | None = None) -> bool:
        """Block until the signal is set, or for `timeout_s` seconds; returns whether it is set. For sync tools."""
        with _making:
            if self._in_threads is None:
                self._in_threads = threading.Event()
            waited = self._in_threads
        if self._flag:  # set before there was anything to wait for
            return True
        return waited.wait(timeout_s)


def _nothing(*args: object) -> None:
    """The progress of a context that nobody listens to, and the way back from a signal already set."""


@attrs.frozen(kw_only=True)
class ToolContext:
    """The context of one call of a tool.

    `tool_use_id` is the id that the model gave the call, `run_id` the id of the run. `aborted` is set when the call
    should end: on abort, deadline or timeout. `report` takes what `progress` is given. A context made by hand (in a
    test of a tool) needs only the two ids.
    """

    tool_use_id: str
    run_id: str
    aborted: AbortSignal = attrs.field(factory=AbortSignal, eq=False)
    report: Callable[..., None] = attrs.field(default=_nothing, eq=False, repr=False)

    @property
    def idempotency_key(self) -> str:
        """`run:tool_use_id`: the same when the call is run again after a crash, so that its effect can be made once."""
        return f"{self.run_id}:{self.tool_use_id}"

    def progress(self, *args: object) -> None:
        """Tell the consumer of the run how far the call is, by any values. May be called in any thread."""
        self.report(*args)
