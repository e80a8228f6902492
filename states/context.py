"""The context: all that guards read besides the event. Frozen; each move yields a new one."""

from typing import Any, Self

import attrs

from looplatch.states.limits import Limits
from looplatch.states.reasons import Continue
from looplatch.states.trouble import TroubleKind


@attrs.frozen(kw_only=True, slots=False)
class Context:
    """What a run has used up and what it is in the middle of.

    The counters are described, with their bounds, where the table declares them.
    """

    limits: Limits = attrs.field(factory=Limits)

    # Counters
    turn: int = 1
    level: int = 0
    attempts: int = 0
    output_recoveries: int = 0
    escalated: int = 0
    drained: int = 0
    compact_tried: int = 0
    blocks: int = 0
    pauses: int = 0
    low_progress: int = 0
    continuations: int = 0
    breaker: int = 0

    # What the run is in the middle of
    reason: Continue | None = None  # the last reason to go on
    trouble: TroubleKind | None = None  # what `recover` is to deal with, now or after the tools
    sealed: bool = False  # the answer was cut after a call had begun: its prefix is history
    summary_pending: bool = False  # a failed summary waits to be asked for again
    output_limit: int = 0  # max_tokens of an escalated request; 0: what the caller asked for
    fallback: bool = False  # requests go to the fallback model

    # Totals
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_micro_usd: int = 0

    def changed(self, change: dict[str, Any]) -> Self:
        """The context with other values in some fields. `attrs.evolve` does the same, by way of every field."""
        new = object.__new__(type(self))
        object.__setattr__(new, "__dict__", self.__dict__ | change)
        return new

    @property
    def total_tokens(self) -> int:
        """Input, cached or not, and output: what `Limits.max_total_tokens` bounds."""
        return self.input_tokens + self.output_tokens + self.cache_read_tokens + self.cache_write_tokens


TOKENS: tuple[str, ...] = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
TOTALS: tuple[str, ...] = (*TOKENS, "cost_micro_usd")
FIELDS = tuple(field.name for field in attrs.fields(Context) if field.name != "limits")
