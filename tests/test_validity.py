"""The validator of histories: what it has against each, and that the scripted API agrees."""

from typing import Any

import pytest

from looplatch.recovery.validity import history_problems
from looplatch.testing import refusal
from tests.histories import (
    Block,
    Message,
    assistant,
    call,
    picture,
    problems,
    result,
    steps,
    system,
    text,
    thinking,
    user,
)

MARK = {"cache_control": {"type": "ephemeral"}}


def served(own: str = "srvtoolu_1") -> Block:
    return {"type": "server_tool_use", "id": own, "name": "web_search", "input": {}}


GOOD: dict[str, list[Message]] = {
    "a prompt": [user("hi")],
    "an answer at the end": [user("hi"), assistant("well")],
    "an empty answer at the end": [user("hi"), assistant()],
    "tools": [user("hi"), *steps(3)],
    "parallel tools over several messages": [
        user("hi"),
        assistant(call("toolu_1")),
        assistant(call("toolu_2")),
        user(result("toolu_2"), result("toolu_1")),
        user("go on"),
    ],
    "an id that comes again in a later turn": [user("hi"), *steps(1), *steps(1)],
    "thinking first": [user("hi"), assistant(thinking("so"), call("toolu_1")), user(result("toolu_1"))],
    "thinking alone, but not the whole turn": [user("hi"), assistant(thinking("so")), assistant("well"), user("on")],
    "a note on the way": [user("hi"), assistant("well"), user("on"), system("note"), assistant("ok")],
    "results with and without content": [
        user("hi"),
        assistant(call("toolu_1"), call("toolu_2"), call("toolu_3")),
        user(
            {"type": "tool_result", "tool_use_id": "toolu_1"},
            result("toolu_2", [picture()]),
            result("toolu_3", [text("no")], is_error=True),
        ),
    ],
    "a paused turn": [user("hi"), assistant(served())],
    "four marks": [
        user({**text("hi"), **MARK}, {**text("hi"), **MARK}, {**text("hi"), **MARK}, {**text("hi"), **MARK})
    ],
}

BAD: dict[str, tuple[list[Message], str]] = {
    "nothing": ([], "there are no messages"),
    "an assistant that begins": (
        [assistant("hi"), user("hi")],
        "messages.0: the first message must have the role",
    ),
    "an unknown role": ([user("hi"), {"role": "tool", "content": "x"}], "messages.1: the role must be one of"),
    "content of another type": ([{"role": "user", "content": 3}], "messages.0: the content must be a text or a list"),
    "no content": ([user(), assistant("well")], "messages.0: the content must not be empty"),
    "an empty text": ([user(text(""))], "messages.0.content.0: a text must not be empty"),
    "a call without a result": ([user("hi"), assistant(call("toolu_1")), user("on")], "messages.1: tool_use without"),
    "a result without a call": (
        [user("hi"), assistant("a"), user(result("toolu_1"))],
        "messages.2: a tool_result answers",
    ),
    "two results of one call": (
        [user("hi"), assistant(call("toolu_1")), user(result("toolu_1"), result("toolu_1"))],
        "messages.2: a tool_result answers",
    ),
    "a result behind a text": (
        [user("hi"), assistant(call("toolu_1")), user(text("so"), result("toolu_1"))],
        "messages.2: the tool_result for toolu_1 must come before",
    ),
    "an id twice in a turn": (
        [user("hi"), assistant(call("toolu_1"), call("toolu_1")), user(result("toolu_1"))],
        "messages.1: the tool_use id toolu_1 occurs twice",
    ),
    "an input that is no object": (
        [user("hi"), assistant({**call("toolu_1"), "input": []}), user(result("toolu_1"))],
        "messages.1: the input of the tool_use toolu_1 must be an object",
    ),
    "an answer that ends in thinking": (
        [user("hi"), assistant("a", thinking("so")), user("on")],
        "messages.1: an answer must not end in thinking",
    ),
    "an answer of thinking alone": (
        [user("hi"), assistant(thinking("so")), user("on")],
        "messages.1: an answer must not end in thinking",
    ),
    "an error without a text": (
        [user("hi"), assistant(call("toolu_1")), user(result("toolu_1", "", is_error=True))],
        "messages.2.content.0: a tool_result that is an error must say something",
    ),
    "an error with a picture": (
        [user("hi"), assistant(call("toolu_1")), user(result("toolu_1", [text("no"), picture()], is_error=True))],
        "messages.2.content.0: a tool_result that is an error may hold nothing but text, no image",
    ),
    "an empty text in a result": (
        [user("hi"), assistant(call("toolu_1")), user(result("toolu_1", [text("")]))],
        "messages.2.content.0: a text in a tool_result must not be empty",
    ),
    "a result of something else": (
        [user("hi"), assistant(call("toolu_1")), user(result("toolu_1", ["x"]))],
        "messages.2.content.0: the content of a tool_result must be",
    ),
    "a call of the user's": ([user(call("toolu_1"))], "messages.0.content.0: a tool_use belongs"),
    "thinking of the user's": ([user(thinking("so"))], "messages.0.content.0: a thinking belongs"),
    "a result of the assistant's": (
        [user("hi"), assistant(call("toolu_1"), result("toolu_1")), user("on")],
        "messages.1.content.1: a tool_result belongs",
    ),
    "words after a server's tool that waits": (
        [user("hi"), assistant(served()), user("on")],
        "messages.2: the server's own calls srvtoolu_1 have no result",
    ),
    "five marks": (
        [
            user({**text("hi"), **MARK}, {**text("hi"), **MARK}),
            assistant({**call("toolu_1"), **MARK}),
            user({**result("toolu_1", [{**text("x"), **MARK}]), **MARK}),
        ],
        "5 blocks carry cache_control; at most 4 may",
    ),
}


@pytest.mark.parametrize("name", GOOD)
def test_nothing_is_held_against_what_the_api_takes(name: str) -> None:
    assert problems(GOOD[name]) == []


@pytest.mark.parametrize("name", BAD)
def test_what_the_api_refuses_is_named(name: str) -> None:
    messages, words = BAD[name]
    found = list(history_problems(messages))
    assert any(words in problem for problem in found), found
    body: dict[str, Any] = {"model": "m", "max_tokens": 10, "messages": messages}
    assert refusal(body) is not None, "the scripted API takes it"


def test_each_problem_is_named_once() -> None:
    messages = [user("hi"), assistant("a", thinking("so")), user("on"), user("and on")]
    assert len(list(history_problems(messages))) == 1
