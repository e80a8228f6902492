"""Cases from the field that make the history shorter: what is bound stays bound, and groups stay whole."""

from itertools import pairwise
from typing import Any

import pytest

from looplatch import Limits
from looplatch.blocks import blocks_of
from looplatch.testing import reply, thinking, tool_use
from tests.playing import Play, saying
from tests.recovering import WINDOW, Model, files, levels, meet, only, transcript_in

DONE = reply("Done.")
MANY = Limits(max_turns=400)
BY_LEVEL: dict[str, dict[str, Any]] = {
    "snip": {"snip_at": 0.6},
    "micro": {"micro_at": 0.7},
    "collapse": {"stage_at": 0.7, "collapse_at": 0.8},
    "compact": {"compact_at": 0.9},
}


def requests(told: Play) -> list[list[dict[str, Any]]]:
    """The histories that were sent, without the requests for summaries."""
    return [sent for sent in told.sent if transcript_in({"messages": sent}) is None]


def of_type(message: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [block for block in blocks_of(message) if block["type"] == kind]


def thoughtful(number: int, path: str | None = None) -> Any:
    """An answer that thinks before it reads a file, of its own or of the given name."""
    name = f"f{number}" if path is None else path
    return reply(thinking(f"I think of {number}."), "I read.", tool_use(f"t{number}", "read", {"path": name}))


# --- 28


def thoughtless(number: int, path: str | None = None) -> Any:
    """An answer that reads a file without a thought."""
    return reply(tool_use(f"t{number}", "read", {"path": f"f{number}" if path is None else path}))


@pytest.mark.parametrize("rule", ["drop", "drop_block"])
@pytest.mark.parametrize("level", BY_LEVEL)
def test_case_28_the_last_answer_that_thinks_stays_as_it_was_whatever_is_made_shorter(level: str, rule: Any) -> None:
    """Every second answer thinks: it goes back as the model wrote it, with its result, or is gone with it."""
    same = "same" if level == "snip" else None
    script = [(thoughtless if number % 2 else thoughtful)(number, same) for number in range(20)]
    told = meet(
        Model([*script, DONE]),
        tools=[files(2_500)],
        window=WINDOW,
        compression=only(**BY_LEVEL[level], thinking=rule),
        limits=MANY,
    )
    assert set(levels(told)) == {level}
    sent = requests(told)
    assert len(sent) == 21
    whole = 0
    for number, history in enumerate(sent[1:]):
        if number % 2:
            continue
        if len(history) == 1:
            assert level == "compact"
            continue
        answer, said = history[-2:]
        assert [block["type"] for block in answer["content"]] == ["thinking", "text", "tool_use"]
        assert answer["content"][0]["thinking"] == f"I think of {number}."
        assert answer["content"][0]["signature"]
        assert answer["content"][2]["id"] == said["content"][0]["tool_use_id"] == f"t{number}"
        whole += 1
    assert whole > 5


# --- 29


@pytest.mark.parametrize("rule", ["drop", "keep", "drop_block"])
def test_case_29_an_edit_before_kept_thinking_is_never_refused(rule: Any) -> None:
    """Message 2 is superseded while later messages think: their thinking goes, or nothing does, or the API drops it."""
    script = [reply(tool_use("t0", "read", {"path": "same"})), *(thoughtful(n) for n in (1, 2, 3))]
    script += [thoughtful(4, "same"), thoughtless(5), thoughtless(6)]
    told = meet(
        Model([*script, DONE]),
        tools=[files(6_000)],
        window=WINDOW,
        compression=only(snip_at=0.6, thinking=rule),
        limits=MANY,
    )
    last = requests(told)[-1]
    edited = "[superseded: " in str(last[2])
    thoughts = [number for number, message in enumerate(last) if of_type(message, "thinking")]
    match rule:
        case "keep":
            assert not edited
            assert thoughts == [3, 5, 7, 9]
        case "drop":
            assert edited
            assert thoughts == []
        case _:
            assert edited
            assert thoughts == [3, 5, 7, 9]


# --- 37


def grouped(number: int) -> Any:
    """An answer with three calls at once."""
    return reply(*(tool_use(f"t{number}{letter}", "read", {"path": f"f{number}{letter}"}) for letter in "abc"))


def stopped_before() -> list[dict[str, Any]]:
    """The history of a run that was aborted in the middle of a group: what never ran has results all the same."""
    calls = [{"type": "tool_use", "id": f"s{letter}", "name": "read", "input": {"path": letter}} for letter in "abc"]
    said = ["read " * 500, "interrupted, no effect", "not started. The call was not run: the run ended first"]
    results = [
        {"type": "tool_result", "tool_use_id": call["id"], "content": text, "is_error": number > 0}
        for number, (call, text) in enumerate(zip(calls, said, strict=True))
    ]
    return [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": calls},
        {"role": "user", "content": [*results, {"type": "text", "text": "Go on."}]},
    ]


@pytest.mark.parametrize("level", BY_LEVEL)
@pytest.mark.parametrize("aborted", [False, True], ids=["anew", "after an abort"])
def test_case_37_a_group_of_calls_and_results_is_never_cut_in_two(level: str, aborted: bool) -> None:
    script = [_again(number) if level == "snip" else grouped(number) for number in range(24)]
    told = meet(
        Model([*script, DONE]),
        prompt=stopped_before() if aborted else "Go.",
        api={"known": [block for message in stopped_before() for block in blocks_of(message)]},
        tools=[files(1_000)],
        window=WINDOW,
        compression=only(**BY_LEVEL[level]),
        limits=MANY,
    )
    assert levels(told).count(level) >= 2, "one after the other"
    for history in requests(told):
        for answer, said in pairwise(history):
            called = [block["id"] for block in of_type(answer, "tool_use")]
            assert [block["tool_use_id"] for block in of_type(said, "tool_result")] == called
            assert len(called) in (0, 3)


def _again(number: int) -> Any:
    """Three calls at once, the same in each answer."""
    return reply(*(tool_use(f"t{number}{letter}", "read", {"path": letter}) for letter in "abc"))


# --- 39


def test_case_39_a_result_that_outgrows_the_window_is_cut_and_the_run_goes_on() -> None:
    """125,000 tokens in one turn, which no summary could divide."""
    told = meet([reply(tool_use("t1", "read", {})), DONE], tools=[saying("read", "word " * 125_000)], window=100_000)
    assert told.result.terminal == "answered"
    assert len(told.api.requests) == 2
    [cut] = told.sent[1][2]["content"]
    assert cut["content"].count("word ") < 30_000
    assert "the full text is kept as" in cut["content"]


def test_case_39_results_that_outgrow_it_together_are_cut_and_the_run_goes_on() -> None:
    calls = [tool_use(f"t{number}", "read", {}) for number in range(6)]
    told = meet([reply(*calls), DONE], tools=[saying("read", "word " * 25_000)], window=100_000)
    assert told.result.terminal == "answered"
    assert len(told.api.requests) == 2


def test_case_39_a_prompt_that_outgrows_it_ends_the_run_without_a_loop() -> None:
    told = meet([], prompt="word " * 125_000, window=100_000)
    assert told.result.terminal == "context_blocked"
    assert told.api.requests == []
