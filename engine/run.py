"""Run: one run of a loop, as its consumer holds it. Pulling drives it; what is not pulled does not happen."""

import asyncio
import warnings
import weakref
from collections.abc import Callable, Generator, Iterator
from functools import partial
from typing import Any, Self

from looplatch.audit import AuditLog, Log
from looplatch.driver import Driver
from looplatch.messages import Message, ResultMessage
from looplatch.opening import Beginning
from looplatch.plan import Plan
from looplatch.ports import Timer
from looplatch.proving.checkpoints import Checkpoint
from looplatch.result import result_of
from looplatch.sealing import finish
from looplatch.states import events as on
from looplatch.states.brief import brief
from looplatch.states.context import TOTALS
from looplatch.states.errors import UsageError
from looplatch.states.event import Event
from looplatch.states.table import TABLE
from looplatch.tee import Branch, Tee
from looplatch.undisturbed import undisturbed


class Run:
    """A run, in one of three uses: `await run` for its result, `async for message in run`, or `async with` around that.

    Leaving the `async with`, `aclose()`, `abort()`, a deadline and the cancellation of the task that pulls all end the
    run: when they return (or, for `abort()`, at the next pull) no tool task is left, the history is valid and the log
    is sealed. One consumer pulls at a time.
    """

    def __init__(self, plan: Plan, opening: Beginning) -> None:
        self.id: str = opening.run_id
        self._plan = plan
        self._opening = opening
        self._driver: Driver | None = None
        self._interrupt: Event | None = None
        self._puller: asyncio.Task[Any] | None = None
        self._woken = False
        self._timer: Timer | None = None
        self._deadline_ns: int | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ended = asyncio.Event()
        self._closed = False  # closed before it began
        self._ending: asyncio.Future[None] | None = None
        self._stop_asked = False
        self._unsent: list[str] = []
        self._result: ResultMessage | None = None

    # --- consuming

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Message:
        """The next message. Raises what ended the run by surprise: a hook's exception, a full disk (AuditError) ..."""
        if self._puller is not None:
            raise UsageError("run", "it is being consumed already", "Use one consumer, or run.tee(n)")
        outbox = None if self._driver is None else self._driver.at.outbox
        if outbox is not None and outbox.waiting and (message := outbox.pop()) is not None:
            return message
        task = self._puller = asyncio.current_task(self._loop)
        base = task.cancelling() if task is not None else 0
        try:
            while self._result is None and not self._closed:
                try:
                    driver = self._driver or self._start()
                    if self._deadline_ns is not None and self._plan.clock.monotonic_ns() >= self._deadline_ns:
                        self._cut_off(on.DeadlinePassed())  # the timer may be late where the loop was kept busy
                    if self._interrupt is not None or driver.idle:
                        await self._end(self._interrupt)
                    else:
                        await driver.advance()
                except asyncio.CancelledError:
                    woken, self._woken = self._woken, False
                    if not woken or task is None or task.uncancel() > base:
                        await self._end(on.RunClosed())
                        raise
                except BaseException as error:
                    await self._end(on.DriverFailed(error=type(error).__name__))
                    raise
                if self._driver is not None and (message := self._driver.at.outbox.pop()) is not None:
                    return message
            raise StopAsyncIteration
        finally:
            self._puller = None
            if self._woken and task is not None and not self._closed:
                # The wake-up came as the pull was about to return: it must not reach the consumer.
                self._woken = False
                task.uncancel()

    def __await__(self) -> Generator[Any, None, ResultMessage]:
        return self._drained().__await__()

    async def _drained(self) -> ResultMessage:
        async for _ in self:
            pass
        if self._result is None:
            raise _not_begun()
        return self._result

    async def __aenter__(self) -> Self:
        self._start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()

    def _repr_svg_(self) -> str | None:
        from looplatch.diagrams.notebook import machine_svg

        return machine_svg(None if self._driver is None else self.log)

    def _repr_html_(self) -> str | None:
        from looplatch.diagrams.notebook import run_html

        return None if self._driver is None else run_html(self.log)

    # --- control

    def abort(self) -> None:
        """End the run: its tools are stopped at once, and the move is made at the next pull, or at the close.

        May be called from any thread, and from a signal handler; from another thread than the run's it takes effect
        when the event loop comes to it.
        """
        loop = self._loop
        if loop is None or loop is _current_loop():
            self._cut_off(on.RunAborted())
        elif not loop.is_closed():
            loop.call_soon_threadsafe(self._cut_off, on.RunAborted())

    def stop(self) -> None:
        """End the run after the current turn: its tools finish and are answered, and no other request is sent."""
        self._stop_asked = True
        if self._driver is not None:
            self._driver.stop_after_turn()

    def withdraw_budget(self) -> None:
        """Have the run, which answers a call of another one, begin no other turn: that one may spend no more.

        What is being retried is retried.
        """
        if self._driver is not None:
            self._driver.withdraw_budget()

    def send(self, text: str) -> None:
        """Say a text to the model: it joins the results of the next turn. What could not be said is in the result.

        Raises UsageError for what is no text, or an empty one, and after the end of the run.
        """
        if not isinstance(text, str) or not text.strip():  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError("text", f"{brief(text)} says nothing", "Give a str that does")
        if self._ended.is_set() or self._closed:
            raise UsageError("run", "it has ended", "Go on with loop.run(run.messages and a new user message)")
        if self._driver is None:
            self._unsent.append(text)
        else:
            self._driver.say_next([text])

    def tee(self, n: int = 2, *, max_buffer: int = 64) -> tuple[Branch, ...]:
        """Consume the run by `n` consumers, each of which sees every message.

        None gets more than `max_buffer` messages ahead of the slowest. Raises UsageError for a number below 1.
        """
        return Tee(self, n, max_buffer).branches

    async def aclose(self) -> None:
        """End the run if it has not ended. May be called from any task, and again; returns when nothing is left."""
        if self._driver is None:
            self._closed = True
            return
        if self._ended.is_set():
            return
        self._cut_off(on.RunClosed())
        puller = self._puller
        if puller is None:
            await self._end(self._interrupt or on.RunClosed())
        elif puller is not asyncio.current_task():
            await self._ended.wait()

    # --- what there is to see

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The history as plain API dicts, made anew: what the next request would send.

        That of a suspended run ends with the calls that wait: it is to be resumed, not sent.
        """
        return self._driver.at.history.messages() if self._driver is not None else self._opening.copied()

    @property
    def result(self) -> ResultMessage | None:
        """The result, once the run has ended."""
        return self._result

    @property
    def log(self) -> Log:
        """The audit log as it is now. Raises UsageError before the run has begun, SigningFailed."""
        if self._driver is None:
            raise UsageError("run.log", "the run has not begun", "Pull a message, or enter `async with` first")
        return Log.of(self._driver.at.journal.log)

    @property
    def spent(self) -> dict[str, int]:
        """What the run has spent so far: tokens, and millionths of a US dollar, by the names that the log has."""
        return dict.fromkeys(TOTALS, 0) if self._driver is None else self._driver.at.budget.totals

    @property
    def audit_log(self) -> AuditLog | None:
        """The log that the run writes; None before it has begun. For reading there is `log`."""
        return None if self._driver is None else self._driver.at.journal.log

    def checkpoint(self) -> str:
        """`COUNT:HASH`: how many records the log has now, and the hash of the last one; of a log that is signed with
        `:SIGNATURE` after it.

        Keep it where the writer of the log cannot reach it: `verify(log, expect=...)` finds whether a log was cut off
        before it, or written anew. Raises UsageError before the run has begun.
        """
        if self._driver is None:
            raise UsageError("run.checkpoint", "the run has not begun", "Pull a message, or enter `async with` first")
        log = self._driver.at.journal.log
        return str(Checkpoint(*log.head).signed(log.signer))

    @property
    def state(self) -> str:
        """The state that the run is in."""
        return str(self._driver.state if self._driver is not None else TABLE.initial)

    # --- working

    def _start(self) -> Driver:
        if self._driver is None:
            if self._closed:
                raise _not_begun()
            self._loop = asyncio.get_running_loop()
            try:
                self._driver = self._opening.open(self._plan)
            except BaseException:
                self._closed = True
                raise
            self._driver.stop_after_turn(self._stop_asked)
            self._driver.say_next(self._unsent)
            if (deadline := self._opening.deadline_s) is not None:
                self._deadline_ns = self._plan.clock.monotonic_ns() + int(deadline * 1_000_000_000)
                self._driver.at.budget.deadline_ns = self._deadline_ns
                self._timer = self._plan.clock.call_later(
                    deadline, partial(_call, weakref.WeakMethod(self._pass_deadline))
                )
        return self._driver

    def rest(self) -> Iterator[Message]:
        """The messages that were not pulled when the run ended."""
        while self._result is not None and self._driver is not None:
            if (message := self._driver.at.outbox.pop()) is None:
                return
            yield message

    def _cut_off(self, event: Event) -> None:
        """End the run by an event from outside: the tools at once, the move at the next pull. The first one counts."""
        if self._ending is not None or self._interrupt is not None:
            return
        self._interrupt = event
        if self._driver is not None:
            self._driver.stop_tools()
        if self._puller is not None and self._puller is not _current_task() and not self._woken:
            self._woken = True
            self._puller.cancel()

    def _pass_deadline(self) -> None:
        self._cut_off(on.DeadlinePassed())

    async def _end(self, event: Event | None) -> None:
        """End the run by `event`, or (None) after its last move. Cancelled meanwhile, it does that all the same."""
        if self._driver is None:
            return  # it could not be opened: there is nothing to end
        if self._ending is None:
            if event is not None:
                self._driver.stop_tools()  # before another one can start
            self._ending = asyncio.ensure_future(self._end_now(self._driver, event))
        await undisturbed(self._ending)

    async def _end_now(self, driver: Driver, event: Event | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        try:
            await finish(driver, event)
        finally:
            self._result = result_of(driver)
            driver.at.outbox.push(self._result)
            self._ended.set()

    def __del__(self) -> None:
        loop, driver = self._loop, self._driver
        if driver is None or loop is None or self._ended.is_set() or loop.is_closed():
            return
        loop.call_soon_threadsafe(_close_abandoned, driver)
        warnings.warn(
            f"the run {self.id} was left without being closed; use `async with`", ResourceWarning, stacklevel=2
        )


def _not_begun() -> UsageError:
    return UsageError("run", "it was closed, or failed, before it began", "Start another one")


def _call(method: "weakref.WeakMethod[Callable[[], None]]") -> None:
    """Call a method of a run, unless nobody holds the run any more."""
    if (alive := method()) is not None:
        alive()


def _close_abandoned(driver: Driver) -> None:
    """End a run that nobody holds any more, in its event loop."""
    task = asyncio.ensure_future(finish(driver, on.RunClosed()))
    _closing.add(task)
    task.add_done_callback(_closing.discard)


_closing: set[asyncio.Future[None]] = set()  # held, or they would be collected before they are done


def _current_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _current_task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None
