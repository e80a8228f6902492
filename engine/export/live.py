"""Spans while a run goes on: a mirror of its log for OpenTelemetry. The log stays the record; this is a copy.

    loop = Loop(..., mirror=Spans())

Needs `looplatch[otel]`. Spans go to the tracer provider of the application, or to the one given.
"""

import contextlib
import importlib
from typing import TYPE_CHECKING, Any

import attrs

from looplatch.analysis.fields import object_in
from looplatch.export.otel import (
    SCOPE,
    move_attributes,
    run_attributes,
    span_of,
    usage_attributes,
)
from looplatch.export.source import Open, nanoseconds
from looplatch.states.errors import UsageError
from looplatch.states.reasons import Terminal
from looplatch.states.record import Kind, Record
from looplatch.states.state import State

if TYPE_CHECKING:
    from opentelemetry.trace import Span, TracerProvider


_RESTS = ("ApprovalAwaited", "ApprovalGiven", "RunPaused")


@attrs.define
class _Run:
    """A run that goes on: its span, and what it spent."""

    span: "Span"
    begun: Open = attrs.field(factory=Open)
    totals: dict[str, Any] = attrs.field(factory=dict[str, Any])
    inside: dict[int, "Span"] = attrs.field(factory=dict[int, Any])


class Spans:
    """Shows the records of runs as spans, as they are written. Give it to `Loop(mirror=...)`; runs may share one.

    provider: where spans go; None: the application's own, as OpenTelemetry's API has it. Whatever a tracer does, the
    run and its log are not touched. A run that is suspended ends its span, and has another one from its resumption on.
    Raises UsageError where `looplatch[otel]` is not installed.
    """

    def __init__(self, provider: "TracerProvider | None" = None) -> None:
        try:
            importlib.import_module("opentelemetry.sdk")  # without it, the API alone drops every span
            from opentelemetry import trace
        except ImportError as error:
            problem = "OpenTelemetry's SDK is not installed"
            raise UsageError("Spans", problem, "Install it with: pip install 'looplatch[otel]'") from error
        self._trace = trace
        self._tracer = trace.get_tracer(SCOPE, tracer_provider=provider)
        self._runs: dict[str, _Run] = {}

    def show(self, record: Record) -> None:
        """Take the next record of any run."""
        with contextlib.suppress(Exception):
            self._show(record)

    def _show(self, record: Record) -> None:
        if record.kind in (Kind.GENESIS, Kind.RESUMED):
            self._open(record)
        run = self._runs.get(record.run)
        if run is None:
            return
        begin = run.begun.take(record)
        match record.kind:
            case Kind.TRANSITION | Kind.REJECTED:
                self._move(run, record)
            case Kind.EFFECT_BEGIN:
                self._begin(run, record)
            case Kind.EFFECT_END if begin is not None:
                self._end(run, begin, record)
            case Kind.TERMINAL:
                error = None if record.terminal == Terminal.ANSWERED else record.terminal
                self._close(run, record, error)
            case _:
                pass

    def _open(self, record: Record) -> None:
        attributes = run_attributes(record)
        if record.kind is Kind.RESUMED:
            for unknown in ("gen_ai.request.model", "looplatch.table"):
                del attributes[unknown]
        span = self._tracer.start_span(
            "invoke_agent looplatch", attributes=attributes, start_time=nanoseconds(record)
        )  # fmt: skip
        self._runs[record.run] = _Run(span)

    def _move(self, run: _Run, move: Record) -> None:
        name = "looplatch.transition" if move.kind is Kind.TRANSITION else "looplatch.rejected"
        run.span.add_event(name, attributes=move_attributes(move), timestamp=nanoseconds(move))
        run.totals.update(object_in(move, "change"))
        if move.event in _RESTS and (move.event == "RunPaused" or move.target == State.SUSPENDED):
            self._close(run, move, None)

    def _begin(self, run: _Run, begin: Record) -> None:
        made = span_of(begin, None, nanoseconds(begin))
        if made is None:
            return
        attributes = {name: value for name, value in made.attributes.items() if name != "error.type"}
        kind = self._trace.SpanKind.CLIENT if made.name.startswith("chat ") else self._trace.SpanKind.INTERNAL
        within = self._trace.set_span_in_context(run.span)
        run.inside[begin.seq] = self._tracer.start_span(
            made.name, context=within, kind=kind, attributes=attributes, start_time=made.start_ns
        )

    def _end(self, run: _Run, begin: Record, end: Record) -> None:
        span, made = run.inside.pop(begin.seq, None), span_of(begin, end)
        if span is None or made is None:
            return
        span.set_attributes(made.attributes)
        if made.error is not None:
            span.set_status(self._trace.StatusCode.ERROR, made.error)
        span.end(end_time=made.end_ns)

    def _close(self, run: _Run, last: Record, error: str | None) -> None:
        del self._runs[last.run]
        ends = nanoseconds(last)
        for span in run.inside.values():
            span.set_status(self._trace.StatusCode.ERROR, "it did not end")
            span.end(end_time=ends)
        run.span.set_attributes(usage_attributes(run.totals))
        if error is not None:
            run.span.set_attribute("error.type", error)
            run.span.set_status(self._trace.StatusCode.ERROR, error)
        run.span.end(end_time=ends)
