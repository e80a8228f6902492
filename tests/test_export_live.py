"""Spans of a run while it goes on are those of its export."""

from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from looplatch import Allow, Log, Rule, UsageError
from looplatch.export.live import Spans
from looplatch.testing import reply, tool_use
from tests.playing import echo, play
from tests.suspending import resumed
from tests.test_export import CALLS, TOOLS, attributes, spans


def tracing(exporter: SpanExporter) -> Spans:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return Spans(provider)


def told(span: ReadableSpan) -> tuple[str, int | None, int | None, dict[str, Any], str | None]:
    plain = {k: list(v) if isinstance(v, tuple) else v for k, v in (span.attributes or {}).items()}
    return span.name, span.start_time, span.end_time, plain, span.status.description


def recorded(log: Log) -> list[Any]:
    return [
        (
            span["name"],
            int(span["startTimeUnixNano"]),
            int(span["endTimeUnixNano"]),
            attributes(span),
            span["status"].get("message"),
        )
        for span in spans(log)
    ]


def test_live_spans_are_those_of_the_export() -> None:
    kept = InMemorySpanExporter()
    log = play(CALLS, tools=TOOLS, mirror=tracing(kept)).log
    *inner, root = kept.get_finished_spans()
    assert [told(span) for span in (root, *inner)] == recorded(log)
    assert root.context is not None
    assert {span.parent and span.parent.span_id for span in inner} == {root.context.span_id}
    events = [(event.name, event.timestamp, dict(event.attributes or {})) for event in root.events]
    assert events == [
        (event["name"], int(event["timeUnixNano"]), attributes(event)) for event in spans(log)[0]["events"]
    ]


def test_a_suspended_run_has_a_span_before_and_one_after() -> None:
    kept = InMemorySpanExporter()
    script = [reply(tool_use("t1", "deploy", {})), reply("Done.")]
    options: dict[str, Any] = {"tools": [echo("deploy", read_only=False)], "rules": [Rule("ask", "deploy")]}
    resumed(script, {"t1": Allow()}, mirror=tracing(kept), **options)
    names = [span.name for span in kept.get_finished_spans()]
    assert names == [
        "chat claude-sonnet-4-5",
        "invoke_agent looplatch",
        "execute_tool deploy",
        "chat claude-sonnet-4-5",
        "invoke_agent looplatch",
    ]


class Failing(SpanExporter):
    """An exporter that must not touch the run."""

    def export(self, spans: Any) -> SpanExportResult:
        raise RuntimeError("broken")


def test_an_exporter_that_raises_does_not_touch_the_run() -> None:
    log = play(CALLS, tools=TOOLS, mirror=tracing(Failing())).log
    assert log.terminal is not None
    assert log.terminal.terminal == "answered"


def test_without_the_sdk_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "opentelemetry.sdk", None)
    with pytest.raises(UsageError, match=r"looplatch\[otel\]"):
        Spans()
