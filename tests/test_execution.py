"""One call carried out: whatever the tool does, and whenever it is stopped, there is one outcome and it is true."""

import asyncio
import contextvars
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, cast

import attrs
import pytest

from looplatch.tools import AbortSignal, Call, Cause, Outcome, Tool, ToolContext, ToolResult, tool
from looplatch.tools.execution import CallCancelled, execute
from looplatch.tools.threads import ThreadLeft, run_in_thread

PARTS = "it may have done all, part or none of its work. Find out before you call it again."

ToolCode = Callable[[dict[str, Any], ToolContext], Awaitable[object]]


@attrs.define
class HandTimer:
    """A timer that fires when the test says so."""

    pending: list[tuple[float, Callable[[], None]]] = attrs.field(factory=list[tuple[float, Callable[[], None]]])

    def __call__(self, seconds: float, callback: Callable[[], None]) -> "HandTimer.Handle":
        entry = (seconds, callback)
        self.pending.append(entry)
        return HandTimer.Handle(self, entry)

    def fire(self) -> float:
        """Fire the oldest, and return the seconds that it was set to."""
        seconds, callback = self.pending.pop(0)
        callback()
        return seconds

    @attrs.frozen
    class Handle:
        timer: "HandTimer"
        entry: tuple[float, Callable[[], None]]

        def cancel(self) -> None:
            if self.entry in self.timer.pending:
                self.timer.pending.remove(self.entry)


def call_of(code: ToolCode, *, read_only: bool = False, timeout_s: float | None = None, **given: Any) -> Call:
    made = Tool("work", "", {"type": "object"}, code, read_only=read_only, timeout_s=timeout_s)
    return Call(id="toolu_1", name="work", input=given, index=0, tool=made, read_only=read_only)


async def carried_out(call: Call, abort: AbortSignal | None = None, **options: Any) -> Outcome:
    return await execute(call, run_id="run_1", abort=abort or AbortSignal(), **options)


def run(coroutine: Coroutine[Any, Any, Outcome]) -> Outcome:
    return asyncio.run(coroutine)


async def ticks(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


class Gate:
    """A tool that says when it has begun, and then waits to be let go."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.released = asyncio.Event()
        self.ended = False

    async def call(self, _: dict[str, Any], ctx: ToolContext) -> str:
        self.begun.set()
        try:
            await self.released.wait()
        finally:
            self.ended = True
        return "done"


class Stubborn(Gate):
    """A tool that goes on whatever it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    async def call(self, _: dict[str, Any], ctx: ToolContext) -> str:
        self.begun.set()
        while not self.released.is_set():
            try:
                await self.released.wait()
            except asyncio.CancelledError:
                self.asked += 1
        self.ended = True
        return "done"


def test_what_the_tool_returns_is_the_content() -> None:
    async def work(given: dict[str, Any], ctx: ToolContext) -> object:
        return {"given": given, "id": ctx.tool_use_id, "run": ctx.run_id, "key": ctx.idempotency_key}

    call = call_of(work, path="a")
    expected = '{"given":{"path":"a"},"id":"toolu_1","run":"run_1","key":"run_1:toolu_1"}'
    assert run(carried_out(call)) == Outcome(call=call, cause=Cause.ANSWERED, content=expected, is_error=False)


def test_the_outcome_is_the_tool_result_block_of_its_call() -> None:
    async def work(_: dict[str, Any], ctx: ToolContext) -> object:
        return ToolResult([{"type": "text", "text": "no such row"}], is_error=True)

    outcome = run(carried_out(call_of(work)))
    assert outcome.cause is Cause.FAILED
    assert outcome.block() == {
        "type": "tool_result",
        "tool_use_id": "toolu_1",
        "content": [{"type": "text", "text": "no such row"}],
        "is_error": True,
    }


def test_the_block_of_a_good_result_carries_no_error_mark() -> None:
    async def work(_: dict[str, Any], ctx: ToolContext) -> object:
        return "fine"

    assert run(carried_out(call_of(work))).block() == {
        "type": "tool_result",
        "tool_use_id": "toolu_1",
        "content": "fine",
    }


def test_a_long_result_is_cut_and_its_full_text_handed_on() -> None:
    async def work(_: dict[str, Any], ctx: ToolContext) -> object:
        return "h" * 75 + "m" * 100 + "t" * 25

    outcome = run(carried_out(call_of(work), max_result_chars=100))
    assert outcome.content == "h" * 75 + "\n[… 100 of 200 characters left out …]\n" + "t" * 25
    assert outcome.full_text == "h" * 75 + "m" * 100 + "t" * 25


def test_a_tool_cannot_change_the_history_through_its_input() -> None:
    async def work(given: dict[str, Any], ctx: ToolContext) -> object:
        given["list"].append("changed")
        return "ok"

    call = call_of(work, list=["kept"])
    run(carried_out(call))
    assert call.input == {"list": ["kept"]}


def test_a_tool_that_does_not_await_anything_is_answered_all_the_same() -> None:
    def work(_: dict[str, Any], ctx: ToolContext) -> object:
        return "at once"

    call = call_of(cast("Any", work))
    assert run(carried_out(call)).content == "at once"


def test_an_exception_is_a_failed_call_with_its_text() -> None:
    async def work(_: dict[str, Any], ctx: ToolContext) -> object:
        error = ValueError("no row 7")
        error.add_note("the table has 3 rows")
        raise error

    call = call_of(work)
    assert run(carried_out(call)) == Outcome(
        call=call, cause=Cause.FAILED, content="failed: ValueError: no row 7\nthe table has 3 rows", is_error=True
    )


def test_a_timeout_error_of_the_tools_own_is_a_failure_not_our_timeout() -> None:
    async def work(_: dict[str, Any], ctx: ToolContext) -> object:
        raise TimeoutError("upstream")

    assert run(carried_out(call_of(work, timeout_s=10))).cause is Cause.FAILED


def test_a_cancelled_error_raised_by_the_tool_itself_is_a_failure() -> None:
    async def work(_: dict[str, Any], ctx: ToolContext) -> object:
        raise asyncio.CancelledError

    outcome = run(carried_out(call_of(work)))
    assert (outcome.cause, outcome.content) == (Cause.FAILED, "failed: CancelledError")


def test_a_tool_that_cancels_its_own_task_is_a_failure() -> None:
    async def work(_: dict[str, Any], ctx: ToolContext) -> object:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        return await asyncio.Event().wait()

    assert run(carried_out(call_of(work))).cause is Cause.FAILED


@pytest.mark.parametrize("ends", ["returns", "raises"])
def test_a_tool_that_cancels_its_own_task_and_then_ends_keeps_what_it_came_to(ends: str) -> None:
    """The event loop forgets the result of such a task; that the call was not started would be untrue."""

    async def work(given: dict[str, Any], context: ToolContext) -> object:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        if ends == "raises":
            raise ValueError("full")
        return "done"

    outcome = run(carried_out(call_of(work)))
    expected = (Cause.ANSWERED, "done") if ends == "returns" else (Cause.FAILED, "failed: ValueError: full")
    assert (outcome.cause, outcome.content) == expected


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt])
def test_an_exit_raised_by_a_tool_passes_through_without_stopping_the_event_loop(kind: type[BaseException]) -> None:
    async def work(_: dict[str, Any], ctx: ToolContext) -> object:
        raise kind(3)

    async def scenario() -> str:
        with pytest.raises(kind):
            await carried_out(call_of(work))
        await asyncio.sleep(0)
        return "the loop still runs"

    assert asyncio.run(scenario()) == "the loop still runs"


@pytest.mark.parametrize(
    ("read_only", "expected"),
    [
        (True, "timed out after 1.5 s, no effect: the tool only reads."),
        (
            False,
            f"timed out after 1.5 s, effect unknown: {PARTS}",
        ),
    ],
)
def test_a_tool_over_its_timeout_is_stopped_and_says_what_is_known(read_only: bool, expected: str) -> None:
    async def scenario() -> None:
        gate, timer = Gate(), HandTimer()
        call = call_of(gate.call, read_only=read_only, timeout_s=1.5)
        task = asyncio.create_task(carried_out(call, timer=timer))
        await gate.begun.wait()
        assert timer.fire() == 1.5
        assert await task == Outcome(call=call, cause=Cause.TIMED_OUT, content=expected, is_error=True)
        assert gate.ended
        assert timer.pending == []

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("read_only", "cause", "words"),
    [
        (True, Cause.INTERRUPTED_NO_EFFECT, "interrupted, no effect"),
        (False, Cause.INTERRUPTED_EFFECT_UNKNOWN, "interrupted while running, effect unknown"),
    ],
)
def test_an_abort_interrupts_and_says_what_is_known(read_only: bool, cause: Cause, words: str) -> None:
    async def scenario() -> Outcome:
        gate, abort = Gate(), AbortSignal()
        task = asyncio.create_task(carried_out(call_of(gate.call, read_only=read_only), abort))
        await gate.begun.wait()
        abort.set()
        outcome = await task
        assert gate.ended
        return outcome

    outcome = run(scenario())
    assert outcome.cause is cause
    assert outcome.is_error
    assert words in str(outcome.content)
    assert "not run" not in str(outcome.content)
    assert "denied" not in str(outcome.content)


def test_a_call_aborted_before_it_begins_never_runs() -> None:
    async def scenario() -> None:
        gate, abort = Gate(), AbortSignal()
        abort.set()
        outcome = await carried_out(call_of(gate.call), abort)
        assert outcome.cause is Cause.NOT_STARTED
        assert "not started" in str(outcome.content)
        assert not gate.begun.is_set()

    asyncio.run(scenario())


def test_a_tool_that_finishes_in_the_tick_of_the_abort_keeps_its_result() -> None:
    async def scenario() -> Outcome:
        gate, abort = Gate(), AbortSignal()
        task = asyncio.create_task(carried_out(call_of(gate.call), abort))
        await gate.begun.wait()
        gate.released.set()
        await asyncio.sleep(0)  # the tool takes its last step now, and nobody has looked yet
        abort.set()
        return await task

    assert run(scenario()).cause is Cause.ANSWERED


def test_a_tool_that_raises_in_the_tick_of_the_abort_has_failed_and_was_not_interrupted() -> None:
    async def scenario() -> Outcome:
        begun, released, abort = asyncio.Event(), asyncio.Event(), AbortSignal()

        async def work(_: dict[str, Any], ctx: ToolContext) -> object:
            begun.set()
            await released.wait()
            raise ValueError("no row 7")

        task = asyncio.create_task(carried_out(call_of(work), abort))
        await begun.wait()
        released.set()
        await asyncio.sleep(0)
        abort.set()
        return await task

    outcome = run(scenario())
    assert (outcome.cause, outcome.content) == (Cause.FAILED, "failed: ValueError: no row 7")


def test_a_tool_that_returns_although_it_was_cancelled_keeps_its_result() -> None:
    async def work(_: dict[str, Any], ctx: ToolContext) -> object:
        try:
            await ctx.aborted.wait()
            return await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "3 of 10 rows written"

    async def scenario() -> Outcome:
        abort = AbortSignal()
        task = asyncio.create_task(carried_out(call_of(work), abort))
        await ticks(3)
        abort.set()
        return await task

    outcome = run(scenario())
    assert (outcome.cause, outcome.content) == (Cause.ANSWERED, "3 of 10 rows written")


def test_an_error_on_the_way_out_of_a_cancelled_tool_does_not_hide_the_interruption() -> None:
    async def work(_: dict[str, Any], ctx: ToolContext) -> object:
        try:
            await asyncio.Event().wait()
        finally:
            raise OSError("the connection broke while it was closed")

    async def scenario() -> Outcome:
        abort = AbortSignal()
        task = asyncio.create_task(carried_out(call_of(work), abort))
        await ticks(3)
        abort.set()
        return await task

    assert run(scenario()).cause is Cause.INTERRUPTED_EFFECT_UNKNOWN


def test_a_tool_that_ignores_cancellation_is_asked_twice_and_then_abandoned() -> None:
    async def scenario() -> None:
        gate, abort, timer = Stubborn(), AbortSignal(), HandTimer()
        task = asyncio.create_task(carried_out(call_of(gate.call), abort, timer=timer, grace_s=4))
        await gate.begun.wait()
        abort.set()
        await ticks(3)
        assert (gate.asked, task.done()) == (1, False)
        assert timer.fire() == 2
        await ticks(3)
        assert (gate.asked, task.done()) == (2, False)
        assert timer.fire() == 2
        outcome = await task
        assert outcome.cause is Cause.INTERRUPTED_EFFECT_UNKNOWN
        assert outcome.abandoned
        assert str(outcome.content).endswith("It did not end when asked to and may still be running.")
        assert not gate.ended
        gate.released.set()
        await ticks(3)
        assert gate.ended

    asyncio.run(scenario())


def test_a_tool_that_needs_the_second_cancellation_is_not_abandoned() -> None:
    async def work(_: dict[str, Any], ctx: ToolContext) -> object:
        try:
            return await asyncio.Event().wait()
        except asyncio.CancelledError:
            return await asyncio.Event().wait()

    async def scenario() -> Outcome:
        abort, timer = AbortSignal(), HandTimer()
        task = asyncio.create_task(carried_out(call_of(work, read_only=True), abort, timer=timer))
        await ticks(3)
        abort.set()
        await ticks(3)
        timer.fire()
        outcome = await task
        assert timer.pending == []
        return outcome

    outcome = run(scenario())
    assert (outcome.cause, outcome.abandoned) == (Cause.INTERRUPTED_NO_EFFECT, False)


def test_cancelling_the_caller_ends_the_tool_first_and_carries_the_outcome() -> None:
    async def scenario() -> None:
        gate = Gate()
        task = asyncio.create_task(carried_out(call_of(gate.call)))
        await gate.begun.wait()
        task.cancel()
        with pytest.raises(CallCancelled) as caught:
            await task
        assert gate.ended
        assert caught.value.outcome.cause is Cause.INTERRUPTED_EFFECT_UNKNOWN

    asyncio.run(scenario())


def test_cancelling_the_caller_again_does_not_leave_the_tool_behind() -> None:
    async def scenario() -> None:
        gate, timer = Stubborn(), HandTimer()
        task = asyncio.create_task(carried_out(call_of(gate.call), timer=timer))
        await gate.begun.wait()
        for _ in range(3):
            task.cancel()
            await ticks(2)
        assert not task.done()
        gate.released.set()
        with pytest.raises(CallCancelled) as caught:
            await task
        assert gate.ended
        assert caught.value.outcome.cause is Cause.ANSWERED

    asyncio.run(scenario())


def test_a_tool_whose_task_a_closing_loop_cancels_before_its_first_step_was_not_started() -> None:
    async def scenario() -> None:
        gate = Gate()
        task = asyncio.create_task(carried_out(call_of(gate.call)))
        await asyncio.sleep(0)
        for other in asyncio.all_tasks() - {asyncio.current_task()}:
            other.cancel()
        with pytest.raises(CallCancelled) as caught:
            await task
        assert caught.value.outcome.cause is Cause.NOT_STARTED
        assert not gate.begun.is_set()

    asyncio.run(scenario())


@pytest.mark.parametrize("tool_first", [True, False])
def test_a_tool_whose_task_a_closing_loop_cancels_was_interrupted(tool_first: bool) -> None:
    async def scenario() -> None:
        gate = Gate()
        task = asyncio.create_task(carried_out(call_of(gate.call)))
        await gate.begun.wait()
        others = asyncio.all_tasks() - {asyncio.current_task(), task}
        for other in [*others, task] if tool_first else [task, *others]:
            other.cancel()
        with pytest.raises(CallCancelled) as caught:
            await task
        assert caught.value.outcome.cause is Cause.INTERRUPTED_EFFECT_UNKNOWN

    asyncio.run(scenario())


def test_a_call_without_a_tool_is_answered_as_unknown() -> None:
    outcome = run(carried_out(Call(id="toolu_1", name="reed", input={}, index=0)))
    assert outcome.cause is Cause.UNKNOWN_TOOL
    assert outcome.is_error


def test_progress_arrives_while_the_tool_runs_and_never_after_it() -> None:
    seen: list[tuple[str, tuple[object, ...]]] = []
    contexts: list[ToolContext] = []

    async def work(_: dict[str, Any], ctx: ToolContext) -> object:
        contexts.append(ctx)
        ctx.progress("half", 0.5)
        return "ok"

    def listen(call: Call, args: tuple[object, ...]) -> None:
        seen.append((call.id, args))

    run(carried_out(call_of(work), on_progress=listen))
    contexts[0].progress("too late")
    assert seen == [("toolu_1", ("half", 0.5))]


def thread_call(function: Callable[..., object], **given: Any) -> Call:
    made = tool(function)
    return Call(id="toolu_1", name=made.name, input=given, index=0, tool=made)


def test_a_sync_tool_runs_in_another_thread_with_the_callers_context_and_reports_to_the_loops_thread() -> None:
    variable = contextvars.ContextVar("variable", default="unset")
    threads: list[int] = []
    reported: list[tuple[int, tuple[object, ...]]] = []

    def work(ctx: ToolContext) -> str:
        """Work."""
        threads.append(threading.get_ident())
        ctx.progress("from the thread")
        return variable.get()

    def listen(call: Call, args: tuple[object, ...]) -> None:
        reported.append((threading.get_ident(), args))

    async def scenario() -> Outcome:
        variable.set("set by the caller")
        return await carried_out(thread_call(work), on_progress=listen)

    outcome = run(scenario())
    assert outcome.content == "set by the caller"
    assert threads != [threading.get_ident()]
    assert reported == [(threading.get_ident(), ("from the thread",))]


@pytest.mark.parametrize("error", [ValueError("bad"), StopIteration("bad"), asyncio.CancelledError("bad")])
def test_whatever_a_sync_tool_raises_is_a_failure(error: BaseException) -> None:
    def work() -> None:
        raise error

    outcome = run(carried_out(thread_call(work)))
    assert (outcome.cause, outcome.abandoned) == (Cause.FAILED, False)


def test_an_exit_in_a_sync_tool_passes_through() -> None:
    def work() -> None:
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        run(carried_out(thread_call(work)))


def test_a_sync_tool_is_abandoned_on_abort_and_sees_the_signal() -> None:
    async def scenario() -> None:
        begun, saw, loop = asyncio.Event(), threading.Event(), asyncio.get_running_loop()

        def work(ctx: ToolContext) -> None:
            loop.call_soon_threadsafe(begun.set)
            if ctx.aborted.wait_in_thread():
                saw.set()

        abort = AbortSignal()
        task = asyncio.create_task(carried_out(thread_call(work), abort))
        await begun.wait()
        abort.set()
        outcome = await task
        assert outcome.cause is Cause.INTERRUPTED_EFFECT_UNKNOWN
        assert outcome.abandoned
        assert saw.wait(10)

    asyncio.run(scenario())


def test_a_sync_tool_over_its_timeout_sees_the_signal_too() -> None:
    async def scenario() -> None:
        begun, saw, loop, timer = asyncio.Event(), threading.Event(), asyncio.get_running_loop(), HandTimer()

        @tool(timeout_s=5)
        def work(ctx: ToolContext) -> None:
            loop.call_soon_threadsafe(begun.set)
            if ctx.aborted.wait_in_thread():
                saw.set()

        call = Call(id="toolu_1", name="work", input={}, index=0, tool=work)
        task = asyncio.create_task(carried_out(call, timer=timer))
        await begun.wait()
        assert timer.fire() == 5
        outcome = await task
        assert (outcome.cause, outcome.abandoned) == (Cause.TIMED_OUT, True)
        assert saw.wait(10)

    asyncio.run(scenario())


def test_a_thread_that_ended_in_the_tick_of_its_cancellation_was_not_left() -> None:
    async def scenario() -> str:
        loop = asyncio.get_running_loop()

        def cancel_once_ended(thread: threading.Thread) -> None:
            thread.join()  # its answer is queued now
            loop.call_soon(task.cancel)

        def work() -> str:
            loop.call_soon_threadsafe(cancel_once_ended, threading.current_thread())
            return "done"

        task = asyncio.create_task(run_in_thread(work, name="work"))
        return await task

    assert asyncio.run(scenario()) == "done"


def test_a_thread_that_runs_on_is_left_with_a_word() -> None:
    async def scenario() -> None:
        loop, released = asyncio.get_running_loop(), threading.Event()

        def work() -> None:
            loop.call_soon_threadsafe(task.cancel)
            released.wait()

        task = asyncio.create_task(run_in_thread(work, name="work"))
        with pytest.raises(ThreadLeft):
            await task
        released.set()

    asyncio.run(scenario())


def test_an_input_that_the_functions_types_refuse_is_invalid_not_failed() -> None:
    def work(count: int, note: str = "") -> str:
        return note * count

    outcome = run(carried_out(thread_call(work, count="many")))
    assert outcome.cause is Cause.INVALID_INPUT
    assert "count: " in str(outcome.content)


def test_the_signal_wakes_and_forgets() -> None:
    async def scenario() -> list[str]:
        signal, seen = AbortSignal(), list[str]()
        waiter = asyncio.create_task(signal.wait())
        forget = signal.on_set(lambda: seen.append("forgotten"))
        signal.on_set(lambda: seen.append("called"))
        await asyncio.sleep(0)
        forget()
        assert (signal.is_set(), signal.wait_in_thread(0)) == (False, False)
        signal.set()
        signal.set()
        await waiter
        signal.on_set(lambda: seen.append("at once"))
        await signal.wait()
        assert (signal.is_set(), signal.wait_in_thread(0)) == (True, True)
        return seen

    assert asyncio.run(scenario()) == ["called", "at once"]


def test_a_context_made_by_hand_reports_to_nobody() -> None:
    context = ToolContext(tool_use_id="toolu_1", run_id="run_1")
    context.progress("unheard")
    assert context.idempotency_key == "run_1:toolu_1"
    assert not context.aborted.is_set()
