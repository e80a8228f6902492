"""The proof that every run ends: each cycle that the loop can go round by itself raises a counter it does not reset.

A run is looked at as its state, the events that the commands in hand may bring, and the flags of the context. External
events are no part of a cycle: nobody sends them for ever. An event's field that has the name of a flag tells that
flag (`TroubleNamed` names the trouble of the context), unless its row takes the flag from it.
"""

import enum
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, cast, get_args, get_type_hints

import attrs

from looplatch.states.check.domains import PROFILES, domain_of
from looplatch.states.check.guards import possible
from looplatch.states.context import Context
from looplatch.states.event import Event
from looplatch.states.state import State
from looplatch.states.transition import Counter, Table, Transition

Held = tuple[tuple[str, object], ...]


@attrs.frozen
class Standing:
    """Where a run can stand, its counters left aside."""

    state: State
    awaited: frozenset[type[Event]]
    held: Held


@attrs.frozen
class Step:
    """A move from one standing to another."""

    origin: Standing
    row: Transition
    goal: Standing


def run_faults(table: Table) -> Iterator[str]:
    """What stands against every run's end in `table`, and rows that no run can take."""
    steps = tuple(_steps(table))
    walked = {step.row.name for step in steps}
    for row in table.rows:
        if row.name not in walked:
            yield f"no run can take the row {row.name}"
    for cycle in _endless([step for step in steps if not step.row.event.external]):
        names = " ".join(step.row.name for step in cycle)
        yield f"no counter bounds this cycle: {names}"


def measure(table: Table) -> tuple[str, ...]:
    """The counters in the order in which they bound a run: between two rises of one, only those after it rise."""
    order: dict[str, None] = {}
    parts = [[step for step in _steps(table) if not step.row.event.external]]
    while parts:
        rest: list[list[Step]] = []
        for part in parts:
            for knot in _knots(tuple(part)):
                rising = _risen(knot)
                order.update(dict.fromkeys(c.name for c in table.counters if c.name in rising and c.name not in order))
                if rising:
                    rest.append([step for step in knot if not rising & set(step.row.raises)])
        parts = rest
    return tuple(order)


def _flags(table: Table) -> tuple[str, ...]:
    """The context's fields with few values that rows set: not the counters, not the numbers."""
    counters = {counter.name for counter in table.counters}
    types = get_type_hints(Context)
    named = dict.fromkeys(name for row in table.rows for name in (*(name for name, _ in row.sets), *row.takes))
    return tuple(name for name in named if name in types and name not in counters and _is_small(types[name]))


def _is_small(declared: Any) -> bool:
    parts = get_args(declared) or (declared,)
    return all(isinstance(part, type) and (issubclass(part, (bool, enum.Enum)) or part is type(None)) for part in parts)


def _steps(table: Table) -> Iterator[Step]:
    flags = _flags(table)
    fresh = Context()
    start = Standing(table.initial, frozenset(), tuple((name, getattr(fresh, name)) for name in flags))
    known, waiting = {start}, deque([start])
    may = partial(_may, table.counters)
    while waiting:
        here = waiting.popleft()
        for row in table.rows:
            if here.state in row.sources and (row.event.external or row.event in here.awaited):
                for held in _after(table, row, dict(here.held), may):
                    state = here.state if row.target is None else row.target
                    awaited = frozenset(answer for command in row.commands for answer in command.answers)
                    goal = Standing(state, awaited, held)
                    yield Step(here, row, goal)
                    if goal not in known:
                        known.add(goal)
                        waiting.append(goal)


def _may(counters: tuple[Counter, ...], row: Transition, fixed: dict[str, object]) -> bool:
    relevant = tuple(sorted(item for item in fixed.items() if item[0] in row.guard.reads))
    return possible(counters, row.guard, cast("Any", row.event), relevant)


def _after(
    table: Table, row: Transition, held: dict[str, object], may: Callable[[Transition, dict[str, object]], bool]
) -> Iterator[Held]:
    """What the flags can be after `row`; nothing where the row cannot hold."""
    fields = set(row.event.field_names())
    options: list[dict[str, object]] = [{}]
    for name in held:
        if name in row.takes and name in fields:
            values = domain_of(table.counters, row.event, PROFILES[0])(f"event.{name}")
            options = [{**option, name: value} for option in options for value in values]
    for option in options:
        carried = {name: option.get(name, value) for name, value in held.items() if name in fields}
        if row.event.external:
            carried = option
        if all(value is not None for value in carried.values()) and may(
            row, {**held, **{f"event.{name}": value for name, value in carried.items()}}
        ):
            new = {**held, **{name: value for name, value in row.sets if name in held}, **option}
            yield tuple(new.items())


def _endless(steps: Iterable[Step]) -> Iterator[tuple[Step, ...]]:
    """A cycle of each part that cannot be shown to end."""
    for part in _knots(tuple(steps)):
        rising = _risen(part)
        if rising:
            yield from _endless(step for step in part if not rising & set(step.row.raises))
        else:
            cycles = [_cycle(part, first) for first in part]
            yield min(cycles, key=lambda cycle: (bool(_risen(cycle)), len(cycle)))


def _knots(steps: tuple[Step, ...]) -> list[list[Step]]:
    """The steps that lie on cycles, those of each strongly connected part together."""
    forth: dict[Standing, list[Standing]] = {}
    back: dict[Standing, list[Standing]] = {}
    for step in steps:
        forth.setdefault(step.origin, []).append(step.goal)
        back.setdefault(step.goal, []).append(step.origin)
    part: dict[Standing, int] = {}
    for number, root in enumerate(reversed(_finishing_order(forth))):
        waiting = [root]
        while waiting:
            here = waiting.pop()
            if here not in part:
                part[here] = number
                waiting += back.get(here, [])
    knots: dict[int, list[Step]] = {}
    for step in steps:
        if part[step.origin] == part[step.goal]:
            knots.setdefault(part[step.origin], []).append(step)
    return list(knots.values())


def _finishing_order(forth: dict[Standing, list[Standing]]) -> list[Standing]:
    done: list[Standing] = []
    seen: set[Standing] = set()
    for root in forth:
        if root in seen:
            continue
        seen.add(root)
        path = [(root, iter(forth.get(root, [])))]
        while path:
            here, goals = path[-1]
            goal = next((goal for goal in goals if goal not in seen), None)
            if goal is None:
                done.append(here)
                path.pop()
            else:
                seen.add(goal)
                path.append((goal, iter(forth.get(goal, []))))
    return done


def _risen(steps: Iterable[Step]) -> set[str]:
    """The counters that `steps` raise and do not reset."""
    rows = [step.row for step in steps]
    return {name for row in rows for name in row.raises} - {name for row in rows for name in row.resets}


def _cycle(part: list[Step], first: Step) -> tuple[Step, ...]:
    """The shortest cycle through `first` in a strongly connected part."""
    ways: dict[Standing, tuple[Step, ...]] = {first.goal: (first,)}
    waiting = deque([first.goal])
    while first.origin not in ways:
        here = waiting.popleft()
        for step in part:
            if step.origin == here and step.goal not in ways:
                ways[step.goal] = (*ways[here], step)
                waiting.append(step.goal)
    return ways[first.origin]
