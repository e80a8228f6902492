"""The strategies draw what can happen: every kind of answer, and only such that the scripted API can play."""

from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from looplatch.testing import Answer, ScriptedAPI, event_count, reply, scripts, tool_use
from looplatch.testing.answers import Cut, Disconnected, ErrorAnswer, Failing, Reply
from looplatch.testing.strategies import STOP_REASONS, UNKNOWN_STOP_REASON, UNKNOWN_TOOL
from looplatch.testing.wire import Send

REQUEST = b'{"model":"claude","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"hi"}]}'


@given(scripts())
def test_every_script_can_be_played(script: list[Answer]) -> None:
    api = ScriptedAPI(script)
    headers = {"x-api-key": "k", "anthropic-version": "1"}
    for answer in script:
        exchange = api.handle("POST", "/v1/messages", headers, REQUEST)
        assert exchange.answer == answer
        events = sum(isinstance(step, Send) for step in exchange.wire.steps)
        assert events == (1 if isinstance(answer, ErrorAnswer) else event_count(answer))
    api.check_played()


@given(scripts(reads=["look"], writes=["change"], min_size=2, max_size=3, healthy=True))
def test_healthy_scripts_are_replies_that_call_the_tools_named(script: list[Answer]) -> None:
    assert 2 <= len(script) <= 3
    assert all(isinstance(answer, Reply) for answer in script)
    assert {block["name"] for block in calls_of(script)} <= {"look", "change", UNKNOWN_TOOL}


@given(scripts(inputs=st.just({"path": "a"})))
def test_inputs_are_those_given_or_unusable(script: list[Answer]) -> None:
    usable = [block["input"] for block in calls_of(script) if block["input"]]
    assert all(value == {"path": "a"} or value == {"s": "\ud83a"} for value in usable)


def test_every_kind_of_answer_is_drawn() -> None:
    seen: Counter[Any] = Counter()

    @settings(max_examples=400, derandomize=True, database=None)
    @given(scripts())
    def draw(script: list[Answer]) -> None:
        for answer in script:
            seen[type(answer)] += 1
            if isinstance(answer, Reply):
                seen.update(features(answer))

    draw()
    expected = {
        Reply, Failing, Cut, Disconnected, ErrorAnswer, *STOP_REASONS, UNKNOWN_STOP_REASON,
        "no content", "signature alone", "redacted", "empty text", "parallel calls", "read", "write", UNKNOWN_TOOL,
        "duplicate ids", "call without deltas", "empty delta", "unfinished call", "unsigned thinking", "ping",
        "server tool", "unknown block", "end_turn with a call",
    }  # fmt: skip
    assert expected - seen.keys() == set()


def test_the_features_are_told_apart() -> None:
    call = tool_use("a", "read", {})
    assert features(reply("x")) == {"end_turn"}
    assert features(reply(call, call, stop="end_turn")) == {
        "end_turn", "end_turn with a call", "parallel calls", "duplicate ids", "read", "empty delta",
    }  # fmt: skip


def features(answer: Reply) -> set[str]:
    """What is to be seen in a reply, in the words of the test above."""
    starts = [block.start for block in answer.blocks]
    called = [block for block in answer.blocks if block.start["type"] == "tool_use"]
    ids = [block.start["id"] for block in called]
    spelt = ["".join(delta["partial_json"] for delta in block.deltas) for block in called]
    found = {
        "no content": not starts,
        "signature alone": any(
            block.whole.get("thinking") == "" and block.whole["signature"] for block in answer.blocks
        ),
        "redacted": any(start["type"] == "redacted_thinking" for start in starts),
        "empty text": any(block.whole.get("text") == "" for block in answer.blocks),
        "parallel calls": len(called) > 1,
        "duplicate ids": len(ids) > len(set(ids)),
        "call without deltas": any(not block.deltas for block in called),
        "empty delta": any(block.deltas and not text for block, text in zip(called, spelt, strict=True)),
        "unfinished call": any(not block.closed for block in called),
        "unsigned thinking": any(block.whole.get("signature") == "" for block in answer.blocks),
        "ping": bool(answer.pings),
        "server tool": any(start["type"] == "server_tool_use" for start in starts),
        "unknown block": any(start["type"] == "block_of_tomorrow" for start in starts),
        "end_turn with a call": answer.stop_reason == "end_turn" and bool(called),
    }
    return {answer.stop_reason, *(block.start["name"] for block in called), *(name for name in found if found[name])}


def calls_of(script: list[Answer]) -> list[Any]:
    return [
        block.whole
        for answer in script
        if isinstance(answer, Reply)
        for block in answer.blocks
        if block.start["type"] == "tool_use"
    ]
