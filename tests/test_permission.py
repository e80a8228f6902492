"""Permission: what a rule or the caller's hook makes of a call, in a run."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any

import pytest

from looplatch import Allow, Ask, Deny, Hooks, Rule, Tool, ToolMessage
from looplatch.hooks import ToolCallContext, ToolOutcomeContext
from looplatch.journal import Journal
from looplatch.messages import ToolPhase
from looplatch.permission.permission import BY_RULE
from looplatch.testing import FakeClock, ScriptedAPI, reply, stalled, tool_use
from tests.counting import tallied
from tests.playing import (
    Hanging,
    Play,
    alone,
    assistant,
    check,
    echo,
    play,
    result,
    rounds,
    running,
    scripted,
    tool_named,
    use,
    user,
)

GO = user("Go.")
Verdict = Allow | Deny | Ask
READ, WRITE = echo("read"), echo("write", read_only=False)


def by_name(verdicts: Mapping[str, Verdict]) -> Callable[[ToolCallContext], Awaitable[Verdict]]:
    """A hook that decides by the tool's name."""

    async def before_tool(call: ToolCallContext) -> Verdict:
        return verdicts.get(call.name, Allow())

    return before_tool


def deciding(**verdicts: Verdict) -> Hooks:
    return Hooks(before_tool=by_name(verdicts))


def answers(play: Play) -> list[Any]:
    """The blocks of the last message of the second request."""
    content: list[Any] = play.sent[1][-1]["content"]
    return content


def begins(play: Play, class_: str = "tool") -> list[Any]:
    return [effect.begin for effect in play.log.effects if effect.kind == class_]


def outcomes(play: Play, class_: str = "hook") -> list[str]:
    return [effect.end["outcome"] for effect in play.log.effects if effect.kind == class_ and effect.end is not None]


BOTH = (reply(tool_use("t1", "read", {"n": 1}), tool_use("t2", "write", {"n": 2})), reply("Done."))

# --- what may run


def test_without_rules_and_hooks_what_is_given_may_run() -> None:
    told = play(BOTH, tools=[READ, WRITE])
    assert answers(told) == [result("t1", 'read {"n":1}'), result("t2", 'write {"n":2}')]
    assert begins(told, "hook") == []


def test_a_hook_is_asked_once_for_each_call_with_what_there_is_to_know() -> None:
    asked: list[ToolCallContext] = []

    async def before_tool(call: ToolCallContext) -> Allow:
        asked.append(call)
        return Allow()

    told = play(BOTH, tools=[READ, WRITE], hooks=Hooks(before_tool=before_tool))
    assert asked == [
        ToolCallContext(run_id=told.run.id, turn=1, tool_use_id="t1", name="read", input={"n": 1}, read_only=True),
        ToolCallContext(run_id=told.run.id, turn=1, tool_use_id="t2", name="write", input={"n": 2}, read_only=False),
    ]
    assert [(begin["point"], begin["name"]) for begin in begins(told, "hook")] == [("before_tool", "before_tool")] * 2
    assert outcomes(told) == ["Allow", "Allow"]
    assert answers(told) == [result("t1", 'read {"n":1}'), result("t2", 'write {"n":2}')]


def test_a_call_that_cannot_run_is_asked_of_nobody() -> None:
    asked: list[str] = []

    async def before_tool(call: ToolCallContext) -> Allow:
        asked.append(call.tool_use_id)
        return Allow()

    script = [reply(tool_use("t1", "nobody", {}), tool_use("t2", "read", '{"n": 1}}'), tool_use("t3", "read", {}))]
    play([*script, reply("Done.")], tools=[READ], hooks=Hooks(before_tool=before_tool))
    assert asked == ["t3"]


# --- what may not


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"rules": [Rule("deny", "write")]}, BY_RULE),
        ({"rules": [Rule("deny", "*", {"n": "^2$"})]}, BY_RULE),
        ({"hooks": deciding(write=Deny("not on a Sunday"))}, "not on a Sunday"),
    ],
)
def test_a_denied_call_does_not_run_and_the_model_is_told_why(options: dict[str, Any], why: str) -> None:
    told = play(BOTH, tools=[READ, WRITE], **options)
    read, denied = answers(told)
    assert read == result("t1", 'read {"n":1}')
    assert (denied["tool_use_id"], denied["is_error"]) == ("t2", True)
    assert denied["content"].startswith("denied")
    assert why in denied["content"]
    assert [begin["tool_use_id"] for begin in begins(told)] == ["t1"]
    ends = [message for message in told.seen if isinstance(message, ToolMessage) and message.phase is ToolPhase.END]
    assert [(end.tool_use_id, end.cause) for end in ends] == [("t1", "answered"), ("t2", "denied")]
    assert told.result.terminal == "answered"


def test_a_rule_that_denies_is_not_softened_by_a_hook_that_is_not_even_asked() -> None:
    told = play(BOTH, tools=[READ, WRITE], rules=[Rule("deny", "write")], hooks=deciding(write=Allow({"n": 3})))
    assert [begin["tool_use_id"] for begin in begins(told)] == ["t1"]
    assert len(begins(told, "hook")) == 1


def test_a_hook_is_stricter_than_a_rule_that_allows() -> None:
    told = play(BOTH, tools=[READ, WRITE], rules=[Rule("allow")], hooks=deciding(write=Deny("no")))
    assert [begin["tool_use_id"] for begin in begins(told)] == ["t1"]


# --- another input


def test_an_edited_input_is_what_runs_and_the_log_says_that_it_is_another() -> None:
    told = play(BOTH, tools=[READ, WRITE], hooks=deciding(write=Allow({"n": 3, "who": "hook"})))
    assert answers(told)[1] == result("t2", 'write {"n":3,"who":"hook"}')
    assert told.sent[1][1] == assistant(use("t1", "read", n=1), use("t2", "write", n=2)), "the model's words stay"
    read, write = begins(told)
    assert read["edited"] is None
    kept = told.log.payloads.find(write["edited"])
    assert kept is not None
    assert kept[1] == b'{"n":3,"who":"hook"}'


def test_an_edited_input_that_breaks_the_schema_does_not_run() -> None:
    def call(given: dict[str, Any], ctx: Any) -> str:
        return "ran"

    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    tool = Tool("read", "", schema, call, True)  # type: ignore[arg-type]
    told = play(
        [reply(tool_use("t1", "read", {"n": 1})), reply("Done.")],
        tools=[tool],
        hooks=deciding(read=Allow({"n": "many"})),
    )
    [answered] = answers(told)
    assert answered["is_error"] is True
    assert "n: " in answered["content"]
    assert begins(told) == []


def test_a_read_that_an_edit_makes_a_write_waits_for_its_turn() -> None:
    async def main() -> None:
        hanging = Hanging("hang")
        ran: list[dict[str, Any]] = []

        async def call(given: dict[str, Any], ctx: Any) -> str:
            ran.append(given)
            return "ran"

        either = Tool("either", "", {"type": "object"}, call, read_only=lambda given: not given.get("write"))
        api = ScriptedAPI([reply(tool_use("t1", "hang", {"n": 1}), tool_use("t2", "either", {"n": 2}))])
        hooks = deciding(either=Allow({"write": True}))
        async with scripted(api, tools=[hanging.tool, either], hooks=hooks) as loop:
            run = loop.run("Go.")
            consumer = running(run)
            await hanging.began.wait()
            await rounds()
            assert ran == []
            run.abort()
            await consumer
            assert ran == []
            check(run, api)
            assert run.messages[-1]["content"][1]["content"].startswith("not started")

    asyncio.run(main())


def test_rules_hold_for_the_edited_input_too() -> None:
    told = play(
        BOTH, tools=[READ, WRITE], rules=[Rule("deny", "write", {"n": "3"})], hooks=deciding(write=Allow({"n": 3}))
    )
    assert [begin["tool_use_id"] for begin in begins(told)] == ["t1"]
    assert BY_RULE in answers(told)[1]["content"]


def test_a_hook_that_changes_what_it_was_shown_changes_nothing() -> None:
    async def before_tool(call: ToolCallContext) -> Allow:
        call.input["deep"]["n"] = 666
        call.input["more"] = 1
        return Allow()

    async def after_tool(call: ToolOutcomeContext) -> None:
        call.input["deep"]["n"] = 666

    script = [reply(tool_use("t1", "read", {"deep": {"n": 1}})), reply("Done.")]
    told = play(script, tools=[READ], hooks=Hooks(before_tool=before_tool, after_tool=after_tool))
    assert answers(told) == [result("t1", 'read {"deep":{"n":1}}')]
    assert told.sent[1][1] == assistant(use("t1", "read", deep={"n": 1}))


def test_after_tool_is_shown_a_call_that_ran_out_of_its_time() -> None:
    async def forever(given: dict[str, Any], ctx: Any) -> None:
        await clock.sleep(60)

    clock = FakeClock()
    shown: list[tuple[str, str, bool]] = []

    async def after_tool(call: ToolOutcomeContext) -> None:
        shown.append((call.tool_use_id, call.cause, call.is_error))

    slow = Tool("slow", "Never ends.", {"type": "object"}, forever, timeout_s=5)
    script = [reply(tool_use("t1", "slow", {})), reply("Done.")]
    told = play(script, tools=[slow], hooks=Hooks(after_tool=after_tool), clock=clock)
    assert shown == [("t1", "timed_out", True)]
    assert told.result.terminal == "answered"


def test_an_input_that_the_hook_changes_after_it_gave_it_stays_as_it_was_given() -> None:
    given: dict[str, Any] = {"n": [3]}

    async def before_tool(call: ToolCallContext) -> Allow:
        return Allow(given)

    async def after_tool(call: ToolOutcomeContext) -> None:
        assert call.input == {"n": [3]}

    def call(shown: dict[str, Any], ctx: Any) -> str:
        given["n"].append(4)
        return str(shown)

    told = play(
        [reply(tool_use("t1", "read", {"n": 1})), reply("Done.")],
        tools=[tool_named("read", answer=call)],
        hooks=Hooks(before_tool=before_tool, after_tool=after_tool),
    )
    assert told.error is None
    assert answers(told) == [result("t1", "{'n': [3]}")]


# --- a denial that ends the run


def test_a_denial_that_interrupts_ends_the_run_and_every_call_is_answered() -> None:
    told = play(BOTH[:1], tools=[READ, WRITE], hooks=deciding(write=Deny("never", interrupt=True)))
    assert told.result.terminal == "denied"
    assert told.result.subtype == "error_during_execution"
    assert "t2" in str(told.result.error)
    assert told.moves[-2:] == ["ToolsRequested > orchestrate", "RunDenied > failed: denied"]
    read, denied = told.last["content"]
    assert read == result("t1", 'read {"n":1}')
    assert denied["content"].startswith("denied")
    assert len(told.sent) == 1


def test_a_denial_that_interrupts_mid_stream_waits_until_the_model_has_finished() -> None:
    async def main() -> None:
        gate = asyncio.Event()
        answer = reply(tool_use("t1", "read", {"n": 1}), "And then", tool_use("t2", "read", {"n": 2}))
        api = ScriptedAPI([stalled(answer, after=4, gate=gate)])
        ran: list[dict[str, Any]] = []
        tool = tool_named("read", answer=lambda given, ctx: ran.append(given))
        async with scripted(api, tools=[tool], hooks=deciding(read=Deny("never", interrupt=True))) as loop:
            run = loop.run("Go.")
            consumer = running(run)
            await (await api.arrival(1)).stalled.wait()
            await rounds()
            assert run.state == "stream"
            gate.set()
            await consumer
            check(run, api)
            assert run.result is not None
            assert run.result.terminal == "denied"
            assert ran == []
            first, second = run.messages[-1]["content"]
            assert first["content"].startswith("denied")
            assert second["is_error"] is True

    asyncio.run(main())


def test_a_denial_that_interrupts_ends_what_runs_beside_it() -> None:
    async def main() -> None:
        hanging = Hanging("hang")
        api = ScriptedAPI([reply(tool_use("t1", "hang", {"n": 1}), tool_use("t2", "read", {"n": 2}))])
        waiting = asyncio.Event()

        async def before_tool(call: ToolCallContext) -> Verdict:
            if call.name == "read":
                await waiting.wait()
                return Deny("never", interrupt=True)
            return Allow()

        async with scripted(api, tools=[hanging.tool, READ], hooks=Hooks(before_tool=before_tool)) as loop:
            run = loop.run("Go.")
            consumer = running(run)
            await hanging.began.wait()
            waiting.set()
            await consumer
            assert hanging.ended.is_set()
            check(run, api)
            hung, denied = run.messages[-1]["content"]
            assert hung["content"].startswith("interrupted, no effect")
            assert denied["content"].startswith("denied")
            assert run.result is not None
            assert run.result.terminal == "denied"

    asyncio.run(main())


def test_nothing_is_kept_of_a_verdict_that_comes_after_the_hook_was_abandoned() -> None:
    async def main() -> None:
        asked, released, clock = asyncio.Event(), asyncio.Event(), FakeClock()

        async def before_tool(call: ToolCallContext) -> Verdict:
            asked.set()
            while not released.is_set():
                with suppress(asyncio.CancelledError):
                    await released.wait()
            return Deny("too late")

        api = ScriptedAPI([reply(tool_use("t1", "read", {"n": 1}))])
        async with scripted(api, tools=[READ], hooks=Hooks(before_tool=before_tool), clock=clock) as loop:
            run = loop.run("Go.")
            consumer = running(run)
            await asked.wait()
            run.abort()
            for _ in range(2):
                await rounds()
                clock.advance(1.0)
            await consumer
            with tallied(kept=Journal.keep_value) as tally:
                released.set()
                await rounds()
            assert alone()
            assert tally.calls["kept"] == 0
            [hook] = [effect for effect in run.log.effects if effect.kind == "hook"]
            assert hook.end is not None
            assert hook.end["outcome"] == "abandoned"
            check(run, api)

    asyncio.run(main())
