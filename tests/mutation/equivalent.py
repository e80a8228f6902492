"""Mutants that no behaviour can tell apart, with the reason."""

from typing import Final

_OPEN: Final = "c.breaker >= c.limits.breaker_threshold"

EQUIVALENT: Final[dict[str, str]] = {
    f"recover_guards: summary_given_up_breaker_open: not _summary_retries(c, e) and {_OPEN} -> {_OPEN}": (
        "a summary is retried only where the breaker stays below its threshold"
    ),
    "decisions: Decisions.event: stop_reason or '' -> stop_reason": "no answer ends for a reason named '' or None",
}
