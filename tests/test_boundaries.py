"""Boundaries: what the machine does at the last step within each limit, at the first one beyond, and between troubles.

Written by hand from the rules. Runs come to most of these places, too; few of them come to both sides.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from looplatch.machine import Machine
from looplatch.states import events as on
from looplatch.states.context import Context
from looplatch.states.event import Event
from looplatch.states.level import Level
from looplatch.states.limits import Limits
from looplatch.states.state import State
from looplatch.states.table import TABLE
from looplatch.states.trouble import TroubleKind

Case = tuple[State, dict[str, Any], Event, str]
MACHINE = Machine(TABLE)
PREPARE, STREAM, DECIDE, ORCHESTRATE, RECOVER = (
    State.PREPARE, State.STREAM, State.DECIDE, State.ORCHESTRATE, State.RECOVER,
)  # fmt: skip
STARTS, ENDS, SUMMARY = "-> stream", "-> failed budget_spent", "stays WriteSummary"
COMPACTS, BLOCKED = "stays Summarise", "-> failed context_blocked"


def limits(**given: Any) -> dict[str, Any]:
    return {"limits": Limits(**given)}


def ready(tokens: int = 1, window: int | None = None) -> Event:
    return on.ContextReady(tokens=tokens, window=window)


def shortened(level: Level) -> Event:
    return on.HistoryCompressed(level=level, tokens_before=9, tokens_after=8)


def failed(*, transient: bool = True, delay_ms: int = 0) -> Event:
    return on.SummaryFailed(failure="x", transient=transient, delay_ms=delay_ms)


def named(trouble: TroubleKind, **more: Any) -> Event:
    return on.TroubleNamed(trouble=trouble, **more)


def overflow(**more: Any) -> Event:
    return named(TroubleKind.OVERFLOW, **more)


def budgets() -> Iterator[Case]:
    tokens, both = limits(max_total_tokens=10), limits(max_total_tokens=10, max_cost_usd=0.01)
    cost = limits(max_cost_usd=0.01)
    for given, then in (
        ({**tokens, "input_tokens": 4, "output_tokens": 5}, STARTS),
        ({**tokens, "input_tokens": 4, "output_tokens": 6}, ENDS),
        ({**tokens, "cache_read_tokens": 5, "cache_write_tokens": 6}, ENDS),
        ({**tokens, "cost_micro_usd": 10**9}, STARTS),
        ({**cost, "cost_micro_usd": 9_999}, STARTS),
        ({**cost, "cost_micro_usd": 10_000}, ENDS),
        ({**cost, "cost_micro_usd": 10_001}, ENDS),
        ({**cost, "input_tokens": 10**9}, STARTS),
        ({**both, "input_tokens": 9, "cost_micro_usd": 9_999}, STARTS),
        ({**both, "input_tokens": 10}, ENDS),
        ({**both, "cost_micro_usd": 10_000}, ENDS),
    ):
        yield PREPARE, given, ready(), then
        yield DECIDE, {**given, "limits": given["limits"]}, on.StopHooksPassed(), "-> completed answered"
    yield PREPARE, {}, ready(10**9, None), STARTS
    yield PREPARE, {}, ready(200, 200), STARTS
    yield PREPARE, {}, ready(201, 200), "-> recover"
    yield PREPARE, {**tokens, "input_tokens": 10}, ready(201, 200), ENDS


def levels() -> Iterator[Case]:
    for level in (Level.SNIP, Level.COMPACT):
        yield PREPARE, {"level": 7, "breaker": 1}, shortened(level), "stays FitContext"
        yield PREPARE, {"level": 8}, shortened(level), BLOCKED
        yield PREPARE, {"level": 9}, shortened(level), BLOCKED
    due, cooled = on.SummaryDue(level=Level.COMPACT), on.SummaryDue(level=Level.COMPACT, breaker_cooled=True)
    yield PREPARE, {"breaker": 2}, due, SUMMARY
    yield PREPARE, {"breaker": 2}, cooled, SUMMARY
    yield PREPARE, {"breaker": 3}, cooled, SUMMARY
    yield PREPARE, {"breaker": 3}, due, "stays FitContext"
    yield PREPARE, {"breaker": 4}, due, "stays FitContext"
    for event, then in ((due, SUMMARY), (cooled, SUMMARY)):
        yield PREPARE, {"level": 7}, event, then
        yield PREPARE, {"level": 8}, event, BLOCKED
        yield PREPARE, {"level": 8, "breaker": 3}, event, BLOCKED
        yield PREPARE, {"level": 9}, event, BLOCKED


def answers() -> Iterator[Case]:
    for begun, then in ((0, "-> recover"), (1, "-> orchestrate"), (2, "-> orchestrate")):
        for event in (on.OutputTruncated, on.ContextExceeded, on.Refused):
            yield DECIDE, {}, event(begun=begun), then
        told: dict[str, Any] = {"trouble": TroubleKind.TRANSIENT, "failure": "x", "begun": begun}
        yield STREAM, {}, on.ModelFailed(**told), then
        resumed = "stays CallModel" if begun == 0 else then
        yield STREAM, {}, on.RunResumed(begun=begun), resumed
    for pauses, turn, then in (
        (9, 99, "-> prepare next_turn"),
        (10, 99, "-> failed pause_limit"),
        (11, 99, "-> failed pause_limit"),
        (9, 100, "-> failed max_turns"),
        (9, 101, "-> failed max_turns"),
        (10, 100, "-> failed pause_limit"),
    ):
        yield DECIDE, {"pauses": pauses, "turn": turn}, on.TurnPaused(), then


def targets() -> Iterator[Case]:
    wanted, more, done = limits(output_target=1_000), "-> recover", "-> completed answered"
    yield DECIDE, {"output_tokens": 1}, on.StopHooksPassed(), done
    for given, new, then in (
        ({"output_tokens": 899}, 899, more),
        ({"output_tokens": 900}, 900, done),
        ({"output_tokens": 901}, 901, done),
        ({"low_progress": 2}, 0, more),  # there was no continuation yet
        ({"low_progress": 1, "continuations": 1}, 499, more),
        ({"low_progress": 2, "continuations": 1}, 500, more),
        ({"low_progress": 2, "continuations": 1}, 499, done),
        ({"low_progress": 3, "continuations": 1}, 500, done),
        ({"continuations": 99}, 500, more),
        ({"continuations": 100}, 500, done),
    ):
        yield DECIDE, {**wanted, **given}, on.StopHooksPassed(new_tokens=new), then
    spent = limits(output_target=1_000, max_total_tokens=10)
    yield DECIDE, {**spent, "output_tokens": 9}, on.StopHooksPassed(new_tokens=9), more
    yield DECIDE, {**spent, "output_tokens": 10}, on.StopHooksPassed(new_tokens=10), done
    for continuations, new, counted in ((0, 0, 0), (1, 499, 2), (1, 500, 0), (1, 501, 0), (2, 499, 2)):
        given = {"low_progress": 1, "continuations": continuations}
        event = named(TroubleKind.TARGET_UNMET, new_tokens=new)
        yield RECOVER, given, event, f"-> prepare token_budget_continuation; low_progress {counted}"


def tools() -> Iterator[Case]:
    answered, stopped = on.ToolsAnswered(results=1), on.ToolsAnswered(results=1, stop_asked=True)
    cut: dict[str, Any] = {"trouble": TroubleKind.TRUNCATED}
    for given, event, then in (
        ({"turn": 99}, answered, "-> prepare next_turn"),
        ({"turn": 100}, answered, "-> failed max_turns"),
        ({"turn": 101}, answered, "-> failed max_turns"),
        ({"turn": 99}, stopped, "-> aborted stopped"),
        ({"turn": 100}, stopped, "-> aborted stopped"),
        ({**cut, "turn": 99}, answered, "-> recover"),
        ({**cut, "turn": 100}, answered, "-> recover"),
        ({**cut, "turn": 99}, stopped, "-> recover"),
        ({**cut, "turn": 100}, stopped, "-> recover"),
    ):
        yield ORCHESTRATE, given, event, then
    for awaited, then in ((0, "-> orchestrate"), (1, "stays AwaitApproval"), (2, "stays AwaitApproval")):
        yield State.SUSPENDED, {}, on.ApprovalGiven(calls=("t1",), awaited=awaited), then


def too_long() -> Iterator[Case]:
    drained, able = "-> prepare collapse_drain_retry", {"can_summarise": True}
    for given, event, then in (
        ({}, overflow(staged=1), drained),
        ({}, overflow(staged=2, **able), drained),
        ({"drained": 1}, overflow(staged=1), BLOCKED),
        ({"drained": 1}, overflow(staged=1, **able), COMPACTS),
        ({}, overflow(**able), COMPACTS),
        ({}, overflow(), BLOCKED),
        ({}, overflow(breaker_cooled=True), BLOCKED),
        ({"compact_tried": 1}, overflow(**able), BLOCKED),
        ({"compact_tried": 1}, overflow(breaker_cooled=True, **able), BLOCKED),
        ({"breaker": 2}, overflow(**able), COMPACTS),
        ({"breaker": 2}, overflow(breaker_cooled=True, **able), COMPACTS),
        ({"breaker": 3}, overflow(**able), BLOCKED),
        ({"breaker": 4}, overflow(**able), BLOCKED),
        ({"breaker": 3}, overflow(breaker_cooled=True, **able), COMPACTS),
    ):
        yield RECOVER, given, event, then
    for before, after, breaker, then in (
        (9, 8, 0, "-> prepare reactive_compact_retry; breaker 0"),
        (9, 8, 3, "-> prepare reactive_compact_retry; breaker 0"),
        (9, 9, 2, f"{BLOCKED}; breaker 3"),
        (9, 10, 2, f"{BLOCKED}; breaker 3"),
        (9, 9, 3, f"{BLOCKED}; breaker 3"),
        (9, 9, 4, f"{BLOCKED}; breaker 4"),
        (9, 10, 3, f"{BLOCKED}; breaker 3"),
    ):
        yield RECOVER, {"breaker": breaker}, on.HistorySummarised(tokens_before=before, tokens_after=after), then


def summaries() -> Iterator[Case]:
    for breaker, counted in ((1, 2), (2, 3), (3, 3), (4, 4)):
        yield PREPARE, {"breaker": breaker}, failed(), f"stays FitContext; breaker {counted}"
    for given, event, then in (
        ({"breaker": 1}, failed(), "stays Sleep; breaker 2"),
        ({"breaker": 2}, failed(), f"{BLOCKED}; breaker 3"),
        ({"breaker": 3}, failed(), f"{BLOCKED}; breaker 3"),
        ({"breaker": 4}, failed(), f"{BLOCKED}; breaker 4"),
        ({}, failed(transient=False), f"{BLOCKED}; breaker 1"),
        ({"breaker": 3}, failed(transient=False), f"{BLOCKED}; breaker 3"),
        ({"attempts": 4}, failed(), "stays Sleep; breaker 1"),
        ({"attempts": 5}, failed(), f"{BLOCKED}; breaker 1"),
        ({"attempts": 6}, failed(), f"{BLOCKED}; breaker 1"),
        ({}, failed(delay_ms=600_000), "stays Sleep; breaker 1"),
        ({}, failed(delay_ms=600_001), f"{BLOCKED}; breaker 1"),
    ):
        yield RECOVER, given, event, then


def troubles() -> Iterator[Case]:
    cut, over = TroubleKind.TRUNCATED, TroubleKind.TRANSIENT
    escalates = "-> prepare max_output_tokens_escalate"
    asks, enough = "-> prepare max_output_tokens_recovery", "-> failed output_truncated"
    for given, event, then in (
        ({}, named(cut, output_limit=1), escalates),
        ({}, named(cut, output_limit=64_000), escalates),
        ({"output_recoveries": 3}, named(cut, output_limit=1), escalates),
        ({}, named(cut), asks),
        ({"escalated": 1}, named(cut, output_limit=1), asks),
        ({"sealed": True}, named(cut, output_limit=1), asks),
        ({"output_recoveries": 2}, named(cut), asks),
        ({"output_recoveries": 3}, named(cut), enough),
        ({"output_recoveries": 4}, named(cut), enough),
        ({"output_recoveries": 3, "escalated": 1}, named(cut, output_limit=1), enough),
        ({"output_recoveries": 3, "sealed": True}, named(cut, output_limit=1), enough),
        ({"blocks": 4}, named(TroubleKind.HOOK_BLOCKED), "-> prepare stop_hook_blocking"),
        ({"blocks": 5}, named(TroubleKind.HOOK_BLOCKED), "-> failed stop_hook_limit"),
        ({"blocks": 6}, named(TroubleKind.HOOK_BLOCKED), "-> failed stop_hook_limit"),
        ({"attempts": 4}, named(over, delay_ms=600_000), "stays Sleep"),
        ({"attempts": 5}, named(over), "-> failed model_error"),
        ({"attempts": 6}, named(over), "-> failed model_error"),
        ({}, named(over, delay_ms=600_001), "-> failed model_error"),
        ({"turn": 100}, named(over), "stays Sleep"),
        ({"sealed": True, "turn": 99}, named(over), "stays Sleep"),
        ({"sealed": True, "turn": 100}, named(over), "-> failed model_error"),
        ({"sealed": True, "turn": 101}, named(over), "-> failed model_error"),
        ({}, named(TroubleKind.FATAL), "-> failed model_error"),
        ({}, named(TroubleKind.REFUSED), "-> failed refused"),
        ({}, on.BackoffElapsed(), "-> stream"),
        ({"sealed": True}, on.BackoffElapsed(), "-> prepare next_turn"),
        ({"summary_pending": True}, on.BackoffElapsed(), COMPACTS),
        ({"summary_pending": True, "sealed": True}, on.BackoffElapsed(), COMPACTS),
    ):
        yield RECOVER, given, event, then


def one_at_a_time() -> Iterator[Case]:
    """Each trouble has its own way out, whatever else its event and the context tell."""
    told: dict[str, Any] = {
        "staged": 1,
        "can_summarise": True,
        "breaker_cooled": True,
        "output_limit": 9,
        "new_tokens": 9,
    }
    worn = {"drained": 1, "compact_tried": 1, "escalated": 1, "output_recoveries": 3, "blocks": 5, "attempts": 5}
    ways: tuple[tuple[TroubleKind, str, str], ...] = (
        (TroubleKind.OVERFLOW, "-> prepare collapse_drain_retry", BLOCKED),
        (TroubleKind.TRUNCATED, "-> prepare max_output_tokens_escalate", "-> failed output_truncated"),
        (TroubleKind.HOOK_BLOCKED, "-> prepare stop_hook_blocking", "-> failed stop_hook_limit"),
        (TroubleKind.TARGET_UNMET, "-> prepare token_budget_continuation", "-> prepare token_budget_continuation"),
        (TroubleKind.TRANSIENT, "stays Sleep", "-> failed model_error"),
        (TroubleKind.FATAL, "-> failed model_error", "-> failed model_error"),
        (TroubleKind.REFUSED, "-> failed refused", "-> failed refused"),
    )
    for trouble, fresh, late in ways:
        yield RECOVER, {}, named(trouble, **told), fresh
        yield RECOVER, {"drained": 1}, named(trouble, **told), COMPACTS if trouble is TroubleKind.OVERFLOW else fresh
        yield RECOVER, worn, named(trouble, **told), late
        yield RECOVER, worn, named(trouble), late


def went(state: State, context: Context, event: Event, counter: str) -> str:
    """Where the machine goes, and why or with what command; and the value of a counter then."""
    cursor = MACHINE.start(context)
    cursor.state = str(state)
    move = MACHINE.send(cursor, event)
    row = move.row
    if row.target is None:
        told = f"stays {move.commands[0].name}"
    else:
        why = row.terminal or row.strategy or row.reason
        told = f"-> {row.target}{'' if why is None else f' {why}'}"
    return f"{told}; {counter} {getattr(move.context, counter)}" if counter else told


KINDS = (budgets, levels, answers, targets, tools, too_long, summaries, troubles, one_at_a_time)
CASES = [pytest.param(*case, id=f"{kind.__name__}-{place}") for kind in KINDS for place, case in enumerate(kind())]


@pytest.mark.parametrize(("state", "given", "event", "then"), CASES)
def test_the_machine_goes_where_the_rules_say(state: State, given: dict[str, Any], event: Event, then: str) -> None:
    counter = then.partition("; ")[2].partition(" ")[0]
    assert went(state, Context(**given), event, counter) == then


@pytest.mark.parametrize(
    ("reason", "calls", "event", "whole"),
    [
        ("end_turn", 0, on.AnswerGiven, True),
        ("end_turn", 1, on.ToolsRequested, True),
        ("tool_use", 0, on.AnswerGiven, True),
        ("tool_use", 2, on.ToolsRequested, True),
        ("pause_turn", 0, on.TurnPaused, True),
        ("pause_turn", 1, on.ToolsRequested, True),
        ("max_tokens", 0, on.OutputTruncated, False),
        ("max_tokens", 1, on.OutputTruncated, False),
        ("refusal", 1, on.Refused, False),
        ("model_context_window_exceeded", 0, on.ContextExceeded, False),
        ("a new one", 0, on.StopReasonUnknown, False),
        ("a new one", 1, on.ToolsRequested, False),
        (None, 0, on.StopReasonUnknown, False),
        (None, 1, on.ToolsRequested, False),
        ("", 0, on.StopReasonUnknown, False),
    ],
)
def test_an_answer_is_followed_by_what_its_end_says(
    reason: str | None, calls: int, event: type[Event], whole: bool
) -> None:
    assert TABLE.decisions.event(reason, calls) is event
    assert TABLE.decisions.is_whole(reason) is whole
