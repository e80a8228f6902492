"""The scheduler: calls start in order while the model writes, and end for certain, whenever they are cancelled."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from looplatch.states.errors import HookMisbehaved, UsageError
from looplatch.tools import AbortSignal, Call, Cause, Outcome, Tool, ToolContext
from looplatch.tools.calls import Denial, Problem
from looplatch.tools.execution import execute
from looplatch.tools.scheduler import Scheduler


def outcome_of(call: Call) -> Outcome:
    return Outcome(call=call, cause=Cause.ANSWERED, content="ok", is_error=False)


async def never(given: dict[str, Any], ctx: ToolContext) -> object:
    raise AssertionError("the tool of a call that only the scheduler sees was run")


READER = Tool("read", "", {"type": "object"}, never, read_only=True)
WRITER = Tool("write", "", {"type": "object"}, never)


def read(call_id: str, index: int, *, undecided: bool = False) -> Call:
    return Call(id=call_id, name="read", input={}, index=index, tool=READER, read_only=True, undecided=undecided)


def write(call_id: str, index: int) -> Call:
    return Call(id=call_id, name="write", input={}, index=index, tool=WRITER)


def broken(call_id: str, index: int, *, undecided: bool = False) -> Call:
    problem = Problem(cause=Cause.INVALID_INPUT, text="invalid input")
    return Call(id=call_id, name="read", input={}, index=index, tool=READER, problem=problem, undecided=undecided)


class Stage:
    """Carries calls out: each begins, waits for the test to end it, and heeds the signal."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.ends: dict[str, asyncio.Event] = {}

    async def start(self, call: Call, abort: AbortSignal) -> Outcome:
        self.log.append(f"{call.id} began")
        end = self.ends.setdefault(call.id, asyncio.Event())
        aborted = abort.on_set(end.set)
        try:
            await end.wait()
        finally:
            aborted()
        self.log.append(f"{call.id} ended")
        if abort.is_set():
            cause = Cause.INTERRUPTED_NO_EFFECT if call.read_only else Cause.INTERRUPTED_EFFECT_UNKNOWN
            return Outcome(call=call, cause=cause, content="interrupted", is_error=True)
        return outcome_of(call)

    def end(self, call_id: str) -> None:
        self.ends[call_id].set()


async def ticks(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def ids(calls: tuple[Call, ...]) -> list[str]:
    return [call.id for call in calls]


def causes(scheduler: Scheduler) -> dict[str, Cause]:
    return {outcome.call.id: outcome.cause for outcome in scheduler.outcomes}


def other_tasks() -> set[asyncio.Task[Any]]:
    return asyncio.all_tasks() - {task for task in [asyncio.current_task()] if task is not None}


def test_a_read_starts_before_the_model_has_moved_on() -> None:
    async def scenario() -> None:
        stage = Stage()
        scheduler = Scheduler(stage.start)
        scheduler.add(read("a", 0))
        await ticks()
        assert stage.log == ["a began"]
        stage.end("a")
        assert await scheduler.next_finished() == outcome_of(read("a", 0))
        assert await scheduler.next_finished() is None
        assert scheduler.settled
        assert not other_tasks()

    asyncio.run(scenario())


def test_a_write_starts_when_the_model_has_moved_on_and_all_before_it_has_ended() -> None:
    async def scenario() -> None:
        stage = Stage()
        scheduler = Scheduler(stage.start)
        for call in (read("a", 1), write("b", 2), read("c", 3)):
            scheduler.add(call)
        scheduler.moved_on(3)
        await ticks()
        assert stage.log == ["a began"]
        assert (ids(scheduler.calls), ids(scheduler.running)) == (["a", "b", "c"], ["a"])
        stage.end("a")
        await ticks()
        stage.end("b")
        await ticks()
        stage.end("c")
        await ticks()
        assert stage.log == ["a began", "a ended", "b began", "b ended", "c began", "c ended"]
        assert ids(scheduler.begun) == ids(scheduler.calls) == ["a", "b", "c"]

    asyncio.run(scenario())


def test_a_call_whose_input_is_empty_waits_until_the_model_has_moved_on() -> None:
    async def scenario() -> None:
        stage = Stage()
        scheduler = Scheduler(stage.start)
        scheduler.add(read("a", 0, undecided=True))
        await ticks()
        assert stage.log == []
        scheduler.moved_on(0)
        await ticks()
        assert stage.log == []
        scheduler.moved_on(1)
        await ticks()
        assert stage.log == ["a began"]
        await scheduler.cancel()

    asyncio.run(scenario())


def test_the_model_moving_on_counts_for_calls_added_after_it() -> None:
    async def scenario() -> None:
        stage = Stage()
        scheduler = Scheduler(stage.start)
        scheduler.moved_on(2)
        scheduler.add(write("a", 1))
        scheduler.moved_on(1)  # it never moves back
        await ticks()
        assert stage.log == ["a began"]
        await scheduler.cancel()

    asyncio.run(scenario())


def test_at_most_so_many_reads_run_at_once() -> None:
    async def scenario() -> None:
        stage = Stage()
        scheduler = Scheduler(stage.start, max_parallel=2)
        for index, name in enumerate("abcd"):
            scheduler.add(read(name, index))
        await ticks()
        assert stage.log == ["a began", "b began"]
        stage.end("b")
        await ticks()
        assert stage.log == ["a began", "b began", "b ended", "c began"]
        await scheduler.cancel()

    asyncio.run(scenario())


def test_calls_that_cannot_run_are_answered_at_once_and_hold_nobody_up() -> None:
    async def scenario() -> None:
        stage = Stage()
        scheduler = Scheduler(stage.start, max_parallel=1)
        scheduler.add(read("a", 0))
        scheduler.add(broken("b", 1))
        scheduler.add(broken("c", 2))
        assert [outcome.call.id for outcome in scheduler.take_finished()] == ["b", "c"]
        assert scheduler.take_finished() == ()
        assert causes(scheduler) == {"b": Cause.INVALID_INPUT, "c": Cause.INVALID_INPUT}
        await ticks()
        assert ids(scheduler.begun) == ["a"]
        await scheduler.cancel()

    asyncio.run(scenario())


def test_an_input_that_is_no_json_is_answered_only_once_it_is_not_just_cut() -> None:
    async def scenario() -> None:
        scheduler = Scheduler(Stage().start)
        scheduler.add(broken("a", 0, undecided=True))
        assert scheduler.outcomes == ()
        scheduler.moved_on(1)
        assert causes(scheduler) == {"a": Cause.INVALID_INPUT}

    asyncio.run(scenario())


def test_outcomes_come_as_they_finish_and_stand_in_the_models_order() -> None:
    async def scenario() -> None:
        stage = Stage()
        scheduler = Scheduler(stage.start)
        for index, name in enumerate("abc"):
            scheduler.add(read(name, index))
        await ticks()
        came: list[str] = []
        for name in "cab":
            stage.end(name)
            outcome = await scheduler.next_finished()
            assert outcome is not None
            came.append(outcome.call.id)
        assert came == ["c", "a", "b"]
        assert [outcome.call.id for outcome in scheduler.outcomes] == ["a", "b", "c"]

    asyncio.run(scenario())


def test_waiting_for_the_next_outcome_can_be_cancelled_without_loss() -> None:
    async def scenario() -> None:
        stage = Stage()
        scheduler = Scheduler(stage.start)
        scheduler.add(read("a", 0))
        await ticks()
        waiting = asyncio.create_task(scheduler.next_finished())
        await ticks()
        waiting.cancel()
        stage.end("a")
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert await scheduler.next_finished() == outcome_of(read("a", 0))

    asyncio.run(scenario())


def test_an_id_that_comes_twice_is_refused() -> None:
    async def scenario() -> None:
        scheduler = Scheduler(Stage().start)
        scheduler.add(write("a", 0))
        with pytest.raises(ValueError, match="'a' was added before"):
            scheduler.add(write("a", 1))
        await scheduler.cancel()

    asyncio.run(scenario())


def test_a_limit_under_which_nothing_could_start_is_refused() -> None:
    with pytest.raises(UsageError, match="max_parallel: it is 0"):
        Scheduler(Stage().start, max_parallel=0)


# Permission


def permitting(verdicts: dict[str, Call | Denial]) -> Callable[[Call], Awaitable[Call | Denial]]:
    async def permit(call: Call) -> Call | Denial:
        await asyncio.sleep(0)
        return verdicts.get(call.id, call)

    return permit


def test_a_denied_call_never_starts_and_says_why() -> None:
    async def scenario() -> None:
        stage = Stage()
        scheduler = Scheduler(stage.start, permit=permitting({"a": Denial(message="not on Sundays", interrupt=True)}))
        scheduler.add(write("a", 0))
        scheduler.moved_on(1)
        outcome = await scheduler.next_finished()
        assert outcome is not None
        assert (outcome.cause, outcome.interrupt) == (Cause.DENIED, True)
        assert outcome.content == "denied. The call was not run: not on Sundays"
        assert stage.log == []
        assert scheduler.begun == ()

    asyncio.run(scenario())


def test_permission_may_change_the_input() -> None:
    async def scenario() -> None:
        changed = attrs.evolve(write("a", 0), input={"safe": True})
        started: list[Call] = []

        async def start(call: Call, abort: AbortSignal) -> Outcome:
            started.append(call)
            return outcome_of(call)

        scheduler = Scheduler(start, permit=permitting({"a": changed}))
        scheduler.add(write("a", 0))
        scheduler.moved_on(1)
        assert await scheduler.next_finished() == outcome_of(changed)
        assert started == [changed]

    asyncio.run(scenario())


def test_permission_may_find_a_problem() -> None:
    async def scenario() -> None:
        stage = Stage()
        scheduler = Scheduler(stage.start, permit=permitting({"a": broken("a", 0)}))
        scheduler.add(read("a", 0))
        await scheduler.next_finished()
        assert causes(scheduler) == {"a": Cause.INVALID_INPUT}
        assert stage.log == []

    asyncio.run(scenario())


def test_a_read_that_permission_makes_a_write_waits_for_its_turn_as_one_and_is_asked_about_once() -> None:
    async def scenario() -> None:
        stage = Stage()
        asked: list[str] = []

        async def permit(call: Call) -> Call:
            asked.append(call.id)
            return attrs.evolve(call, read_only=False) if call.id == "b" else call

        scheduler = Scheduler(stage.start, permit=permit)
        for index, name in enumerate("abc"):
            scheduler.add(read(name, index))
        await ticks()
        assert stage.log == ["a began", "c began"]
        stage.end("a")
        stage.end("c")
        await ticks()
        assert stage.log == ["a began", "c began", "a ended", "c ended"]
        scheduler.moved_on(3)
        await ticks()
        assert stage.log[4:] == ["b began"]
        assert asked == ["a", "b", "c"]
        await scheduler.cancel()

    asyncio.run(scenario())


def test_cancelling_while_permission_is_asked_for_starts_nothing() -> None:
    async def scenario() -> None:
        stage = Stage()
        asked = asyncio.Event()

        async def permit(call: Call) -> Call:
            asked.set()
            await asyncio.Event().wait()
            return call

        scheduler = Scheduler(stage.start, permit=permit)
        scheduler.add(read("a", 0))
        await asked.wait()
        await scheduler.cancel()
        assert causes(scheduler) == {"a": Cause.NOT_STARTED}
        assert stage.log == []
        assert not other_tasks()

    asyncio.run(scenario())


def test_permission_that_comes_in_the_tick_of_the_cancel_starts_nothing() -> None:
    async def scenario() -> None:
        stage = Stage()
        answered = asyncio.Event()

        async def permit(call: Call) -> Call:
            await answered.wait()
            return call

        scheduler = Scheduler(stage.start, permit=permit)
        scheduler.add(write("a", 0))
        scheduler.moved_on(1)
        await ticks()
        answered.set()
        await asyncio.sleep(0)
        await scheduler.cancel()
        assert causes(scheduler) == {"a": Cause.NOT_STARTED}
        assert stage.log == []

    asyncio.run(scenario())


# Faults


def test_an_exception_around_a_tool_starts_nothing_more_and_reaches_the_owner() -> None:
    async def scenario() -> None:
        async def start(call: Call, abort: AbortSignal) -> Outcome:
            raise OSError("the log cannot be written")

        scheduler = Scheduler(start)
        scheduler.add(write("a", 0))
        scheduler.add(write("b", 1))
        scheduler.moved_on(2)
        first = await scheduler.next_finished()
        assert first is not None
        assert first.cause is Cause.INTERRUPTED_EFFECT_UNKNOWN
        with pytest.raises(OSError, match="the log cannot be written"):
            await scheduler.next_finished()
        scheduler.add(read("c", 2))
        await ticks()
        assert ids(scheduler.begun) == ["a"]
        await scheduler.cancel()
        assert causes(scheduler) == {
            "a": Cause.INTERRUPTED_EFFECT_UNKNOWN,
            "b": Cause.NOT_STARTED,
            "c": Cause.NOT_STARTED,
        }

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (ValueError("hook"), ValueError),
        (asyncio.CancelledError(), RuntimeError),
        (KeyboardInterrupt(), KeyboardInterrupt),
    ],
)
def test_an_exception_of_the_permission_hook_reaches_the_owner(
    raised: BaseException, expected: type[BaseException]
) -> None:
    async def scenario() -> None:
        async def permit(call: Call) -> Call:
            raise raised

        stage = Stage()
        scheduler = Scheduler(stage.start, permit=permit)
        scheduler.add(read("a", 0))
        await scheduler.next_finished()
        with pytest.raises(expected):
            await scheduler.next_finished()
        assert isinstance(scheduler.fault, expected)
        assert causes(scheduler) == {"a": Cause.NOT_STARTED}
        assert stage.log == []

    asyncio.run(scenario())


def test_permission_for_another_call_is_a_fault() -> None:
    async def scenario() -> None:
        scheduler = Scheduler(Stage().start, permit=permitting({"a": read("z", 0)}))
        scheduler.add(read("a", 0))
        await scheduler.next_finished()
        with pytest.raises(HookMisbehaved, match=r"permission for a returned .* the call, a Denial or Asked"):
            await scheduler.next_finished()

    asyncio.run(scenario())


def test_a_start_that_is_cancelled_from_inside_is_a_fault_not_a_hang() -> None:
    async def scenario() -> None:
        async def start(call: Call, abort: AbortSignal) -> Outcome:
            raise asyncio.CancelledError

        scheduler = Scheduler(start)
        scheduler.add(read("a", 0))
        await scheduler.next_finished()
        with pytest.raises(RuntimeError, match="was cancelled from inside"):
            await scheduler.next_finished()

    asyncio.run(scenario())


def test_an_exit_raised_by_a_tool_is_its_failure_and_reaches_the_owner() -> None:
    async def work(_: dict[str, Any], ctx: ToolContext) -> object:
        raise SystemExit(3)

    async def scenario() -> None:
        leaving = Tool("leave", "", {"type": "object"}, work)
        scheduler = Scheduler(lambda call, abort: execute(call, run_id="run_1", abort=abort))
        scheduler.add(Call(id="a", name="leave", input={}, index=0, tool=leaving))
        scheduler.moved_on(1)
        outcome = await scheduler.next_finished()
        assert outcome is not None
        assert (outcome.cause, outcome.content) == (Cause.FAILED, "failed: SystemExit: 3")
        with pytest.raises(SystemExit):
            await scheduler.next_finished()

    asyncio.run(scenario())


# Sealing


def test_sealing_drops_what_comes_after_the_last_call_begun() -> None:
    async def scenario() -> None:
        stage = Stage()
        scheduler = Scheduler(stage.start)
        scheduler.add(read("a", 0))
        scheduler.add(broken("b", 1))
        scheduler.add(read("c", 2))
        await ticks()
        scheduler.add(broken("d", 3))
        scheduler.add(write("e", 4))
        assert ids(scheduler.seal()) == ["d", "e"]
        scheduler.moved_on(5)
        stage.end("a")
        stage.end("c")
        while await scheduler.next_finished() is not None:
            pass
        assert causes(scheduler) == {"a": Cause.ANSWERED, "b": Cause.INVALID_INPUT, "c": Cause.ANSWERED}
        assert ids(scheduler.calls) == ["a", "b", "c"]

    asyncio.run(scenario())


def test_sealing_drops_everything_when_no_call_has_begun() -> None:
    async def scenario() -> None:
        scheduler = Scheduler(Stage().start)
        scheduler.add(broken("a", 0))
        scheduler.add(write("b", 1))
        assert ids(scheduler.seal()) == ["a", "b"]
        assert scheduler.settled
        assert scheduler.take_finished() == scheduler.outcomes == ()
        assert await scheduler.next_finished() is None

    asyncio.run(scenario())


def test_sealing_calls_off_a_permission_that_is_being_asked_for() -> None:
    async def scenario() -> None:
        stage = Stage()
        asked = asyncio.Event()

        async def permit(call: Call) -> Call:
            asked.set()
            await asyncio.Event().wait()
            return call

        scheduler = Scheduler(stage.start, permit=permit)
        scheduler.add(read("a", 0))
        await asked.wait()
        assert ids(scheduler.seal()) == ["a"]
        await scheduler.cancel()
        assert scheduler.outcomes == ()
        assert stage.log == []
        assert not other_tasks()

    asyncio.run(scenario())


# Cancellation


def test_cancel_tells_each_call_the_truth() -> None:
    async def scenario() -> None:
        stage = Stage()
        scheduler = Scheduler(stage.start, max_parallel=2)
        for call in (read("a", 0), read("b", 1), read("c", 2), write("d", 3), broken("e", 4, undecided=True)):
            scheduler.add(call)
        await ticks()
        stage.end("a")
        await ticks()
        await scheduler.cancel()
        assert causes(scheduler) == {
            "a": Cause.ANSWERED,
            "b": Cause.INTERRUPTED_NO_EFFECT,
            "c": Cause.INTERRUPTED_NO_EFFECT,
            "d": Cause.NOT_STARTED,
            "e": Cause.NOT_STARTED,
        }
        assert "d began" not in stage.log
        assert not other_tasks()
        scheduler.add(read("f", 5))
        assert causes(scheduler)["f"] is Cause.NOT_STARTED
        await scheduler.cancel()
        assert len(scheduler.outcomes) == 6

    asyncio.run(scenario())


def test_cancel_that_is_cancelled_itself_finishes_first_and_raises_then() -> None:
    async def scenario() -> None:
        asked = 0
        begun, released = asyncio.Event(), asyncio.Event()

        async def work(_: dict[str, Any], ctx: ToolContext) -> object:
            nonlocal asked
            begun.set()
            while not released.is_set():
                try:
                    await released.wait()
                except asyncio.CancelledError:
                    asked += 1
            return "slow, but done"

        slow = Tool("slow", "", {"type": "object"}, work)
        scheduler = Scheduler(lambda call, abort: execute(call, run_id="run_1", abort=abort))
        scheduler.add(Call(id="a", name="slow", input={}, index=0, tool=slow))
        scheduler.moved_on(1)
        await begun.wait()
        cancelling = asyncio.create_task(scheduler.cancel())
        for _ in range(3):
            await ticks()
            cancelling.cancel()
        await ticks()
        assert not cancelling.done()
        released.set()
        with pytest.raises(asyncio.CancelledError):
            await cancelling
        assert (causes(scheduler), asked) == ({"a": Cause.ANSWERED}, 1)
        assert not other_tasks()

    asyncio.run(scenario())


def test_a_tool_that_ends_its_own_scheduler_is_ended_by_it() -> None:
    async def scenario() -> None:
        async def work(_: dict[str, Any], ctx: ToolContext) -> object:
            await scheduler.cancel()
            return "out of reach"

        timer = InstantTimer()
        suicidal = Tool("suicidal", "", {"type": "object"}, work)
        scheduler = Scheduler(lambda call, abort: execute(call, run_id="run_1", abort=abort, timer=timer))
        scheduler.add(Call(id="a", name="suicidal", input={}, index=0, tool=suicidal))
        scheduler.moved_on(1)
        outcome = await scheduler.next_finished()
        assert outcome is not None
        assert outcome.cause is Cause.INTERRUPTED_EFFECT_UNKNOWN
        await ticks()
        assert not other_tasks()

    asyncio.run(scenario())


@pytest.mark.parametrize("turns", [0, 1, 5])
def test_a_closing_event_loop_leaves_no_call_without_an_outcome(turns: int) -> None:
    async def scenario() -> None:
        stage = Stage()
        scheduler = Scheduler(stage.start)
        scheduler.add(read("a", 0))
        await ticks()
        scheduler.add(read("b", 1))  # its task has not taken its first step
        for task in other_tasks():
            task.cancel()
        await ticks(turns)
        await scheduler.cancel()
        assert causes(scheduler) == {"a": Cause.INTERRUPTED_NO_EFFECT, "b": Cause.NOT_STARTED}
        assert not other_tasks()

    asyncio.run(scenario())


class InstantTimer:
    """A timer whose time is always up at the next turn of the event loop."""

    def __call__(self, seconds: float, callback: Callable[[], None]) -> asyncio.Handle:
        return asyncio.get_running_loop().call_soon(callback)


@attrs.frozen
class Plan:
    """A drawn tool: it takes so many turns of the event loop, heeding cancels or not, and then ends in its way."""

    read_only: bool
    turns: int
    way: str
    stubborn: bool


plans = st.builds(
    Plan,
    read_only=st.booleans(),
    turns=st.integers(0, 4),
    way=st.sampled_from(["returns", "raises", "cancels itself"]),
    stubborn=st.booleans(),
)


@given(
    st.lists(plans, min_size=1, max_size=6),
    st.integers(0, 40),
    st.integers(1, 6),  # a cancel() that is cancelled before its first step does nothing
    st.booleans(),
    st.integers(1, 3),
)
def test_cancelled_at_any_turn_every_call_has_one_true_outcome_and_no_task_is_left(
    drawn: list[Plan], cancel_at: int, cancel_again_at: int, asks: bool, max_parallel: int
) -> None:
    begun: list[int] = []
    finished: list[int] = []

    def tool_of(index: int, plan: Plan) -> Tool:
        async def work(_: dict[str, Any], ctx: ToolContext) -> object:
            begun.append(index)
            for _turn in range(plan.turns):
                try:
                    await asyncio.sleep(0)
                except asyncio.CancelledError:
                    if not plan.stubborn:
                        raise
            if plan.way == "raises":
                raise ValueError
            if plan.way == "cancels itself":
                raise asyncio.CancelledError
            finished.append(index)
            return "ok"

        return Tool(f"tool_{index}", "", {"type": "object"}, work, read_only=plan.read_only)

    async def scenario() -> None:
        timer = InstantTimer()
        scheduler = Scheduler(
            lambda call, abort: execute(call, run_id="run_1", abort=abort, timer=timer),
            permit=permitting({}) if asks else None,
            max_parallel=max_parallel,
            timer=timer,
        )

        async def model() -> None:
            for index, plan in enumerate(drawn):
                made = tool_of(index, plan)
                scheduler.add(
                    Call(id=str(index), name=made.name, input={}, index=index, tool=made, read_only=plan.read_only)
                )
                await asyncio.sleep(0)
                scheduler.moved_on(index + 1)

        writing = asyncio.create_task(model())
        await ticks(cancel_at)
        writing.cancel()
        await asyncio.wait([writing])
        cancelling = asyncio.create_task(scheduler.cancel())
        await ticks(cancel_again_at)
        cancelling.cancel()
        await asyncio.wait([cancelling])
        # Only what was abandoned may still be there, and it ends by itself.
        abandoned = {int(outcome.call.id) for outcome in scheduler.outcomes if outcome.abandoned}
        assert len(other_tasks()) <= len(abandoned)
        assert all(drawn[index].stubborn for index in abandoned)
        assert scheduler.settled
        assert [outcome.call for outcome in scheduler.outcomes] == list(scheduler.calls)
        known = list(finished)
        for outcome in scheduler.outcomes:
            index = int(outcome.call.id)
            plan = drawn[index]
            match outcome.cause:
                case Cause.ANSWERED:
                    assert index in known
                case Cause.NOT_STARTED:
                    assert index not in begun
                case Cause.FAILED:
                    assert index in begun
                    assert plan.way != "returns"
                case Cause.INTERRUPTED_NO_EFFECT:
                    assert index in begun
                    assert plan.read_only
                case Cause.INTERRUPTED_EFFECT_UNKNOWN:
                    assert index in begun
                    assert not plan.read_only
                case _:
                    raise AssertionError(outcome.cause)
            if index in known and not outcome.abandoned:
                assert outcome.cause is Cause.ANSWERED
        assert len(begun) == len(set(begun))
        await ticks(30)
        assert not other_tasks()

    asyncio.run(scenario())
