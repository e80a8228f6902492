"""What each request of a run has beside its messages: caching, the API's diagnostics of it, betas, and its limit."""

from typing import Any

import pytest

from looplatch import Compression, UsageError
from looplatch.encoding import decode
from looplatch.requests.request import RequestParts
from looplatch.testing import Answer, error, raw, reply, tool_use
from tests.playing import Play, echo, play
from tests.recovering import effects, meet

EPHEMERAL = {"type": "ephemeral"}
TWO = [reply(tool_use("t1", "read", {}), id="msg_a"), reply("Done.", id="msg_b")]


def bodies(told: Play) -> list[dict[str, Any]]:
    return [request.body for request in told.api.requests]


# --- caching


def test_prompts_are_cached_by_default() -> None:
    assert [body["cache_control"] for body in bodies(play(TWO, tools=[echo()]))] == [EPHEMERAL] * 2


def test_caching_can_be_turned_off() -> None:
    told = play(TWO, tools=[echo()], compression=Compression(cache=False))
    assert ["cache_control" in body for body in bodies(told)] == [False, False]


def test_a_caller_who_marks_the_request_keeps_his_mark() -> None:
    hour = {"type": "ephemeral", "ttl": "1h"}
    assert [body["cache_control"] for body in bodies(play([reply("Hi.")], params={"cache_control": hour}))] == [hour]


def test_hits_and_misses_of_the_cache_are_in_the_record_of_each_call() -> None:
    usage = {"input_tokens": 3, "cache_read_input_tokens": 900, "cache_creation_input_tokens": 70, "output_tokens": 2}
    told = play([reply("Hi.", usage=usage)])
    [(_, end)] = effects(told, "model")
    assert end is not None
    named = ("input_tokens", "cache_read_tokens", "cache_write_tokens")
    assert [end["usage"][name] for name in named] == [3, 900, 70]
    assert end["cache_miss"] is None


# --- diagnostics


def diagnosed(reason: Any, own: str) -> Answer:
    """An answer whose `message_start` says why the cache was missed."""
    message: dict[str, Any] = {
        "id": own,
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "text", "text": "Done."}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 1, "output_tokens": 1},
        "diagnostics": reason,
    }
    return raw([{"type": "message_start", "message": message}, {"type": "message_stop"}])


@pytest.mark.parametrize("asked", [{}, {"previous_message_id": None}])
def test_where_diagnostics_are_asked_for_each_request_names_the_answer_before_it(asked: dict[str, Any]) -> None:
    told = play(TWO, tools=[echo()], params={"diagnostics": asked})
    assert [body["diagnostics"] for body in bodies(told)] == [
        {"previous_message_id": None},
        {"previous_message_id": "msg_a"},
    ]


def test_a_run_may_begin_with_an_answer_of_an_earlier_one() -> None:
    told = play(TWO, tools=[echo()], params={"diagnostics": {"previous_message_id": "msg_0", "more": 1}})
    assert [body["diagnostics"]["previous_message_id"] for body in bodies(told)] == ["msg_0", "msg_a"]
    assert [body["diagnostics"]["more"] for body in bodies(told)] == [1, 1]


def test_a_retry_names_the_same_answer_again() -> None:
    told = play([*TWO[:1], error(500, "api_error", ""), reply("Done.")], tools=[echo()], params={"diagnostics": {}})
    asked = [body["diagnostics"]["previous_message_id"] for body in bodies(told)]
    assert asked == [None, "msg_a", "msg_a"]


def test_nothing_is_asked_unless_it_is_wanted() -> None:
    assert all("diagnostics" not in body for body in bodies(play(TWO, tools=[echo()])))


def test_the_reason_that_the_api_gives_for_a_miss_is_in_the_record_of_the_call() -> None:
    missed = {"cache_miss_reason": {"type": "tools_changed", "cache_missed_input_tokens": 1_234}}
    told = play([diagnosed(missed, "msg_a")], params={"diagnostics": {}})
    [(_, end)] = effects(told, "model")
    assert end is not None
    assert end["cache_miss"] == {"reason": "tools_changed", "tokens": 1_234}


def test_diagnostics_that_are_none_are_refused() -> None:
    with pytest.raises(UsageError, match=r"params\['diagnostics'\]"):
        RequestParts(model="m", system=None, tools=(), params={"diagnostics": "yes"})


# --- betas


@pytest.mark.parametrize(
    ("params", "header"),
    [
        ({"betas": ["a-1"]}, "a-1,new-1"),
        ({"betas": ["a-1"], "extra_headers": {"anthropic-beta": "b-1, c-1"}}, "b-1,c-1,a-1,new-1"),
        ({"extra_headers": {"Anthropic-Beta": "new-1"}}, "new-1"),
        ({}, "new-1"),
    ],
)
def test_betas_are_added_to_those_that_the_caller_asks_for(params: dict[str, Any], header: str) -> None:
    parts = RequestParts(model="m", system=None, tools=(), params=params)
    request = parts.request(b"", max_tokens=1, betas=["new-1"])
    [sent] = [value for name, value in request.headers.items() if name.lower() == "anthropic-beta"]
    assert sent == header
    assert request.query == {"beta": "true"}


def test_a_request_without_betas_of_its_own_leaves_those_of_the_others_alone() -> None:
    parts = RequestParts(model="m", system=None, tools=(), params={})
    parts.request(b"", max_tokens=1, betas=["new-1"])
    assert dict(parts.request(b"", max_tokens=1).headers) == {}


def test_a_change_takes_the_place_of_the_callers_field() -> None:
    parts = RequestParts(model="m", system="S", tools=(), params={"thinking": {"type": "enabled"}, "temperature": 1})
    changed = decode(parts.request(b"", max_tokens=1, changes={"thinking": {"type": "disabled"}}).body)
    assert changed["thinking"] == {"type": "disabled"}
    assert (changed["system"], changed["temperature"], changed["messages"]) == ("S", 1, [])


# --- how long an answer may be


def test_an_answer_never_has_more_than_half_a_window() -> None:
    told = meet([reply("Hi.")], window=10_000)
    assert bodies(told)[0]["max_tokens"] == 5_000


def test_an_answer_never_has_more_than_the_model_writes() -> None:
    assert bodies(play([reply("Hi.")], model="claude-3-haiku-20240307"))[0]["max_tokens"] == 4_096


def test_an_answer_has_more_than_its_thinking_may_take() -> None:
    """Or the API would refuse it, however small the window is."""
    params = {"thinking": {"type": "enabled", "budget_tokens": 6_000}}
    told = meet([reply("Hi.")], window=10_000, params=params)
    assert bodies(told)[0]["max_tokens"] == 6_001
