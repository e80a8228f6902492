"""Guards that tables of earlier looplatches had: their logs are judged by them.

A guard whose meaning changes moves here as it was; its name may live on, as long as the new one reads other fields.
"""

from typing import Any, Final

from looplatch.states.context import Context
from looplatch.states.level import Level
from looplatch.states.transition import Guard, guard


@guard("event.level")
def edited(c: Context, e: Any) -> bool:
    """The level rearranged what there was."""
    return e.level is not Level.COMPACT


@guard("event.level")
def summarised(c: Context, e: Any) -> bool:
    """The level had a summary written, and it was of use."""
    return e.level is Level.COMPACT


@guard("breaker", "event.breaker_cooled")
def summary_allowed(c: Context, e: Any) -> bool:
    """The breaker is closed, or half-open after its cool-down."""
    return c.breaker < c.limits.breaker_threshold or e.breaker_cooled is True


@guard("breaker", "event.breaker_cooled")
def summary_withheld(c: Context, e: Any) -> bool:
    """The breaker is open: too many summaries in a row failed or were of no use."""
    return c.breaker >= c.limits.breaker_threshold and e.breaker_cooled is not True


PAST_GUARDS: Final[tuple[Guard, ...]] = (edited, summarised, summary_allowed, summary_withheld)
