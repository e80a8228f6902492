"""The values at which the checker tries a guard: edges of bounds, every flag, every kind of trouble."""

import enum
import types
from collections.abc import Callable
from typing import Any, Final, Union, get_args, get_origin, get_type_hints

import attrs

from looplatch.states.context import TOTALS, Context
from looplatch.states.event import Event, accepts
from looplatch.states.limits import Limits
from looplatch.states.recover_guards import LOW_PROGRESS_TOKENS
from looplatch.states.transition import Counter

# Limits under which the guards are tried: the defaults, each bound at its least, budgets and a target, a budget alone.
PROFILES: Final = (
    Limits(),
    Limits(
        max_turns=1,
        max_attempts=0,
        max_output_recoveries=0,
        max_blocks=1,
        max_pauses=0,
        max_low_progress=1,
        max_continuations=0,
        breaker_threshold=1,
        max_delay_ms=0,
    ),
    Limits(output_target=1_000, max_total_tokens=2_000, max_cost_usd=0.003),
    Limits(max_cost_usd=0.003),
)
_EDGES: Final = (0, 1, LOW_PROGRESS_TOKENS - 1, LOW_PROGRESS_TOKENS)

Domain = Callable[[str], tuple[object, ...]]
"""The values to try for a field of the context, or of the event as `event.NAME`."""


def domain_of(counters: tuple[Counter, ...], event: type[Event], limits: Limits) -> Domain:
    """Return the values to try when guards are asked about `event` under `limits`."""
    bounds = {counter.name: (counter.start, counter.bound_in(Context(limits=limits))) for counter in counters}
    context_types, event_types = get_type_hints(Context), get_type_hints(event)
    known: dict[str, tuple[object, ...]] = {}

    def values(name: str) -> tuple[object, ...]:
        if name not in known:
            if name.startswith("event."):
                plain = name.removeprefix("event.")
                known[name] = _allowed(event, plain, _of_type(event_types[plain], _event_numbers(limits)))
            elif name in bounds:
                start, bound = bounds[name]
                known[name] = _ascending(start, bound - 1, bound, least=start)
            elif name in TOTALS:
                known[name] = _ascending(*_total_edges(name, limits), least=0)
            else:
                known[name] = _of_type(context_types[name], _EDGES)
        return known[name]

    return values


def _allowed(event: type[Event], name: str, values: tuple[object, ...]) -> tuple[object, ...]:
    """Those of `values` that the event takes in its field `name`."""
    return tuple(value for value in values if accepts(event, name, value))


def _ascending(*numbers: int, least: int) -> tuple[object, ...]:
    return tuple(sorted({number for number in numbers if number >= least}))


def _event_numbers(limits: Limits) -> tuple[object, ...]:
    bounds = [value for value in attrs.astuple(limits) if isinstance(value, int)]
    return _ascending(*_EDGES, *bounds, *(bound + 1 for bound in bounds), least=0)


def _total_edges(name: str, limits: Limits) -> tuple[int, ...]:
    if name == "cost_micro_usd":
        cost = limits.max_cost_micro_usd
        return (0, 1) if cost is None else (0, cost - 1, cost)
    tokens, target = limits.max_total_tokens, limits.output_target
    edges = (0, 1) if tokens is None else (0, tokens - 1, tokens)
    if name == "output_tokens" and target is not None:
        enough = -(-9 * target // 10)
        edges = (*edges, enough - 1, enough)
    return edges


def _of_type(declared: Any, numbers: tuple[object, ...]) -> tuple[object, ...]:
    if get_origin(declared) in (Union, types.UnionType):
        return tuple(value for part in get_args(declared) for value in _of_type(part, numbers))
    if declared is type(None):
        return (None,)
    if declared is bool:
        return (False, True)
    if declared is int:
        return numbers
    if isinstance(declared, type) and issubclass(declared, enum.Enum):
        return tuple(declared)
    return ((), ("x",)) if get_origin(declared) is tuple else ("", "x")
