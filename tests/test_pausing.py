"""Pausing: a run rests before or after the work of a state, can be looked at, and goes on from there."""

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest

from looplatch import Allow, Deny, Hooks, UsageError
from looplatch.hooks import ToolCallContext
from looplatch.testing import FakeClock, ScriptedAPI, error, reply, stalled, tool_use
from tests.playing import Hanging, alone, check, echo, rounds, running, scripted, tool_named, transition
from tests.suspending import Stay, stayed, suspended

TOOLS = [echo("read"), echo("write", read_only=False)]

# In each working state at some time: overloaded, then two calls, then an answer.
ROUND_TRIP = (
    error(529, "overloaded_error"),
    reply(tool_use("t1", "read", {"n": 1}), tool_use("t2", "write", {"n": 2})),
    reply("Done."),
)
UNPAUSED = [
    "RunStarted",
    "ContextReady > stream",
    "ModelFailed > recover",
    "TroubleNamed",
    "BackoffElapsed > stream",
    "ModelResponded > decide",
    "ToolsRequested > orchestrate",
    "ToolsAnswered > prepare: next_turn",
    "ContextReady > stream",
    "ModelResponded > decide",
    "AnswerGiven",
    "StopHooksPassed > completed: answered",
]
# After which of these moves a run rests first.
FIRST_REST = {
    ("before", "prepare"): 1,
    ("before", "stream"): 2,
    ("before", "recover"): 3,
    ("before", "decide"): 6,
    ("before", "orchestrate"): 7,
    ("after", "prepare"): 2,
    ("after", "stream"): 3,
    ("after", "recover"): 5,
    ("after", "decide"): 7,
    ("after", "orchestrate"): 8,
}


def through(
    before: Iterable[str] = (), after: Iterable[str] = (), script: Any = ROUND_TRIP, tools: Any = TOOLS
) -> tuple[list[Stay], ScriptedAPI]:
    """Run, and resume with the same pauses, until the run has ended."""

    async def main() -> tuple[list[Stay], ScriptedAPI]:
        api = ScriptedAPI(script)
        async with scripted(api, tools=tools) as loop:
            stays = [await stayed(loop.run("Go.", pause_before=before, pause_after=after), api)]
            while stays[-1].result.subtype == "suspended":
                run = loop.resume(stays[-1].log, pause_before=before, pause_after=after)
                stays.append(await stayed(run, api))
                assert len(stays) < 50
        return stays, api

    return asyncio.run(main())


def without_rests(moves: list[str]) -> list[str]:
    return [move for move in moves if move not in ("RunPaused", "RunResumed")]


@pytest.mark.parametrize(("side", "state"), FIRST_REST)
def test_a_run_rests_where_it_is_told_to_and_goes_on_as_if_it_had_not(side: str, state: str) -> None:
    [first, *_, last], api = through(**{side: [state]})
    assert first.moves == [*UNPAUSED[: FIRST_REST[side, state]], "RunPaused"]
    assert first.pending == []
    assert without_rests(last.moves) == UNPAUSED
    assert last.result.terminal == "answered"
    assert len(api.requests) == 3
    assert api.unused == []


def test_a_run_that_rests_before_every_state_does_everything_once() -> None:
    ran: list[str] = []

    def call(given: dict[str, Any], ctx: Any) -> str:
        ran.append(ctx.tool_use_id)
        return "ran"

    tools = [tool_named("read", answer=call), tool_named("write", read_only=False, answer=call)]
    states = ("prepare", "stream", "decide", "orchestrate", "recover")
    stays, api = through(before=states, tools=tools)
    assert ran == ["t1", "t2"]
    assert without_rests(stays[-1].moves) == UNPAUSED
    assert len(stays) == 10, "once for each state that was entered, and the end"
    assert len(api.requests) == 3


def test_a_name_alone_is_one_state() -> None:
    [first, *_], _ = through(before="stream")
    assert first.run.state == "stream"


@pytest.mark.parametrize("name", ["pause_before", "pause_after"])
@pytest.mark.parametrize("states", [["nowhere"], ["completed"], ["suspended"], ["stream", "up"]])
def test_what_is_no_working_state_is_refused(name: str, states: list[str]) -> None:
    async def main() -> None:
        async with scripted(ScriptedAPI([])) as loop:
            with pytest.raises(UsageError) as caught:
                loop.run("Go.", **{name: states})  # type: ignore[arg-type]
            assert caught.value.what == name
            assert states[-1] in str(caught.value)

    asyncio.run(main())


def test_a_final_state_is_no_place_to_rest_after() -> None:
    stays, _ = through(after=["decide"], script=[reply("Done.")])
    assert len(stays) == 1


def test_what_was_begun_ends_before_the_run_rests_and_nothing_else_begins() -> None:
    async def main() -> None:
        began, go_on = asyncio.Event(), asyncio.Event()
        wrote: list[str] = []

        async def slow(given: dict[str, Any], ctx: Any) -> str:
            ctx.progress("halfway")
            began.set()
            await go_on.wait()
            return "slow"

        tools = [
            tool_named("slow", answer=slow),
            tool_named("write", read_only=False, answer=lambda given, ctx: wrote.append("wrote")),
        ]
        gate = asyncio.Event()
        answer = reply(tool_use("t1", "slow", {"n": 1}), tool_use("t2", "write", {"n": 2}))
        api = ScriptedAPI([stalled(answer, after=7, gate=gate), reply("Done.")])
        async with scripted(api, tools=tools) as loop:
            run = loop.run("Go.", pause_before=["orchestrate"])
            consumer = running(run)
            await began.wait()
            gate.set()
            while run.state != "orchestrate":
                await rounds(1)
            await rounds()
            assert not consumer.done()
            go_on.set()
            await consumer
            assert suspended(run.log)
            assert alone()
            assert wrote == []
            last = await stayed(loop.resume(run.log), api)
            assert last.result.terminal == "answered"
            assert wrote == ["wrote"]
            assert last.run.messages[2]["content"][0]["content"] == "slow"

    asyncio.run(main())


def test_an_abort_ends_a_run_that_is_about_to_rest() -> None:
    async def main() -> None:
        hanging = Hanging("read")
        gate = asyncio.Event()
        answer = reply(tool_use("t1", "read", {"n": 1}), "More")
        api = ScriptedAPI([stalled(answer, after=4, gate=gate)])
        async with scripted(api, tools=[hanging.tool]) as loop:
            run = loop.run("Go.", pause_before=["orchestrate"])
            consumer = running(run)
            await hanging.began.wait()
            gate.set()
            while run.state != "orchestrate":
                await rounds(1)
            await rounds()
            run.abort()
            await consumer
            assert run.result is not None
            assert (run.result.terminal, run.result.subtype) == ("aborted", "error_during_execution")
            assert hanging.ended.is_set()
            check(run, api)

    asyncio.run(main())


@pytest.mark.parametrize("way", ["abort", "aclose", "deadline"])
def test_a_run_that_is_ended_as_it_rests_has_ended(way: str) -> None:
    async def main() -> None:
        clock = FakeClock()
        api = ScriptedAPI(ROUND_TRIP)
        async with scripted(api, tools=TOOLS, clock=clock) as loop:
            run = loop.run("Go.", pause_before=["orchestrate"], deadline_s=60)
            async for message in run:
                move = transition(message)
                if move is not None and move.event == "RunPaused":
                    if way == "abort":
                        run.abort()
                    elif way == "aclose":
                        await run.aclose()
                    else:
                        clock.advance(60)
            assert run.result is not None
            assert run.result.terminal == {"abort": "aborted", "aclose": "closed", "deadline": "deadline"}[way]
            assert (run.result.subtype, run.result.is_error) == ("error_during_execution", True)
            check(run, api)

    asyncio.run(main())


def test_a_denial_that_interrupts_before_the_run_rests_ends_it_when_it_is_resumed() -> None:
    async def main() -> None:
        async def before_tool(call: ToolCallContext) -> Deny:
            return Deny("never", interrupt=True)

        gate = asyncio.Event()
        answer = reply(tool_use("t1", "read", {"n": 1}), "More")
        api = ScriptedAPI([stalled(answer, after=4, gate=gate)])
        async with scripted(api, tools=TOOLS, hooks=Hooks(before_tool=before_tool)) as loop:
            run = loop.run("Go.", pause_before=["orchestrate"])
            consumer = running(run)
            await (await api.arrival(1)).stalled.wait()
            await rounds()
            gate.set()
            await consumer
            assert suspended(run.log)
            last = await stayed(loop.resume(run.log), api)
            assert last.result.terminal == "denied"

    asyncio.run(main())


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize("state", ["decide", "orchestrate"])
@pytest.mark.parametrize("slowness", [1, 40])
def test_a_permission_that_comes_late_does_not_keep_the_run_from_its_rest(
    slowness: int, state: str, read_only: bool
) -> None:
    async def main() -> None:
        async def before_tool(call: ToolCallContext) -> Allow:
            await rounds(slowness)
            return Allow()

        api = ScriptedAPI([reply(tool_use("t1", "read", {}), tool_use("t2", "read", {})), reply("Done.")])
        tools = [echo("read", read_only=read_only)]
        async with scripted(api, tools=tools, hooks=Hooks(before_tool=before_tool)) as loop:
            run = loop.run("Go.", pause_before=[state])
            async with asyncio.timeout(30):
                await run
            assert suspended(run.log)
            assert alone()
            last = await stayed(loop.resume(run.log), api)
            assert last.result.terminal == "answered"
            assert [block["content"] for block in last.run.messages[2]["content"]] == ["read {}", "read {}"]

    asyncio.run(main())
