"""What of an unfinished answer stays in the history."""

from typing import Any

from attrs import frozen
from hypothesis import given
from hypothesis import strategies as st

from looplatch.recovery.sealing import sealed_prefix, spoken_text, stopped_answer, trimmed, whole_answer

Blocks = list[dict[str, Any]]


@frozen
class Done:
    """A finished block."""

    index: int
    block: dict[str, Any]
    sendable: bool = True


TEXT: dict[str, Any] = {"type": "text", "text": "Hm."}
THOUGHT: dict[str, Any] = {"type": "thinking", "thinking": "Hm.", "signature": "sig"}
HIDDEN: dict[str, Any] = {"type": "redacted_thinking", "data": "aa"}
CALL: dict[str, Any] = {"type": "tool_use", "id": "t1", "name": "read", "input": {}}
SEARCH: dict[str, Any] = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}
FOUND: dict[str, Any] = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}
SERVED: dict[str, Any] = {**CALL, "id": "t2", "caller": {"type": "code_execution_20250825", "tool_id": "s1"}}


def finished(*blocks: dict[str, Any]) -> list[Done]:
    return [Done(index, block) for index, block in enumerate(blocks)]


def kept(done: list[Done]) -> Blocks:
    return [one.block for one in done]


def test_a_sealed_answer_ends_with_its_last_begun_call() -> None:
    assert kept(sealed_prefix(finished(TEXT, CALL, TEXT, THOUGHT), 1)) == [TEXT, CALL]


def test_a_sealed_answer_has_nothing_that_the_api_would_refuse() -> None:
    done = [Done(0, THOUGHT, sendable=False), *[Done(1 + n, block) for n, block in enumerate([SEARCH, SERVED, CALL])]]
    assert kept(sealed_prefix(done, 3)) == [CALL]


def test_a_search_that_was_answered_stays() -> None:
    assert kept(sealed_prefix(finished(SEARCH, FOUND, CALL), 2)) == [SEARCH, FOUND, CALL]


def test_a_stopped_answer_keeps_its_calls_and_no_thinking_at_its_end() -> None:
    assert kept(stopped_answer(finished(THOUGHT, TEXT, CALL, THOUGHT, HIDDEN), text_follows=False)) == [
        THOUGHT,
        TEXT,
        CALL,
    ]
    assert kept(stopped_answer(finished(TEXT, THOUGHT), text_follows=True)) == [TEXT, THOUGHT]
    assert kept(stopped_answer(finished(THOUGHT, HIDDEN), text_follows=False)) == []


def test_a_whole_answer_stays_but_for_thinking_at_its_end() -> None:
    blocks = finished(SEARCH, THOUGHT)
    assert kept(whole_answer(blocks, text_follows=False, paused=True)) == [SEARCH, THOUGHT]
    assert kept(whole_answer(blocks, text_follows=True, paused=False)) == [SEARCH, THOUGHT]
    assert kept(whole_answer(blocks, text_follows=False, paused=False)) == [SEARCH]
    assert kept(whole_answer([Done(0, TEXT, sendable=False)], text_follows=False, paused=True)) == []


def test_what_was_spoken_is_the_text() -> None:
    done = [*finished(THOUGHT, TEXT, CALL), Done(3, {"type": "text", "text": ""}, sendable=False)]
    assert kept(spoken_text(done)) == [TEXT]


def test_an_unfinished_text_has_no_white_space_at_its_end() -> None:
    texts: Blocks = [
        {"type": "text", "text": " a \n"},
        {"type": "text", "text": "\n\t "},
        {"type": "text", "text": "b"},
    ]
    assert trimmed(texts) == [{"type": "text", "text": " a"}, {"type": "text", "text": "b"}]


@given(st.lists(st.sampled_from([TEXT, THOUGHT, HIDDEN, CALL, SEARCH, FOUND, SERVED]), max_size=8), st.integers(0, 8))
def test_what_stays_is_in_order_and_of_the_answer(blocks: Blocks, last: int) -> None:
    done = finished(*blocks)
    for chosen in (
        sealed_prefix(done, last),
        stopped_answer(done, text_follows=False),
        whole_answer(done, text_follows=False, paused=False),
    ):
        places = [one.index for one in chosen]
        assert places == sorted(set(places))
        assert all(done[one.index] is one for one in chosen)
    assert all(one.index <= last for one in sealed_prefix(done, last))
