"""Sending: what the caller says mid-run joins the results of the next turn, or is given back."""

import asyncio
from typing import Any

import pytest

from looplatch import Limits, Rule, Run, UsageError
from looplatch.messages import Message
from looplatch.testing import ScriptedAPI, block, error, reply, server_tool_use, tool_use
from tests.playing import (
    alone,
    assistant,
    check,
    echo,
    play,
    result,
    running,
    scripted,
    tool_named,
    transition,
    use,
    user,
)
from tests.suspending import stayed

GO = user("Go.")
READ = echo("read")


def said(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def sending(on_event: str, *texts: str) -> Any:
    def watch(message: Message, run: Run) -> None:
        move = transition(message)
        if move is not None and move.event == on_event:
            for text in texts:
                run.send(text)

    return watch


def test_what_is_sent_follows_the_results_in_one_message() -> None:
    told = play(
        [reply(tool_use("t1", "read", {"n": 1})), reply("Done.")],
        tools=[READ],
        watch=sending("ToolsRequested", "Be brief.", "And kind."),
    )
    assert told.sent[1] == [
        GO,
        assistant(use("t1", "read", n=1)),
        user(result("t1", 'read {"n":1}'), said("Be brief."), said("And kind.")),
    ]
    assert told.result.unsent == ()


def test_what_is_sent_waits_for_the_turn_that_has_results() -> None:
    """A retry, and a turn that the server goes on with, have no user message that it could join."""
    found: dict[str, Any] = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}
    script = [
        error(529, "overloaded_error"),
        reply("I search.", server_tool_use("s1", "web_search", {"query": "q"}), stop="pause_turn"),
        reply(found, tool_use("t1", "read", {"n": 1})),
        reply("Done."),
    ]
    told = play(script, tools=[READ], watch=sending("RunStarted", "Be brief."))
    assert [message["role"] for message in told.sent[2]] == ["user", "assistant"]
    assert told.sent[3][-1] == user(result("t1", 'read {"n":1}'), said("Be brief."))


def test_what_is_sent_before_the_run_begins_is_kept_for_it() -> None:
    async def main() -> None:
        api = ScriptedAPI([reply(tool_use("t1", "read", {"n": 1})), reply("Done.")])
        async with scripted(api, tools=[READ]) as loop:
            run = loop.run("Go.")
            run.send("Be brief.")
            await run
            check(run, api)
            assert api.requests[1].messages[-1]["content"][1] == said("Be brief.")

    asyncio.run(main())


@pytest.mark.parametrize("options", [{}, {"limits": Limits(max_turns=1)}])
def test_what_could_not_be_said_is_in_the_result(options: dict[str, Any]) -> None:
    script = [reply(tool_use("t1", "read", {"n": 1}))] if options else [reply("Done.")]
    told = play(script, tools=[READ], watch=sending("ModelResponded", "Too", "late"), **options)
    assert told.result.unsent == ("Too", "late")
    assert not any("late" in str(message) for message in told.run.messages)


def test_what_was_not_said_when_a_run_was_suspended_is_in_its_result() -> None:
    async def main() -> None:
        api = ScriptedAPI([reply(tool_use("t1", "read", {"n": 1}))])
        async with scripted(api, tools=[READ], rules=[Rule("ask")]) as loop:
            run = loop.run("Go.")
            run.send("Be brief.")
            stay = await stayed(run, api)
            assert stay.result.unsent == ("Be brief.",)

    asyncio.run(main())


def test_what_was_not_said_when_a_run_is_aborted_is_in_its_result() -> None:
    def watch(message: Message, run: Run) -> None:
        move = transition(message)
        if move is not None and move.event == "ContextReady":
            run.send("Be brief.")
            run.abort()

    told = play([reply("Done.")], watch=watch)
    assert told.result.terminal == "aborted"
    assert told.result.unsent == ("Be brief.",)


@pytest.mark.parametrize("text", ["", "  \n"])
def test_an_empty_text_is_refused(text: str) -> None:
    async def main() -> None:
        async with scripted(ScriptedAPI([])) as loop:
            run = loop.run("Go.")
            with pytest.raises(UsageError, match=r"^text: "):
                run.send(text)
            await run.aclose()
            with pytest.raises(UsageError, match="ended"):
                run.send("More")

    asyncio.run(main())


def test_a_text_from_another_task_reaches_the_next_turn() -> None:
    async def main() -> None:
        api = ScriptedAPI([reply(tool_use("t1", "wait", {"n": 1})), reply("Done.")])
        began, go_on = asyncio.Event(), asyncio.Event()

        async def wait(given: dict[str, Any], ctx: Any) -> str:
            began.set()
            await go_on.wait()
            return "waited"

        async with scripted(api, tools=[tool_named("wait", answer=wait)]) as loop:
            run = loop.run("Go.")
            consumer = running(run)
            await began.wait()
            run.send("Hurry.")
            go_on.set()
            await consumer
            check(run, api)
            assert api.requests[1].messages[-1] == user(result("t1", "waited"), said("Hurry."))
            assert alone()

    asyncio.run(main())


def test_what_is_sent_waits_while_the_server_still_has_tools_to_run() -> None:
    """It runs them once it has our results, and refuses their calls where anything else is said."""
    found = block({"type": "web_search_tool_result", "tool_use_id": "s1", "content": []})
    told = play(
        [
            reply(tool_use("t1", "read", {}), server_tool_use("s1", "web_search", {"query": "q"}), stop="tool_use"),
            reply(found, tool_use("t2", "read", {})),
            reply("Done."),
        ],
        tools=[READ, {"type": "web_search_20250305", "name": "web_search"}],
        watch=sending("ToolsRequested", "Be brief."),
    )
    assert [message[-1]["content"][1:] for message in told.sent[1:]] == [[], [said("Be brief."), said("Be brief.")]]
    assert told.result.terminal == "answered"


def test_what_is_sent_while_the_history_is_shortened_makes_it_longer_again() -> None:
    def watch(message: Message, run: Run) -> None:
        move = transition(message)
        if move is not None and move.event in ("ToolsRequested", "HistoryCompressed"):
            run.send("And so on, " * 40)

    told = play(
        [reply(tool_use("t1", "much", {}), tool_use("t2", "much", {}), usage={"input_tokens": 900}), reply("Done.")],
        tools=[tool_named("much", answer=lambda given, ctx: "much " * 1_500)],
        window=3_000,
        max_tokens=500,
        watch=watch,
    )
    assert "HistoryCompressed" in told.moves
    assert len(told.sent[1][-1]["content"]) > 3, "both were said before the request"
