"""Turns with tools of the server's own: closed where more is said after them, left alone where not."""

from collections.abc import Iterator
from typing import Any

import pytest

from looplatch import Block, Hooks, Limits, Pass, Run, replay
from looplatch.hooks import StopContext
from looplatch.messages import Message
from looplatch.recovery.closing import open_server_results, with_turns_closed
from looplatch.recovery.strategies.max_output_tokens_recovery import GO_ON
from looplatch.testing import block, redacted_thinking, reply, server_tool_use, thinking, tool_use
from tests.playing import assistant, echo, play, result, transition, use, user

GO = user("Go.")


def search(id_: str = "s1", name: str = "web_search") -> dict[str, Any]:
    return {"type": "server_tool_use", "id": id_, "name": name, "input": {"query": "q"}}


def unavailable(id_: str = "s1", kind: str = "web_search_tool_result") -> dict[str, Any]:
    return {"type": kind, "tool_use_id": id_, "content": {"type": f"{kind}_error", "error_code": "unavailable"}}


FOUND: dict[str, Any] = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("web_search", "web_search_tool_result"),
        ("web_fetch", "web_fetch_tool_result"),
        ("code_execution", "code_execution_tool_result"),
        ("bash_code_execution", "bash_code_execution_tool_result"),
        ("text_editor_code_execution", "text_editor_code_execution_tool_result"),
        ("tool_search_tool_regex", "tool_search_tool_result"),
        ("tool_search_tool_bm25", "tool_search_tool_result"),
        ("advisor", "advisor_tool_result"),
    ],
)
def test_a_call_of_each_of_the_servers_tools_has_its_own_type_of_result(name: str, kind: str) -> None:
    assert open_server_results([search(name=name)]) == [unavailable(kind=kind)]


def test_a_call_over_mcp_gets_an_error_result() -> None:
    call: dict[str, Any] = {"type": "mcp_tool_use", "id": "m1", "name": "any", "server_name": "s", "input": {}}
    [made] = open_server_results([call])
    assert (made["type"], made["tool_use_id"], made["is_error"]) == ("mcp_tool_result", "m1", True)


def test_what_is_answered_our_own_or_unknown_gets_none() -> None:
    assert open_server_results([search(), FOUND]) == []
    assert open_server_results([use("t1", "web_search")]) == []
    assert open_server_results([search(name="tool_of_tomorrow")]) == []


def test_an_open_call_is_closed_where_the_user_says_more() -> None:
    asked = [GO, assistant("I search.", search()), user("Stop.")]
    assert with_turns_closed(asked) == [GO, assistant("I search.", search(), unavailable()), user("Stop.")]
    assert asked[1] == assistant("I search.", search()), "what was given stays as it was"


def test_an_open_call_is_closed_behind_our_own_results_too() -> None:
    both = assistant(search(), use("t1", "read"))
    asked = [GO, both, user(result("t1", "1")), user("Stop.")]
    assert with_turns_closed(asked)[1] == assistant(search(), use("t1", "read"), unavailable())


@pytest.mark.parametrize(
    "messages",
    [
        [GO],
        [GO, assistant("I search.", search())],
        [GO, assistant(search()), assistant(FOUND, "Found.")],
        [GO, assistant(search()), assistant(FOUND, "Found."), user("And?")],
        [GO, assistant(search(), use("t1", "read")), user(result("t1", "1"))],
    ],
)
def test_what_the_server_goes_on_with_or_has_finished_is_left_alone(messages: list[dict[str, Any]]) -> None:
    assert with_turns_closed(messages) == messages


# --- in a run


def test_a_run_that_ends_in_a_paused_turn_leaves_a_history_that_a_user_can_go_on_with() -> None:
    script = [reply("I search.", server_tool_use("s1", "web_search", {"query": "q"}), stop="pause_turn")]
    told = play(script, limits=Limits(max_turns=1))
    assert told.result.terminal == "max_turns"
    assert told.run.messages == [GO, assistant("I search.", search(), unavailable())]


def test_a_run_that_is_aborted_behind_a_paused_turn_leaves_such_a_history_too() -> None:
    def watch(message: Message, run: Run) -> None:
        move = transition(message)
        if move is not None and move.reason == "next_turn":
            run.abort()

    script = [reply("I search.", server_tool_use("s1", "web_search", {"query": "q"}), stop="pause_turn")]
    told = play(script, watch=watch)
    assert told.result.terminal == "aborted"
    assert told.run.messages == [GO, assistant("I search.", search(), unavailable())]


def test_a_stop_hook_that_blocks_behind_an_open_call_closes_it_first() -> None:
    said: Iterator[Block | Pass] = iter([Block("Go on."), Pass()])

    async def hook(context: StopContext) -> Block | Pass:
        return next(said)

    script = [reply(server_tool_use("s1", "web_search", {"query": "q"}), stop="end_turn"), reply("Done.")]
    told = play(script, hooks=Hooks(stop=[hook]))
    assert told.sent[1][1] == assistant(search(), unavailable())


def test_a_call_that_waits_for_our_results_is_the_servers_to_finish() -> None:
    script = [
        reply(server_tool_use("s1", "web_search", {"query": "q"}), tool_use("t1", "read", {})),
        reply(block(FOUND), "Found."),
    ]
    told = play(script, tools=[echo()])
    assert told.sent[1] == [GO, assistant(search(), use("t1", "read")), user(result("t1", "read {}"))]


@pytest.mark.parametrize("cut", [False, True])
def test_a_call_that_the_server_did_not_come_back_to_is_closed_behind_our_results(cut: bool) -> None:
    """It says nothing at all, or is cut before it does, and then somebody speaks."""
    said: Iterator[Block | Pass] = iter([Block("Go on."), Pass()])

    async def hook(context: StopContext) -> Block | Pass:
        return Pass() if cut else next(said)

    script = [
        reply(server_tool_use("s1", "web_search", {"query": "q"}), tool_use("t1", "read", {})),
        *([reply(stop="max_tokens")] * 2 if cut else [reply()]),
        reply("Done."),
    ]
    told = play(script, tools=[echo()], hooks=Hooks(stop=[hook]))
    answer, given, closed, spoken = told.sent[-1][1:]
    assert (answer, given) == (assistant(search(), use("t1", "read")), user(result("t1", "read {}")))
    assert closed == assistant(unavailable())
    assert (GO_ON if cut else "Go on.") in spoken["content"][0]["text"]
    assert replay(told.log).ok


def test_thinking_at_the_end_of_an_answer_is_left_out_of_the_history() -> None:
    assert play([reply("Done.", thinking("Hm."))]).run.messages == [GO, assistant("Done.")]
    assert play([reply(thinking("Hm."), redacted_thinking("aa"))]).run.messages == [GO]
