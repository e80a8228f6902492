"""What the exceptions of the SDK, and the error events of a stream, mean: a Failure each."""

import json
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any, Final, cast

from looplatch.encoding import mend_surrogates
from looplatch.recovery.failure import (
    BAD_STREAM,
    CLIENT_ERROR,
    CONNECTION_ERROR,
    HTTP_ERROR,
    TIMEOUT_ERROR,
    Failure,
    ModelCallFailed,
)
from looplatch.states.brief import brief

_ID_HEADERS: Final = ("request-id", "x-amzn-requestid")
_NAME_LIMIT: Final = 200  # characters of a type or a code that are kept
_MS_LIMIT: Final = 2**53 - 1  # the largest integer that the audit log takes


def failure_of(error: Exception, *, request_id: str | None = None) -> Failure:
    """Return what an exception of the SDK, or of the HTTP client under it, means.

    `request_id` is used where the exception names none. An exception that is neither's is a `client_error`: the request
    was not sent, or something of the caller's (middleware, credentials) failed.
    """
    import anthropic
    import httpx2

    if isinstance(error, ModelCallFailed):
        return error.failure
    if isinstance(error, anthropic.APIStatusError):
        response = error.response
        return failure_of_body(
            error.body,
            status=error.status_code,
            headers=response.headers if error.status_code >= 400 else {},
            request_id=request_id_of(response.headers) or request_id,
            fallback=error.message,
        )
    if isinstance(error, anthropic.APITimeoutError | httpx2.TimeoutException | TimeoutError):
        kind = TIMEOUT_ERROR
    elif isinstance(error, httpx2.DecodingError | json.JSONDecodeError | UnicodeDecodeError):
        kind = BAD_STREAM
    elif isinstance(error, anthropic.APIConnectionError | httpx2.HTTPError | httpx2.StreamError | OSError):
        kind = CONNECTION_ERROR
    else:
        kind = CLIENT_ERROR
    return Failure(
        type=kind,
        message=_message_of(error),
        request_id=request_id,
        should_retry=True if isinstance(error, anthropic.RetryableError) else None,
    )


def failure_of_body(
    body: object,
    *,
    status: int,
    headers: Mapping[str, str] | None = None,
    request_id: str | None = None,
    fallback: str = "",
) -> Failure:
    """Return what an error body of the API, or of what stands before it, means.

    `body` is the decoded JSON, or the text where it is none; `fallback` is the text where the body has none.
    """
    sent = headers or {}
    whole = _as_dict(body)
    error = _as_dict(whole.get("error"))
    code = _as_dict(error.get("details")).get("error_code")
    kind = error.get("type")
    words = error.get("message") or whole.get("message") or (body if isinstance(body, str) else None) or fallback
    named = whole.get("request_id")
    if not isinstance(kind, str) or not kind:
        kind = HTTP_ERROR if status >= 400 else BAD_STREAM
    return Failure(
        type=mend_surrogates(kind[:_NAME_LIMIT]),
        status=status,
        message=mend_surrogates(words if isinstance(words, str) else brief(words)),
        retry_after_ms=retry_after_ms(sent),
        request_id=request_id or (named if isinstance(named, str) else None),
        code=mend_surrogates(code[:_NAME_LIMIT]) if isinstance(code, str) else None,
        should_retry={"true": True, "false": False}.get(sent.get("x-should-retry", "")),
    )


def request_id_of(headers: Mapping[str, str]) -> str | None:
    """Return the server's id of a request, from the headers of its answer."""
    return next((sent for name in _ID_HEADERS if (sent := headers.get(name))), None)


def retry_after_ms(headers: Mapping[str, str]) -> int | None:
    """Return how long the server asks to wait, in milliseconds, or None where it does not say so sensibly.

    `retry-after-ms` comes before `retry-after`, which is in seconds or a date. A date counts from the answer's own
    `date`, so that a clock that is wrong here does not matter.
    """
    for name, unit in (("retry-after-ms", 1.0), ("retry-after", 1_000.0)):
        try:
            asked = float(headers.get(name, "")) * unit
        except ValueError:
            continue
        if 0 <= asked <= _MS_LIMIT:  # no NaN, no infinity, no past
            return round(asked)
    try:
        until = parsedate_to_datetime(headers.get("retry-after", "")).timestamp()
    except (ValueError, OverflowError):
        return None
    try:
        now = parsedate_to_datetime(headers.get("date", "")).timestamp()
    except (ValueError, OverflowError):
        now = time.time()
    return min(max(round((until - now) * 1_000), 0), _MS_LIMIT)


def _message_of(error: BaseException) -> str:
    """The text of an exception, with that of what caused it: the SDK's own says only "Connection error."."""
    words = f"{type(error).__name__}: {error}"
    cause = error.__cause__
    if cause is not None:
        words += f" ({type(cause).__name__}: {cause})"
    return mend_surrogates(words)


def _as_dict(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
