"""The table: every legal move of a run. Nothing else decides a move, a guard or a terminal reason.

The machine, the diagrams, the verifier, the checker and the property tests are all read from `TABLE`. The guards of
one state and event single out exactly one row. An edge enters `prepare` if and only if it carries one of the six
reasons of `Continue`. Rows whose target is None stay where they are: nothing is entered, their commands run.
"""

from typing import Final

from looplatch.states import commands as do
from looplatch.states import events as on
from looplatch.states import guards as when
from looplatch.states import recover_guards as cure
from looplatch.states.decisions import Decisions
from looplatch.states.reasons import Continue, Strategy, Terminal
from looplatch.states.state import WORKING, State
from looplatch.states.transition import AnEvent, Counter, Guard, Table, Transition
from looplatch.states.trouble import TroubleKind

PREPARE, STREAM, DECIDE, ORCHESTRATE, RECOVER = WORKING
SUSPENDED, COMPLETED, ABORTED, FAILED = State.SUSPENDED, State.COMPLETED, State.ABORTED, State.FAILED

COUNTERS: Final = (
    Counter(name="turn", start=1, bound="max_turns", doc="raised by next_turn; never reset"),
    Counter(name="level", bound=when.MAX_LEVELS, doc="raised by what shortens the history; reset on leaving prepare"),
    Counter(name="attempts", bound="max_attempts", doc="raised by a wait before a retry; reset by an answer"),
    Counter(
        name="output_recoveries", bound="max_output_recoveries", doc="raised by asking to go on; reset by next_turn"
    ),
    Counter(name="escalated", bound=1, doc="raised by the higher output limit; reset by next_turn"),
    Counter(name="drained", bound=1, doc="raised by draining staged summaries; reset by next_turn"),
    Counter(name="compact_tried", bound=1, doc="raised by a compaction after an overflow; reset by next_turn"),
    Counter(name="blocks", bound="max_blocks", doc="raised by a stop hook that blocks; reset when they pass"),
    Counter(name="pauses", bound="max_pauses", doc="raised by a paused turn; reset by any other answer"),
    Counter(
        name="low_progress",
        bound="max_low_progress",
        doc="raised by a continuation under 500 tokens; reset by one over",
    ),
    Counter(name="continuations", bound="max_continuations", doc="raised by each continuation; never reset"),
    Counter(
        name="breaker", bound="breaker_threshold", doc="raised by a failed or useless summary; reset by a useful one"
    ),
)

DECISIONS: Final = Decisions(
    by_reason={
        "end_turn": on.AnswerGiven,
        "stop_sequence": on.AnswerGiven,
        "tool_use": on.AnswerGiven,  # with no call left to answer
        "pause_turn": on.TurnPaused,
        "compaction": on.TurnPaused,
        "max_tokens": on.OutputTruncated,
        "model_context_window_exceeded": on.ContextExceeded,
        "refusal": on.Refused,
    },
    cut=frozenset({"max_tokens", "model_context_window_exceeded", "refusal"}),
    with_calls=on.ToolsRequested,
    otherwise=on.StopReasonUnknown,
)


def _t(
    sources: State | tuple[State, ...],
    event: type[AnEvent],
    guard: Guard[AnEvent],
    target: State | None,
    *then: do.Command,
    reason: Continue | None = None,
    strategy: Strategy | None = None,
    terminal: Terminal | None = None,
    raises: str = "",
    resets: str = "",
    sets: dict[str, object] | None = None,
    takes: str = "",
    adds: bool = False,
) -> Transition:
    return Transition(
        sources=sources if isinstance(sources, tuple) else (sources,),
        event=event,
        guard=guard,
        target=target,
        commands=then,
        reason=reason,
        strategy=strategy,
        terminal=terminal,
        raises=tuple(raises.split()),
        resets=tuple(resets.split()),
        sets=tuple((sets or {}).items()),
        takes=tuple(takes.split()),
        adds=adds,
    )


# What every new turn gives back, and what every way out of trouble leaves behind.
_NEW_TURN = "output_recoveries escalated drained compact_tried"
_MENDED: dict[str, object] = {"trouble": None, "sealed": False, "summary_pending": False}
_TURNED: dict[str, object] = {**_MENDED, "output_limit": 0}

_PREPARE = (
    _t(PREPARE, on.RunStarted, when.always, None, do.FitContext()),
    _t(PREPARE, on.HistoryCompressed, when.edited, None, do.FitContext(), raises="level", adds=True),
    _t(
        PREPARE, on.HistoryCompressed, when.summarised, None, do.FitContext(),
        raises="level", resets="breaker", adds=True,
    ),
    _t(
        PREPARE, on.HistoryCompressed, when.levels_spent, FAILED, do.Finish(),
        terminal=Terminal.CONTEXT_BLOCKED, adds=True,
    ),
    _t(PREPARE, on.SummaryDue, when.summary_allowed, None, do.WriteSummary(), raises="level"),
    _t(PREPARE, on.SummaryDue, when.summary_withheld, None, do.FitContext(), raises="level"),
    _t(PREPARE, on.SummaryDue, when.levels_spent, FAILED, do.Finish(), terminal=Terminal.CONTEXT_BLOCKED),
    _t(PREPARE, on.CollapseStaged, when.always, None, do.FitContext(), resets="breaker", adds=True),
    _t(PREPARE, on.SummaryFailed, when.breaker_closed, None, do.FitContext(), raises="breaker", adds=True),
    _t(PREPARE, on.SummaryFailed, when.breaker_open, None, do.FitContext(), adds=True),
    _t(PREPARE, on.ContextReady, when.fits, STREAM, do.CallModel(), resets="level"),
    _t(PREPARE, on.ContextReady, when.budget_spent, FAILED, do.Finish(), terminal=Terminal.BUDGET_SPENT),
    _t(
        PREPARE, on.ContextReady, when.overflow, RECOVER, do.NameTrouble(),
        resets="level", sets={"trouble": TroubleKind.OVERFLOW},
    ),
    _t(PREPARE, on.BudgetWithdrawn, when.always, FAILED, do.Finish(), terminal=Terminal.BUDGET_SPENT),
)  # fmt: skip

_STREAM = (
    _t(STREAM, on.ModelResponded, when.always, DECIDE, do.ReadStopReason(), resets="attempts", adds=True),
    _t(STREAM, on.ModelFailed, when.no_call_begun, RECOVER, do.NameTrouble(), takes="trouble", adds=True),
    _t(
        STREAM, on.ModelFailed, when.call_begun, ORCHESTRATE, do.AnswerCalls(),
        takes="trouble", sets={"sealed": True}, adds=True,
    ),
)  # fmt: skip

_CUT: tuple[tuple[type[on.OutputTruncated | on.ContextExceeded | on.Refused], TroubleKind], ...] = (
    (on.OutputTruncated, TroubleKind.TRUNCATED),
    (on.ContextExceeded, TroubleKind.OVERFLOW),
    (on.Refused, TroubleKind.REFUSED),
)

_DECIDE = (
    _t(DECIDE, on.ToolsRequested, when.always, ORCHESTRATE, do.AnswerCalls(), resets="pauses"),
    _t(
        DECIDE, on.TurnPaused, when.pause_allowed, PREPARE, do.FitContext(),
        reason=Continue.NEXT_TURN, raises="turn pauses", resets=_NEW_TURN, sets=_TURNED,
    ),
    _t(DECIDE, on.TurnPaused, when.pauses_spent, FAILED, do.Finish(), terminal=Terminal.PAUSE_LIMIT),
    _t(DECIDE, on.TurnPaused, when.pause_without_turns, FAILED, do.Finish(), terminal=Terminal.MAX_TURNS),
    *(
        row
        for event, trouble in _CUT
        for row in (
            _t(
                DECIDE, event, when.no_call_begun, RECOVER, do.NameTrouble(),
                resets="pauses", sets={"trouble": trouble},
            ),
            _t(
                DECIDE, event, when.call_begun, ORCHESTRATE, do.AnswerCalls(),
                resets="pauses", sets={"trouble": trouble, "sealed": True},
            ),
        )
    ),
    _t(DECIDE, on.AnswerGiven, when.always, None, do.RunStopHooks(), resets="pauses"),
    _t(
        DECIDE, on.StopHooksPassed, when.target_unmet, RECOVER, do.NameTrouble(),
        resets="blocks", sets={"trouble": TroubleKind.TARGET_UNMET},
    ),
    _t(DECIDE, on.StopHooksPassed, when.may_complete, COMPLETED, do.Finish(), terminal=Terminal.ANSWERED),
    _t(
        DECIDE, on.StopHooksBlocked, when.always, RECOVER, do.NameTrouble(),
        raises="blocks", sets={"trouble": TroubleKind.HOOK_BLOCKED},
    ),
    _t(DECIDE, on.StopHooksHalted, when.always, FAILED, do.Finish(), terminal=Terminal.HOOK_HALTED),
    _t(DECIDE, on.StopReasonUnknown, when.always, FAILED, do.Finish(), terminal=Terminal.UNKNOWN_STOP_REASON),
)  # fmt: skip

_ORCHESTRATE = (
    _t(ORCHESTRATE, on.ToolsAnswered, when.trouble_pending, RECOVER, do.NameTrouble(), adds=True),
    _t(ORCHESTRATE, on.ToolsAnswered, when.stop_asked, ABORTED, do.Finish(), terminal=Terminal.STOPPED, adds=True),
    _t(
        ORCHESTRATE, on.ToolsAnswered, when.turns_left, PREPARE, do.FitContext(),
        reason=Continue.NEXT_TURN, raises="turn", resets=_NEW_TURN, sets=_TURNED, adds=True,
    ),
    _t(ORCHESTRATE, on.ToolsAnswered, when.turns_spent, FAILED, do.Finish(), terminal=Terminal.MAX_TURNS, adds=True),
    _t(ORCHESTRATE, on.ApprovalAwaited, when.always, SUSPENDED, do.AwaitApproval()),
    _t((ORCHESTRATE, SUSPENDED), on.RunDenied, when.always, FAILED, do.Finish(), terminal=Terminal.DENIED),
    _t(SUSPENDED, on.ApprovalGiven, when.still_awaited, None, do.AwaitApproval()),
    _t(SUSPENDED, on.ApprovalGiven, when.all_answered, ORCHESTRATE, do.AnswerCalls()),
)  # fmt: skip

_RECOVER = (
    # Overflow: drain what is staged, then compact, then give up.
    _t(
        RECOVER, on.TroubleNamed, cure.collapses_staged, PREPARE, do.DrainCollapses(), do.FitContext(),
        reason=Continue.COLLAPSE_DRAIN_RETRY, strategy=Strategy.COLLAPSE_DRAIN_RETRY, raises="drained", sets=_MENDED,
    ),
    _t(RECOVER, on.TroubleNamed, cure.compaction_allowed, None, do.Summarise()),
    _t(RECOVER, on.TroubleNamed, cure.context_blocked, FAILED, do.Finish(), terminal=Terminal.CONTEXT_BLOCKED),
    _t(
        RECOVER, on.HistorySummarised, cure.shorter, PREPARE, do.FitContext(),
        reason=Continue.REACTIVE_COMPACT_RETRY, strategy=Strategy.REACTIVE_COMPACT_RETRY,
        raises="compact_tried", resets="breaker attempts", sets=_MENDED, adds=True,
    ),
    _t(
        RECOVER, on.HistorySummarised, cure.not_shorter, FAILED, do.Finish(),
        terminal=Terminal.CONTEXT_BLOCKED, raises="breaker", adds=True,
    ),
    _t(
        RECOVER, on.HistorySummarised, cure.not_shorter_breaker_open, FAILED, do.Finish(),
        terminal=Terminal.CONTEXT_BLOCKED, adds=True,
    ),
    _t(
        RECOVER, on.SummaryFailed, cure.summary_retry_allowed, None, do.Sleep(),
        raises="attempts breaker", sets={"summary_pending": True}, adds=True,
    ),
    _t(
        RECOVER, on.SummaryFailed, cure.summary_given_up, FAILED, do.Finish(),
        terminal=Terminal.CONTEXT_BLOCKED, raises="breaker", adds=True,
    ),
    _t(
        RECOVER, on.SummaryFailed, cure.summary_given_up_breaker_open, FAILED, do.Finish(),
        terminal=Terminal.CONTEXT_BLOCKED, adds=True,
    ),
    # Truncated: once the same request with a higher limit, then ask to go on.
    _t(
        RECOVER, on.TroubleNamed, cure.can_escalate, PREPARE, do.FitContext(),
        reason=Continue.MAX_OUTPUT_TOKENS_RECOVERY, strategy=Strategy.MAX_OUTPUT_TOKENS_ESCALATE,
        raises="escalated", sets=_MENDED, takes="output_limit",
    ),
    _t(
        RECOVER, on.TroubleNamed, cure.recoveries_left, PREPARE, do.AskToGoOn(), do.FitContext(),
        reason=Continue.MAX_OUTPUT_TOKENS_RECOVERY, strategy=Strategy.MAX_OUTPUT_TOKENS_RECOVERY,
        raises="output_recoveries", sets=_MENDED,
    ),
    _t(RECOVER, on.TroubleNamed, cure.recoveries_spent, FAILED, do.Finish(), terminal=Terminal.OUTPUT_TRUNCATED),
    # A stop hook blocked.
    _t(
        RECOVER, on.TroubleNamed, cure.blocks_left, PREPARE, do.InjectHookError(), do.FitContext(),
        reason=Continue.STOP_HOOK_BLOCKING, strategy=Strategy.STOP_HOOK_BLOCKING, sets=_MENDED,
    ),
    _t(RECOVER, on.TroubleNamed, cure.blocks_spent, FAILED, do.Finish(), terminal=Terminal.STOP_HOOK_LIMIT),
    # More output is wanted.
    _t(
        RECOVER, on.TroubleNamed, cure.progressing, PREPARE, do.InjectBudgetPrompt(), do.FitContext(),
        reason=Continue.TOKEN_BUDGET_CONTINUATION, strategy=Strategy.TOKEN_BUDGET_CONTINUATION,
        raises="continuations", resets="low_progress", sets=_MENDED,
    ),
    _t(
        RECOVER, on.TroubleNamed, cure.little_progress, PREPARE, do.InjectBudgetPrompt(), do.FitContext(),
        reason=Continue.TOKEN_BUDGET_CONTINUATION, strategy=Strategy.TOKEN_BUDGET_CONTINUATION,
        raises="continuations low_progress", sets=_MENDED,
    ),
    # The model call failed.
    _t(RECOVER, on.TroubleNamed, cure.retry_allowed, None, do.Sleep(), raises="attempts", takes="fallback"),
    _t(RECOVER, on.TroubleNamed, cure.retries_spent, FAILED, do.Finish(), terminal=Terminal.MODEL_ERROR),
    _t(RECOVER, on.TroubleNamed, cure.fatal, FAILED, do.Finish(), terminal=Terminal.MODEL_ERROR),
    _t(RECOVER, on.TroubleNamed, cure.refused, FAILED, do.Finish(), terminal=Terminal.REFUSED),
    _t(RECOVER, on.BackoffElapsed, cure.unsealed, STREAM, do.CallModel(), sets=_MENDED),
    _t(
        RECOVER, on.BackoffElapsed, cure.sealed, PREPARE, do.FitContext(),
        reason=Continue.NEXT_TURN, raises="turn", resets=_NEW_TURN, sets=_TURNED,
    ),
    _t(RECOVER, on.BackoffElapsed, cure.summary_pending, None, do.Summarise(), sets={"summary_pending": False}),
)  # fmt: skip

_ANYWHERE = (
    _t(PREPARE, on.RunResumed, when.always, None, do.FitContext(), resets="level"),
    _t(STREAM, on.RunResumed, when.no_call_begun, None, do.CallModel()),
    _t(
        STREAM, on.RunResumed, when.call_begun, ORCHESTRATE, do.AnswerCalls(),
        sets={"trouble": TroubleKind.TRANSIENT, "sealed": True},
    ),
    _t(DECIDE, on.RunResumed, when.always, None, do.ReadStopReason()),
    _t(ORCHESTRATE, on.RunResumed, when.always, None, do.AnswerCalls()),
    _t(RECOVER, on.RunResumed, when.always, None, do.NameTrouble()),
    _t(SUSPENDED, on.RunResumed, when.always, None, do.AwaitApproval()),
    _t(WORKING, on.RunPaused, when.always, None),
    _t((*WORKING, SUSPENDED), on.RunAborted, when.always, ABORTED, do.Finish(), terminal=Terminal.ABORTED),
    _t((*WORKING, SUSPENDED), on.DeadlinePassed, when.always, ABORTED, do.Finish(), terminal=Terminal.DEADLINE),
    _t((*WORKING, SUSPENDED), on.RunClosed, when.always, ABORTED, do.Finish(), terminal=Terminal.CLOSED),
    _t((*WORKING, SUSPENDED), on.DriverFailed, when.always, FAILED, do.Finish(), terminal=Terminal.INTERNAL_ERROR),
)  # fmt: skip

TABLE: Final = Table(
    rows=(*_PREPARE, *_STREAM, *_DECIDE, *_ORCHESTRATE, *_RECOVER, *_ANYWHERE),
    counters=COUNTERS,
    decisions=DECISIONS,
)
