"""One answer of the model, from its first event to what stays of it in the history."""

import asyncio
from collections.abc import Callable
from typing import Any

import attrs
import pytest

from looplatch import Hooks, Run, ToolContext, ToolMessage, replay, verify
from looplatch.answering.model_record import cut_message
from looplatch.blocks import ToolResultBlock, ToolUseBlock, blocks_of
from looplatch.hooks import ToolsContext
from looplatch.messages import AssistantMessage, Message, StreamEvent, ToolPhase, UserMessage
from looplatch.model import Assembly
from looplatch.states.reasons import Terminal
from looplatch.testing import (
    Answer,
    ScriptedAPI,
    block,
    cut,
    event_count,
    failing,
    raw,
    redacted_thinking,
    reply,
    server_tool_use,
    stalled,
    text,
    thinking,
    tool_use,
)
from tests.playing import (
    Play,
    assistant,
    check,
    echo,
    play,
    result,
    rounds,
    scripted,
    tool_named,
    transition,
    use,
    user,
)

GO = user("Go.")

# One of everything, in an answer that can be broken off behind any of its events.
RICH = reply(
    thinking("Hm.", "sig", 1),
    text("I look.", 2),
    redacted_thinking("aa"),
    tool_use("t1", "read", {"n": 1}, None),
    server_tool_use("s1", "web_search", {"query": "q"}),
    block({"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}),
    tool_use("t2", "write", {"n": 2}),
    thinking("So.", "gis"),
    text(""),
    tool_use("t3", "read", ""),
    text("Well ", 2),
    usage={"input_tokens": 100, "output_tokens": 50},
)
EVENTS = event_count(RICH)


def tools() -> list[Any]:
    return [echo("read"), echo("write", read_only=False)]


def counted() -> tuple[list[str], list[Any]]:
    """Tools that note the ids of the calls that they carried out."""
    ran: list[str] = []

    def call(given: dict[str, Any], ctx: ToolContext) -> str:
        ran.append(ctx.tool_use_id)
        return "ran"

    return ran, [tool_named("read", answer=call), tool_named("write", read_only=False, answer=call)]


def ids(messages: list[dict[str, Any]], kind: str, name: str) -> list[str]:
    """The ids of all blocks of a type, in order."""
    blocks = [block for message in messages for block in blocks_of(message)]
    return [block[name] for block in blocks if block["type"] == kind]


def answered_ids(told: Play) -> list[str]:
    return ids(told.run.messages, "tool_result", "tool_use_id")


# --- broken off anywhere

Breaking = Callable[[int], Answer]


@pytest.mark.parametrize("after", range(EVENTS))
@pytest.mark.parametrize("how", ["failing", "cut", "torn"])
def test_an_answer_may_break_off_behind_any_event(how: str, after: int) -> None:
    """What began is kept and answered once, in its order; nothing is carried out twice; the talk goes on."""
    ran, doing = counted()
    breaking: dict[str, Breaking] = {
        "failing": lambda after: failing(RICH, after=after),
        "cut": lambda after: cut(RICH, after=after),
        "torn": lambda after: cut(RICH, after=after, clean=False),
    }
    told = play([breaking[how](after), reply("Done.")], tools=doing)
    assert told.result.terminal == "answered"
    assert len(ran) == len(set(ran))
    assert answered_ids(told) == sorted(ran)
    assert ids(told.run.messages, "tool_use", "id") == sorted(ran)
    assert told.log.reasons == (("next_turn",) if ran else ())


@pytest.mark.parametrize("stop", ["max_tokens", "refusal", "model_context_window_exceeded"])
@pytest.mark.parametrize("blocks", range(len(RICH.blocks) + 1))
def test_an_answer_may_be_truncated_behind_any_block(stop: str, blocks: int) -> None:
    ran, doing = counted()
    script = [reply(*RICH.blocks[:blocks], stop=stop), reply("Done.")]
    told = play(script, tools=doing)
    assert len(ran) == len(set(ran))
    assert answered_ids(told) == sorted(ran)


@pytest.mark.parametrize("after", range(EVENTS + 1))
def test_a_run_may_be_stopped_behind_any_event(after: int) -> None:
    """Every finished block stays, but for thinking at the end; so does the unfinished text."""

    async def main() -> None:
        ran, doing = counted()
        api = ScriptedAPI([stalled(RICH, after=after, gate=asyncio.Event())])
        async with scripted(api, tools=doing) as loop:
            run = loop.run("Go.")

            async def consume() -> None:
                await run

            consumer = asyncio.create_task(consume())
            exchange = await api.arrival(1)
            await exchange.stalled.wait()
            await rounds()
            run.abort()
            await consumer
            assert run.result is not None
            assert run.result.terminal == "aborted"
            assert len(ran) == len(set(ran))
            check(run, api)
            assert ids(run.messages[1:], "text", "type") == texts_after(after)

    asyncio.run(main())


def texts_after(after: int) -> list[str]:
    """The text blocks that have begun to say something behind so many events: the first at 4, the last at the end."""
    first = after >= 1 + 4 + 2  # message_start, four events of the thinking, the start and a delta of the text
    last = after >= EVENTS - 2 - 2  # before its second delta, its stop and the two events of the message
    return ["text"] * (first + last)


# --- what stays


def test_what_the_model_said_goes_back_as_it_was() -> None:
    told = play([RICH, reply("Done.")], tools=tools())
    assert told.sent[1][1]["content"] == [
        {"type": "thinking", "thinking": "Hm.", "signature": "sig"},
        {"type": "text", "text": "I look."},
        {"type": "redacted_thinking", "data": "aa"},
        use("t1", "read", n=1),
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "q"}},
        {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []},
        use("t2", "write", n=2),
        {"type": "thinking", "thinking": "So.", "signature": "gis"},
        use("t3", "read"),
        {"type": "text", "text": "Well "},
    ]


def test_an_answer_that_is_whole_in_its_message_start() -> None:
    message: dict[str, Any] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "text", "text": "Done."}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 3, "output_tokens": 2},
    }
    told = play([raw([{"type": "message_start", "message": message}, {"type": "message_stop"}])])
    assert told.result.result == "Done."
    assert told.run.messages == [GO, assistant("Done.")]
    assert told.result.usage["input_tokens"] == 3


def test_a_call_that_is_whole_in_its_message_start_is_carried_out() -> None:
    message: dict[str, Any] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [use("t1", "read", n=1), use("t2", "read")],
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {},
    }
    script = [raw([{"type": "message_start", "message": message}, {"type": "message_stop"}]), reply("Done.")]
    told = play(script, tools=tools())
    assert told.sent[1][2] == user(result("t1", 'read {"n":1}'), result("t2", "read {}"))


def test_a_text_that_was_never_closed_stays() -> None:
    told = play([reply("One.", text("Two.", closed=False))])
    assert told.run.messages == [GO, assistant("One.", "Two.")]


def test_a_call_that_was_never_closed_is_no_call() -> None:
    ran, doing = counted()
    told = play([reply("One.", tool_use("t1", "read", {"n": 1}, closed=False), stop="tool_use")], tools=doing)
    assert ran == []
    assert told.run.messages == [GO, assistant("One.")]


def test_a_call_that_a_server_tool_made_and_answered_is_left_alone() -> None:
    ran, doing = counted()
    caller = {"type": "code_execution_20250825", "tool_id": "s1"}
    script = [
        reply(
            server_tool_use("s1", "code_execution", {"code": "read()"}),
            tool_use("t1", "read", {"n": 1}, caller=caller),
            block({"type": "code_execution_tool_result", "tool_use_id": "s1", "content": {}}),
            "Done.",
            stop="end_turn",
        )
    ]

    async def main() -> None:
        api = ScriptedAPI(script)
        async with scripted(api, tools=doing) as loop:
            run = loop.run("Go.")
            assert (await run).terminal == "answered"
        assert ran == []
        assert len(api.requests) == 1

    asyncio.run(main())


def test_a_call_that_a_server_tool_waits_for_is_answered() -> None:
    ran, doing = counted()
    caller = {"type": "code_execution_20250825", "tool_id": "s1"}
    call = tool_use("t1", "read", {"n": 1}, caller=caller)
    script = [
        reply(server_tool_use("s1", "code_execution", {"code": "read()"}), call, stop="tool_use"),
        reply(block({"type": "code_execution_tool_result", "tool_use_id": "s1", "content": {}}), "Done."),
    ]
    told = play(script, tools=doing)
    assert ran == ["t1"]
    assert told.sent[1][2] == user(result("t1", "ran"))


@pytest.mark.parametrize(
    ("asked", "own"),
    [("a b", "a_b"), ("t.1", "t_1"), ("ü", "_"), ("x" * 500, "x" * 200), ("toolu_01AbC-9", "toolu_01AbC-9")],
)
def test_an_id_that_the_api_would_not_take_back_gets_one_that_it_takes(asked: str, own: str) -> None:
    told = play([reply(tool_use(asked, "read", {})), reply("Done.")], tools=tools())
    assert told.sent[1][1:] == [assistant(use(own, "read")), user(result(own, "read {}"))]
    [joined] = [record for record in told.log if record.get("role") == "assistant" and record["op"] == "join"][:1]
    assert joined["blocks"][0].get("model_id") == (None if asked == own else asked[:256])


@pytest.mark.parametrize(
    ("asked", "own"),
    [("functions.read", "functions_read"), ("read me", "read_me"), ("ü", "_"), ("r\0", "r_"), ("x" * 500, "x" * 128)],
)
def test_a_name_that_the_api_would_not_take_back_gets_one_that_it_takes(asked: str, own: str) -> None:
    """A tool that has the name that came of it is not meant, and does not run."""
    ran: list[str] = []
    tool = tool_named(own, answer=lambda given, ctx: ran.append(own))
    told = play([reply(tool_use("t1", asked, {})), reply("Done.")], tools=[tool])
    assert told.sent[1][1] == assistant(use("t1", own))
    assert told.sent[1][2]["content"][0]["content"].startswith(f"unknown tool: '{asked[0]}")
    assert ran == []
    [joined] = [record for record in told.log if record.get("role") == "assistant" and record["op"] == "join"][:1]
    assert joined["blocks"][0]["model_name"] == asked[:256]


GIVEN: dict[str, Any] = {"path": {"to": ["a", "b"]}}


def test_what_a_consumer_does_to_a_message_changes_nothing_that_runs_or_is_sent() -> None:
    ran: list[Any] = []
    shown: list[Any] = []

    def spoil(message: Message, run: Run) -> None:
        match message:
            case AssistantMessage(content=(ToolUseBlock(input=given),)):
                given["path"]["to"].append("spoilt")
            case UserMessage(content=(ToolResultBlock(content=list() as content),)):
                content[0]["text"] = "spoilt"
            case AssistantMessage(content=(dict() as other,)):
                other["content"]["list"].append("spoilt")
            case StreamEvent(event={"content_block": {"content": {"list": list()}}} as event):
                event["content_block"]["content"]["list"].append("spoilt")
            case _:
                pass

    async def after(tools: ToolsContext) -> None:
        shown.append(tools.calls[0].content)

    def write(given: dict[str, Any], ctx: ToolContext) -> list[dict[str, Any]]:
        ran.append(given)
        return [{"type": "text", "text": "as it was"}]

    novel = {"type": "novel", "content": {"list": ["a"]}}
    told = play(
        [reply(block(novel), tool_use("t1", "write", GIVEN)), reply("Done.")],
        tools=[tool_named("write", read_only=False, answer=write)],
        hooks=Hooks(after_tools=after),
        watch=spoil,
        partial=True,
    )
    assert ran == [GIVEN]
    assert shown == [[{"type": "text", "text": "as it was"}]]
    assert told.sent[1][1:] == [
        assistant({"type": "novel", "content": {"list": ["a"]}}, use("t1", "write", **GIVEN)),
        user(result("t1", [{"type": "text", "text": "as it was"}])),
    ]


SEARCH = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "q"}}


@pytest.mark.parametrize(
    ("said", "back"),
    [
        (["hi \n"], ["hi"]),
        (["hi ", " ", text("")], ["hi"]),
        ([block(SEARCH), " "], [SEARCH]),
        (["hi ", block(SEARCH)], ["hi ", SEARCH]),
        (["hi ", text(" you ", closed=False)], ["hi ", " you"]),
        (["hi ", text("\n", closed=False)], ["hi"]),
        ([" "], []),
    ],
)
def test_a_paused_turn_goes_back_as_it_came_but_for_white_space_at_its_end(said: list[Any], back: list[Any]) -> None:
    """Which the API takes in no last message of the assistant's."""
    told = play([reply(*said, stop="pause_turn"), reply("Done.")])
    assert told.result.result == "Done."
    assert told.sent[1][1:] == ([assistant(*back)] if back else [])
    assert verify(told.log).ok
    assert replay(told.log).ok


@pytest.mark.parametrize("details", ["policy", ["policy"], 3, {"category": {"deep": []}}], ids=str)
def test_details_of_a_refusal_may_be_anything(details: Any) -> None:
    told = play([attrs.evolve(reply("I", stop="refusal"), stop_details=details)])
    assert told.result.terminal is Terminal.REFUSED


def test_details_that_are_nested_as_deeply_as_json_can_be_are_only_not_shown() -> None:
    deep: Any = []
    for _ in range(5_000):
        deep = [deep]
    assembly = Assembly()
    assembly.feed({"type": "message_start", "message": {}})
    details = {"deep": deep, "category": "cyber"}
    assembly.feed({"type": "message_delta", "delta": {"stop_reason": "refusal", "stop_details": details}})
    assert cut_message(assembly) == "the answer ended with the stop reason refusal (category: cyber)"


def test_a_text_block_without_a_text_is_an_empty_one() -> None:
    told = play([reply(block({"type": "text"}), "Done.")])
    assert told.result.result == "Done."
    assert told.last == assistant("Done.")


def test_what_was_spent_is_never_more_than_a_record_holds() -> None:
    most = {"input_tokens": 2**60, "output_tokens": 1}
    told = play([reply(tool_use("t1", "read", {}), usage=most), reply("Done.", usage=most)], tools=tools())
    assert told.result.usage["input_tokens"] == 2**53 - 1


@pytest.mark.parametrize("output", [1, 2**60])
def test_a_prompt_of_more_tokens_than_there_can_be_counts_for_nothing(output: int) -> None:
    """Neither for the size of the history nor for that of the window; `play` verifies the log."""
    most = {"input_tokens": 2**60, "cache_read_input_tokens": 2**60, "output_tokens": output}
    much = tool_named("read", answer=lambda given, ctx: "much " * 3_000)
    cut_off = reply(tool_use("t3", "read", {}), usage=most, stop="model_context_window_exceeded")
    script = [reply(tool_use("t1", "read", {}), tool_use("t2", "read", {}), usage=most), cut_off, reply("Done.")]
    told = play(script, tools=[much], window=9_000, max_tokens=500)
    [end, *_] = [record for record in told.log if record.get("held", 0) != 0]
    assert end["held"] is None
    ready = [move["fields"] for move in told.log.transitions if move.event == "ContextReady"]
    assert all(fields["tokens"] < 20_000 and fields["window"] == 9_000 for fields in ready)


# --- records and states


Asked = tuple[str, dict[str, Any]]
READ: Asked = ("read", {"n": 1})
EMPTY: Asked = ("read", {})
WRITE: Asked = ("write", {"n": 1})


@pytest.mark.parametrize("pause", [0, 1, 10])
@pytest.mark.parametrize("stop", ["tool_use", "end_turn", "stop_reason_of_tomorrow"])
@pytest.mark.parametrize("calls", [[READ], [EMPTY], [WRITE], [READ, WRITE, EMPTY], [WRITE, WRITE]], ids=str)
def test_no_tool_begins_between_the_end_of_an_answer_and_the_decision_on_it(
    pause: int, stop: str, calls: list[Asked]
) -> None:
    """A consumer that takes its time must not see a tool begin in `decide`; the log says where each began."""

    async def watch(message: Message, run: Run) -> None:
        await rounds(pause)

    asked = [tool_use(f"t{number}", name, given) for number, (name, given) in enumerate(calls)]
    told = play([reply(*asked, stop=stop), reply("Done.")], tools=tools(), watch=watch)
    state, begun = "prepare", 0
    for record in told.log:
        state = record.target or state
        if record.get("class") == "tool" and record.kind == "effect_begin":
            assert state in ("stream", "orchestrate")
            begun += 1
    assert begun == len(calls)


def test_the_blocks_before_a_call_are_kept_before_it_starts() -> None:
    """What the effect record names can be found in the payload store when the tool runs."""
    found: list[bool] = []

    async def main() -> None:
        async def call(given: dict[str, Any], ctx: ToolContext) -> str:
            [begin] = [record for record in run.log if record.get("class") == "tool" and record.kind == "effect_begin"]
            found.extend(run.log.payloads.find(block["commitment"]) is not None for block in begin["blocks"])
            assert [block["type"] for block in begin["blocks"]] == ["thinking", "text", "tool_use"]
            assert begin["input"] == begin["blocks"][-1]["commitment"]
            return "seen"

        api = ScriptedAPI([reply(thinking("Hm."), "I look.", tool_use("t1", "see", {"n": 1}), "More."), reply("Done.")])
        async with scripted(api, tools=[tool_named("see", answer=call)]) as loop:
            run = loop.run("Go.")
            await run
            assert found == [True, True, True]
            check(run, api)

    asyncio.run(main())


def test_a_model_call_that_was_stopped_is_recorded_as_such() -> None:
    async def main() -> None:
        api = ScriptedAPI([stalled(RICH, after=3, gate=asyncio.Event())])
        async with scripted(api, tools=tools()) as loop:
            run = loop.run("Go.")

            async def consume() -> None:
                await run

            consumer = asyncio.create_task(consume())
            await (await api.arrival(1)).stalled.wait()
            run.abort()
            await consumer
            [call] = [effect for effect in run.log.effects if effect.kind == "model"]
            assert call.end is not None
            assert call.end["outcome"] == "interrupted"
            assert api.exchanges[0].ended.is_set()

    asyncio.run(main())


def test_a_tool_that_ends_is_told_though_the_stream_stalls() -> None:
    async def main() -> None:
        gate = asyncio.Event()
        whole = reply(tool_use("t1", "read", {"n": 1}), "More.")
        api = ScriptedAPI([stalled(whole, after=4, gate=gate), reply("Done.")])
        async with scripted(api, tools=tools()) as loop, asyncio.timeout(30):
            async with loop.run("Go.") as run:
                async for message in run:
                    if isinstance(message, ToolMessage) and message.phase is ToolPhase.END:
                        gate.set()
            check(run, api)

    asyncio.run(main())


def test_the_answer_of_an_earlier_turn_does_not_reach_the_next() -> None:
    def watch(message: Message, run: Run) -> None:
        move = transition(message)
        if move is not None and move.target == "prepare" and move.reason == "next_turn":
            run.abort()

    told = play([reply("Look.", tool_use("t1", "read", {}))], tools=tools(), watch=watch)
    assert told.result.terminal == "aborted"
    assert told.run.messages == [GO, assistant("Look.", use("t1", "read")), user(result("t1", "read {}"))]
