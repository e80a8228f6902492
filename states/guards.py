"""Guards: named pure predicates over (Context, Event). Those of one state and event are exclusive and exhaustive.

Those of `recover` stand in `recover_guards`.
"""

from typing import Final

from looplatch.states import events as on
from looplatch.states.context import TOTALS, Context
from looplatch.states.event import Event
from looplatch.states.level import Level
from looplatch.states.recover_guards import brought_little
from looplatch.states.transition import guard


@guard()
def always(c: Context, e: Event) -> bool:
    """There is one way on."""
    return True


# --- prepare

MAX_LEVELS: Final = 8  # what may be done to the history in one visit: more than all levels together ever have to do


def _budget_is_spent(c: Context) -> bool:
    tokens, cost = c.limits.max_total_tokens, c.limits.max_cost_micro_usd
    return (tokens is not None and c.total_tokens >= tokens) or (cost is not None and c.cost_micro_usd >= cost)


def _fits(e: on.ContextReady) -> bool:
    return e.window is None or e.tokens <= e.window


@guard(*TOTALS, "event.tokens", "event.window")
def fits(c: Context, e: on.ContextReady) -> bool:
    """The request fits the window, and the budget is not spent."""
    return not _budget_is_spent(c) and _fits(e)


@guard(*TOTALS)
def budget_spent(c: Context, e: Event) -> bool:
    """The tokens or the dollars of the run are used up."""
    return _budget_is_spent(c)


@guard(*TOTALS, "event.tokens", "event.window")
def overflow(c: Context, e: on.ContextReady) -> bool:
    """The request does not fit the window."""
    return not _budget_is_spent(c) and not _fits(e)


@guard("level", "event.level")
def edited(c: Context, e: on.HistoryCompressed) -> bool:
    """The level rearranged what there was, and others may follow."""
    return c.level < MAX_LEVELS and e.level is not Level.COMPACT


@guard("level", "event.level")
def summarised(c: Context, e: on.HistoryCompressed) -> bool:
    """The level had a summary written, it was of use, and others may follow."""
    return c.level < MAX_LEVELS and e.level is Level.COMPACT


def _breaker_lets(c: Context, e: on.SummaryDue) -> bool:
    return c.breaker < c.limits.breaker_threshold or e.breaker_cooled is True


@guard("level", "breaker", "event.breaker_cooled")
def summary_allowed(c: Context, e: on.SummaryDue) -> bool:
    """The breaker is closed, or half-open after its cool-down, and levels are left."""
    return c.level < MAX_LEVELS and _breaker_lets(c, e)


@guard("level", "breaker", "event.breaker_cooled")
def summary_withheld(c: Context, e: on.SummaryDue) -> bool:
    """The breaker is open: too many summaries in a row failed or were of no use. Other levels may follow."""
    return c.level < MAX_LEVELS and not _breaker_lets(c, e)


@guard("level")
def levels_spent(c: Context, e: Event) -> bool:
    """So much was done to the history in this visit that nothing more may be."""
    return c.level >= MAX_LEVELS


@guard("breaker")
def breaker_closed(c: Context, e: Event) -> bool:
    """Fewer summaries failed in a row than open the breaker."""
    return c.breaker < c.limits.breaker_threshold


@guard("breaker")
def breaker_open(c: Context, e: Event) -> bool:
    """The summary was a trial of the half-open breaker, which stays open."""
    return c.breaker >= c.limits.breaker_threshold


# --- stream, decide

AnyBegun = on.ModelFailed | on.OutputTruncated | on.ContextExceeded | on.Refused | on.RunResumed


@guard("event.begun")
def no_call_begun(c: Context, e: AnyBegun) -> bool:
    """No tool call of the answer had begun: it is discarded whole."""
    return e.begun == 0


@guard("event.begun")
def call_begun(c: Context, e: AnyBegun) -> bool:
    """A tool call of the answer had begun: its prefix is kept."""
    return e.begun > 0


@guard("pauses", "turn")
def pause_allowed(c: Context, e: Event) -> bool:
    """Pauses and turns are left."""
    return c.pauses < c.limits.max_pauses and c.turn < c.limits.max_turns


@guard("pauses")
def pauses_spent(c: Context, e: Event) -> bool:
    """Too many pauses in a row."""
    return c.pauses >= c.limits.max_pauses


@guard("pauses", "turn")
def pause_without_turns(c: Context, e: Event) -> bool:
    """A pause is allowed, but no turn is left for it."""
    return c.pauses < c.limits.max_pauses and c.turn >= c.limits.max_turns


def _wants_more(c: Context, e: on.StopHooksPassed) -> bool:
    target = c.limits.output_target
    return (
        target is not None
        and 10 * c.output_tokens < 9 * target
        and c.low_progress + brought_little(c, e) < c.limits.max_low_progress
        and c.continuations < c.limits.max_continuations
        and not _budget_is_spent(c)
    )


_TARGET = ("low_progress", "continuations", "event.new_tokens", *TOTALS)


@guard(*_TARGET)
def target_unmet(c: Context, e: on.StopHooksPassed) -> bool:
    """Under 90 % of the wanted output, still progressing, within all limits."""
    return _wants_more(c, e)


@guard(*_TARGET)
def may_complete(c: Context, e: on.StopHooksPassed) -> bool:
    """Nothing more is wanted, or nothing more can be had."""
    return not _wants_more(c, e)


# --- orchestrate, suspended


@guard("trouble")
def trouble_pending(c: Context, e: Event) -> bool:
    """The answer was cut: its trouble comes first."""
    return c.trouble is not None


@guard("trouble", "event.stop_asked")
def stop_asked(c: Context, e: on.ToolsAnswered) -> bool:
    """The caller asked to stop after this turn."""
    return c.trouble is None and e.stop_asked is True


@guard("trouble", "event.stop_asked", "turn")
def turns_left(c: Context, e: on.ToolsAnswered) -> bool:
    """Another turn may follow."""
    return c.trouble is None and e.stop_asked is False and c.turn < c.limits.max_turns


@guard("trouble", "event.stop_asked", "turn")
def turns_spent(c: Context, e: on.ToolsAnswered) -> bool:
    """This was the last turn allowed."""
    return c.trouble is None and e.stop_asked is False and c.turn >= c.limits.max_turns


@guard("event.awaited")
def still_awaited(c: Context, e: on.ApprovalGiven) -> bool:
    """Other calls wait for approval."""
    return e.awaited > 0


@guard("event.awaited")
def all_answered(c: Context, e: on.ApprovalGiven) -> bool:
    """No call waits for approval any more."""
    return e.awaited == 0
