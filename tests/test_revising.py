"""What an edit makes of a history is told from the edit: always the same as from the whole edited history."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

from looplatch.recovery.compression.edits import Edit
from looplatch.recovery.compression.revising import edit_problems
from looplatch.recovery.validity import history_problems
from looplatch.testing import histories as drawn_histories
from tests import histories
from tests.histories import Block, Message, assistant, call, picture, result, text, thinking, user

MARK = {"type": "ephemeral"}

# What may become of a block: what compression does to one, and what it must never do.
CHANGES: dict[str, Callable[[Block], list[Block]]] = {
    "kept": lambda block: [block],
    "refilled": lambda block: [{**block, "content": "[cleared]"}],
    "cut": lambda block: [{**block, "content": [text("head"), text("tail")]}],
    "emptied": lambda block: [{**block, "content": ""}],
    "an empty text": lambda block: [{**block, "content": [text("")]}],
    "with a picture": lambda block: [{**block, "content": [picture()]}],
    "no content": lambda block: [{name: value for name, value in block.items() if name != "content"}],
    "an error": lambda block: [{**block, "is_error": True}],
    "marked": lambda block: [{**block, "cache_control": MARK}],
    "marked within": lambda block: [{**block, "content": [{**text("x"), "cache_control": MARK}] * 3}],
    "another call's": lambda block: [{**block, "tool_use_id": "toolu_other"}],
    "another kind": lambda block: [text("said")],
    "renamed": lambda block: [{**block, "id": "toolu_renamed"}],
    "gone": lambda block: [],
    "twice": lambda block: [block, block],
}


def instead_of(gone: list[Message]) -> st.SearchStrategy[tuple[Message, ...]]:
    """What may come in the place of some messages."""
    first, last = gone[0], gone[-1]
    content = [text(first["content"])] if isinstance(first["content"], str) else first["content"]
    more = {**first, "content": [*content, text("It was done.")]}
    said = user("It was done.")
    return st.sampled_from([(), (more,), (first, last), (said,), (assistant("Done."),), (said, last), (more, last)])


@st.composite
def edits_of(draw: Callable[[st.SearchStrategy[Any]], Any], messages: list[Message]) -> list[Edit]:
    edits: list[Edit] = []
    for place, message in enumerate(messages):
        content = message["content"]
        if draw(st.integers(0, 3)) or isinstance(content, str) or (edits and place < edits[-1].stop):
            continue
        match draw(st.sampled_from(["results", "thinking", "blocks", "role", "message", "span", "span"])):
            case "results":
                some = st.sampled_from(["kept", "refilled", "cut", "marked within", "an empty text"])
                new = [
                    one
                    for block in content
                    for one in (CHANGES[draw(some)](block) if block["type"] == "tool_result" else [block])
                ]
            case "thinking":
                new = [block for block in content if block["type"] not in ("thinking", "redacted_thinking")]
            case "blocks":
                changed = draw(st.integers(0, len(content) - 1))  # one of them: the others are the very same
                new = [*content[:changed], *CHANGES[draw(st.sampled_from([*CHANGES]))](content[changed])]
                new += content[changed + 1 :]
            case "role":
                other = "user" if message["role"] == "assistant" else "assistant"
                edits.append(Edit(start=place, stop=place + 1, messages=({**message, "role": other},)))
                continue
            case "span":  # of any messages, as of those of a summary
                stop = draw(st.integers(place + 1, min(place + 4, len(messages))))
                edits.append(Edit(start=place, stop=stop, messages=draw(instead_of(messages[place:stop]))))
                continue
            case _:
                edits.append(Edit(start=place, stop=place + 1, messages=()))
                continue
        edits.append(Edit(start=place, stop=place + 1, messages=({**message, "content": new},)))
    return edits


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], max_examples=200)
@given(data=st.data(), messages=drawn_histories(min_size=1, max_size=5), marks=st.integers(0, 4))
def test_the_problems_of_an_edit_are_those_of_the_edited_history(
    data: st.DataObject, messages: list[Message], marks: int
) -> None:
    for block in histories.of_type(messages, "tool_result", "tool_use")[:marks]:
        block["cache_control"] = MARK
    assume(list(history_problems(messages)) == [])
    edits = data.draw(edits_of(messages))
    edited: list[Message] = []
    for place, message in enumerate(messages):
        if not any(edit.start < place < edit.stop for edit in edits):
            edited += next((edit.messages for edit in edits if edit.start == place), (message,))
    found = list(history_problems(edited))
    event("refused" if found else "taken")
    event("spans" if any(edit.stop - edit.start > 1 for edit in edits) else "no spans")
    assert list(edit_problems(messages, edits)) == found


A, B, HM, QUICK = call("a"), call("b"), thinking("hm"), text("Quick.")
HISTORY = [
    user("Go."),
    assistant(HM, A, B),
    user(result("a"), result("b"), QUICK),
    assistant("Done."),
    user("More."),
]


@pytest.mark.parametrize(
    ("place", "new", "problem"),
    [
        (2, user(result("b"), result("a"), QUICK), None),
        (2, user(result("a", "x"), result("b", "y"), QUICK), None),
        (2, user(result("a", "", is_error=True), result("b"), QUICK), "must say something"),
        (2, user(result("a", [picture()], is_error=True), result("b"), QUICK), "nothing but text"),
        (2, user(result("a", [text("")]), result("b"), QUICK), "must not be empty"),
        (2, user(result("a"), QUICK), "without a tool_result"),
        (2, user(result("a"), QUICK, result("b")), "before all other content"),
        (2, user(result("a"), result("c"), QUICK), "which no tool_use before it asks for"),
        (2, user(result("a"), result("b")), None),
        (1, assistant(A, B), None),
        (1, assistant(A), "which no tool_use before it asks for"),
        (1, user(A, B), "belongs in a message of the assistant's"),
        (1, assistant(HM, A), "which no tool_use before it asks for"),
        (1, assistant({**HM, "signature": ""}, A, B), "without its signature"),
        (3, assistant("Done."), None),
        (3, assistant(thinking("well")), "must not end in thinking"),
        (4, user(text("")), "must not be empty"),
    ],
)
def test_what_an_edit_may_and_may_not_do(place: int, new: Message, problem: str | None) -> None:
    assert list(history_problems(HISTORY)) == []
    found = list(edit_problems(HISTORY, [Edit(start=place, stop=place + 1, messages=(new,))]))
    assert found == list(history_problems([*HISTORY[:place], new, *HISTORY[place + 1 :]]))
    if problem is None:
        assert found == []
    else:
        assert problem in found[0]


@pytest.mark.parametrize(
    "marked",
    [
        {**result("a", "cleared"), "cache_control": MARK},
        result("a", [{**text("one"), "cache_control": MARK}]),
    ],
    ids=["the result", "a block in it"],
)
def test_an_edit_may_not_add_a_fifth_cache_mark(marked: Block) -> None:
    full = [user(*[{**text("x"), "cache_control": MARK}] * 4), *HISTORY[1:]]
    assert list(history_problems(full)) == []
    found = list(edit_problems(full, [Edit(start=2, stop=3, messages=(user(marked, result("b"), QUICK),))]))
    assert found == ["5 blocks carry cache_control; at most 4 may"]


def test_a_message_of_thinking_alone_may_not_be_left_empty() -> None:
    split = [HISTORY[0], assistant(HM), assistant(A, B), *HISTORY[2:]]
    assert list(history_problems(split)) == []
    found = list(edit_problems(split, [Edit(start=1, stop=2, messages=(assistant(),))]))
    assert found == ["messages.1: the content must not be empty"]


SEARCH: Block = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
BY_SERVER: Block = {**call("c"), "caller": {"type": "code_execution_20250825", "tool_id": "srvtoolu_1"}}


@pytest.mark.parametrize(
    ("messages", "edit", "problem"),
    [
        (
            [user("Go."), assistant(BY_SERVER), user("On."), assistant("Done."), user(result("c"))],
            Edit(start=0, stop=3, messages=(user("Go. It was done."),)),
            "which no tool_use before it asks for",
        ),
        (
            [user(*[{**text("x"), "cache_control": MARK}] * 4), *HISTORY[1:]],
            Edit(start=4, stop=5, messages=(user({**text("More."), "cache_control": MARK}), user("Please."))),
            "5 blocks carry cache_control",
        ),
        (
            [user("Go."), assistant("So."), user("On."), assistant("Done."), user("More.")],
            Edit(start=1, stop=3, messages=(assistant(SEARCH),)),
            "have no result",
        ),
        (HISTORY, Edit(start=0, stop=3, messages=()), "the first message must have the role user"),
        (HISTORY, Edit(start=0, stop=1, messages=(assistant("So."), user("Go."))), "the first message must"),
        (HISTORY, Edit(start=1, stop=3, messages=()), None),
        (HISTORY, Edit(start=0, stop=3, messages=(user("Go. It was done."),)), None),
        (HISTORY, Edit(start=2, stop=5, messages=(user(result("a"), result("b"), text("It was done.")),)), None),
    ],
)
def test_an_edit_of_a_span_is_judged_by_all_that_it_reaches(
    messages: list[Message], edit: Edit, problem: str | None
) -> None:
    assert list(history_problems(messages)) == []
    found = list(edit_problems(messages, [edit]))
    assert found == list(history_problems([*messages[: edit.start], *edit.messages, *messages[edit.stop :]]))
    assert (problem in found[0]) if problem is not None else found == []
