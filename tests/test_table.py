"""The table, row by row, as it was meant: written by hand, so that a changed row is seen to be changed."""

import pytest

from looplatch.states.events import EVENTS
from looplatch.states.reasons import Continue, Strategy
from looplatch.states.state import FINAL, State
from looplatch.states.table import COUNTERS, DECISIONS, TABLE

# Per state and event, in row order: guard, target (- stays), and the reason (with its strategy) or terminal reason.
MOVES = """
prepare RunStarted: always -
prepare HistoryCompressed: edited - | summarised - | levels_spent failed context_blocked
prepare SummaryDue: summary_allowed - | summary_withheld - | levels_spent failed context_blocked
prepare CollapseStaged: always -
prepare SummaryFailed: breaker_closed - | breaker_open -
prepare ContextReady: fits stream | budget_spent failed budget_spent | overflow recover
prepare BudgetWithdrawn: always failed budget_spent
prepare RunResumed: always -
prepare RunPaused: always -
stream ModelResponded: always decide
stream ModelFailed: no_call_begun recover | call_begun orchestrate
stream RunResumed: no_call_begun - | call_begun orchestrate
stream RunPaused: always -
decide ToolsRequested: always orchestrate
decide TurnPaused: pause_allowed prepare next_turn | pauses_spent failed pause_limit
 | pause_without_turns failed max_turns
decide OutputTruncated: no_call_begun recover | call_begun orchestrate
decide ContextExceeded: no_call_begun recover | call_begun orchestrate
decide Refused: no_call_begun recover | call_begun orchestrate
decide AnswerGiven: always -
decide StopHooksPassed: target_unmet recover | may_complete completed answered
decide StopHooksBlocked: always recover
decide StopHooksHalted: always failed hook_halted
decide StopReasonUnknown: always failed unknown_stop_reason
decide RunResumed: always -
decide RunPaused: always -
orchestrate ToolsAnswered: trouble_pending recover | stop_asked aborted stopped | turns_left prepare next_turn
 | turns_spent failed max_turns
orchestrate ApprovalAwaited: always suspended
orchestrate RunDenied: always failed denied
orchestrate RunResumed: always -
orchestrate RunPaused: always -
recover TroubleNamed: collapses_staged prepare collapse_drain_retry+collapse_drain_retry | compaction_allowed -
 | context_blocked failed context_blocked
 | can_escalate prepare max_output_tokens_recovery+max_output_tokens_escalate
 | recoveries_left prepare max_output_tokens_recovery+max_output_tokens_recovery
 | recoveries_spent failed output_truncated
 | blocks_left prepare stop_hook_blocking+stop_hook_blocking | blocks_spent failed stop_hook_limit
 | progressing prepare token_budget_continuation+token_budget_continuation
 | little_progress prepare token_budget_continuation+token_budget_continuation
 | retry_allowed - | retries_spent failed model_error | fatal failed model_error | refused failed refused
recover HistorySummarised: shorter prepare reactive_compact_retry+reactive_compact_retry
 | not_shorter failed context_blocked | not_shorter_breaker_open failed context_blocked
recover SummaryFailed: summary_retry_allowed -
 | summary_given_up failed context_blocked | summary_given_up_breaker_open failed context_blocked
recover BackoffElapsed: unsealed stream | sealed prepare next_turn | summary_pending -
recover RunResumed: always -
recover RunPaused: always -
suspended RunDenied: always failed denied
suspended ApprovalGiven: still_awaited - | all_answered orchestrate
suspended RunResumed: always -
"""
EVERYWHERE = """RunAborted: always aborted aborted
DeadlinePassed: always aborted deadline
RunClosed: always aborted closed
DriverFailed: always failed internal_error"""
RESTING = ("prepare", "stream", "decide", "orchestrate", "recover", "suspended")

# What has no row, per state: with the rows above, every pair of state and event.
OF_PREPARE = "RunStarted HistoryCompressed SummaryDue CollapseStaged ContextReady BudgetWithdrawn"
OF_STREAM = "ModelResponded ModelFailed"
OF_DECIDE = (
    "ToolsRequested TurnPaused OutputTruncated ContextExceeded Refused AnswerGiven StopHooksPassed StopHooksBlocked "
    "StopHooksHalted StopReasonUnknown"
)
OF_TOOLS = "ToolsAnswered ApprovalAwaited"
OF_RECOVER = "TroubleNamed HistorySummarised BackoffElapsed"
FROM_OUTSIDE = "RunResumed RunPaused RunAborted DeadlinePassed RunClosed DriverFailed"
ILLEGAL = {
    "prepare": f"{OF_STREAM} {OF_DECIDE} {OF_TOOLS} {OF_RECOVER} RunDenied ApprovalGiven",
    "stream": f"{OF_PREPARE} SummaryFailed {OF_DECIDE} {OF_TOOLS} {OF_RECOVER} RunDenied ApprovalGiven",
    "decide": f"{OF_PREPARE} SummaryFailed {OF_STREAM} {OF_TOOLS} {OF_RECOVER} RunDenied ApprovalGiven",
    "orchestrate": f"{OF_PREPARE} SummaryFailed {OF_STREAM} {OF_DECIDE} {OF_RECOVER} ApprovalGiven",
    "recover": f"{OF_PREPARE} {OF_STREAM} {OF_DECIDE} {OF_TOOLS} RunDenied ApprovalGiven",
    "suspended": f"{OF_PREPARE} SummaryFailed {OF_STREAM} {OF_DECIDE} {OF_TOOLS} {OF_RECOVER} RunPaused",
} | dict.fromkeys(
    ("completed", "aborted", "failed"),
    f"{OF_PREPARE} SummaryFailed {OF_STREAM} {OF_DECIDE} {OF_TOOLS} {OF_RECOVER} {FROM_OUTSIDE} "
    "RunDenied ApprovalGiven",
)


def written() -> dict[tuple[str, str], list[str]]:
    lines = MOVES.replace("\n |", " |").strip().splitlines()
    lines += [f"{state} {line}" for state in RESTING for line in EVERYWHERE.splitlines()]
    told: dict[tuple[str, str], list[str]] = {}
    for line in lines:
        where, rows = line.split(": ")
        state, event = where.split()
        told[state, event] = [str(row) for row in rows.split(" | ")]
    return told


def found(state: State, event: str) -> list[str]:
    rows: list[str] = []
    for row in TABLE.alternatives(state, next(one for one in EVENTS if one.__name__ == event)):
        why = row.reason or row.terminal
        strategy = f"+{row.strategy}" if row.strategy else ""
        rows.append(" ".join(filter(None, [row.guard.name, row.target or "-", f"{why}{strategy}" if why else ""])))
    return rows


@pytest.mark.parametrize("event", [event.__name__ for event in EVENTS])
@pytest.mark.parametrize("state", list(State))
def test_each_state_and_event_does_what_was_written(state: State, event: str) -> None:
    rows = written().get((state, event), [])
    assert found(state, event) == rows
    assert (event in ILLEGAL[state].split()) is (rows == [])
    assert (event in TABLE.legal_events(state)) is (rows != [])


def test_every_event_is_legal_or_listed_as_illegal_in_each_state() -> None:
    names = {event.__name__ for event in EVENTS}
    for state in State:
        legal = {event for where, event in written() if where == state}
        illegal = set(ILLEGAL[state].split())
        assert (legal | illegal, legal & illegal) == (names, set())


def test_prepare_is_entered_for_exactly_six_reasons() -> None:
    """The law of Continue."""
    assert all((row.target is State.PREPARE) is (row.reason is not None) for row in TABLE)
    assert {row.reason for row in TABLE if row.reason} == set(Continue)
    assert {row.strategy for row in TABLE if row.strategy} == set(Strategy)
    assert [str(reason) for reason in Continue] == [
        "next_turn",
        "collapse_drain_retry",
        "reactive_compact_retry",
        "max_output_tokens_recovery",
        "stop_hook_blocking",
        "token_budget_continuation",
    ]


# What raises and what resets each counter: the rows by state, event and guard, in few words.
RAISED = {
    "turn": "TurnPaused[pause_allowed] ToolsAnswered[turns_left] BackoffElapsed[sealed]",
    "level": "HistoryCompressed[edited] HistoryCompressed[summarised] SummaryDue[summary_allowed] "
    "SummaryDue[summary_withheld]",
    "attempts": "SummaryFailed[summary_retry_allowed] TroubleNamed[retry_allowed]",
    "output_recoveries": "TroubleNamed[recoveries_left]",
    "escalated": "TroubleNamed[can_escalate]",
    "drained": "TroubleNamed[collapses_staged]",
    "compact_tried": "HistorySummarised[shorter]",
    "blocks": "StopHooksBlocked[always]",
    "pauses": "TurnPaused[pause_allowed]",
    "low_progress": "TroubleNamed[little_progress]",
    "continuations": "TroubleNamed[progressing] TroubleNamed[little_progress]",
    "breaker": "SummaryFailed[breaker_closed] HistorySummarised[not_shorter] "
    "SummaryFailed[summary_retry_allowed] SummaryFailed[summary_given_up]",
}
NEXT_TURN = RAISED["turn"]
CUT = "[no_call_begun] ".join(["OutputTruncated", "ContextExceeded", "Refused", ""]).split()
RESET = {
    "turn": "",
    "level": "ContextReady[fits] ContextReady[overflow] RunResumed[always]",
    "attempts": "ModelResponded[always] HistorySummarised[shorter]",
    "output_recoveries": NEXT_TURN,
    "escalated": NEXT_TURN,
    "drained": NEXT_TURN,
    "compact_tried": NEXT_TURN,
    "blocks": "StopHooksPassed[target_unmet]",
    "pauses": " ".join(
        ["ToolsRequested[always]", "AnswerGiven[always]", *CUT, *(one.replace("no_", "") for one in CUT)]
    ),
    "low_progress": "TroubleNamed[progressing]",
    "continuations": "",
    "breaker": "HistoryCompressed[summarised] CollapseStaged[always] HistorySummarised[shorter]",
}
BOUNDS = {
    "turn": "max_turns", "level": 8, "attempts": "max_attempts", "output_recoveries": "max_output_recoveries",
    "escalated": 1, "drained": 1, "compact_tried": 1, "blocks": "max_blocks", "pauses": "max_pauses",
    "low_progress": "max_low_progress", "continuations": "max_continuations", "breaker": "breaker_threshold",
}  # fmt: skip


@pytest.mark.parametrize("name", [counter.name for counter in COUNTERS])
def test_each_counter_is_raised_and_reset_where_it_was_meant_to_be(name: str) -> None:
    raised = {f"{row.event.__name__}[{row.guard.name}]" for row in TABLE if name in row.raises}
    reset = {f"{row.event.__name__}[{row.guard.name}]" for row in TABLE if name in row.resets}
    assert (raised, reset) == (set(RAISED[name].split()), set(RESET[name].split()))


def test_each_counter_has_its_bound() -> None:
    assert {counter.name: counter.bound for counter in COUNTERS} == BOUNDS
    assert {counter.name: counter.start for counter in COUNTERS} == dict.fromkeys(BOUNDS, 0) | {"turn": 1}


@pytest.mark.parametrize(
    ("stop_reason", "without_calls", "with_calls"),
    [
        ("end_turn", "AnswerGiven", "ToolsRequested"),
        ("stop_sequence", "AnswerGiven", "ToolsRequested"),
        ("tool_use", "AnswerGiven", "ToolsRequested"),
        ("pause_turn", "TurnPaused", "ToolsRequested"),
        ("compaction", "TurnPaused", "ToolsRequested"),
        ("max_tokens", "OutputTruncated", "OutputTruncated"),
        ("model_context_window_exceeded", "ContextExceeded", "ContextExceeded"),
        ("refusal", "Refused", "Refused"),
        ("something_new", "StopReasonUnknown", "ToolsRequested"),
        ("", "StopReasonUnknown", "ToolsRequested"),
        (None, "StopReasonUnknown", "ToolsRequested"),
    ],
)
def test_every_stop_reason_leads_to_an_event(stop_reason: str | None, without_calls: str, with_calls: str) -> None:
    assert DECISIONS.event(stop_reason, 0).__name__ == without_calls
    assert DECISIONS.event(stop_reason, 2).__name__ == with_calls
    cut = without_calls in ("OutputTruncated", "ContextExceeded", "Refused")
    assert DECISIONS.is_whole(stop_reason) is (not cut and without_calls != "StopReasonUnknown")


def test_the_total_map_names_what_the_api_documents() -> None:
    documented = "end_turn stop_sequence tool_use pause_turn compaction max_tokens refusal"
    assert set(DECISIONS.by_reason) == {*documented.split(), "model_context_window_exceeded"}


def test_the_fingerprint_tells_tables_apart() -> None:
    shorter = type(TABLE)(rows=TABLE.rows[:-1], counters=TABLE.counters, decisions=TABLE.decisions)
    same = type(TABLE)(rows=TABLE.rows, counters=TABLE.counters, decisions=TABLE.decisions)
    assert (same.fingerprint, len(TABLE.fingerprint)) == (TABLE.fingerprint, 64)
    assert shorter.fingerprint != TABLE.fingerprint


def test_the_table_answers_questions() -> None:
    assert TABLE.states == tuple(State)
    assert [state for state in State if TABLE.is_final(state)] == list(FINAL)
    assert (len(list(TABLE)), TABLE.initial) == (len(TABLE), State.PREPARE)
    assert TABLE.rows[0].name == "prepare --RunStarted[always]--> stays"
