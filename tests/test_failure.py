"""`looplatch.recovery.failure`: which trouble a failed model call is."""

import pytest

from looplatch.recovery.failure import (
    BadStream,
    Failure,
    MeasuredOverflow,
    ModelCallFailed,
    is_prompt_too_long,
    trouble_of,
)
from looplatch.states.errors import LooplatchError
from looplatch.states.trouble import TroubleKind

OVERFLOW, TRANSIENT, FATAL = TroubleKind.OVERFLOW, TroubleKind.TRANSIENT, TroubleKind.FATAL

PROMPT = "prompt is too long: 208310 tokens > 200000 maximum"
SUM = (
    "input length and `max_tokens` exceed context limit: 142251 + 64000 > 200000, "
    "decrease input length or `max_tokens` and try again"
)
RATE = "This request would exceed your organization's rate limit of 20,000,000 prompt bytes per hour"


@pytest.mark.parametrize(
    ("kind", "status", "trouble"),
    [
        ("overloaded_error", 529, TRANSIENT),
        ("rate_limit_error", 429, TRANSIENT),
        ("api_error", 500, TRANSIENT),
        ("timeout_error", 504, TRANSIENT),
        ("conflict_error", 409, TRANSIENT),
        ("connection_error", None, TRANSIENT),
        ("timeout_error", None, TRANSIENT),
        ("stream_cut", 200, TRANSIENT),
        ("bad_stream", 200, TRANSIENT),
        ("throttlingException", 200, TRANSIENT),
        ("http_error", 408, TRANSIENT),
        ("http_error", 409, TRANSIENT),
        ("http_error", 429, TRANSIENT),
        ("http_error", 500, TRANSIENT),
        ("http_error", 529, TRANSIENT),
        ("some_new_error", 503, TRANSIENT),
        ("authentication_error", 401, FATAL),
        ("permission_error", 403, FATAL),
        ("billing_error", 402, FATAL),
        ("not_found_error", 404, FATAL),
        ("invalid_request_error", 400, FATAL),
        ("client_error", None, FATAL),
        ("http_error", 400, FATAL),
        ("http_error", 403, FATAL),
        ("http_error", 422, FATAL),
        ("http_error", 499, FATAL),
        ("some_new_error", 200, FATAL),
        ("some_new_error", None, FATAL),
    ],
)
def test_the_type_and_then_the_status_name_the_trouble(kind: str, status: int | None, trouble: TroubleKind) -> None:
    assert trouble_of(Failure(type=kind, status=status)) is trouble


@pytest.mark.parametrize(
    ("kind", "trouble"),
    [
        ("overloaded_error", TRANSIENT),
        ("api_error", TRANSIENT),
        ("rate_limit_error", TRANSIENT),
        ("authentication_error", FATAL),
        ("invalid_request_error", FATAL),
    ],
)
def test_an_error_in_the_middle_of_an_answer_is_known_by_its_type_though_the_status_is_200(
    kind: str, trouble: TroubleKind
) -> None:
    assert trouble_of(Failure(type=kind, status=200, message="…")) is trouble


def test_the_type_comes_before_the_status() -> None:
    assert trouble_of(Failure(type="authentication_error", status=529)) is FATAL
    assert trouble_of(Failure(type="overloaded_error", status=400)) is TRANSIENT


@pytest.mark.parametrize(
    ("kind", "status", "message"),
    [
        ("invalid_request_error", 400, PROMPT),
        ("invalid_request_error", 400, SUM),
        ("invalid_request_error", 200, PROMPT),
        ("request_too_large", 413, "Request exceeds the maximum size"),
        ("http_error", 413, ""),
        ("http_error", 400, "Input is too long for requested model."),
        ("validationException", 200, "Input is too long for requested model."),
        ("invalid_request_error", 400, "Prompt is too long"),
        ("invalid_request_error", 400, "This request exceeds the model's maximum context length of 200000 tokens"),
    ],
)
def test_a_prompt_that_does_not_fit_is_an_overflow(kind: str, status: int, message: str) -> None:
    failure = Failure(type=kind, status=status, message=message)
    assert is_prompt_too_long(failure)
    assert trouble_of(failure) is OVERFLOW


@pytest.mark.parametrize(
    ("kind", "status", "message"),
    [
        ("rate_limit_error", 429, RATE),
        ("overloaded_error", 529, "Overloaded"),
        (
            "invalid_request_error",
            400,
            "max_tokens: 64000 > 8192, which is the maximum allowed number of output tokens",
        ),
        ("invalid_request_error", 400, "messages.0: Input does not match the expected shape."),
        ("authentication_error", 401, "prompt is too long"),
    ],
)
def test_other_failures_are_no_overflow(kind: str, status: int, message: str) -> None:
    assert not is_prompt_too_long(Failure(type=kind, status=status, message=message))


def test_the_overflow_predicate_can_be_replaced() -> None:
    failure = Failure(type="invalid_request_error", status=400, message="zu lang")
    assert trouble_of(failure) is FATAL
    assert trouble_of(failure, is_overflow=lambda seen: seen.message == "zu lang") is OVERFLOW


def test_the_servers_own_word_on_retrying_counts_more_than_type_and_status() -> None:
    assert trouble_of(Failure(type="overloaded_error", status=529, should_retry=False)) is FATAL
    assert trouble_of(Failure(type="invalid_request_error", status=400, should_retry=True)) is TRANSIENT
    assert trouble_of(Failure(type="client_error", should_retry=True)) is TRANSIENT


def test_an_overflow_is_one_whatever_the_server_says_on_retrying() -> None:
    failure = Failure(type="invalid_request_error", status=400, message=PROMPT, should_retry=False)
    assert trouble_of(failure) is OVERFLOW


def test_a_spending_limit_does_not_pass_by_waiting() -> None:
    assert trouble_of(Failure(type="rate_limit_error", status=429, code="enforced_spend_limit_reached")) is FATAL
    assert trouble_of(Failure(type="rate_limit_error", status=429, code="ramp_limit_exceeded")) is TRANSIENT


def test_what_the_api_measured_is_read_from_its_text() -> None:
    alone = Failure(type="invalid_request_error", status=400, message=PROMPT)
    assert alone.measured == MeasuredOverflow(input_tokens=208_310, max_tokens=0, window=200_000)
    summed = Failure(type="invalid_request_error", status=400, message=SUM)
    assert summed.measured == MeasuredOverflow(input_tokens=142_251, max_tokens=64_000, window=200_000)
    assert Failure(type="request_too_large", status=413, message="too large").measured is None


def test_a_long_message_is_cut_to_4096_characters() -> None:
    assert Failure(type="api_error", message="x" * 4_096).message == "x" * 4_096
    assert Failure(type="api_error", message="x" * 4_097).message == "x" * 4_095 + "…"


def test_the_exception_tells_what_is_known_and_carries_the_failure() -> None:
    failure = Failure(type="overloaded_error", status=529, message="Overloaded", request_id="req_1")
    error = ModelCallFailed(failure)
    assert error.failure is failure
    assert str(error) == "the model call failed (overloaded_error, status 529, request req_1): Overloaded"
    assert isinstance(error, LooplatchError)
    assert str(ModelCallFailed(Failure(type="timeout_error"))) == (
        "the model call failed (timeout_error): no text was given"
    )


def test_a_bad_stream_is_a_failed_call_that_may_be_repeated() -> None:
    error = BadStream("no sense", request_id="req_1")
    assert isinstance(error, ModelCallFailed)
    assert error.failure == Failure(type="bad_stream", status=200, message="no sense", request_id="req_1")
    assert trouble_of(error.failure) is TRANSIENT
