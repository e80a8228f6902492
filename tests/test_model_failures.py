"""`looplatch.model.failures`: what the words of a server, and the exceptions of a client, mean."""

import math
from typing import Any

import anthropic
import httpx2
import pytest

from looplatch.model.failures import failure_of, failure_of_body, request_id_of, retry_after_ms
from looplatch.recovery.failure import BadStream, Failure

REQUEST = httpx2.Request("POST", "http://x")


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7_000),
        ({"retry-after": "0.25"}, 250),
        ({"retry-after": "0"}, 0),
        ({"retry-after-ms": "1500", "retry-after": "7"}, 1_500),
        ({"retry-after-ms": "soon", "retry-after": "7"}, 7_000),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "1e300"}, None),
        ({"retry-after": "whenever"}, None),
        ({"retry-after": "Mon, 30 Nov 2026 10:00:09 GMT", "date": "Mon, 30 Nov 2026 10:00:00 GMT"}, 9_000),
        ({"retry-after": "Mon, 30 Nov 2026 09:00:00 GMT", "date": "Mon, 30 Nov 2026 10:00:00 GMT"}, 0),
        ({"retry-after": "Mon, 30 Nov 1998 09:00:00 GMT", "date": "never"}, 0),
        ({"retry-after": "Mon, 30 Nov 1998 09:00:00 GMT"}, 0),
    ],
)
def test_how_long_to_wait_is_in_milliseconds(headers: dict[str, str], expected: int | None) -> None:
    assert retry_after_ms(headers) == expected


@pytest.mark.parametrize(
    ("body", "kind", "message"),
    [
        ({"type": "error", "error": {"type": "overloaded_error", "message": "Busy"}}, "overloaded_error", "Busy"),
        ({"error": {"type": "overloaded_error"}}, "overloaded_error", "fallback"),
        ({"message": "Input is too long for requested model."}, "http_error", "Input is too long for requested model."),
        ({"error": "no"}, "http_error", "fallback"),
        ({"error": {"type": 3, "message": {"a": 1}}}, "http_error", "{'a': 1}"),
        ("<html>Bad gateway</html>", "http_error", "<html>Bad gateway</html>"),
        ("", "http_error", "fallback"),
        (None, "http_error", "fallback"),
        ([1], "http_error", "fallback"),
    ],
)
def test_an_error_body_of_any_shape_is_a_failure(body: Any, kind: str, message: str) -> None:
    assert failure_of_body(body, status=502, fallback="fallback") == Failure(type=kind, status=502, message=message)


def test_texts_of_a_body_can_be_logged_whatever_they_hold() -> None:
    body = {"error": {"type": "x" * 1_000, "message": "\ud83a", "details": {"error_code": "\ud83a"}}}
    assert failure_of_body(body, status=400) == Failure(type="x" * 200, status=400, message="\ufffd", code="\ufffd")


@pytest.mark.parametrize(("word", "meant"), [("true", True), ("false", False), ("maybe", None)])
def test_the_servers_word_on_retrying_is_kept(word: str, meant: bool | None) -> None:
    assert failure_of_body({}, status=500, headers={"x-should-retry": word}).should_retry is meant


def test_the_id_of_a_request_is_in_one_of_two_headers() -> None:
    assert request_id_of({"request-id": "a", "x-amzn-requestid": "b"}) == "a"
    assert request_id_of({"request-id": "", "x-amzn-requestid": "b"}) == "b"
    assert request_id_of({}) is None


def test_a_status_error_of_the_sdk_with_status_200_is_known_by_its_body() -> None:
    response = httpx2.Response(200, headers={"retry-after": "5"}, request=REQUEST)
    body = {"error": {"type": "overloaded_error", "message": "Busy"}, "request_id": "req_2"}
    error = anthropic.APIStatusError("…", response=response, body=body)
    assert failure_of(error) == Failure(type="overloaded_error", status=200, message="Busy", request_id="req_2")


@pytest.mark.parametrize(
    ("error", "kind", "should_retry"),
    [
        (anthropic.APITimeoutError(REQUEST), "timeout_error", None),
        (TimeoutError(), "timeout_error", None),
        (anthropic.APIConnectionError(request=REQUEST), "connection_error", None),
        (httpx2.ReadError("reset"), "connection_error", None),
        (httpx2.StreamClosed(), "connection_error", None),
        (ConnectionResetError(), "connection_error", None),
        (httpx2.DecodingError("no gzip"), "bad_stream", None),
        (anthropic.RetryableError("again"), "client_error", True),
        (anthropic.CredentialsError("none"), "client_error", None),
        (RuntimeError("no project"), "client_error", None),
        (ZeroDivisionError(), "client_error", None),
    ],
)
def test_an_exception_is_a_failure_with_its_text(error: Exception, kind: str, should_retry: bool | None) -> None:
    found = failure_of(error, request_id="req_1")
    assert (found.type, found.status, found.request_id, found.should_retry) == (kind, None, "req_1", should_retry)
    assert found.message.startswith(type(error).__name__)


def test_the_cause_of_a_connection_error_is_told() -> None:
    error = anthropic.APIConnectionError(request=REQUEST)
    error.__cause__ = httpx2.ConnectError("no route to host")
    assert failure_of(error).message == "APIConnectionError: Connection error. (ConnectError: no route to host)"


def test_a_failure_of_ours_is_passed_on() -> None:
    error = BadStream("no sense")
    assert failure_of(error) is error.failure


def test_no_number_of_a_header_breaks_the_log() -> None:
    assert math.isfinite(retry_after_ms({"retry-after": "9007199254740"}) or 0)
    assert retry_after_ms({"retry-after-ms": "9007199254740992"}) is None
