"""Bad logs that tell of decisions, summaries, notes and tools what nothing in the log bears out."""

from collections.abc import Callable
from typing import Any

import pytest

from looplatch.states import events as on
from looplatch.states.context import TOTALS
from looplatch.states.level import Level
from looplatch.states.trouble import TroubleKind
from looplatch.states.verify.log import verify_lines
from tests.forge import CLAIM, Fields, Forge, altered, broken, hexed, result
from tests.forged_runs import aborted, answered, begun, complete, drained, one_turn, respond, streaming, written

ALLOWED: Fields = {"call": "a", "allowed": True, "interrupt": False, "message": None, "input": None}
DENIED: Fields = {**ALLOWED, "allowed": False, "message": hexed("no")}
FULL = {"commitment": hexed("the whole"), "bytes": 900}


def suspended(*calls: str) -> Forge:
    """Calls wait for someone's word."""
    forge = streaming()
    forge.answered(forge.ask(), "tool_use", 10)
    respond(forge, "tool_use", ("a", "b"))
    forge.send(on.ToolsRequested(calls=2))
    forge.send(on.ApprovalAwaited(calls=calls or ("a", "b")))
    return forge


def decided(*approvals: Fields, calls: tuple[str, ...] = ("a",), awaited: int = 1, **more: Any) -> Forge:
    """A new process brings decisions along."""
    forge = suspended()
    place = len(forge.records)
    forge.add("resumed", **{**CLAIM, "approvals": list(approvals), **more})
    forge.send(on.RunResumed())
    forge.send(on.ApprovalGiven(calls=calls, awaited=awaited))
    for record in forge.records[place:]:
        record["epoch"] = 1
    return forge


def denied(interrupt: bool = True, call: str = "a") -> Forge:
    """A call is denied when the run is taken up, and the run ends with it."""
    forge = decided({**DENIED, "interrupt": interrupt}, {**ALLOWED, "call": "b"}, calls=("a", "b"), awaited=0)
    forge.join("user", result("a", is_error=True), result("b", is_error=True))
    forge.send(on.RunDenied(call=call))
    forge.seal()
    for record in forge.records[forge.records.index(forge.find(event="RunResumed")) :]:
        record["epoch"] = 1
    return forge


def went_on(interrupt: bool = False) -> Forge:
    """Both calls are denied, and the run goes on."""
    first = {**DENIED, "interrupt": interrupt}
    forge = decided(first, {**DENIED, "call": "b"}, calls=("a", "b"), awaited=0)
    forge.join("user", result("a", is_error=True), result("b", is_error=True))
    answered(forge, 2, 2)
    for record in forge.records[forge.records.index(forge.find(event="RunResumed")) :]:
        record["epoch"] = 1
    return forge


def asked(*said: str, calls: tuple[str, ...] = ("a",)) -> Forge:
    """The hook is asked and says so; then tools begin."""
    forge = streaming()
    asked = forge.ask()
    for outcome in said:
        forge.end(forge.begin("hook"), outcome)
    for name in calls:
        forge.did(forge.tool(name))
    forge.answered(asked, "tool_use", 10)
    respond(forge, "tool_use", calls, started=len(calls))
    forge.send(on.ToolsRequested(calls=len(calls)))
    forge.join("user", *[result(name) for name in calls])
    return answered(forge, len(calls))


def ended(outcome: str = "answered", **fields: object) -> Forge:
    """The first of two tools ends so."""
    forge = one_turn()
    failed = outcome != "answered"
    altered(forge, forge.find(kind="effect_end", class_="tool"), outcome=outcome, is_error=failed, **fields)
    forge.join("user", result("a", is_error=failed), result("b"))
    return answered(forge, 2, int(failed))


def summary(outcome: str, failure: str, *, transient: bool = False, delay_ms: int = 0) -> Forge:
    """A summary of the whole is due, ends so, and fails."""
    forge = begun()
    forge.send(on.SummaryDue(level=Level.COMPACT, breaker_cooled=True))
    written(forge, "compact", outcome)
    forge.send(on.SummaryFailed(failure=failure, transient=transient, delay_ms=delay_ms))
    forge.send(on.ContextReady(tokens=100, window=200_000))
    return complete(forge)


def compacted(outcome: str) -> Forge:
    """A summary ends so, and is used."""
    forge = begun()
    forge.send(on.SummaryDue(level=Level.COMPACT, breaker_cooled=True))
    written(forge, "compact", outcome)
    forge.send(on.HistoryCompressed(level=Level.COMPACT, tokens_before=100, tokens_after=50))
    forge.send(on.ContextReady(tokens=130, window=200_000))
    return complete(forge)


def asked_for(**fields: object) -> Forge:
    """A summary is asked for otherwise than was due."""
    forge = drained()
    return altered(forge, forge.find(kind="effect_begin", class_="summary"), **fields)


def deadline(after_ms: int, deadline_ms: int | None = 1_000) -> Forge:
    """The deadline passes so long after the run began."""
    forge = streaming(deadline_ms=deadline_ms)
    forge.wait(after_ms)
    forge.send(on.DeadlinePassed())
    forge.seal()
    return forge


def truncated(output_limit: int) -> Forge:
    """An answer is cut, and a higher limit is said to be possible."""
    forge = streaming()
    forge.answered(forge.ask(), "max_tokens", 10)
    forge.send(on.ModelResponded(stop_reason="max_tokens", input_tokens=10, output_tokens=10))
    forge.send(on.OutputTruncated())
    forge.send(on.TroubleNamed(trouble=TroubleKind.TRUNCATED, output_limit=output_limit))
    return aborted(forge)


# --- what may be

GOOD: tuple[Callable[[], Forge], ...] = (
    denied,
    went_on,
    drained,
    lambda: decided(ALLOWED),
    lambda: asked("Allow"),
    lambda: asked("Deny", "Allow", "Allow", calls=("a", "b")),
    lambda: asked("Ask", "Allow"),
    lambda: ended(full=FULL),
    lambda: ended("timed_out", abandoned=True),
    lambda: summary("api_error", "api_error"),
    lambda: summary("ok", "not_shorter"),
    lambda: compacted("ok"),
    lambda: deadline(1_000),
    lambda: truncated(64_000),
)


@pytest.mark.parametrize("build", GOOD)
def test_a_right_log_is_ok(build: Callable[[], Forge]) -> None:
    report = verify_lines(build().lines())
    assert report.ok, str(report)


# --- what may not


@pytest.mark.parametrize(
    ("invariant", "build"),
    [
        # decisions
        ("R3", lambda: decided({**ALLOWED, "call": "c"}, calls=("c",), awaited=2)),
        ("R3", lambda: decided(ALLOWED, ALLOWED)),
        ("R3", lambda: decided({**ALLOWED, "allowed": False})),
        ("R3", lambda: decided({**DENIED, "allowed": True})),
        ("R3", lambda: decided({**DENIED, "input": hexed("another")})),
        ("R3", lambda: decided({**ALLOWED, "interrupt": True})),
        ("R3", lambda: decided(ALLOWED, calls=("b",))),
        ("R3", lambda: decided(ALLOWED, calls=("a", "b"))),
        ("R3", lambda: decided(ALLOWED, calls=())),
        ("R3", lambda: decided(ALLOWED, awaited=2)),
        ("R3", lambda: decided(ALLOWED, nested=[{**ALLOWED, "under": "b"}])),
        ("T7", lambda: suspended("a", "c")),
        ("T7", lambda: suspended("a", "a")),
        ("T7", lambda: denied(interrupt=False)),
        ("T7", lambda: denied(call="b")),
        ("T7", lambda: went_on(interrupt=True)),
        # the hook
        ("T7", lambda: asked("Deny")),
        ("T7", lambda: asked("Ask")),
        ("T7", lambda: asked("Allow", calls=("a", "b"))),
        # tools
        ("T7", lambda: ended(bytes=8)),
        ("T7", lambda: ended(result=None)),
        ("T7", lambda: ended(abandoned=True)),
        ("T7", lambda: ended("timed_out", full=FULL)),
        # summaries
        ("E1", lambda: summary("api_error", "stream_cut")),
        ("E1", lambda: summary("ok", "api_error")),
        ("E1", lambda: summary("ok", "not_shorter", transient=True)),
        ("C5", lambda: summary("api_error", "api_error", delay_ms=500)),
        ("E1", lambda: compacted("api_error")),
        ("E2", lambda: asked_for(level="compact", span=None)),
        ("E2", lambda: asked_for(by="api")),
        ("E2", lambda: asked_for(by="someone")),
        ("E2", lambda: asked_for(span=None)),
        ("E2", lambda: asked_for(span=[1, 1])),
        # the deadline
        ("C6", lambda: deadline(500)),
        ("C6", lambda: deadline(1_000, None)),
        # troubles
        ("M8", lambda: truncated(80)),
        ("M8", lambda: truncated(64_001)),
    ],
)
def test_a_bad_log_is_rejected_for_its_own_invariant_alone(invariant: str, build: Callable[[], Forge]) -> None:
    report = verify_lines(build().lines())
    assert broken(report) == {invariant}, str(report)


@pytest.mark.parametrize(("field", "value"), [("staged", 2), ("breaker_cooled", False)])
def test_no_more_is_staged_than_was_written_and_nothing_cools_that_never_failed(field: str, value: object) -> None:
    forge = drained()
    forge.find(event="TroubleNamed")["fields"][field] = value
    report = verify_lines(forge.lines())
    assert broken(report) == {"M8"}, str(report)


def test_a_note_is_of_the_calls_that_were_answered() -> None:
    forge = one_turn()
    forge.join("user", result("a"), result("b"))
    taken = forge.begin("note", name="notes", calls=["a"])
    forge.end(taken, usage=dict.fromkeys(TOTALS, 0), result=None, bytes=0)
    report = verify_lines(answered(forge, 2).lines())
    assert broken(report) == {"T2"}, str(report)


def test_no_call_had_begun_of_an_answer_that_is_over() -> None:
    forge = decided(ALLOWED)
    forge.find(event="RunResumed")["fields"]["begun"] = 1
    assert broken(verify_lines(forge.lines())) == {"M13"}
