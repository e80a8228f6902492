"""How long a retry waits, and when it goes to the other model."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from looplatch import Limits
from looplatch.recovery.failure import Failure
from looplatch.recovery.strategies.request_retry import backoff_ms, fallback_due
from looplatch.testing import cut, disconnected, error, failing, reply
from tests.playing import play, user

GO = user("Go.")


def test_the_wait_doubles_up_to_its_longest() -> None:
    assert [backoff_ms(attempt, 0.0) for attempt in range(9)] == [
        500,
        1_000,
        2_000,
        4_000,
        8_000,
        16_000,
        32_000,
        32_000,
        32_000,
    ]


@given(st.integers(0, 10_000), st.floats(0, 1))
def test_chance_takes_at_most_half_of_the_wait(attempt: int, jitter: float) -> None:
    whole = backoff_ms(attempt, 0.0)
    assert whole / 2 <= backoff_ms(attempt, jitter) <= whole <= 32_000


@pytest.mark.parametrize("jitter", [-1.0, 2.0, float("inf")])
def test_chance_beyond_its_range_is_held_to_it(jitter: float) -> None:
    assert 250 <= backoff_ms(0, jitter) <= 500


@given(st.integers(0, 100), st.floats(0, 1), st.integers(0, 10**9))
def test_what_the_server_asks_for_is_honoured_to_the_letter(attempt: int, jitter: float, asked: int) -> None:
    assert backoff_ms(attempt, jitter, asked) == asked


def test_a_wait_is_never_negative() -> None:
    assert backoff_ms(0, 0.0, -5) == 0


@pytest.mark.parametrize(
    ("failure", "attempt", "available", "due"),
    [
        (Failure(type="overloaded_error", status=200), 0, True, False),
        (Failure(type="overloaded_error", status=200), 1, True, True),
        (Failure(type="http_error", status=529), 1, True, True),
        (Failure(type="overloaded_error", status=200), 5, False, False),
        (Failure(type="rate_limit_error", status=429), 5, True, False),
        (Failure(type="stream_cut", status=200), 5, True, False),
        (None, 5, True, False),
    ],
)
def test_the_other_model_is_asked_after_repeated_overload_only(
    failure: Failure | None, attempt: int, available: bool, due: bool
) -> None:
    assert fallback_due(attempt, failure, available=available) is due


# --- in a run


@pytest.mark.parametrize(
    "trouble",
    [
        error(408, "timeout_error"),
        error(409, "conflict_error"),
        error(429, "rate_limit_error"),
        error(500, "api_error"),
        error(502, "api_error"),
        error(529, "overloaded_error"),
        error(529, "error_of_tomorrow"),
        disconnected(),
        failing(reply("Hel"), after=1),
        failing(reply("Hel"), after=3, error_type="api_error"),
        failing(reply("Hel"), after=3, error_type="timeout_error"),
        cut(reply("Hel"), after=0),
        cut(reply("Hel"), after=3),
        cut(reply("Hel"), after=3, clean=False),
        cut(reply("Hel"), after=5),
    ],
    ids=repr,
)
def test_what_may_pass_is_tried_again_with_the_same_request(trouble: object) -> None:
    told = play([trouble, reply("Hello.")])
    assert told.result.terminal == "answered"
    assert told.sent == [[GO], [GO]]
    assert told.clock.slept == [0.5]


@pytest.mark.parametrize(
    "trouble",
    [
        error(400, "invalid_request_error", "no"),
        error(401, "authentication_error", "no"),
        error(402, "billing_error", "no"),
        error(403, "permission_error", "no"),
        error(404, "not_found_error", "no"),
        error(418, "error_of_tomorrow", "no"),
        failing(reply("Hel"), after=3, error_type="invalid_request_error"),
        error(529, "overloaded_error", "no", {"x-should-retry": "false"}),
    ],
    ids=repr,
)
def test_what_will_not_pass_is_not_tried_again(trouble: object) -> None:
    told = play([trouble])
    assert told.result.terminal == "model_error"
    assert told.sent == [[GO]]
    assert told.clock.slept == []


def test_the_waits_of_one_request_grow_and_those_of_the_next_begin_anew() -> None:
    overload = error(529, "overloaded_error")
    told = play([overload, overload, reply("One", stop="pause_turn"), overload, reply("Two")])
    assert told.clock.slept == [0.5, 1.0, 0.5]


def test_a_wait_longer_than_allowed_ends_the_run_at_once() -> None:
    told = play([error(429, "rate_limit_error", "", {"retry-after": "61"})], limits=Limits(max_delay_ms=60_000))
    assert told.result.terminal == "model_error"
    assert told.clock.slept == []


def test_no_attempts_means_no_retry() -> None:
    told = play([error(529, "overloaded_error")], limits=Limits(max_attempts=0))
    assert told.result.terminal == "model_error"


def test_the_consumer_is_told_of_each_retry() -> None:
    told = play([error(429, "rate_limit_error", "Slow down", {"retry-after-ms": "1500"}), reply("Hello.")])
    [retry] = [message for message in told.seen if getattr(message, "subtype", None) == "api_retry"]
    assert getattr(retry, "data", None) == {"attempt": 1, "delay_ms": 1_500, "error": "rate_limit_error: Slow down"}
