"""A model call that failed, and which trouble that is.

A failure is classified by its type, then by its HTTP status, never by an exception's class: the API reports an overload
in the middle of an answer with the status 200. No error type says that a prompt is too long, so that alone is read from
the text, in `is_prompt_too_long`, which a caller can replace.
"""

import re
from collections.abc import Callable
from typing import Final

import attrs

from looplatch.states.errors import LooplatchError
from looplatch.states.trouble import TroubleKind

MESSAGE_LIMIT: Final = 4_096  # characters of an error text that are kept

# The types that no API gives, beside those that it does (`overloaded_error`, `invalid_request_error` ...).
CONNECTION_ERROR: Final = "connection_error"  # the server was not reached, or went away
TIMEOUT_ERROR: Final = "timeout_error"  # nothing came in time; the API has this type as well
STREAM_CUT: Final = "stream_cut"  # the answer ended without its message_stop
BAD_STREAM: Final = "bad_stream"  # the answer breaks the protocol, or cannot be decoded
HTTP_ERROR: Final = "http_error"  # an error answer whose body names no type: its status decides
CLIENT_ERROR: Final = "client_error"  # the client itself refused to send the request

_TRANSIENT_TYPES: Final = frozenset(
    {
        "api_error",
        "conflict_error",
        "overloaded_error",
        "rate_limit_error",
        CONNECTION_ERROR,
        TIMEOUT_ERROR,
        STREAM_CUT,
        BAD_STREAM,
        # Bedrock's names, in lower case
        "internalserverexception",
        "modelnotreadyexception",
        "modelstreamerrorexception",
        "modeltimeoutexception",
        "serviceunavailableexception",
        "throttlingexception",
    }
)
_FATAL_TYPES: Final = frozenset(
    {
        "authentication_error",
        "billing_error",
        "invalid_request_error",
        "not_found_error",
        "permission_error",
        CLIENT_ERROR,
    }
)
# A spending limit is reported as a rate limit, but waiting does not help.
_FATAL_CODES: Final = frozenset(
    {
        "contract_spend_limit_reached",
        "enforced_spend_limit_reached",
        "linked_organization_spend_limit_reached",
    }
)
_TRANSIENT_STATUSES: Final = frozenset({408, 409, 429})
_INVALID_REQUEST_TYPES: Final = frozenset({"invalid_request_error", "validationexception"})

_TOO_LONG: Final = re.compile(
    r"prompt is too long"
    r"|input is too long"
    r"|input length and `?max_tokens`? exceed context limit"
    r"|exceeds?\b.{0,40}\bcontext (?:window|length|limit)",
    re.IGNORECASE,
)
_PROMPT_MEASURED: Final = re.compile(r"prompt is too long: (\d{1,15}) tokens > (\d{1,15})\b", re.IGNORECASE)
_SUM_MEASURED: Final = re.compile(r"exceed context limit: (\d{1,15}) \+ (\d{1,15}) > (\d{1,15})\b", re.IGNORECASE)


def _cut(text: str) -> str:
    return text if len(text) <= MESSAGE_LIMIT else text[: MESSAGE_LIMIT - 1] + "…"


@attrs.frozen(kw_only=True)
class MeasuredOverflow:
    """What the API measured when it refused a prompt as too long, all in tokens.

    `max_tokens` is 0 where the prompt alone was over the window.
    """

    input_tokens: int
    max_tokens: int
    window: int


def _measured(text: str) -> MeasuredOverflow | None:
    if alone := _PROMPT_MEASURED.search(text):
        tokens, window = map(int, alone.groups())
        return MeasuredOverflow(input_tokens=tokens, max_tokens=0, window=window)
    if summed := _SUM_MEASURED.search(text):
        tokens, max_tokens, window = map(int, summed.groups())
        return MeasuredOverflow(input_tokens=tokens, max_tokens=max_tokens, window=window)
    return None


@attrs.frozen(kw_only=True)
class Failure:
    """Why a model call gave no whole answer.

    `type` is the API's error type, or one of the constants of this module; `status` the HTTP status (200 when an answer
    failed midway, None when there was none); `message` the server's or the client's text, at most 4,096 characters;
    `retry_after_ms` how long the server asks to wait; `code` the API's stable code, where it gives one; `should_retry`
    the server's own word on whether to try again (the `x-should-retry` header), None where it gives none; `measured`
    the figures of a prompt that is too long, where the text has some.
    """

    type: str
    status: int | None = None
    message: str = attrs.field(default="", converter=_cut)
    retry_after_ms: int | None = None
    request_id: str | None = None
    code: str | None = None
    should_retry: bool | None = None
    measured: MeasuredOverflow | None = attrs.field(
        default=attrs.Factory(lambda self: _measured(self.message), takes_self=True)
    )


class ModelCallFailed(LooplatchError):
    """A model call gave no whole answer; `failure` says why."""

    def __init__(self, failure: Failure) -> None:
        known = [failure.type]
        if failure.status is not None:
            known.append(f"status {failure.status}")
        if failure.request_id is not None:
            known.append(f"request {failure.request_id}")
        super().__init__(f"the model call failed ({', '.join(known)}): {failure.message or 'no text was given'}")
        self.failure = failure


class BadStream(ModelCallFailed):
    """An answer breaks the protocol of the Messages API, or cannot be decoded; the same request may be sent again."""

    def __init__(self, message: str, *, request_id: str | None = None) -> None:
        super().__init__(Failure(type=BAD_STREAM, status=200, message=message, request_id=request_id))


def stream_cut() -> ModelCallFailed:
    """An answer that ended without its `message_stop`."""
    return ModelCallFailed(Failure(type=STREAM_CUT, status=200, message="the answer ended before its message_stop"))


def is_prompt_too_long(failure: Failure) -> bool:
    """Return whether the API refused the request because it does not fit the model's window, or the request limit."""
    if failure.status == 413 or failure.type == "request_too_large":
        return True
    if failure.status != 400 and failure.type.lower() not in _INVALID_REQUEST_TYPES:
        return False
    return _TOO_LONG.search(failure.message) is not None


def trouble_of(failure: Failure, *, is_overflow: Callable[[Failure], bool] = is_prompt_too_long) -> TroubleKind:
    """Return the trouble that `failure` is: overflow, transient or fatal.

    An overflow is one whatever else holds. Then the server's own word counts, then the code, the type and the status;
    what none of them knows is fatal, since repeating it is no recovery.
    """
    if is_overflow(failure):
        return TroubleKind.OVERFLOW
    transient = failure.should_retry if failure.should_retry is not None else _may_pass(failure)
    return TroubleKind.TRANSIENT if transient else TroubleKind.FATAL


def _may_pass(failure: Failure) -> bool:
    if failure.code in _FATAL_CODES:
        return False
    kind = failure.type.lower()
    if kind in _TRANSIENT_TYPES:
        return True
    if kind in _FATAL_TYPES or failure.status is None:
        return False
    return failure.status in _TRANSIENT_STATUSES or failure.status >= 500
