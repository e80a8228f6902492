"""What a run may spend: the bounds that the guards compare with."""

from typing import Any

import attrs

from looplatch.states.brief import brief
from looplatch.states.errors import UsageError
from looplatch.states.given import is_count

_count_or_none: Any = attrs.validators.optional(is_count(1, ", or None for no limit"))


def _dollars(_limits: "Limits", attribute: "attrs.Attribute[float | None]", value: object) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e9:
        raise UsageError(
            f"Limits.{attribute.name}", f"{brief(value)} is not allowed", "Give US dollars above 0, or None"
        )


def _seconds(_limits: "Limits", attribute: "attrs.Attribute[float | None]", value: object) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e9:
        raise UsageError(f"Limits.{attribute.name}", f"{brief(value)} is not allowed", "Give seconds above 0, or None")


@attrs.frozen(kw_only=True)
class Limits:
    """The bounds of one run. Every run ends, so the counters have no 'unlimited'; the budgets may be None.

    max_turns: requests that carry on after tools or a pause, the first included.
    max_attempts: waits and retries in a row, of one request, before a model error ends the run.
    max_output_recoveries: times in a row that the model is asked to go on after an answer cut by max_tokens.
    max_blocks: times in a row that stop hooks may refuse the model's end; the last one ends the run.
    max_pauses: times in a row that a paused turn is sent back.
    max_low_progress: continuations in a row below 500 new tokens.
    max_continuations: continuations towards `output_target` in one run.
    breaker_threshold: failed or useless summaries in a row before they are no longer tried.
    output_target: tokens of output wanted from the run, or None: the model alone decides when it is done.
    max_total_tokens: tokens of input (cached ones too) and output together, or None.
    max_cost_usd: US dollars, or None.
    max_wall_s: seconds from the run's beginning, waits and all, or None; then the run ends as `deadline`.
    max_delay_ms: the longest wait before a retry, in milliseconds; a longer `retry-after` ends the run.
    """

    max_turns: int = attrs.field(default=100, validator=is_count(1))
    max_attempts: int = attrs.field(default=5, validator=is_count(0))
    max_output_recoveries: int = attrs.field(default=3, validator=is_count(0))
    max_blocks: int = attrs.field(default=5, validator=is_count(1))
    max_pauses: int = attrs.field(default=10, validator=is_count(0))
    max_low_progress: int = attrs.field(default=3, validator=is_count(1))
    max_continuations: int = attrs.field(default=100, validator=is_count(0))
    breaker_threshold: int = attrs.field(default=3, validator=is_count(1))
    output_target: int | None = attrs.field(default=None, validator=_count_or_none)
    max_total_tokens: int | None = attrs.field(default=None, validator=_count_or_none)
    max_cost_usd: float | None = attrs.field(default=None, validator=_dollars)
    max_wall_s: float | None = attrs.field(default=None, validator=_seconds)
    max_delay_ms: int = attrs.field(default=600_000, validator=is_count(0))

    def fields(self) -> dict[str, int | None]:
        """The limits as the log holds them."""
        plain: dict[str, Any] = attrs.asdict(self)
        del plain["max_cost_usd"], plain["max_wall_s"]
        return {**plain, "max_cost_micro_usd": self.max_cost_micro_usd, "max_wall_ms": self.max_wall_ms}

    @classmethod
    def read(cls, fields: dict[str, Any]) -> "Limits":
        """The limits that `fields` came from. Raises TypeError or UsageError where they are no limits."""
        plain = dict(fields)
        cost, wall = plain.pop("max_cost_micro_usd", None), plain.pop("max_wall_ms", None)
        return cls(
            **plain,
            max_cost_usd=None if cost is None else cost / 1_000_000,
            max_wall_s=None if wall is None else wall / 1_000,
        )

    @property
    def max_cost_micro_usd(self) -> int | None:
        """The cost limit in millionths of a US dollar: the log holds no floats."""
        return None if self.max_cost_usd is None else round(self.max_cost_usd * 1_000_000)

    @property
    def max_wall_ms(self) -> int | None:
        """The limit of wall time in milliseconds, at least one."""
        return None if self.max_wall_s is None else max(1, round(self.max_wall_s * 1_000))
