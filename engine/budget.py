"""The budget of a run: what it has spent, reported by events or not yet, and what is left of its limits."""

from collections.abc import Mapping

import attrs

from looplatch.ports import Clock
from looplatch.states.context import TOKENS, TOTALS, Context
from looplatch.states.event import Event, Spending
from looplatch.states.limits import Limits


@attrs.frozen(kw_only=True)
class Left:
    """What a run may still use; None: there is no limit. What is used up already counts as 0 left."""

    tokens: int | None
    cost_micro_usd: int | None
    wall_s: float | None

    @property
    def is_spent(self) -> bool:
        """Whether no tokens, or no money, are left."""
        return 0 in (self.tokens, self.cost_micro_usd)


class Budget:
    """Follows what a run spends beside its own model calls: for notes, and by sub-agents.

    context: the run's context as it is now. deadline_ns: when the run ends, on the monotonic clock, or None.
    withdrawn: the run that this one answers a call of may spend no more.
    """

    def __init__(self, limits: Limits, clock: Clock) -> None:
        self.context = Context(limits=limits)
        self.deadline_ns: int | None = None
        self.withdrawn = False
        self._clock = clock
        self._unreported = dict.fromkeys(TOTALS, 0)  # what no event has reported yet
        self._running: dict[object, Mapping[str, int]] = {}  # what sub-agents have spent that have not ended

    def restore(self, unreported: Mapping[str, int]) -> None:
        """Know what an earlier process has spent that no event has reported."""
        self._unreported = dict(unreported)

    def add(self, spent: Mapping[str, int]) -> None:
        """Something was spent beside the run's own calls, and is on record; the next event that can reports it."""
        self._unreported = {name: self._unreported[name] + spent[name] for name in TOTALS}

    def follow(self, who: object, spent: Mapping[str, int] | None) -> None:
        """What a sub-agent has spent so far; None: it has ended."""
        if spent is None:
            self._running.pop(who, None)
        else:
            self._running[who] = spent

    def report(self, event: Event) -> Event:
        """An event that reports tokens, with those added that were spent beside the run since the last one."""
        if not isinstance(event, Spending) or not any(self._unreported.values()):
            return event
        unreported, self._unreported = self._unreported, dict.fromkeys(TOTALS, 0)
        return attrs.evolve(event, **{name: getattr(event, name) + unreported[name] for name in TOTALS})

    @property
    def totals(self) -> dict[str, int]:
        """All that the run has spent and that is on record."""
        return {name: getattr(self.context, name) + self._unreported[name] for name in TOTALS}

    @property
    def is_spent(self) -> bool:
        """Whether nothing more may be spent, by the run's own limits or because its budget was withdrawn."""
        return self.withdrawn or self.left.is_spent

    @property
    def left(self) -> Left:
        """What is left now, beside what running sub-agents have spent."""
        limits, totals = self.context.limits, self.totals
        for spent in self._running.values():
            totals = {name: totals[name] + spent[name] for name in TOTALS}
        tokens = sum(totals[name] for name in TOKENS)
        most, cost, ends = limits.max_total_tokens, limits.max_cost_micro_usd, self.deadline_ns
        return Left(
            tokens=None if most is None else max(0, most - tokens),
            cost_micro_usd=None if cost is None else max(0, cost - totals["cost_micro_usd"]),
            wall_s=None if ends is None else max(0, ends - self._clock.monotonic_ns()) / 1_000_000_000,
        )
