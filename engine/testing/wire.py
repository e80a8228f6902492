"""Answers as bytes: the server-sent events, or the JSON, that a client reads.

A `Wire` is the status, the headers and a row of steps. Both servers, the one in process and the loopback one, play the
steps in order and know nothing of answers.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias, assert_never

import orjson
from attrs import frozen

from looplatch.testing.answers import (
    Answer,
    Cut,
    Disconnected,
    ErrorAnswer,
    Failing,
    Raw,
    Reply,
    Stalled,
)
from looplatch.testing.blocks import Block

STATUS_OF: Final[Mapping[str, int]] = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""The HTTP status of each error type, for a failure that is not inside a stream."""


@frozen
class Send:
    """Write these bytes, in one piece."""

    data: bytes


@frozen
class Wait:
    """Write nothing until the gate is set."""

    gate: asyncio.Event


@frozen
class Drop:
    """Close the connection here, whatever is left."""


Step: TypeAlias = Send | Wait | Drop


@frozen(kw_only=True)
class Wire:
    """One answer, ready to be played; a `Wait` before the first `Send` holds back the head.

    steps: may grow while they are played, as long as the last is a `Wait`.
    """

    status: int
    headers: Mapping[str, str]
    steps: Sequence[Step]


@frozen(kw_only=True)
class Setting:
    """What an answer takes from the request it answers and from the server."""

    number: int
    model: str
    input_tokens: int
    streamed: bool = True

    @property
    def request_id(self) -> str:
        """The `request-id` header."""
        return f"req_{self.number:06d}"


def wire(answer: Answer, setting: Setting) -> Wire:
    """How `answer` goes over the wire in this setting."""
    headers: dict[str, str] = {"request-id": setting.request_id}
    match _innermost(answer):
        case ErrorAnswer() as refused:
            status = refused.status
            headers |= {"content-type": "application/json", **refused.headers}
        case Raw() as given:
            status = given.status
            headers |= {"content-type": "text/event-stream; charset=utf-8", **given.headers}
        case Reply() if setting.streamed:
            status = 200
            headers |= {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}
        case _:
            status = _plain_status(answer)
            headers |= {"content-type": "application/json"}
    return Wire(status=status, headers=headers, steps=tuple(_steps(answer, setting)))


def event(data: Mapping[str, Any]) -> bytes:
    """One server-sent event, named after the `type` of its data."""
    return b"event: %b\ndata: %b\n\n" % (str(data.get("type", "message")).encode(), encode(data))


def encode(value: Any) -> bytes:
    """Compact JSON; a lone surrogate, which the API too may cut a text at, is written as its escape."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return json.dumps(value, separators=(",", ":")).encode()


def error_body(kind: str, message: str, request_id: str) -> bytes:
    """The API's error body."""
    return encode({"type": "error", "error": {"type": kind, "message": message}, "request_id": request_id})


def message_of(reply: Reply, setting: Setting) -> dict[str, Any]:
    """The unstreamed message."""
    return {
        "id": reply.id or f"msg_{setting.number:06d}",
        "type": "message",
        "role": "assistant",
        "model": reply.model or setting.model,
        "content": [item.whole for item in reply.blocks],
        "stop_reason": reply.stop_reason,
        "stop_sequence": reply.stop_sequence,
        **({} if reply.stop_details is None else {"stop_details": reply.stop_details}),
        "usage": _usage(reply, setting),
    }


def _steps(answer: Answer, setting: Setting) -> list[Step]:
    match answer:
        case Reply() if setting.streamed:
            return [Send(event(item)) for item in _events(answer, setting)]
        case Reply():
            return [Send(encode(message_of(answer, setting)))]
        case Raw():
            return [Send(item if isinstance(item, bytes) else event(item)) for item in answer.items]
        case ErrorAnswer():
            return [Send(error_body(answer.type, answer.message, setting.request_id))]
        case Disconnected():
            return [Drop()]
        case Failing() if setting.streamed:
            failure = {"type": "error", "error": {"type": answer.type, "message": answer.message}}
            return [*_first(answer.answer, answer.after, setting), Send(event(failure))]
        case Failing():
            return [Send(error_body(answer.type, answer.message, setting.request_id))]
        case Cut():
            kept = _first(answer.answer, answer.after if setting.streamed else 0, setting)
            return kept if answer.clean and setting.streamed else [*kept, Drop()]
        case Stalled():
            steps = _steps(answer.answer, setting)
            position = _position(steps, answer.after if setting.streamed else 0)
            return [*steps[:position], Wait(answer.gate), *steps[position:]]
        case _:
            assert_never(answer)


def _first(answer: Answer, count: int, setting: Setting) -> list[Step]:
    steps = _steps(answer, setting)
    return steps[: _position(steps, count)]


def _position(steps: list[Step], count: int) -> int:
    """The place right behind the first `count` events."""
    sent = 0
    for index, step in enumerate(steps):
        if sent == count:
            return index
        sent += isinstance(step, Send)
    return len(steps)


def _innermost(answer: Answer) -> Answer:
    while isinstance(answer, Failing | Cut | Stalled):
        answer = answer.answer
    return answer


def _plain_status(answer: Answer) -> int:
    match answer:
        case Failing():
            return STATUS_OF.get(answer.type, 500)
        case Cut() | Stalled():
            return _plain_status(answer.answer)
        case _:
            return 200


def _events(reply: Reply, setting: Setting) -> list[Mapping[str, Any]]:
    message = message_of(reply, setting)
    usage = message["usage"]
    started: dict[str, Any] = {
        **message,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {**usage, "output_tokens": min(1, usage["output_tokens"])},
    }
    started.pop("stop_details", None)
    delta: dict[str, Any] = {"stop_reason": reply.stop_reason, "stop_sequence": reply.stop_sequence}
    if reply.stop_details is not None:
        delta["stop_details"] = reply.stop_details
    events: list[Mapping[str, Any]] = [
        {"type": "message_start", "message": started},
        *(item for index, block in enumerate(reply.blocks) for item in _block_events(index, block)),
        {"type": "message_delta", "delta": delta, "usage": usage},
        {"type": "message_stop"},
    ]
    for place in reversed(reply.pings):
        events.insert(place, {"type": "ping"})
    return events


def _block_events(index: int, block: Block) -> list[Mapping[str, Any]]:
    started = {"type": "content_block_start", "index": index, "content_block": block.start}
    deltas = [{"type": "content_block_delta", "index": index, "delta": delta} for delta in block.deltas]
    return [started, *deltas, *([{"type": "content_block_stop", "index": index}] if block.closed else [])]


def _usage(reply: Reply, setting: Setting) -> dict[str, Any]:
    return {
        "input_tokens": setting.input_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": 1 + sum(len(encode(item.whole)) for item in reply.blocks) // 4,
        **(reply.usage or {}),
    }
