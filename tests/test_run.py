"""A run, as its consumer holds it: three ways to use it, what it hands out, and many at once."""

import asyncio
import stat
from pathlib import Path
from typing import Any

import pytest

from looplatch import (
    AssistantMessage,
    ResultMessage,
    Run,
    StreamEvent,
    SystemMessage,
    TextBlock,
    ToolContext,
    ToolMessage,
    ToolResultBlock,
    ToolUseBlock,
    TransitionMessage,
    UsageError,
    UserMessage,
)
from looplatch.messages import Message, ToolPhase
from looplatch.testing import Answer, ScriptedAPI, error, reply, text, tool_use
from tests.playing import (
    MODEL,
    Hanging,
    alone,
    assistant,
    check,
    check_log,
    echo,
    play,
    rounds,
    running,
    scripted,
    tool_named,
    transition,
    use,
    user,
)

GO = user("Go.")


def a_call(name: str = "hang", **given: Any) -> Any:
    return reply(tool_use("t1", name, given or {"n": 1}))


# --- using a run


def test_a_run_is_awaited_for_its_result() -> None:
    async def main() -> None:
        api = ScriptedAPI([reply("Done.")])
        async with scripted(api) as loop:
            run = loop.run("Go.")
            told = await run
            assert told is run.result
            assert (told.subtype, told.is_error, told.result, told.terminal) == ("success", False, "Done.", "answered")
            assert told.session_id == run.id
            assert told.messages == run.messages == [GO, assistant("Done.")]
            assert await run is told, "a run that is over gives its result again"

    asyncio.run(main())


def test_a_run_is_pulled_without_a_context() -> None:
    async def main() -> None:
        api = ScriptedAPI([reply("Done.")])
        async with scripted(api) as loop:
            run = loop.run("Go.")
            seen = [message async for message in run]
            assert seen[-1] is run.result
            assert [message async for message in run] == []
            assert alone()

    asyncio.run(main())


def test_nothing_happens_before_the_first_pull(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"

    async def main() -> None:
        api = ScriptedAPI([])
        async with scripted(api) as loop:
            run = loop.run("Go.", log=log)
            await rounds()
            assert api.requests == []
            assert not log.exists()
            assert run.messages == [GO]
            assert run.result is None
            assert run.state == "prepare"
            await run.aclose()

    asyncio.run(main())


def test_what_a_run_hands_out_in_its_order() -> None:
    def told(message: Message) -> str:
        match message:
            case SystemMessage(subtype=subtype):
                return f"system {subtype}"
            case TransitionMessage(record=record):
                return str(record.event)
            case AssistantMessage(content=(block,)):
                return f"says {type(block).__name__}"
            case ToolMessage(phase=phase, tool_use_id=call):
                return f"{call} {phase}"
            case _:
                return type(message).__name__

    def progress(given: dict[str, Any], ctx: ToolContext) -> str:
        ctx.progress("half", 50)
        return "read"

    answer = reply("Look.", tool_use("t1", "read", {"n": 1}))
    played = play([answer, error(529, "overloaded_error"), reply("Done.")], tools=[tool_named("read", answer=progress)])
    # When a tool ends among the events of a stream is chance.
    tool = [told(message) for message in played.seen if isinstance(message, ToolMessage)]
    assert tool == ["t1 start", "t1 progress", "t1 end"]
    assert [told(message) for message in played.seen if not isinstance(message, ToolMessage)] == [
        "system init",
        "RunStarted",
        "ContextReady",
        "says TextBlock",
        "says ToolUseBlock",
        "ModelResponded",
        "ToolsRequested",
        "UserMessage",
        "ToolsAnswered",
        "ContextReady",
        "ModelFailed",
        "TroubleNamed",
        "system api_retry",
        "BackoffElapsed",
        "says TextBlock",
        "ModelResponded",
        "AnswerGiven",
        "StopHooksPassed",
        "ResultMessage",
    ]


def test_the_messages_say_what_they_are_about() -> None:
    played = play([reply("Look.", tool_use("t1", "read", {"n": 1}), id="msg_1"), reply("Done.")], tools=[echo()])
    init, *_ = played.seen
    assert isinstance(init, SystemMessage)
    assert (init.data["run_id"], init.data["model"], init.data["tools"]) == (played.run.id, MODEL, ["read"])
    said = [message for message in played.seen if isinstance(message, AssistantMessage)]
    assert [message.content for message in said] == [
        (TextBlock(text="Look."),),
        (ToolUseBlock(id="t1", name="read", input={"n": 1}),),
        (TextBlock(text="Done."),),
    ]
    assert [message.message_id for message in said[:2]] == ["msg_1", "msg_1"]
    [answered] = [message for message in played.seen if isinstance(message, UserMessage)]
    assert answered.content == (ToolResultBlock(tool_use_id="t1", content='read {"n":1}'),)
    records = [message.record for message in played.seen if isinstance(message, TransitionMessage)]
    assert tuple(records) == played.log.transitions


def test_raw_events_are_handed_out_on_request_only() -> None:
    script: list[Answer] = [reply(text("Done.", 3))]
    assert not any(isinstance(message, StreamEvent) for message in play(script).seen)
    events = [message.event for message in play(script, partial=True).seen if isinstance(message, StreamEvent)]
    assert [event["type"] for event in events] == [
        "message_start",
        "content_block_start",
        *["content_block_delta"] * 3,
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]


def test_the_result_counts_the_tokens_of_all_calls() -> None:
    usage = {"input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 3, "cache_creation_input_tokens": 2}
    played = play([reply(tool_use("t1", "read", {}), usage=usage), reply("Done.", usage=usage)], tools=[echo()])
    assert played.result.usage == {name: 2 * count for name, count in usage.items()}


# --- many at once


def test_many_runs_of_one_loop_do_not_mix() -> None:
    def answer(body: dict[str, Any]) -> Answer:
        *_, last = body["messages"]
        if last["content"][0]["type"] == "tool_result":
            return reply(f"It said {last['content'][0]['content']}")
        return reply(tool_use("t1", "read", {"who": body["messages"][0]["content"][0]["text"]}))

    async def main() -> None:
        async def call(given: dict[str, Any], ctx: ToolContext) -> str:
            await rounds(len(given["who"]))
            return f"{given['who']} {ctx.run_id}"

        api = ScriptedAPI(answer)
        async with scripted(api, tools=[tool_named("read", answer=call)]) as loop:
            runs = [loop.run([user({"type": "text", "text": f"run {number}"})]) for number in range(40)]
            results = await asyncio.gather(*runs)
            for number, (run, told) in enumerate(zip(runs, results, strict=True)):
                assert told.result == f"It said run {number} {run.id}"
                check(run, api)
            assert len({run.id for run in runs}) == 40

    asyncio.run(main())


def test_one_of_many_that_is_aborted_leaves_the_others_alone() -> None:
    async def main() -> None:
        hanging = Hanging()
        api = ScriptedAPI(lambda body: a_call() if body["messages"][0]["content"] == "Hang." else reply("Done."))
        async with scripted(api, tools=[hanging.tool]) as loop:
            stuck = loop.run("Hang.")
            consumer = running(stuck)
            await hanging.began.wait()
            others = [loop.run("Go.") for _ in range(5)]
            stuck.abort()
            told = await asyncio.gather(*others, consumer)
            assert [one.terminal for one in told[:5] if isinstance(one, ResultMessage)] == ["answered"] * 5
            assert stuck.result is not None
            assert stuck.result.terminal == "aborted"

    asyncio.run(main())


def test_a_log_folder_gets_a_file_for_each_run(tmp_path: Path) -> None:
    async def main() -> None:
        api = ScriptedAPI(lambda body: reply("Done."))
        async with scripted(api, log_dir=tmp_path) as loop:
            runs = [loop.run("Go.") for _ in range(3)]
            await asyncio.gather(*runs)
            for run in runs:
                assert run.log.file == tmp_path / f"{run.id}.jsonl"
                check_log(run)

    asyncio.run(main())


def test_a_log_folder_that_is_not_there_is_made_for_its_owner(tmp_path: Path) -> None:
    async def main() -> None:
        async with scripted(ScriptedAPI([reply("Done.")]), log_dir=tmp_path / "logs" / "runs") as loop:
            run = loop.run("Go.")
            await run
            assert run.log.file == tmp_path / "logs" / "runs" / f"{run.id}.jsonl"
            check_log(run)

    asyncio.run(main())
    assert stat.S_IMODE((tmp_path / "logs" / "runs").stat().st_mode) == 0o700


@pytest.mark.parametrize("folder", ["file", "file/logs", "a\0b"])
def test_a_log_folder_that_cannot_be_is_refused_by_its_name(tmp_path: Path, folder: str) -> None:
    (tmp_path / "file").touch()

    async def main() -> None:
        api = ScriptedAPI([])
        async with scripted(api, log_dir=tmp_path / folder) as loop:
            with pytest.raises(UsageError) as caught:
                await loop.run("Go.")
        assert api.requests == []
        assert caught.value.what == "log_dir"
        assert caught.value.problem.startswith(f"{tmp_path / folder} cannot be made (")

    asyncio.run(main())


def test_a_log_folder_in_which_nothing_can_be_written_is_refused_by_its_name() -> None:
    async def main() -> None:
        async with scripted(ScriptedAPI([]), log_dir="/proc/self") as loop:  # nobody makes files there, root neither
            with pytest.raises(UsageError, match=r"log_dir: /proc/self/.*\.jsonl cannot be written") as caught:
                await loop.run("Go.")
        assert caught.value.what == "log_dir"

    asyncio.run(main())


def test_a_consumer_that_aborts_at_a_message_gets_the_rest_in_order() -> None:
    def watch(message: Message, run: Run) -> None:
        record = transition(message)
        if record is not None and record.event == "ToolsRequested":
            run.abort()

    hanging = Hanging()
    played = play([a_call()], tools=[hanging.tool], watch=watch)
    told = [type(message).__name__ for message in played.seen]
    assert told[-4:] == ["ToolMessage", "UserMessage", "TransitionMessage", "ResultMessage"]
    end = played.seen[-4]
    assert isinstance(end, ToolMessage)
    assert (end.phase, end.cause) == (ToolPhase.END, "interrupted_no_effect")
    assert played.run.messages[1] == assistant(use("t1", "hang", n=1))
