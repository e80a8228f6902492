"""The recorded events lead through the real machine to the recorded moves; where they do not, that is told."""

from typing import Any

import pytest

import looplatch
from looplatch import Log, UsageError
from looplatch.audit import LogDamaged
from looplatch.states.record import seal
from looplatch.testing import error, reply, tool_use
from tests.playing import play
from tests.stories import STORIES


def tampered(log: Log, first: str, **fields: Any) -> Log:
    """The log with other fields in its move by the event `first`, made to hang together again by a forger."""
    lines: list[bytes] = []
    prev = "0" * 64
    done = False
    for record in log.records:
        data = {name: value for name, value in record.data.items() if name != "hash"}
        if not done and data.get("event") == first:
            data |= fields
            done = True
        data["prev"] = prev
        lines.append(seal(data))
        prev = data["hash"]
    assert done
    return Log(lines, log.payloads)


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_every_story_replays(story: Any) -> None:
    script, watch = story.script()
    log = play(script, watch=watch, **story.options).log
    outcome = looplatch.replay(log)
    assert outcome.ok, outcome
    assert outcome.agreed == len(log.transitions)


def tools_and_an_answer() -> Log:
    return play([reply(tool_use("t1", "read", {})), reply("Done.")]).log


def test_a_wrong_verdict_is_told() -> None:
    outcome = looplatch.replay(tampered(tools_and_an_answer(), "ModelResponded", guards=[["always", False]]))
    assert outcome.difference is not None
    told = (outcome.difference.field, outcome.difference.expected, outcome.difference.recorded)
    assert told == ("guards", [["always", True]], [["always", False]])
    assert "guards" in str(outcome)


def test_a_wrong_target_is_told() -> None:
    outcome = looplatch.replay(tampered(tools_and_an_answer(), "ToolsRequested", target="recover"))
    assert outcome.difference is not None
    assert (outcome.difference.field, outcome.difference.expected) == ("target", "orchestrate")


def test_a_jumped_counter_is_told() -> None:
    outcome = looplatch.replay(
        tampered(tools_and_an_answer(), "ToolsAnswered", change={"reason": "next_turn", "turn": 3})
    )
    assert outcome.difference is not None
    told = (outcome.difference.field, outcome.difference.expected)
    assert told == ("change", {"reason": "next_turn", "turn": 2})


def test_an_event_that_the_machine_refuses_is_told() -> None:
    outcome = looplatch.replay(tampered(tools_and_an_answer(), "ToolsRequested", event="BackoffElapsed", fields={}))
    assert outcome.difference is not None
    assert (outcome.difference.field, outcome.difference.expected) == ("kind", "rejected")


def test_an_unknown_event_is_told() -> None:
    outcome = looplatch.replay(tampered(tools_and_an_answer(), "ToolsRequested", event="Conjured"))
    assert outcome.difference is not None
    assert (outcome.difference.field, outcome.difference.recorded) == ("event", "Conjured")


def test_fields_that_are_not_the_events_are_told() -> None:
    outcome = looplatch.replay(tampered(tools_and_an_answer(), "ToolsRequested", fields={"calls": 1, "more": 2}))
    assert outcome.difference is not None
    assert outcome.difference.field == "fields"


def test_a_retried_run_replays() -> None:
    log = play([error(529, "overloaded_error"), reply("Done.")]).log
    assert looplatch.replay(log).ok


def test_a_log_without_its_genesis_is_refused() -> None:
    log = tools_and_an_answer()
    with pytest.raises(UsageError, match="genesis"):
        looplatch.replay(Log(log.lines[1:], log.payloads))


@pytest.mark.parametrize("fields", [None, 5, [], {"calls": 1, "more": 2}, "x"])
def test_fields_of_any_kind_are_a_divergence_at_the_most(fields: Any) -> None:
    outcome = looplatch.replay(tampered(tools_and_an_answer(), "ToolsRequested", fields=fields))
    assert not outcome.ok


@pytest.mark.parametrize("limits", [None, 5, {"max_turns": 0}, {"unknown": 1}])
def test_limits_that_are_none_are_told_as_damage(limits: Any) -> None:
    log = tools_and_an_answer()
    genesis = {name: value for name, value in log.records[0].data.items() if name != "hash"} | {"limits": limits}
    with pytest.raises(LogDamaged, match="limits"):
        looplatch.replay(Log([seal(genesis), *log.lines[1:]], log.payloads))
