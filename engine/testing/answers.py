"""The words a script is written in: answers, made of the blocks of `blocks.py`.

Everything here is a value; `wire.py` turns it into bytes. A script reads like the talk it plays::

    [
        reply("I look.", tool_use("toolu_1", "read", {"path": "a.txt"})),
        failing(reply("The file says"), after=3),
        reply("The file says hello."),
    ]
"""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from attrs import frozen

from looplatch.testing.blocks import Block, BlockLike, as_block, recorded_block
from looplatch.testing.errors import ScriptError, check_count, check_kind


@frozen(kw_only=True)
class Reply:
    """A whole answer of the model, status 200. None leaves a field to the server: it counts ids and estimates usage.

    `pings` are the places, among the events, before which a ping is sent.
    """

    blocks: tuple[Block, ...] = ()
    stop_reason: str = "end_turn"
    stop_sequence: str | None = None
    stop_details: Mapping[str, Any] | None = None
    usage: Mapping[str, Any] | None = None
    id: str | None = None
    model: str | None = None
    pings: tuple[int, ...] = ()


@frozen(kw_only=True)
class ErrorAnswer:
    """An HTTP error: the API's error body with this status."""

    status: int
    type: str
    message: str = ""
    headers: Mapping[str, str] = {}


@frozen(kw_only=True)
class Raw:
    """Anything at all: mappings go out as server-sent events, bytes as they are, each item in its own piece."""

    items: tuple[Mapping[str, Any] | bytes, ...]
    status: int = 200
    headers: Mapping[str, str] = {}


@frozen(kw_only=True)
class Failing:
    """The first `after` events of an answer, then an error event in the 200 stream."""

    answer: "Streamed"
    after: int
    type: str = "overloaded_error"
    message: str = "Overloaded"


@frozen(kw_only=True)
class Cut:
    """The first `after` events of an answer, then the end: a clean one, or (`clean=False`) a broken connection."""

    answer: "Streamed"
    after: int
    clean: bool = True


@frozen(kw_only=True)
class Stalled:
    """The first `after` events of an answer, then nothing until `gate` is set. With 0 not even the head is sent."""

    answer: "Answer"
    after: int
    gate: asyncio.Event


@frozen(kw_only=True)
class Disconnected:
    """No answer: the connection is closed before the head."""


_TRANSFER_HEADERS = ("connection", "content-encoding", "content-length", "transfer-encoding")

Streamed: TypeAlias = Reply | Raw | Failing | Cut | Stalled
Answer: TypeAlias = Reply | Raw | Failing | Cut | Stalled | ErrorAnswer | Disconnected


def reply(
    *blocks: BlockLike,
    stop: str | None = None,
    usage: Mapping[str, Any] | None = None,
    id: str | None = None,  # noqa: A002 - the API's own word
    model: str | None = None,
    stop_details: Mapping[str, Any] | None = None,
    stop_sequence: str | None = None,
    pings: Iterable[int] = (),
) -> Reply:
    """One whole answer; a plain string stands for a text block, a mapping for `block(mapping)`.

    Without `stop` the stop reason is what the blocks call for: `tool_use` if a client tool is called, else `end_turn`.
    `usage` overrides single fields of the estimate that the server makes. `pings=[1]` sends a ping before the second
    event; pings count as events.
    """
    made = tuple(as_block(item) for item in blocks)
    for field, text in (("stop", stop), ("id", id), ("model", model), ("stop_sequence", stop_sequence)):
        check_kind(f"reply({field})", text, str | None, "a text, or None")
    for field, fields in (("usage", usage), ("stop_details", stop_details)):
        check_kind(f"reply({field})", fields, Mapping | None, "a dict, or None")
    check_kind("reply(pings)", pings, Iterable, "a list of places among the events")
    places = tuple(pings)
    for place in places:
        check_count("reply(pings): one of them", place)
    if stop is None:
        stop = "tool_use" if any(item.start.get("type") == "tool_use" for item in made) else "end_turn"
    return Reply(
        blocks=made,
        stop_reason=stop,
        stop_sequence=stop_sequence,
        stop_details=stop_details,
        usage=usage,
        id=id,
        model=model,
        pings=tuple(sorted(places)),
    )


def error(
    status: int,
    type: str,  # noqa: A002 - the API's own word
    message: str = "",
    headers: Mapping[str, str] | None = None,
) -> ErrorAnswer:
    """An HTTP error answer, e.g. `error(529, "overloaded_error", "Overloaded", {"retry-after": "2"})`."""
    check_count("error(status)", status)
    check_kind("error(type)", type, str, "one of the API's types of errors, such as 'overloaded_error'")
    check_kind("error(message)", message, str, "a text")
    if not 400 <= status <= 599:
        raise ScriptError(f"error(): {status} is no error status; use raw(..., status={status}) for other answers")
    return ErrorAnswer(status=status, type=type, message=message, headers=_headers(headers))


def failing(
    answer: Streamed, *, after: int, error_type: str = "overloaded_error", message: str = "Overloaded"
) -> Failing:
    """`answer` broken off after its first `after` events by an error event (the status stays 200)."""
    _bound("failing", answer, after)
    for field, text in (("error_type", error_type), ("message", message)):
        check_kind(f"failing({field})", text, str, "a text")
    return Failing(answer=answer, after=after, type=error_type, message=message)


def cut(answer: Streamed, *, after: int, clean: bool = True) -> Cut:
    """`answer` broken off after its first `after` events: no `message_stop` comes.

    The response ends as if complete; with `clean=False` the connection breaks inside it.
    """
    _bound("cut", answer, after)
    check_kind("cut(clean)", clean, bool, "True or False")
    return Cut(answer=answer, after=after, clean=clean)


def stalled(answer: Answer, *, after: int, gate: asyncio.Event) -> Stalled:
    """`answer` held back after its first `after` events until `gate` is set (by the thread that serves)."""
    _bound("stalled", answer, after)
    check_kind("stalled(gate)", gate, asyncio.Event, "an asyncio.Event")
    return Stalled(answer=answer, after=after, gate=gate)


def raw(
    items: bytes | str | Iterable[Mapping[str, Any] | bytes | str],
    *,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> Raw:
    """Anything: bytes or text as they are, mappings as server-sent events; each item is sent on its own.

    The headers may be recorded ones: those that describe how a body was transferred are left out. Without a
    `content-type` the answer is an event stream.
    """
    check_kind("raw(items)", items, Iterable, "bytes, a text, or a list of them and of dicts")
    check_count("raw(status)", status)
    listed = [items] if isinstance(items, bytes | str) else list(items)
    for item in listed:
        check_kind("raw(items): one of them", item, bytes | str | Mapping, "bytes, texts or dicts")
    made = tuple(item.encode() if isinstance(item, str) else item for item in listed)
    return Raw(items=made, status=status, headers=_headers(headers))


def disconnected() -> Disconnected:
    """No answer at all: the server closes the connection instead."""
    return Disconnected()


def recorded(message: Mapping[str, Any]) -> Reply:
    """A message as the API returned it unstreamed, to be served again, streamed or not.

    Text, thinking and tool inputs come as deltas, all other blocks whole in their `content_block_start`.
    """
    check_kind("recorded(message)", message, Mapping, "a message of the API as a dict")
    if missing := [name for name in ("content", "stop_reason") if name not in message]:
        raise ScriptError(f"recorded(message) has no {', '.join(missing)}; give a whole message of the API")
    return Reply(
        blocks=tuple(recorded_block(item) for item in message["content"]),
        stop_reason=message["stop_reason"],
        stop_sequence=message.get("stop_sequence"),
        stop_details=message.get("stop_details"),
        usage=message.get("usage"),
        id=message.get("id"),
        model=message.get("model"),
    )


def event_count(answer: Answer) -> int:
    """How many events (of `raw`: items) `answer` sends; an error answer sends none."""
    check_kind("an answer", answer, Answer, "what reply(), raw(), error() … return")
    match answer:
        case Reply():
            return 3 + len(answer.pings) + sum(1 + len(item.deltas) + item.closed for item in answer.blocks)
        case Raw():
            return len(answer.items)
        case Failing():
            return answer.after + 1
        case Cut():
            return answer.after
        case Stalled():
            return event_count(answer.answer)
        case ErrorAnswer() | Disconnected():
            return 0


def _headers(given: Mapping[str, str] | None) -> dict[str, str]:
    check_kind("headers", given, Mapping | None, "a dict of texts, or None")
    for name in given or {}:
        check_kind("headers: the name of one", name, str, "texts")
    named = {name.lower(): value for name, value in (given or {}).items()}
    return {name: value for name, value in named.items() if name not in _TRANSFER_HEADERS}


def _bound(word: str, answer: Answer, after: object) -> None:
    count = event_count(answer)
    if isinstance(after, bool) or not isinstance(after, int) or not 0 <= after <= count:
        events = f"{count} {'event' if count == 1 else 'events'}"
        raise ScriptError(f"{word}(after={after}): the answer has {events}; choose 0 to {count}")
