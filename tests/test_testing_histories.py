"""Drawn histories: the API takes each, and everything is drawn that is promised."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings

from looplatch.testing import histories
from tests.histories import Message, all_blocks, of_type, problems


@given(histories())
def test_the_api_takes_every_history(messages: list[Message]) -> None:
    assert messages[0]["role"] == "user"
    assert problems(messages) == []
    ids = [block["id"] for block in of_type(messages, "tool_use", "server_tool_use")]
    assert len(set(ids)) == len(ids)


@given(histories(thinks=False, min_size=2, max_size=3))
def test_its_size_and_its_thinking_are_as_asked_for(messages: list[Message]) -> None:
    assert of_type(messages, "thinking", "redacted_thinking") == []
    spoken = [message["role"] for message in messages if message["role"] != "system"]
    turns = sum(role == "assistant" != before for before, role in zip(["", *spoken], spoken, strict=False))
    assert 2 <= turns <= 2 * 3 + 1  # an exchange with a tool of the server's has two


def test_everything_is_drawn() -> None:
    seen: Counter[str] = Counter()

    @settings(max_examples=300, derandomize=True, database=None, deadline=None)
    @given(histories())
    def draw(messages: list[Message]) -> None:
        seen.update(set(features(messages)))

    draw()
    expected = {
        "a prompt alone", "thinking", "redacted_thinking", "image", "server_tool_use", "code_execution_tool_result",
        "a note", "parallel calls", "an error", "an empty result", "a result of blocks", "a split turn", "calls wait",
    }  # fmt: skip
    assert expected - seen.keys() == set()


def features(messages: list[Message]) -> Iterator[str]:
    """What is to be seen in a history, in the words of the test above."""
    if len(messages) == 1:
        yield "a prompt alone"
    for before, message in zip([messages[-1], *messages], messages, strict=False):
        if message["role"] == "system":
            yield "a note"
        elif len(messages) > 1 and before["role"] == message["role"]:
            yield "a split turn"
        if len(of_type([message], "tool_use")) > 1:
            yield "parallel calls"
    for block in all_blocks(messages):
        yield from _of_block(block)
    if of_type(messages[-1:], "tool_use"):
        yield "calls wait"


def _of_block(block: dict[str, Any]) -> Iterator[str]:
    yield block["type"]
    if block["type"] == "tool_result":
        if block.get("is_error"):
            yield "an error"
        if "content" not in block:
            yield "an empty result"
        elif isinstance(block["content"], list):
            yield "a result of blocks"
