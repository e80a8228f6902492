"""Faults that users of other agent loops reported in public, as small scripts, with the behaviour that is right."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from looplatch import Block, Hooks, Limits, Pass, Run, Tool, ToolContext, ToolMessage
from looplatch.blocks import blocks_of
from looplatch.hooks import StopContext
from looplatch.messages import Message
from looplatch.recovery.strategies.max_output_tokens_recovery import GO_ON
from looplatch.testing import (
    FakeClock,
    ScriptedAPI,
    block,
    cut,
    error,
    failing,
    reply,
    server_tool_use,
    stalled,
    text,
    thinking,
    tool_use,
)
from tests.playing import (
    Hanging,
    Play,
    assistant,
    check,
    echo,
    play,
    result,
    rounds,
    saying,
    scripted,
    tool_named,
    use,
    user,
)

GO = user("Go.")


class Ran:
    """A tool that keeps what it was called with."""

    def __init__(self, name: str = "a", *, read_only: bool = True) -> None:
        self.inputs: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.tool = tool_named(name, read_only=read_only, answer=self._call)

    def _call(self, given: dict[str, Any], ctx: ToolContext) -> str:
        self.inputs.append(given)
        self.keys.append(ctx.idempotency_key)
        return "ran"


def results(play: Play) -> list[dict[str, Any]]:
    """The tool results of the history, in order."""
    blocks = [block for message in play.run.messages for block in blocks_of(message)]
    return [block for block in blocks if block["type"] == "tool_result"]


# --- 1, 3


def test_case_1_a_cancel_while_a_tool_runs_answers_both_calls_in_one_message_and_propagates() -> None:
    async def main() -> None:
        a, b = Hanging("a", read_only=False), Ran("b", read_only=False)
        api = ScriptedAPI([reply(tool_use("t1", "a", {}), tool_use("t2", "b", {}))])
        async with scripted(api, tools=[a.tool, b.tool]) as loop:
            run = loop.run("Go.")

            async def consume() -> None:
                await run

            consumer = asyncio.create_task(consume())
            await a.began.wait()
            while run.state != "orchestrate":
                await rounds(1)
            consumer.cancel()
            with pytest.raises(asyncio.CancelledError):
                await consumer
            assert consumer.cancelled()
            assert a.ended.is_set()
            assert b.inputs == []
            check(run, api)
            assert [message["role"] for message in run.messages] == ["user", "assistant", "user"]
            first, second = run.messages[-1]["content"]
            assert (first["tool_use_id"], second["tool_use_id"]) == ("t1", "t2")
            assert first["is_error"] is second["is_error"] is True
            assert run.result is not None
            assert run.result.terminal == "closed"
            ended = [effect.end["outcome"] for effect in run.log.effects if effect.kind == "tool" and effect.end]
            assert ended == ["interrupted_effect_unknown"]

    asyncio.run(main())


@pytest.mark.parametrize(
    ("read_only", "told"),
    [
        (True, "interrupted, no effect"),
        (False, "interrupted, effect unknown"),
    ],
)
def test_case_3_an_interrupted_tool_is_not_called_rejected_or_not_run(read_only: bool, told: str) -> None:
    hanging = Hanging("a", read_only=read_only)

    async def watch(message: Message, run: Run) -> None:
        if run.state == "orchestrate":
            await hanging.began.wait()
            run.abort()

    script = [reply(tool_use("t1", "a", {"n": 1}), tool_use("t2", "b", {"n": 2}))]
    told_by = play(script, tools=[hanging.tool, Ran("b", read_only=False).tool], watch=watch)
    first, second = results(told_by)
    assert first["content"].startswith(told)
    assert "interrupted while running" in first["content"]
    assert not any(word in first["content"] for word in ("not started", "denied", "rejected", "not run"))
    assert second["content"].startswith("not started")


# --- 7, 8, 9, 15, 46: which calls are certain


@pytest.mark.parametrize("closed", [True, False])
def test_case_7_a_cut_call_is_not_executed_whatever_a_lenient_parser_makes_of_it(closed: bool) -> None:
    a = Ran()
    cut_call = tool_use("t1", "a", '{"path":"a", "content":"hel', closed=closed)
    told = play([reply(cut_call, stop="max_tokens"), reply("Done.")], tools=[a.tool])
    assert a.inputs == []
    assert told.sent == [[GO], [GO]]
    assert [request.body["max_tokens"] for request in told.api.requests] == [8_000, 64_000]
    assert told.log.reasons == ("max_output_tokens_recovery",)


@pytest.mark.parametrize("written", ["", None])
@pytest.mark.parametrize("closed", [True, False])
def test_case_8_a_cut_call_without_arguments_is_not_executed(written: str | None, closed: bool) -> None:
    a = Ran()
    script = [reply(tool_use("t1", "a", written, closed=closed), stop="max_tokens"), reply("Done.")]
    told = play(script, tools=[a.tool])
    assert a.inputs == []
    assert told.sent == [[GO], [GO]]


@pytest.mark.parametrize("behind", [(), ("And?",)])
def test_case_8_the_same_call_is_executed_once_the_model_has_moved_on(behind: tuple[str, ...]) -> None:
    a = Ran()
    play([reply(tool_use("t1", "a", ""), *behind, stop="tool_use"), reply("Done.")], tools=[a.tool])
    assert a.inputs == [{}]


@pytest.mark.parametrize("stop", ["max_tokens", "model_context_window_exceeded", "refusal"])
def test_case_9_a_call_that_ran_keeps_its_one_result_when_the_next_is_cut(stop: str) -> None:
    a, b = Ran("a"), Ran("b")
    script = [reply(tool_use("t1", "a", {"n": 1}), tool_use("t2", "b", '{"n": '), stop=stop), reply("Done.")]
    told = play(script, tools=[a.tool, b.tool])
    assert (a.inputs, b.inputs) == ([{"n": 1}], [])
    assert told.run.messages[:2] == [GO, assistant(use("t1", "a", n=1))]
    assert told.run.messages[2]["content"][0] == result("t1", "ran")
    if stop == "max_tokens":
        assert told.run.messages[2] == user(result("t1", "ran"), {"type": "text", "text": GO_ON})
        assert [request.body["max_tokens"] for request in told.api.requests] == [8_000, 8_000]
    else:
        assert told.run.messages[2] == user(result("t1", "ran"))
        assert len(told.sent) == 1


@pytest.mark.parametrize("raw", ['{"a": 1}}', '{"a": 1} {"a": 2}', '{"a": 1', '["a"]', '"a"', "{'a': 1}", '{"a": NaN}'])
def test_case_15_an_input_that_is_no_json_object_is_answered_and_not_executed(raw: str) -> None:
    a = Ran()
    told = play([reply(tool_use("t1", "a", raw)), reply("Done.")], tools=[a.tool])
    assert a.inputs == []
    [answered] = results(told)
    assert answered["is_error"] is True
    assert raw in answered["content"]


def test_case_15_a_long_input_is_told_in_part() -> None:
    told = play([reply(tool_use("t1", "a", '{"a": "' + "x" * 100_000)), reply("Done.")], tools=[Ran().tool])
    [answered] = results(told)
    assert answered["is_error"] is True
    assert len(answered["content"]) < 10_000
    assert len(json.dumps(told.run.messages)) < 20_000


def test_case_46_a_call_does_not_start_while_its_input_may_still_grow() -> None:
    """The first piece is a whole JSON object, but more may follow it until the block stops."""

    async def main() -> None:
        a = Ran()
        gate = asyncio.Event()
        whole = reply(tool_use("t1", "a", '{"n": 1} ', ['{"n": 1}', " "]))
        api = ScriptedAPI([stalled(whole, after=3, gate=gate), reply("Done.")])
        async with scripted(api, tools=[a.tool]) as loop:
            run = loop.run("Go.")

            async def consume() -> None:
                await run

            consumer = asyncio.create_task(consume())
            await (await api.arrival(1)).stalled.wait()
            await rounds()
            assert a.inputs == []
            gate.set()
            await consumer
            assert a.inputs == [{"n": 1}]

    asyncio.run(main())


# --- 11, 13: errors in the middle of an answer


def test_case_11_an_overload_in_a_200_stream_is_retried_and_its_text_is_not_kept() -> None:
    told = play([failing(reply("hi"), after=3), reply("Hello.")])
    assert told.sent == [[GO], [GO]]
    assert told.run.messages == [GO, assistant("Hello.")]
    [call, _] = [effect for effect in told.log.effects if effect.kind == "model"]
    assert call.end is not None
    assert call.end["error"] == {
        "type": "overloaded_error",
        "status": 200,
        "retry_after_ms": None,
        "measured": None,
    }


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize("broken", [failing, cut])
def test_case_13_a_call_that_ran_before_the_break_is_kept_and_not_run_again(
    read_only: bool, broken: Callable[..., Any]
) -> None:
    a = Ran(read_only=read_only)
    whole = reply(tool_use("t1", "a", {"n": 1}), "One.", "Two.")
    told = play([broken(whole, after=8), reply("Done.")], tools=[a.tool])
    assert a.inputs == [{"n": 1}]
    kept = [GO, assistant(use("t1", "a", n=1)), user(result("t1", "ran"))]
    assert told.sent == [[GO], kept]
    assert told.log.reasons == ("next_turn",)


# --- 16, 18: text that is no text


def test_case_16_half_a_surrogate_pair_in_an_input_neither_kills_the_turn_nor_reaches_the_api() -> None:
    a = Ran()
    told = play([reply(tool_use("t1", "a", r'{"s": "x\ud83a"}')), reply("Done.")], tools=[a.tool])
    assert a.inputs == [{"s": "x\ufffd"}]
    assert told.sent[1][1] == assistant(use("t1", "a", s="x\ufffd"))
    [joined] = [r for r in told.log.records if r.get("role") == "assistant" and r["blocks"][0]["type"] == "tool_use"]
    kept = told.log.payloads.find(joined["blocks"][0]["raw"])
    assert kept is not None
    assert kept[1] == rb'"{\"s\": \"x\\ud83a\"}"'


@pytest.mark.parametrize("said", ["\ud83a", "a\ud83a\ude00b", "\ude00\ud83a"])
def test_case_18_half_a_surrogate_pair_in_text_or_result_is_recorded(said: str) -> None:
    broken = tool_named("a", answer=lambda given, ctx: said)
    told = play([reply(said, tool_use("t1", "a", {"n": 1})), reply("Done.")], tools=[broken], prompt=said + "!")
    assert told.result.terminal == "answered"


def test_case_18_the_log_of_a_run_is_the_same_for_the_same_answers_clock_and_entropy() -> None:
    def lines() -> tuple[bytes, ...]:
        drawn = iter(range(1_000_000))

        def entropy(count: int) -> bytes:
            return next(drawn).to_bytes(count, "big")

        told = play(
            [reply("Look.", tool_use("t1", "read", {"n": 1})), error(529, "overloaded_error"), reply("\ud83a")],
            tools=[echo()],
            entropy=entropy,
        )
        return told.log.lines

    assert lines() == lines()


# --- 20, 22, 24, 53: results


def test_case_20_a_dict_is_sent_as_json_and_not_as_its_keys() -> None:
    given = {"status": "ok", "items": [1, 2]}
    told = play([reply(tool_use("t1", "a", {})), reply("Done.")], tools=[saying("a", given)])
    [answered] = results(told)
    assert json.loads(answered["content"]) == given


@pytest.mark.parametrize("read_only", [True, False])
def test_case_22_two_calls_with_one_id_are_told_apart_and_each_has_its_own_result(read_only: bool) -> None:
    script = [reply(tool_use("dup", "read", {"n": 1}), tool_use("dup", "read", {"n": 2})), reply("Done.")]
    told = play(script, tools=[echo(read_only=read_only)])
    assert told.sent[1][1:] == [
        assistant(use("dup", "read", n=1), use("dup_2", "read", n=2)),
        user(result("dup", 'read {"n":1}'), result("dup_2", 'read {"n":2}')),
    ]


def test_case_22_an_id_that_an_earlier_turn_used_is_told_apart_too() -> None:
    script = [reply(tool_use("dup", "read", {"n": 1})), reply(tool_use("dup", "read", {"n": 2})), reply("Done.")]
    told = play(script, tools=[echo()])
    assert told.sent[2][3:] == [assistant(use("dup_2", "read", n=2)), user(result("dup_2", 'read {"n":2}'))]


def test_case_24_results_are_in_the_order_of_the_calls_whatever_order_they_came_in() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
    turn = {name: asyncio.Event() for name in "abc"}
    order: list[str] = []

    def in_turn(name: str, then: str | None, answer: Any) -> Tool:
        async def call(given: dict[str, Any], ctx: ToolContext) -> Any:
            await turn[name].wait()
            order.append(name)
            if then is not None:
                turn[then].set()
            return answer

        return tool_named(name, answer=call)

    turn["c"].set()
    tools = [in_turn("a", "b", [image]), in_turn("b", None, "B"), in_turn("c", "a", "C")]
    script = [reply(tool_use("t1", "a", {}), tool_use("t2", "b", {}), tool_use("t3", "c", {})), reply("Done.")]
    told = play(script, tools=tools)
    assert order == ["c", "a", "b"]
    assert told.sent[1][2:] == [user(result("t1", [image]), result("t2", "B"), result("t3", "C"))]


def test_case_53_a_huge_result_is_bounded_in_the_history_and_whole_in_the_store() -> None:
    whole = "".join(f"line {number}\n" for number in range(500_000))
    told = play([reply(tool_use("t1", "a", {})), reply("Done.")], tools=[saying("a", whole)])
    [answered] = results(told)
    assert len(answered["content"]) < 250_000
    assert answered["content"].startswith("line 0\n")
    assert answered["content"].endswith("line 499999\n")
    [effect] = [effect for effect in told.log.effects if effect.kind == "tool"]
    assert effect.end is not None
    kept = told.log.payloads.find(effect.end["full"]["commitment"])
    assert kept is not None
    assert json.loads(kept[1]) == whole


# --- 26: thinking


def test_case_26_thinking_goes_back_with_its_signature_and_first() -> None:
    script = [reply(thinking("Hm.", "sig"), "So.", tool_use("t1", "read", {})), reply("Done.")]
    told = play(script, tools=[echo()], params={"thinking": {"type": "enabled", "budget_tokens": 1024}})
    assert told.sent[1][1]["content"][0] == {"type": "thinking", "thinking": "Hm.", "signature": "sig"}


def test_case_26_thinking_that_is_empty_but_for_its_signature_goes_back_too() -> None:
    script = [reply(thinking("", "sig"), tool_use("t1", "read", {})), reply("Done.")]
    told = play(script, tools=[echo()], params={"thinking": {"type": "enabled", "budget_tokens": 1024}})
    assert told.sent[1][1]["content"][0] == {"type": "thinking", "thinking": "", "signature": "sig"}


# --- 31, 33, 35: stop reasons


@pytest.mark.parametrize("said", [(), (text(""),)])
def test_case_31_an_empty_answer_after_a_tool_is_a_success_without_text(said: tuple[Any, ...]) -> None:
    told = play([reply(tool_use("t1", "a", {})), reply(*said)], tools=[Ran(read_only=False).tool])
    assert told.result.subtype == "success"
    assert told.result.result == ""
    assert len(told.sent) == 2
    assert told.last == user(result("t1", "ran"))


def test_case_33_pauses_are_capped_and_each_is_a_turn() -> None:
    def paused(body: dict[str, Any]) -> Any:
        number = len(body["messages"])
        return reply(server_tool_use(f"srvtoolu_{number}", "web_search", {"q": "q"}), stop="pause_turn")

    told = play(paused, limits=Limits(max_pauses=2))
    assert told.result.terminal == "pause_limit"
    assert [len(messages) for messages in told.sent] == [1, 2, 3]
    assert told.result.num_turns == 3
    assert told.moves[-1] == "TurnPaused > failed: pause_limit"


def test_case_33_other_answers_in_between_give_the_pauses_back() -> None:
    script = [
        reply("One.", stop="pause_turn"),
        reply(tool_use("t1", "read", {})),
        reply("Two.", stop="pause_turn"),
        reply("Done."),
    ]
    assert play(script, tools=[echo()], limits=Limits(max_pauses=1)).result.terminal == "answered"


def test_case_35_a_refusal_ends_the_run_and_is_not_kept() -> None:
    details = {"type": "refusal", "category": "bio", "explanation": "It is not allowed."}
    told = play([reply(stop="refusal", stop_details=details)])
    assert told.result.terminal == "refused"
    assert told.result.subtype == "error_during_execution"
    assert told.result.error is not None
    assert "bio" in told.result.error
    assert "It is not allowed." in told.result.error
    assert told.sent == [[GO]]
    assert told.run.messages == [GO]


# --- 42: stop hooks


def test_case_42_a_stop_hook_that_always_blocks_meets_the_limit() -> None:
    async def never(context: StopContext) -> Block:
        return Block("Not yet.")

    told = play(lambda body: reply("Done."), hooks=Hooks(stop=[never]), limits=Limits(max_blocks=3))
    assert told.result.terminal == "stop_hook_limit"
    assert len(told.sent) == 3
    assert told.sent[1] == [GO, assistant("Done."), user({"type": "text", "text": "Not yet."})]


def test_case_42_stop_hook_active_stays_true_across_tool_turns() -> None:
    seen: list[bool] = []

    async def once(context: StopContext) -> Block | Pass:
        seen.append(context.stop_hook_active)
        return Pass() if context.stop_hook_active else Block("Check it.")

    script = [reply("Done."), reply(tool_use("t1", "read", {})), reply("Checked.")]
    told = play(script, tools=[echo()], hooks=Hooks(stop=[once]))
    assert seen == [False, True]
    assert told.result.terminal == "answered"


def test_case_42_no_stop_hook_is_asked_about_a_failure() -> None:
    asked: list[str] = []

    async def hook(context: StopContext) -> Pass:
        asked.append(context.text)
        return Pass()

    play([error(400, "invalid_request_error", "no")], hooks=Hooks(stop=[hook]))
    play([reply("I would", stop="refusal")], hooks=Hooks(stop=[hook]))
    play([error(529, "overloaded_error"), reply("Done.")], hooks=Hooks(stop=[hook]))
    assert asked == ["Done."]


# --- 47: leaving


def test_case_47_a_close_from_another_task_returns_when_every_tool_has_ended() -> None:
    async def main() -> None:
        hanging = [Hanging(name, read_only=True) for name in "ab"]
        api = ScriptedAPI([reply(tool_use("t1", "a", {"n": 1}), tool_use("t2", "b", {"n": 2}))])
        async with scripted(api, tools=[one.tool for one in hanging]) as loop:
            run = loop.run("Go.")

            async def consume() -> list[Message]:
                return [message async for message in run]

            consumer = asyncio.create_task(consume())
            for one in hanging:
                await one.began.wait()
            await run.aclose()
            assert all(one.ended.is_set() for one in hanging)
            records = len(run.log)
            seen = await consumer
            assert seen[-1] is run.result
            await rounds()
            assert len(run.log) == records
            check(run, api)

    asyncio.run(main())


def test_case_47_a_consumer_that_breaks_out_leaves_nothing_behind() -> None:
    async def main() -> None:
        hanging = Hanging("a", read_only=False)
        api = ScriptedAPI([reply(tool_use("t1", "a", {}))])
        async with scripted(api, tools=[hanging.tool]) as loop:
            async with loop.run("Go.") as run:
                async for message in run:
                    if isinstance(message, ToolMessage):
                        break
                await hanging.began.wait()
            assert hanging.ended.is_set()
            assert len(asyncio.all_tasks()) == 1
            check(run, api)

    asyncio.run(main())


# --- 50: writes


def test_case_50_a_write_that_fails_is_told_and_not_run_again_and_has_a_stable_key() -> None:
    tried: list[str] = []

    def sends(given: dict[str, Any], ctx: ToolContext) -> str:
        tried.append(ctx.idempotency_key)
        raise ConnectionError("reset after sending")

    script = [reply(tool_use("t1", "send", {})), error(529, "overloaded_error"), reply("It failed.")]
    told = play(script, tools=[tool_named("send", read_only=False, answer=sends)])
    assert tried == [f"{told.run.id}:t1"]
    [answered] = results(told)
    assert answered["is_error"] is True
    assert answered["content"] == "failed: ConnectionError: reset after sending"


# --- 41, in what this loop can do of it


def test_case_41_the_request_is_estimated_with_what_was_added_since_the_last_usage() -> None:
    """Results that outgrow the window are noticed before the next request, though the last usage was small."""
    calls = [tool_use(f"t{number}", "a", {"n": number}) for number in range(4)]
    told = play([reply(*calls), reply("Done.")], tools=[saying("a", "word " * 30_000)], window=20_000)
    compressed = [move["fields"] for move in told.log.transitions if move.event == "HistoryCompressed"]
    assert compressed[0]["tokens_before"] > 20_000 - 8_000
    ready = [move["fields"] for move in told.log.transitions if move.event == "ContextReady"]
    assert ready[-1]["tokens"] <= ready[-1]["window"] == 20_000
    assert [block["content"].count("word ") < 2_000 for block in results(told)] == [True] * 4


def test_an_unknown_block_goes_back_as_it_came() -> None:
    novelty = {"type": "block_of_tomorrow", "data": {"n": [1, None, 2.5]}}
    told = play([reply(block(novelty), tool_use("t1", "read", {})), reply("Done.")], tools=[echo()])
    assert told.sent[1][1]["content"][0] == novelty


def test_a_retry_waits_as_long_as_the_clock_says_and_not_longer() -> None:
    clock = FakeClock()
    play([error(429, "rate_limit_error", "", {"retry-after": "60"}), reply("Done.")], clock=clock)
    assert clock.monotonic_ns() == 60_000_000_000
