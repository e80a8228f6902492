"""Guards that tables of earlier looplatches had: their logs are judged by them.

A guard whose meaning changes moves here as it was; its name may live on, as long as the new one reads other fields.
"""

from typing import Any, Final

from looplatch.states import events as on
from looplatch.states.context import Context
from looplatch.states.level import Level
from looplatch.states.transition import Guard, guard


@guard("event.level")
def edited(c: Context, e: on.HistoryCompressed) -> bool:
    """The level rearranged what there was."""
    return e.level is not Level.COMPACT


@guard("event.level")
def summarised(c: Context, e: on.HistoryCompressed) -> bool:
    """The level had a summary written, and it was of use."""
    return e.level is Level.COMPACT


@guard("breaker", "event.breaker_cooled")
def summary_allowed(c: Context, e: on.SummaryDue) -> bool:
    """The breaker is closed, or half-open after its cool-down."""
    return c.breaker < c.limits.breaker_threshold or e.breaker_cooled is True


@guard("breaker", "event.breaker_cooled")
def summary_withheld(c: Context, e: on.SummaryDue) -> bool:
    """The breaker is open: too many summaries in a row failed or were of no use."""
    return c.breaker >= c.limits.breaker_threshold and e.breaker_cooled is not True


def _summary_retries(c: Context, e: on.SummaryFailed) -> bool:
    return e.transient is True and c.attempts < c.limits.max_attempts and e.delay_ms <= c.limits.max_delay_ms


@guard("event.transient", "event.delay_ms", "attempts")
def summary_retry_allowed(c: Context, e: on.SummaryFailed) -> bool:
    """The summary may succeed later, and attempts are left."""
    return _summary_retries(c, e)


@guard("event.transient", "event.delay_ms", "attempts")
def summary_given_up(c: Context, e: on.SummaryFailed) -> bool:
    """The summary will not succeed, or attempts are used up."""
    return not _summary_retries(c, e)


PAST_GUARDS: Final[tuple[Guard[Any], ...]] = (
    edited,
    summarised,
    summary_allowed,
    summary_withheld,
    summary_retry_allowed,
    summary_given_up,
)
