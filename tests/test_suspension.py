"""Suspension: what may run has run, the rest waits for someone's word, and goes on from there once."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from looplatch import Allow, Ask, Deny, Hooks, ResultMessage, Rule, Tool, ToolUseBlock, UsageError, read
from looplatch.hooks import ToolCallContext
from looplatch.recovery.resume.errors import ToolMissing
from looplatch.testing import FakeClock, ScriptedAPI, reply, tool_use
from tests.playing import Hanging, alone, check, echo, result, rounds, running, scripted, tool_named, transition
from tests.resuming import cut_after
from tests.suspending import Stay, resumed, stayed

READ, WRITE = echo("read"), echo("write", read_only=False)
ASK_WRITES = [Rule("ask", "write")]


class Counted:
    """Tools that count how often each call has run."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.tools = [self._tool("read", read_only=True), self._tool("write", read_only=False)]

    def _tool(self, name: str, *, read_only: bool) -> Tool:
        def call(given: dict[str, Any], ctx: Any) -> str:
            self.ran.append(ctx.tool_use_id)
            return f"{name} {given}"

        return tool_named(name, read_only=read_only, answer=call)


async def ask_writes(call: ToolCallContext) -> Allow | Ask:
    return Allow() if call.read_only else Ask()


@pytest.mark.parametrize("options", [{"rules": ASK_WRITES}, {"hooks": Hooks(before_tool=ask_writes)}])
def test_a_call_that_someone_has_to_decide_on_suspends_the_run(options: dict[str, Any]) -> None:
    counted = Counted()
    script = [reply("I write.", tool_use("t1", "read", {"n": 1}), tool_use("t2", "write", {"n": 2}))]
    [stay], _ = resumed(script, tools=counted.tools, **options)
    assert counted.ran == ["t1"]
    assert stay.moves[-2:] == ["ToolsRequested > orchestrate", "ApprovalAwaited > suspended"]
    assert stay.result.pending == (ToolUseBlock(id="t2", name="write", input={"n": 2}),)
    assert stay.result.subtype == "suspended"
    assert stay.result.num_turns == 1
    assert stay.result.result == "I write."
    assert stay.log.terminal is None


def test_case_44_of_five_parallel_calls_reads_finish_later_writes_are_held_and_each_runs_once() -> None:
    counted = Counted()
    calls = [
        tool_use("t1", "read", {"n": 1}),
        tool_use("t2", "read", {"n": 2}),
        tool_use("t3", "write", {"n": 3}),
        tool_use("t4", "write", {"n": 4}),
        tool_use("t5", "read", {"n": 5}),
    ]
    [first, second], api = resumed(
        [reply(*calls), reply("Done.")],
        {"t3": Allow()},
        tools=counted.tools,
        rules=[Rule("ask", "write", {"n": "3"})],
    )
    assert first.pending == ["t3"]
    assert second.result.terminal == "answered"
    assert counted.ran == ["t1", "t2", "t3", "t4", "t5"]
    answered = api.requests[1].messages[-1]["content"]
    expected = [("t1", "read", 1), ("t2", "read", 2), ("t3", "write", 3), ("t4", "write", 4), ("t5", "read", 5)]
    assert answered == [result(id_, f"{name} {{'n': {n}}}") for id_, name, n in expected]


def test_all_calls_that_someone_has_to_decide_on_are_named_at_once() -> None:
    script = [reply(*(tool_use(f"t{n}", "write", {"n": n}) for n in range(1, 4)))]
    [stay], _ = resumed(script, tools=[WRITE], rules=ASK_WRITES)
    assert stay.pending == ["t1", "t2", "t3"]


def test_approvals_in_part_stay_suspended_and_the_rest_may_come_later() -> None:
    counted = Counted()
    script = [reply(tool_use("t1", "write", {"n": 1}), tool_use("t2", "write", {"n": 2})), reply("Done.")]
    stays, _ = resumed(script, {"t2": Allow()}, {}, {"t1": Allow()}, tools=counted.tools, rules=ASK_WRITES)
    assert [stay.pending for stay in stays] == [["t1", "t2"], ["t1"], ["t1"], []]
    assert counted.ran == ["t1", "t2"], "in the model's order, whoever was approved first"
    assert stays[-1].result.terminal == "answered"
    assert [move for move in stays[-1].moves if move.startswith("ApprovalGiven")] == [
        "ApprovalGiven",
        "ApprovalGiven > orchestrate",
    ]


@pytest.mark.parametrize("interrupt", [False, True])
def test_a_call_that_is_denied_is_answered_so_and_may_end_the_run(interrupt: bool, tmp_path: Path) -> None:
    counted = Counted()
    script = [reply(tool_use("t1", "write", {"n": 1}), tool_use("t2", "write", {"n": 2}))]
    script += [] if interrupt else [reply("Done.")]
    verdicts: dict[str, Allow | Deny] = {"t1": Deny("not this one", interrupt=interrupt), "t2": Allow()}
    [_, second], _ = resumed(script, verdicts, tools=counted.tools, rules=ASK_WRITES, log=tmp_path / "run.jsonl")
    denied, other = second.run.messages[2]["content"]
    assert denied["is_error"] is True
    assert denied["content"].startswith("denied")
    assert "not this one" in denied["content"]
    if interrupt:
        assert second.result.terminal == "denied"
        assert counted.ran == []
        assert other["content"].startswith("not started")
    else:
        assert second.result.terminal == "answered"
        assert counted.ran == ["t2"]


def test_who_approves_may_give_another_input_which_is_checked_and_recorded(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}

    async def call(given: dict[str, Any], ctx: Any) -> str:
        return f"wrote {given['n']}"

    write = Tool("write", "", schema, call, read_only=False)
    script = [reply(tool_use("t1", "write", {"n": 1}), tool_use("t2", "write", {"n": 2})), reply("Done.")]
    verdicts = {"t1": Allow({"n": 10}), "t2": Allow({"n": "many"})}
    [_, second], api = resumed(script, verdicts, tools=[write], rules=ASK_WRITES, log=tmp_path / "run.jsonl")
    first, other = api.requests[1].messages[-1]["content"]
    assert first == result("t1", "wrote 10")
    assert other["is_error"] is True
    assert other["content"].startswith("invalid input")
    [begin] = [effect.begin for effect in second.log.effects if effect.kind == "tool"]
    kept = second.log.payloads.find(begin["edited"])
    assert kept is not None
    assert kept[1] == b'{"n":10}'


def test_nobody_is_asked_twice_about_a_call() -> None:
    asked: list[str] = []

    async def before_tool(call: ToolCallContext) -> Allow | Ask:
        asked.append(call.tool_use_id)
        return Ask()

    script = [reply(tool_use("t1", "write", {"n": 1})), reply("Done.")]
    hooks = Hooks(before_tool=before_tool)
    stays, _ = resumed(script, {}, {"t1": Allow()}, tools=[WRITE], hooks=hooks)
    assert asked == ["t1"]
    assert stays[-1].result.terminal == "answered"


def test_a_call_behind_one_that_is_awaited_is_asked_about_beforehand_and_once() -> None:
    asked: list[str] = []

    async def before_tool(call: ToolCallContext) -> Allow | Ask:
        asked.append(call.tool_use_id)
        return Ask() if call.tool_use_id == "t1" else Allow()

    script = [reply(tool_use("t1", "write", {"n": 1}), tool_use("t2", "write", {"n": 2})), reply("Done.")]
    [first, second], _ = resumed(script, {"t1": Allow()}, tools=[WRITE], hooks=Hooks(before_tool=before_tool))
    assert first.pending == ["t1"]
    assert asked[:2] == ["t1", "t2"]
    assert second.result.terminal == "answered"


def test_a_rule_that_asks_is_not_softened_by_a_hook() -> None:
    async def before_tool(call: ToolCallContext) -> Allow:
        return Allow({"n": 9})

    [stay], _ = resumed(
        [reply(tool_use("t1", "write", {"n": 1}))],
        tools=[WRITE],
        rules=ASK_WRITES,
        hooks=Hooks(before_tool=before_tool),
    )
    assert stay.result.pending == (ToolUseBlock(id="t1", name="write", input={"n": 1}),)


@pytest.mark.parametrize("asks_about", ["^9$", "^1$"])
def test_an_edit_of_or_to_what_a_rule_asks_about_is_asked_about(asks_about: str) -> None:
    async def before_tool(call: ToolCallContext) -> Allow:
        return Allow({"n": 9})

    script, rules = [reply(tool_use("t1", "write", {"n": 1}))], [Rule("ask", "write", {"n": asks_about})]
    [stay], _ = resumed(script, tools=[WRITE], rules=rules, hooks=Hooks(before_tool=before_tool))
    assert stay.result.pending == (ToolUseBlock(id="t1", name="write", input={"n": 1}),)


@pytest.mark.parametrize(
    ("approvals", "said"),
    [({"t9": Allow()}, "t9"), ({"t1": Allow()}, "t1"), ({"t2": True}, "True")],
)
def test_decisions_on_what_is_not_awaited_are_refused_and_nothing_is_written(
    approvals: Mapping[str, Any], said: str
) -> None:
    async def main() -> None:
        api = ScriptedAPI([reply(tool_use("t1", "read", {"n": 1}), tool_use("t2", "write", {"n": 2}))])
        async with scripted(api, tools=[READ, WRITE], rules=ASK_WRITES) as loop:
            stay = await stayed(loop.run("Go."), api)
            with pytest.raises(UsageError) as caught:
                loop.resume(stay.log, approvals=approvals)
            assert caught.value.what == "approvals"
            assert said in str(caught.value)

    asyncio.run(main())


# --- the end of a run that is suspended, or about to be


def test_what_runs_ends_before_the_run_is_suspended() -> None:
    async def main() -> None:
        began, go_on = asyncio.Event(), asyncio.Event()

        async def slow(given: dict[str, Any], ctx: Any) -> str:
            began.set()
            await go_on.wait()
            return "slow"

        api = ScriptedAPI([reply(tool_use("t1", "slow", {"n": 1}), tool_use("t2", "write", {"n": 2}))])
        async with scripted(api, tools=[tool_named("slow", answer=slow), WRITE], rules=ASK_WRITES) as loop:
            run = loop.run("Go.")
            consumer = running(run)
            await began.wait()
            await rounds()
            assert run.state == "orchestrate"
            go_on.set()
            await consumer
            assert run.state == "suspended"
            assert alone()

    asyncio.run(main())


@pytest.mark.parametrize("way", ["abort", "aclose", "deadline"])
def test_a_run_that_is_ended_as_it_is_suspended_has_ended_and_every_call_is_answered(way: str) -> None:
    async def main() -> None:
        clock = FakeClock()
        api = ScriptedAPI([reply(tool_use("t1", "write", {"n": 1}))])
        async with scripted(api, tools=[WRITE], rules=ASK_WRITES, clock=clock) as loop:
            run = loop.run("Go.", deadline_s=60)
            async for message in run:
                move = transition(message)
                if move is not None and move.event == "ApprovalAwaited":
                    if way == "abort":
                        run.abort()
                    elif way == "aclose":
                        await run.aclose()
                    else:
                        clock.advance(60)
            assert run.result is not None
            ends = {"abort": "aborted", "aclose": "closed", "deadline": "deadline"}
            assert run.result.terminal == ends[way]
            assert run.result.subtype == "error_during_execution"
            assert run.result.pending == ()
            check(run, api)
            [answered] = run.messages[-1]["content"]
            assert answered["content"].startswith("not started")

    asyncio.run(main())


def test_a_suspended_run_is_over_for_this_process() -> None:
    async def main() -> None:
        api = ScriptedAPI([reply(tool_use("t1", "write", {"n": 1}))])
        async with scripted(api, tools=[WRITE], rules=ASK_WRITES) as loop:
            async with loop.run("Go.") as run:
                told = await run
                lines = run.log.lines
                run.abort()
                await run.aclose()
                with pytest.raises(UsageError):
                    run.send("More")
                assert await run is told
            assert run.log.lines == lines
            assert isinstance(told, ResultMessage)
            assert told.terminal is None

    asyncio.run(main())


def test_an_abort_while_one_call_is_awaited_and_another_runs_ends_both() -> None:
    async def main() -> None:
        hanging = Hanging("hang")
        api = ScriptedAPI([reply(tool_use("t1", "hang", {"n": 1}), tool_use("t2", "read", {"n": 2}))])
        async with scripted(api, tools=[hanging.tool, READ], rules=[Rule("ask", "read")]) as loop:
            run = loop.run("Go.")
            consumer = running(run)
            await hanging.began.wait()
            await rounds()
            assert run.state == "orchestrate"
            run.abort()
            await consumer
            check(run, api)
            assert alone()
            hung, asked = run.messages[-1]["content"]
            assert hung["content"].startswith("interrupted, no effect")
            assert asked["content"].startswith("not started")

    asyncio.run(main())


# --- another process


def test_a_run_goes_on_from_its_file_alone(tmp_path: Path) -> None:
    """A loop that never saw the run: nothing is kept but the file and what stands beside it."""
    log = tmp_path / "run.jsonl"

    async def process(script: list[Any], approvals: Mapping[str, Allow | Deny] | None) -> Stay:
        api = ScriptedAPI(script)
        async with scripted(api, tools=[READ, WRITE], rules=ASK_WRITES) as loop:
            run = loop.run("Go.", log=log) if approvals is None else loop.resume(log, approvals=approvals)
            return await stayed(run, api)

    first = asyncio.run(process([reply(tool_use("t1", "write", {"n": 1}))], None))
    second = asyncio.run(process([reply("Done.")], {"t1": Allow()}))
    assert second.result.session_id == first.result.session_id
    assert second.moves[5:9] == [
        "RunResumed",
        "ApprovalGiven > orchestrate",
        "ToolsAnswered > prepare: next_turn",
        "ContextReady > stream",
    ]
    assert read(log).messages == second.run.messages
    assert second.run.messages[2]["content"] == [result("t1", 'write {"n":1}')]


def test_the_deadline_rests_while_a_run_is_suspended() -> None:
    async def main() -> None:
        clock = FakeClock()
        hanging = Hanging("write", read_only=False)
        api = ScriptedAPI([reply(tool_use("t1", "write", {"n": 1}))])
        async with scripted(api, tools=[hanging.tool], rules=ASK_WRITES, clock=clock) as loop:
            first = await stayed(loop.run("Go.", deadline_s=60), api)
            clock.advance(1_000)
            run = loop.resume(first.log, approvals={"t1": Allow()})
            consumer = running(run)
            await hanging.began.wait()
            clock.advance(59)
            await rounds()
            assert not hanging.ended.is_set()
            clock.advance(2)
            await consumer
            assert run.result is not None
            assert run.result.terminal == "deadline"
            check(run, api)

    asyncio.run(main())


def test_a_call_whose_tool_is_gone_is_refused_whatever_is_accepted_and_may_be_denied(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    [_], _ = resumed([reply(tool_use("t1", "write", {"n": 1}))], tools=[READ, WRITE], rules=ASK_WRITES, log=log)
    before = log.read_bytes()

    async def main() -> None:
        api = ScriptedAPI([reply("Done.")])
        async with scripted(api, clock=FakeClock(), tools=[READ]) as loop:
            for given in ({"t1": Allow()}, {}):
                with pytest.raises(ToolMissing, match=r"does not have: write\. .*loop\.resume") as caught:
                    loop.resume(log, approvals=given, accept_changes=True)
                assert caught.value.tools == ("write",)
            assert (log.read_bytes(), api.requests) == (before, [])
            await stayed(loop.resume(log, approvals={"t1": Deny("no")}, accept_changes=True), api)

    asyncio.run(main())


def test_a_begun_call_whose_tool_is_gone_is_refused_and_one_of_no_tool_at_all_is_not() -> None:
    async def main() -> None:
        script = [reply(tool_use("t1", "read", {"n": 1}), tool_use("t2", "nonsense", {})), reply("Done.")]
        async with scripted(ScriptedAPI(script), clock=FakeClock(), tools=[READ]) as loop:
            whole = await loop.run("Go.")
        begun = [one.seq for one in whole.log.records if one.get("class") == "tool"]
        cut = cut_after(whole.log, begun[0] + 1)
        async with scripted(ScriptedAPI([reply("Done.")]), clock=FakeClock(), tools=[WRITE]) as loop:
            with pytest.raises(ToolMissing):
                loop.resume(cut, accept_changes=True)
        api = ScriptedAPI([reply("Done.")])
        async with scripted(api, clock=FakeClock(), tools=[READ]) as loop:
            assert (await loop.resume(cut)).subtype == "success"

    asyncio.run(main())
