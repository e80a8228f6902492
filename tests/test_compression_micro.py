"""Micro: old tool results are cleared in place, in a batch."""

import pytest

from looplatch.recovery.compression.edits import apply
from looplatch.recovery.compression.micro import micro
from looplatch.recovery.compression.settings import Compression
from tests.histories import Message, assistant, call, of_type, picture, result, steps, text, thinking, user

WINDOW = 10_000


def history(count: int) -> list[Message]:
    return [user("do it"), *steps(count)]


def is_cleared(messages: list[Message]) -> list[bool]:
    return [str(block["content"]).startswith("[cleared: ") for block in of_type(messages, "tool_result")]


def test_all_but_the_newest_results_are_cleared_and_the_calls_stay() -> None:
    messages = history(8)
    edited = apply(messages, micro(messages, Compression(keep_results=3), WINDOW))
    assert is_cleared(edited) == [True] * 5 + [False] * 3
    assert of_type(edited, "tool_use") == of_type(messages, "tool_use")
    assert of_type(edited, "tool_result")[0]["content"] == (
        "[cleared: 450 tokens; call the tool again if they are needed]"
    )


def test_results_that_the_model_has_not_seen_are_never_cleared() -> None:
    calls = [call(f"toolu_9{number}") for number in range(4)]
    answers = [result(block["id"], "x" * 4_000) for block in calls]
    messages = [*history(2), assistant(*calls), user(*answers)]
    edited = apply(messages, micro(messages, Compression(keep_results=0), WINDOW))
    assert is_cleared(edited) == [True, True, False, False, False, False]


def test_it_waits_until_the_batch_frees_enough() -> None:
    """Two results of 450 tokens give way to markers of 15 each."""
    messages, free = history(4), 2 * (450 - 15)
    assert micro(messages, Compression(keep_results=2, micro_frees=free / WINDOW), WINDOW) != ()
    assert micro(messages, Compression(keep_results=2, micro_frees=(free + 1) / WINDOW), WINDOW) == ()
    assert micro(messages, Compression(keep_results=2), 2 * free * 10 + 20) == (), "a twentieth of the window"


def test_once_cleared_there_is_nothing_more_to_clear() -> None:
    messages = history(8)
    edited = apply(messages, micro(messages, Compression(micro_frees=0), WINDOW))
    assert micro(edited, Compression(micro_frees=0), WINDOW) == ()


@pytest.mark.parametrize("content", ["ok", "", [text("short")]])
def test_what_is_shorter_than_a_marker_stays(content: object) -> None:
    messages = [user("do it"), assistant(call("toolu_0")), user(result("toolu_0", content)), *steps(1)]
    assert micro(messages, Compression(keep_results=0, micro_frees=0), WINDOW) == ()


def test_pictures_are_cleared_too_and_errors_stay_errors() -> None:
    group = [
        assistant(call("toolu_0"), call("toolu_00")),
        user(result("toolu_0", [picture()]), result("toolu_00", "broken " * 50, is_error=True)),
    ]
    messages = [user("do it", picture()), *group, *steps(1)]
    edited = apply(messages, micro(messages, Compression(keep_results=1, micro_frees=0), WINDOW))
    assert is_cleared(edited) == [True, True, False]
    assert of_type(edited, "tool_result")[1]["is_error"] is True
    assert picture() in edited[0]["content"], "what the user showed stays"


def test_an_answer_that_waits_for_approval_is_left_alone_and_keeps_its_thinking() -> None:
    waiting = assistant(thinking("so"), call("toolu_9"))
    messages = [*history(8), waiting]
    assert micro(messages, Compression(), WINDOW) == ()
    edited = apply(messages, micro(messages, Compression(thinking="drop_block"), WINDOW))
    assert edited[-1] == waiting
    assert is_cleared(edited).count(True) == 3


def test_what_a_servers_tool_called_for_is_not_touched() -> None:
    own = {**call("toolu_0"), "caller": {"type": "code_execution_20260120", "tool_id": "s"}}
    messages = [user("do it"), assistant(own), user(result("toolu_0", "x" * 4_000)), *steps(1)]
    assert micro(messages, Compression(keep_results=0, micro_frees=0), WINDOW) == ()


def test_without_results_there_is_nothing_to_clear() -> None:
    assert micro([user("do it")], Compression(micro_frees=0), WINDOW) == ()
    assert micro([user("do it"), assistant("x" * 9_000), user("go on")], Compression(micro_frees=0), WINDOW) == ()
