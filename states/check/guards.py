"""The proof that the guards of one state and event are exclusive and exhaustive, by trying every combination.

A combination is chosen field by field as the guards read them, so fields that no guard looks at are not multiplied,
and what a guard really reads comes to light.
"""

from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from typing import Any, cast

import attrs

from looplatch.states.check.domains import PROFILES, Domain, domain_of
from looplatch.states.context import FIELDS, Context
from looplatch.states.event import Event
from looplatch.states.limits import Limits
from looplatch.states.transition import Counter, Guard, Table


class Trial:
    """One combination of values, chosen as they are asked for."""

    def __init__(self, domain: Domain, fixed: Mapping[str, object], choices: list[int]) -> None:
        self.values = dict(fixed)
        self.taken: list[tuple[int, int]] = []  # of how many values which was taken, in the order of asking
        self._domain = domain
        self._choices = choices

    def value(self, name: str) -> object:
        """The value of the field `name` in this combination."""
        if name not in self.values:
            options = self._domain(name)
            place = len(self.taken)
            choice = self._choices[place] if place < len(self._choices) else 0
            self.taken.append((choice, len(options)))
            self.values[name] = options[choice]
        return self.values[name]


def trials(domain: Domain, fixed: Mapping[str, object]) -> Iterator[Trial]:
    """Every combination of the fields that are asked for, given those that are fixed."""
    choices: list[int] = []
    while True:
        trial = Trial(domain, fixed, choices)
        yield trial
        taken = trial.taken
        while taken and taken[-1][0] + 1 == taken[-1][1]:
            taken.pop()
        if not taken:
            return
        choices = [choice for choice, _ in taken]
        choices[-1] += 1


@cache
def _names_of(shape: type) -> frozenset[str]:
    return frozenset(field.name for field in attrs.fields(shape))


class Stand:
    """Stands in for a context or an event: every field comes from a trial, and what was read is noted in `seen`."""

    def __init__(self, shape: type, prefix: str, trial: Trial, limits: Limits) -> None:
        self.seen: set[str] = set()
        self._shape = shape
        self._names = _names_of(shape)
        self._prefix = prefix
        self._trial = trial
        self._limits = limits

    def __getattr__(self, name: str) -> Any:
        if name == "limits" and self._shape is Context:
            return self._limits
        if name in self._names:
            self.seen.add(self._prefix + name)
            return self._trial.value(self._prefix + name)
        member = getattr(self._shape, name)
        return member.fget(self) if isinstance(member, property) and member.fget else member


def ask(guard: Guard[Any], event: type[Event], trial: Trial, limits: Limits) -> tuple[object, set[str]]:
    """The guard's verdict on a trial, and the fields that it read."""
    context, fact = Stand(Context, "", trial, limits), Stand(event, "event.", trial, limits)
    verdict: object = guard.test(cast("Context", context), fact)
    return verdict, context.seen | fact.seen


@lru_cache(maxsize=4096)
def possible(
    counters: tuple[Counter, ...], guard: Guard[Any], event: type[Event], fixed: tuple[tuple[str, object], ...]
) -> bool:
    """Whether `guard` can hold for an `event` while the `fixed` fields have their values."""
    for limits in PROFILES:
        for trial in trials(domain_of(counters, event, limits), dict(fixed)):
            if ask(guard, event, trial, limits)[0] is True:
                return True
    return False


def guard_faults(table: Table) -> Iterator[str]:
    """What is wrong with the guards of `table`: gaps, overlaps, undeclared reads, errors, verdicts not boolean."""
    seen: set[tuple[type[Event], tuple[int, ...]]] = set()
    for state in table.states:
        for event in dict.fromkeys(row.event for row in table.rows):
            rows = table.alternatives(state, event)
            key = event, tuple(id(row.guard) for row in rows)
            if rows and key not in seen:
                seen.add(key)
                place = f"{state}, {event.__name__}"
                guards = tuple(row.guard for row in rows)
                unknown = list(dict.fromkeys(_unknown_reads(event, guards)))
                yield from (f"{place}: {fault}" for fault in unknown)
                yield from (f"{place}: {fault}" for fault in _tried(table.counters, cast("Any", event), guards))


def _unknown_reads(event: type[Event], guards: tuple[Guard[Any], ...]) -> Iterator[str]:
    known = {*FIELDS, *(f"event.{name}" for name in event.field_names())}
    for guard in guards:
        for name in guard.reads:
            if name not in known:
                yield f"the guard {guard.name} says that it reads {name}, which does not exist"


@lru_cache(maxsize=256)
def _tried(counters: tuple[Counter, ...], event: type[Event], guards: tuple[Guard[Any], ...]) -> tuple[str, ...]:
    """The faults that trying brings to light, each kind once, with the first combination that shows it."""
    faults: dict[str, str] = {}
    for limits in PROFILES:
        for trial in trials(domain_of(counters, event, limits), {}):
            holding: list[str] = []
            for guard in guards:
                try:
                    verdict, seen = ask(guard, event, trial, limits)
                except Exception as error:
                    problem = f"{type(error).__name__}: {error}"
                    faults.setdefault(
                        f"raises {guard.name}", f"the guard {guard.name} raises {problem}, for {_described(trial)}"
                    )
                    continue
                if not isinstance(verdict, bool):
                    problem = f"the guard {guard.name} says {verdict!r}, which is no boolean, for {_described(trial)}"
                    faults.setdefault(f"verdict {guard.name}", problem)
                for name in sorted(seen - set(guard.reads)):
                    faults.setdefault(
                        f"reads {guard.name} {name}", f"the guard {guard.name} reads {name} and does not say so"
                    )
                if verdict:
                    holding.append(guard.name)
            if not holding:
                faults.setdefault("gap", f"no guard holds for {_described(trial)}")
            elif len(holding) > 1:
                faults.setdefault("overlap", f"the guards {' and '.join(holding)} both hold for {_described(trial)}")
    return tuple(faults.values())


def _described(trial: Trial) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted(trial.values.items())) or "any context and event"
