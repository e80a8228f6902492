"""The actions of a toolset: in order, alone, and none after one that failed."""

import asyncio
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from looplatch.tools import AbortSignal, Call, Cause, Outcome, Tool, ToolContext
from looplatch.tools.calls import Asked, Denial, Problem
from looplatch.tools.execution import denied
from looplatch.tools.order import Access
from looplatch.tools.scheduler import Scheduler

HALTED_BROWSER = "Not executed: an earlier action in this turn failed."
HALTED_COMPUTER = "Not executed: an earlier computer action in this turn failed."


async def never(given: dict[str, Any], ctx: ToolContext) -> object:
    raise AssertionError("the tool of a call that only the scheduler sees was run")


TOOL = Tool("tool", "", {"type": "object"}, never)


def action(call_id: str, index: int, toolset: str = "browser", **more: Any) -> Call:
    return Call(id=call_id, name="left_click", input={}, index=index, tool=TOOL, toolset=toolset, **more)


def read(call_id: str, index: int) -> Call:
    return Call(id=call_id, name="tool", input={}, index=index, tool=TOOL, read_only=True)


def write(call_id: str, index: int) -> Call:
    return Call(id=call_id, name="tool", input={}, index=index, tool=TOOL)


class Stage:
    """Carries calls out at once; those in `failing` fail."""

    def __init__(self, *failing: str) -> None:
        self.failing = failing
        self.begun: list[str] = []

    async def start(self, call: Call, abort: AbortSignal) -> Outcome:
        self.begun.append(call.id)
        await asyncio.sleep(0)
        failed = call.id in self.failing
        cause = Cause.FAILED if failed else Cause.ANSWERED
        return Outcome(call=call, cause=cause, content="failed" if failed else "ok", is_error=failed)


async def played(scheduler: Scheduler, *calls: Call) -> dict[str, object]:
    """Add the calls, all of them written, and wait for the end of all; returns what each was answered."""
    for call in calls:
        scheduler.add(call)
    scheduler.moved_on(max(call.index for call in calls) + 1)
    while await scheduler.next_finished() is not None:
        pass
    return {outcome.call.id: outcome.content for outcome in scheduler.outcomes}


def test_an_action_is_of_a_class_of_its_own() -> None:
    assert [call.access for call in (read("a", 0), write("b", 1), action("c", 2))] == list(Access)
    assert action("c", 2, read_only=True).access is Access.MEMBER


def test_the_result_of_an_action_names_its_toolset() -> None:
    outcome = Outcome(call=action("a", 0), cause=Cause.ANSWERED, content="ok", is_error=False)
    assert outcome.block() == {"type": "tool_result", "tool_use_id": "a", "toolset_name": "browser", "content": "ok"}


def test_after_a_failure_the_later_actions_of_that_toolset_say_why_they_were_not_run() -> None:
    async def scenario() -> None:
        stage = Stage("b")
        scheduler = Scheduler(stage.start)
        answers = await played(
            scheduler,
            action("a", 0),
            action("b", 1),
            read("c", 2),
            action("d", 3),
            action("e", 4, "computer"),
            action("f", 5),
        )
        assert answers == {
            "a": "ok", "b": "failed", "c": "ok", "d": HALTED_BROWSER, "e": "ok", "f": HALTED_BROWSER
        }  # fmt: skip
        assert stage.begun == ["a", "b", "c", "e"]
        halted = [outcome for outcome in scheduler.outcomes if outcome.call.id in "df"]
        assert {(outcome.cause, outcome.is_error) for outcome in halted} == {(Cause.NOT_STARTED, True)}

    asyncio.run(scenario())


def test_each_toolset_has_the_words_of_the_api() -> None:
    async def scenario() -> None:
        answers = await played(Scheduler(Stage("a").start), action("a", 0, "computer"), action("b", 1, "computer"))
        assert answers["b"] == HALTED_COMPUTER

    asyncio.run(scenario())


def test_an_action_whose_input_is_wrong_has_failed_too_and_the_ones_before_it_still_run() -> None:
    async def scenario() -> None:
        stage = Stage()
        problem = Problem(cause=Cause.INVALID_INPUT, text="no such button")
        answers = await played(
            Scheduler(stage.start), action("a", 0), action("b", 1, problem=problem), action("c", 2), action("d", 3)
        )
        assert answers == {"a": "ok", "b": "no such button", "c": HALTED_BROWSER, "d": HALTED_BROWSER}
        assert stage.begun == ["a"]

    asyncio.run(scenario())


def test_a_call_that_was_meant_for_the_toolset_fails_it() -> None:
    async def scenario() -> None:
        problem = Problem(cause=Cause.UNKNOWN_TOOL, text="malformed", fails="browser")
        meant = Call(id="a", name="browser", input={}, index=0, problem=problem)
        answers = await played(Scheduler(Stage().start), meant, action("b", 1))
        assert answers == {"a": "malformed", "b": HALTED_BROWSER}

    asyncio.run(scenario())


def test_an_action_that_came_after_the_failure_is_answered_once_it_is_certain() -> None:
    async def scenario() -> None:
        scheduler = Scheduler(Stage("a").start)
        scheduler.add(action("a", 0))
        scheduler.moved_on(1)
        await scheduler.next_finished()
        scheduler.add(action("b", 1, undecided=True))
        assert len(scheduler.outcomes) == 1
        scheduler.moved_on(2)
        assert [outcome.content for outcome in scheduler.outcomes] == ["failed", HALTED_BROWSER]
        scheduler.add(action("c", 2))
        assert scheduler.settled

    asyncio.run(scenario())


@pytest.mark.parametrize("verdict", [Denial(message="no"), Asked()])
def test_an_action_that_was_not_permitted_has_not_happened(verdict: Denial | Asked) -> None:
    async def scenario() -> None:
        stage = Stage()

        async def permit(call: Call) -> Call | Denial | Asked:
            return verdict if call.id == "a" else call

        changed = asyncio.Event()
        scheduler = Scheduler(stage.start, permit=permit, changed=changed)
        calls = action("a", 0), action("b", 1), write("c", 2)
        for call in calls:
            scheduler.add(call)
        scheduler.moved_on(3)
        if isinstance(verdict, Asked):
            while not scheduler.held:
                changed.clear()
                await changed.wait()
            assert stage.begun == []
            scheduler = Scheduler(stage.start)  # of the process that was told of the denial
            for call in calls:
                outcome = denied(call, Denial(message="no")) if call.id == "a" else None
                scheduler.restore(call, outcome, permitted=True, awaited=False, begun=False)
            scheduler.moved_on(3)
        while await scheduler.next_finished() is not None:
            pass
        assert {outcome.call.id: outcome.content for outcome in scheduler.outcomes} == {
            "a": "denied. The call was not run: no",
            "b": HALTED_BROWSER,
            "c": "ok",
        }
        assert stage.begun == ["c"]

    asyncio.run(scenario())


def test_a_failure_before_a_crash_halts_what_is_left_after_it() -> None:
    async def scenario() -> None:
        stage = Stage()
        scheduler = Scheduler(stage.start)
        first = action("a", 0)
        failed = Outcome(call=first, cause=Cause.FAILED, content="failed", is_error=True)
        scheduler.restore(first, failed, permitted=True, awaited=False)
        scheduler.restore(action("b", 1), None, permitted=True, awaited=False)
        scheduler.restore(write("c", 2), None, permitted=True, awaited=False)
        scheduler.moved_on(3)
        while await scheduler.next_finished() is not None:
            pass
        assert [outcome.content for outcome in scheduler.outcomes] == ["failed", HALTED_BROWSER, "ok"]
        assert stage.begun == ["c"]

    asyncio.run(scenario())


def test_sealing_drops_the_actions_that_were_halted_after_the_last_call_begun() -> None:
    async def scenario() -> None:
        scheduler = Scheduler(Stage("a").start)
        scheduler.add(action("a", 0))
        scheduler.moved_on(1)
        await scheduler.next_finished()
        scheduler.add(action("b", 1))
        assert [call.id for call in scheduler.seal()] == ["b"]
        assert scheduler.take_finished() == ()
        assert [outcome.content for outcome in scheduler.outcomes] == ["failed"]

    asyncio.run(scenario())


@attrs.frozen
class Drawn:
    """A drawn call: its class or toolset, and whether it fails."""

    kind: str
    fails: bool


drawn_calls = st.lists(
    st.builds(Drawn, kind=st.sampled_from(["read", "write", "browser", "computer"]), fails=st.booleans()), max_size=10
)


@given(drawn_calls, st.integers(0, 10))
def test_in_every_answer_an_action_runs_iff_none_before_it_failed(drawn: list[Drawn], written: int) -> None:
    """`written`: how many calls come after the model has moved on from the first ones."""

    async def scenario() -> None:
        stage = Stage(*(str(index) for index, call in enumerate(drawn) if call.fails))
        scheduler = Scheduler(stage.start, max_parallel=3)
        for index, call in enumerate(drawn):
            made = {"read": read, "write": write}.get(call.kind)
            scheduler.add(made(str(index), index) if made else action(str(index), index, call.kind))
            if index == written:
                scheduler.moved_on(index)
                await asyncio.sleep(0)
        scheduler.moved_on(len(drawn))
        while await scheduler.next_finished() is not None:
            pass
        failed: set[str] = set()
        runs: list[int] = []
        for index, call in enumerate(drawn):
            if call.kind in failed:
                continue
            runs.append(index)
            if call.fails and call.kind not in ("read", "write"):
                failed.add(call.kind)
        assert sorted(map(int, stage.begun)) == runs
        assert [outcome.call.id for outcome in scheduler.outcomes] == [str(index) for index in range(len(drawn))]
        alone = [int(name) for name in stage.begun if drawn[int(name)].kind != "read"]
        assert alone == sorted(alone)

    asyncio.run(scenario())
