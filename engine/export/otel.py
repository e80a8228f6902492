"""OpenTelemetry's GenAI spans: a run as `invoke_agent`, its model calls as `chat`, its tools as `execute_tool`.

Moves are events of the run's span, named `looplatch.transition`, in a namespace of our own: no convention has them.
Names are those of the GenAI semantic conventions, version 0.1.0 of their own repository. Contents are not exported.
"""

import hashlib
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final, cast

import attrs

from looplatch.analysis.fields import object_in
from looplatch.analysis.reading import Readable
from looplatch.cleaning import json_escape, visible
from looplatch.encoding import encode
from looplatch.export.source import Open, nanoseconds, records_of
from looplatch.states.reasons import Terminal
from looplatch.states.record import Kind, Record
from looplatch.states.vocabulary import EffectClass, EffectOutcome

SCOPE: Final = "looplatch"
INTERNAL, CLIENT = 1, 3  # kinds of spans, as OTLP counts them
_ERROR: Final = 2

Attributes = dict[str, str | int | bool | list[str]]


@attrs.frozen(kw_only=True)
class SpanMade:
    """A span that has ended. error: the type of the error that it ended with, or None."""

    id: str
    name: str
    kind: int
    start_ns: int
    end_ns: int
    attributes: Attributes
    error: str | None


def trace_id(run: str) -> str:
    """The trace of a run: 32 hex digits."""
    bare = run.replace("-", "").lower()
    whole = len(bare) == 32 and not set(bare) - set("0123456789abcdef") and set(bare) != {"0"}
    return bare if whole else hashlib.sha256(run.encode()).hexdigest()[:32]


def span_id(run: str, seq: int) -> str:
    """The span that began at a record of a run: 16 hex digits."""
    return hashlib.sha256(f"{run}:{seq}".encode()).hexdigest()[:16]


def lines(log: Readable) -> Iterator[str]:
    """A file of OTLP JSON, in pieces. The log is read twice: for the run's own span, and for those inside it."""
    for number, piece in enumerate(_run_span(log)):
        yield _head(piece) if number == 0 else piece
    for span in spans_of(log):
        yield "," + _json(_child(log_run=span[0], span=span[1]))
    yield "]}]}]}\n"


def _head(first: str) -> str:
    resource = _json({"attributes": _listed({"service.name": "looplatch"})})
    return f'{{"resourceSpans":[{{"resource":{resource},"scopeSpans":[{{"scope":{{"name":"{SCOPE}"}},"spans":[{first}'


def spans_of(log: Readable) -> Iterator[tuple[str, SpanMade]]:
    """The spans inside a run's own, in the order in which they ended; those that never ended, with the last record."""
    begun, last = Open(), None
    for record in records_of(log):
        last = record
        begin = begun.take(record)
        if begin is not None and record.kind is Kind.EFFECT_END and (span := span_of(begin, record)) is not None:
            yield record.run, span
    for begin in begun.left:
        if last is not None and (span := span_of(begin, None, nanoseconds(last))) is not None:
            yield last.run, span


def span_of(begin: Record, end: Record | None, until_ns: int = 0) -> SpanMade | None:
    """The span of a model call, a summary or a tool; None for other effects. end: None where it never came."""
    made = partial(_made, begin, end, until_ns)
    outcome = None if end is None else str(end.get("outcome"))
    error = "unknown" if end is None else object_in(end, "error").get("type")
    match begin.effect_class:
        case EffectClass.MODEL | EffectClass.SUMMARY:
            if error is None and outcome != EffectOutcome.OK:
                error = outcome
            attributes = _chat(begin, end)
            return made(f"chat {begin['model']}", CLIENT, attributes, error)
        case EffectClass.TOOL:
            if error is None and end is not None and end.get("is_error"):
                error = outcome
            return made(f"execute_tool {begin['name']}", INTERNAL, _tool(begin), error)
        case EffectClass.HOOK | EffectClass.SLEEP | EffectClass.COUNT | EffectClass.SIZE | EffectClass.NOTE | None:
            return None


def _made(
    begin: Record, end: Record | None, until_ns: int, name: str, kind: int, attributes: Attributes, error: str | None
) -> SpanMade:
    start = nanoseconds(begin)
    if error is not None:
        attributes["error.type"] = error
    return SpanMade(
        id=span_id(begin.run, begin.seq),
        name=name,
        kind=kind,
        start_ns=start,
        end_ns=max(start, until_ns if end is None else nanoseconds(end)),
        attributes=attributes,
        error=error,
    )


def run_attributes(genesis: Record) -> Attributes:
    """What is known of a run when it begins."""
    return {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": "anthropic",
        "gen_ai.agent.name": "looplatch",
        "gen_ai.agent.version": str(genesis.get("library")).removeprefix("looplatch "),
        "gen_ai.conversation.id": genesis.run,
        "gen_ai.request.model": str(genesis.get("model")),
        "looplatch.table": str(genesis.get("table")),
    }


def move_attributes(move: Record) -> Attributes:
    """A move, as the attributes of an event."""
    attributes: Attributes = {"looplatch.seq": move.seq, "looplatch.hash": move.hash}
    for name in ("source", "event", "target", "reason", "strategy", "terminal"):
        if (value := move.get(name)) is not None:
            attributes[f"looplatch.{name}"] = str(value)
    return attributes


def usage_attributes(usage: Mapping[str, int]) -> Attributes:
    """Tokens by the conventions' names: cached ones are part of the input, which they are not for the API."""
    read, written = usage.get("cache_read_tokens", 0), usage.get("cache_write_tokens", 0)
    return {
        "gen_ai.usage.input_tokens": usage.get("input_tokens", 0) + read + written,
        "gen_ai.usage.output_tokens": usage.get("output_tokens", 0),
        "gen_ai.usage.cache_read.input_tokens": read,
        "gen_ai.usage.cache_creation.input_tokens": written,
    }


def _chat(begin: Record, end: Record | None) -> Attributes:
    attributes: Attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "anthropic",
        "gen_ai.request.model": str(begin["model"]),
        "gen_ai.request.max_tokens": begin.get("max_tokens", 0),
        "gen_ai.request.stream": True,
        "gen_ai.conversation.id": begin.run,
        "looplatch.seq": begin.seq,
        "looplatch.effect": str(begin["class"]),
    }
    if end is None:
        return attributes
    attributes |= usage_attributes(object_in(end, "usage"))
    if end.get("message_id") is not None:
        attributes["gen_ai.response.id"] = str(end["message_id"])
    if end.get("stop_reason") is not None:
        attributes["gen_ai.response.finish_reasons"] = [str(end["stop_reason"])]
    return attributes


def _tool(begin: Record) -> Attributes:
    return {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": str(begin["name"]),
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": str(begin["tool_use_id"]),
        "gen_ai.conversation.id": begin.run,
        "looplatch.seq": begin.seq,
        "looplatch.access": str(begin.get("access")),
    }


# --- OTLP JSON


def _run_span(log: Readable) -> Iterator[str]:
    """The run's span: its events are written as they are read, its end behind them."""
    first = last = None
    totals: dict[str, int] = {}
    terminal: str | None = None
    comma = ""
    for record in records_of(log):
        if first is None:
            first = record
            span: dict[str, Any] = {
                "traceId": trace_id(record.run),
                "spanId": span_id(record.run, 0),
                "name": "invoke_agent looplatch",
                "kind": INTERNAL,
                "startTimeUnixNano": str(nanoseconds(record)),
                **_links(record),
            }
            yield _json(span)[:-1] + ',"events":['
        last = record
        if record.kind in (Kind.TRANSITION, Kind.REJECTED):
            name = "looplatch.transition" if record.kind is Kind.TRANSITION else "looplatch.rejected"
            event = {"timeUnixNano": str(nanoseconds(record)), "name": name}
            yield comma + _json({**event, "attributes": _listed(move_attributes(record))})
            comma = ","
            totals.update(object_in(record, "change"))
            terminal = record.terminal or terminal
    assert first is not None
    assert last is not None
    attributes = {**run_attributes(first), **usage_attributes(totals)}
    error = None if terminal in (None, Terminal.ANSWERED) else terminal
    if error is not None:
        attributes["error.type"] = error
    end = max(nanoseconds(first), nanoseconds(last))
    tail = {"endTimeUnixNano": str(end), "attributes": _listed(attributes), "status": _status(error)}
    yield "]," + _json(tail)[1:]


def _links(genesis: Record) -> dict[str, Any]:
    """The call of the run that this one was made for."""
    parent = object_in(genesis, "parent")
    if not parent:
        return {}
    return {"links": [{"traceId": trace_id(parent["run"]), "spanId": span_id(parent["run"], parent["seq"])}]}


def _child(log_run: str, span: SpanMade) -> dict[str, Any]:
    return {
        "traceId": trace_id(log_run),
        "spanId": span.id,
        "parentSpanId": span_id(log_run, 0),
        "name": span.name,
        "kind": span.kind,
        "startTimeUnixNano": str(span.start_ns),
        "endTimeUnixNano": str(span.end_ns),
        "attributes": _listed(span.attributes),
        "status": _status(span.error),
    }


def _status(error: str | None) -> dict[str, Any]:
    """An error; what went well is left unset, as the conventions have it."""
    return {} if error is None else {"code": _ERROR, "message": error}


def _listed(attributes: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"key": name, "value": _value(value)} for name, value in attributes.items()]


def _value(value: Any) -> dict[str, Any]:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case list():
            return {"arrayValue": {"values": [_value(item) for item in cast("list[object]", value)]}}
        case _:
            return {"stringValue": str(value)}


def _json(value: Any) -> str:
    return visible(encode(value).decode(), json_escape)
