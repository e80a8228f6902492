"""The retry of a request that failed for now: no strategy of its own, since the loop does not go round again.

Guard: `retry_allowed` (attempts are left; where the cut answer was sealed, a turn, too; the wait is not too long).
Action: wait, then send the same request, or the next one if the answer was sealed; to the fallback model when that is
due.
"""

from typing import Final

from looplatch.recovery.failure import Failure
from looplatch.states.recover_guards import retry_allowed

GUARDS: Final = (retry_allowed,)
FIRST_MS: Final = 500
LONGEST_MS: Final = 32_000
FALLBACK_AFTER: Final = 2  # failed attempts in a row for want of capacity, before another model is asked


def backoff_ms(attempt: int, jitter: float, retry_after_ms: int | None = None) -> int:
    """The wait before try number `attempt` + 1, in milliseconds.

    What the server asked for is honoured to the letter. Else it doubles from half a second up to 32 seconds, of which
    `jitter` (0 to 1, from a source of randomness) takes up to a half, so that many clients do not come back at once.
    """
    if retry_after_ms is not None:
        return max(0, retry_after_ms)
    whole = min(LONGEST_MS, FIRST_MS << min(attempt, 16))
    return whole - int(whole * 0.5 * min(max(jitter, 0.0), 1.0))


def wait_ms(attempt: int, jitter: float, failure: Failure | None) -> int:
    """The wait before a request that failed is sent again, as `backoff_ms`; None: it is not known why it failed.

    Where the API has measured that only the answer's limit was too high, the next request has a lower one: waiting
    would mend nothing.
    """
    asked = None if failure is None else failure.retry_after_ms
    if failure is not None and failure.measured is not None:
        return asked or 0
    return backoff_ms(attempt, jitter, asked)


def fallback_due(attempt: int, failure: Failure | None, *, available: bool) -> bool:
    """Whether the retry goes to the fallback model: after repeated overload, and never for any other trouble."""
    if not available or failure is None or attempt + 1 < FALLBACK_AFTER:
        return False
    return failure.type == "overloaded_error" or failure.status == 529
