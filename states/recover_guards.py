"""The guards of `recover`: which strategy fits the trouble, and whether it may be tried (again)."""

from typing import Final

from looplatch.states import events as on
from looplatch.states.context import Context
from looplatch.states.event import Event
from looplatch.states.transition import guard
from looplatch.states.trouble import TroubleKind

LOW_PROGRESS_TOKENS: Final = 500  # a continuation below this counts as little progress


def brought_little(c: Context, e: on.StopHooksPassed | on.TroubleNamed) -> bool:
    """Whether the last continuation, if there was one, brought under 500 tokens."""
    return c.continuations > 0 and e.new_tokens < LOW_PROGRESS_TOKENS


# --- overflow


def _drains(c: Context, e: on.TroubleNamed) -> bool:
    return e.staged > 0 and c.drained < 1


def _may_compact(c: Context, e: on.TroubleNamed) -> bool:
    whole = c.breaker < c.limits.breaker_threshold or e.breaker_cooled is True
    return e.can_summarise is True and c.compact_tried < 1 and whole


_OVERFLOW = ("event.trouble", "event.staged", "drained")
_COMPACT = (*_OVERFLOW, "event.can_summarise", "event.breaker_cooled", "breaker", "compact_tried")


@guard(*_OVERFLOW)
def collapses_staged(c: Context, e: on.TroubleNamed) -> bool:
    """The prompt is too long, and staged summaries of spans wait to be applied."""
    return e.trouble is TroubleKind.OVERFLOW and _drains(c, e)


@guard(*_COMPACT)
def compaction_allowed(c: Context, e: on.TroubleNamed) -> bool:
    """The prompt is too long, nothing is staged, and a summary was not tried yet and may be tried."""
    return e.trouble is TroubleKind.OVERFLOW and not _drains(c, e) and _may_compact(c, e)


@guard(*_COMPACT)
def context_blocked(c: Context, e: on.TroubleNamed) -> bool:
    """The prompt is too long, and nothing is left that would shorten it."""
    return e.trouble is TroubleKind.OVERFLOW and not _drains(c, e) and not _may_compact(c, e)


@guard("event.tokens_before", "event.tokens_after")
def shorter(c: Context, e: on.HistorySummarised) -> bool:
    """The summary made the history shorter."""
    return e.tokens_after < e.tokens_before


@guard("event.tokens_before", "event.tokens_after", "breaker")
def not_shorter(c: Context, e: on.HistorySummarised) -> bool:
    """The summary was of no use."""
    return e.tokens_after >= e.tokens_before and c.breaker < c.limits.breaker_threshold


@guard("event.tokens_before", "event.tokens_after", "breaker")
def not_shorter_breaker_open(c: Context, e: on.HistorySummarised) -> bool:
    """The summary was of no use, and a trial of the half-open breaker, which stays open."""
    return e.tokens_after >= e.tokens_before and c.breaker >= c.limits.breaker_threshold


def _summary_retries(c: Context, e: on.SummaryFailed) -> bool:
    stays_closed = c.breaker + 1 < c.limits.breaker_threshold  # with this failure counted
    attempts_left = c.attempts < c.limits.max_attempts and e.delay_ms <= c.limits.max_delay_ms
    return e.transient is True and stays_closed and attempts_left


_SUMMARY = ("event.transient", "event.delay_ms", "attempts", "breaker")


@guard(*_SUMMARY)
def summary_retry_allowed(c: Context, e: on.SummaryFailed) -> bool:
    """The summary may succeed later, attempts are left, and the breaker stays closed."""
    return _summary_retries(c, e)


@guard(*_SUMMARY)
def summary_given_up(c: Context, e: on.SummaryFailed) -> bool:
    """The summary will not succeed, attempts are used up, or the breaker opens."""
    return not _summary_retries(c, e) and c.breaker < c.limits.breaker_threshold


@guard(*_SUMMARY)
def summary_given_up_breaker_open(c: Context, e: on.SummaryFailed) -> bool:
    """The summary was a trial of the half-open breaker, which stays open."""
    return not _summary_retries(c, e) and c.breaker >= c.limits.breaker_threshold


# --- truncated


def _escalates(c: Context, e: on.TroubleNamed) -> bool:
    return not c.sealed and c.escalated < 1 and e.output_limit > 0


_TRUNCATED = ("event.trouble", "event.output_limit", "sealed", "escalated")


@guard(*_TRUNCATED)
def can_escalate(c: Context, e: on.TroubleNamed) -> bool:
    """The answer was cut, no call had begun, and a higher limit was not tried yet and is possible."""
    return e.trouble is TroubleKind.TRUNCATED and _escalates(c, e)


@guard(*_TRUNCATED, "output_recoveries")
def recoveries_left(c: Context, e: on.TroubleNamed) -> bool:
    """The answer was cut, and the model may be asked again to go on."""
    left = c.output_recoveries < c.limits.max_output_recoveries
    return e.trouble is TroubleKind.TRUNCATED and not _escalates(c, e) and left


@guard(*_TRUNCATED, "output_recoveries")
def recoveries_spent(c: Context, e: on.TroubleNamed) -> bool:
    """The answer was cut once too often."""
    left = c.output_recoveries < c.limits.max_output_recoveries
    return e.trouble is TroubleKind.TRUNCATED and not _escalates(c, e) and not left


# --- the other troubles


@guard("event.trouble", "blocks")
def blocks_left(c: Context, e: on.TroubleNamed) -> bool:
    """A stop hook blocked, and may block again."""
    return e.trouble is TroubleKind.HOOK_BLOCKED and c.blocks < c.limits.max_blocks


@guard("event.trouble", "blocks")
def blocks_spent(c: Context, e: on.TroubleNamed) -> bool:
    """Stop hooks blocked too often in a row."""
    return e.trouble is TroubleKind.HOOK_BLOCKED and c.blocks >= c.limits.max_blocks


@guard("event.trouble", "event.new_tokens", "continuations")
def progressing(c: Context, e: on.TroubleNamed) -> bool:
    """More output is wanted, and the last continuation (if there was one) brought at least 500 tokens."""
    return e.trouble is TroubleKind.TARGET_UNMET and not brought_little(c, e)


@guard("event.trouble", "event.new_tokens", "continuations")
def little_progress(c: Context, e: on.TroubleNamed) -> bool:
    """More output is wanted, but the last continuation brought under 500 tokens."""
    return e.trouble is TroubleKind.TARGET_UNMET and brought_little(c, e)


def _retries(c: Context, e: on.TroubleNamed) -> bool:
    goes_on = not c.sealed or c.turn < c.limits.max_turns
    return c.attempts < c.limits.max_attempts and goes_on and e.delay_ms <= c.limits.max_delay_ms


_TRANSIENT = ("event.trouble", "event.delay_ms", "attempts", "sealed", "turn")


@guard(*_TRANSIENT)
def retry_allowed(c: Context, e: on.TroubleNamed) -> bool:
    """The request may succeed later: attempts are left, and a turn where the cut answer was kept."""
    return e.trouble is TroubleKind.TRANSIENT and _retries(c, e)


@guard(*_TRANSIENT)
def retries_spent(c: Context, e: on.TroubleNamed) -> bool:
    """The request may succeed later, but no attempt is left, or the wait is too long."""
    return e.trouble is TroubleKind.TRANSIENT and not _retries(c, e)


@guard("event.trouble")
def fatal(c: Context, e: on.TroubleNamed) -> bool:
    """The same request will never succeed."""
    return e.trouble is TroubleKind.FATAL


@guard("event.trouble")
def refused(c: Context, e: on.TroubleNamed) -> bool:
    """The model refused."""
    return e.trouble is TroubleKind.REFUSED


@guard("summary_pending", "sealed")
def unsealed(c: Context, e: Event) -> bool:
    """The same request is sent again."""
    return not c.summary_pending and not c.sealed


@guard("summary_pending", "sealed")
def sealed(c: Context, e: Event) -> bool:
    """The kept prefix and its results are sent as the next turn."""
    return not c.summary_pending and c.sealed


@guard("summary_pending")
def summary_pending(c: Context, e: Event) -> bool:
    """The summary is asked for again."""
    return c.summary_pending
