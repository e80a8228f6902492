"""A table laid out for the verifier: what it says of each state and event, as plain values, looked up by name."""

from collections.abc import Callable, Mapping
from enum import Enum
from functools import lru_cache
from types import NoneType
from typing import Any, Final, cast

import attrs

from looplatch.states.context import TOTALS
from looplatch.states.event import ENUMS
from looplatch.states.limits import Limits
from looplatch.states.reasons import Continue
from looplatch.states.transition import Table, Transition
from looplatch.states.trouble import TroubleKind
from looplatch.states.verify.values import is_object, is_texts

_TYPES: Final[dict[str, type]] = {"int": int, "text": str, "bool": bool, "null": NoneType}


class Fold:
    """The context as the verifier folds it from the records; guards read it as they read a `Context`."""

    limits: Limits
    attempts: int
    reason: Continue | None

    def __init__(self, limits: Limits, fields: Mapping[str, Any]) -> None:
        self.__dict__ = {"limits": limits, **fields}

    @property
    def total_tokens(self) -> int:
        """What `Limits.max_total_tokens` bounds."""
        total: int = sum(vars(self)[name] for name in TOTALS[:4])
        return total


def is_circle(saved: Mapping[str, Any], fields: Mapping[str, Any]) -> bool:
    """Whether all that a context holds is as it was, but the totals: then a run has gone in a circle."""
    for name, value in fields.items():
        was = saved[name]
        if was is not value and was != value and name not in TOTALS:
            return False
    return True


class Fact:
    """An event as the verifier read it; guards read it as they read the event."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self.__dict__ = fields


@attrs.frozen
class RowPlan:
    """A row, with names as the records spell them."""

    target: str
    reason: str | None
    strategy: str | None
    terminal: str | None
    raises: tuple[str, ...]
    fixed: tuple[tuple[str, Any], ...]  # what the row sets and resets
    takes: tuple[str, ...]
    adds: bool
    awaited: frozenset[str]  # the events that its commands may bring
    changes: bool

    @classmethod
    def of(cls, row: Transition, source: str, starts: dict[str, int], answers: Mapping[str, list[str]]) -> "RowPlan":
        """`row` as it leaves `source`. `answers`: the events that each command may bring."""
        fixed: dict[str, Any] = dict(row.sets)
        if row.reason is not None:
            fixed["reason"] = row.reason
        fixed.update((name, starts[name]) for name in row.resets)
        return cls(
            target=source if row.target is None else str(row.target),
            reason=None if row.reason is None else str(row.reason),
            strategy=None if row.strategy is None else str(row.strategy),
            terminal=None if row.terminal is None else str(row.terminal),
            raises=row.raises,
            fixed=tuple(fixed.items()),
            takes=row.takes,
            adds=row.adds,
            awaited=frozenset(event for command in row.commands for event in answers[command.name]),
            changes=bool(row.raises or fixed or row.takes or row.adds),
        )


@attrs.frozen
class Alternatives:
    """The rows of one state and event, in the table's order."""

    rows: tuple[RowPlan, ...]
    names: list[str]
    tests: tuple[Callable[[Any, Any], bool], ...]
    constant: list[list[Any]] | None  # the verdicts, where the guard looks at nothing
    targets: frozenset[str]
    bools: list[type]  # of what class each verdict is
    spelled: dict[tuple[bool, ...], list[list[Any]]] = attrs.field(factory=dict[tuple[bool, ...], list[list[Any]]])

    def told(self, verdicts: tuple[bool, ...]) -> list[list[Any]]:
        """The verdicts as a record spells them."""
        spelled = self.spelled.get(verdicts)
        if spelled is None:
            spelled = [[name, verdict] for name, verdict in zip(self.names, verdicts, strict=True)]
            self.spelled[verdicts] = spelled
        return spelled


@attrs.frozen
class EventPlan:
    """An event: which fields it has, and what each may hold."""

    name: str
    external: bool
    plain: tuple[tuple[str, frozenset[type]], ...]
    lists: tuple[str, ...]
    named: tuple[tuple[str, dict[str, Enum]], ...]  # the members of an enum that a field may name
    count: int
    shapes: set[tuple[Any, ...]] = attrs.field(factory=set[tuple[Any, ...]])  # names and types that were found right

    @classmethod
    def of(cls, event: str, described: Mapping[str, Any]) -> "EventPlan":
        """What the event of this name looks like in a record."""
        plain: list[tuple[str, frozenset[type]]] = []
        lists: list[str] = []
        named: list[tuple[str, dict[str, Enum]]] = []
        fields: dict[str, Any] = described["fields"]
        for name, shape in fields.items():
            match shape:
                case {"one of": members}:
                    named.append((name, {member: ENUMS[name](member) for member in members}))
                case "texts":
                    lists.append(name)
                case _:
                    plain.append((name, frozenset(_TYPES[one] for one in shape)))
        return cls(event, described["external"], tuple(plain), tuple(lists), tuple(named), len(fields))

    def read(self, fields: object) -> dict[str, Any] | None:
        """The fields as guards read them; None where they are not this event's."""
        if not is_object(fields) or len(fields) != self.count:
            return None
        shape = (*fields, *map(type, fields.values()))
        if shape not in self.shapes:
            if not self._fits(fields):
                return None
            self.shapes.add(shape)
        for name in self.lists:
            if not is_texts(fields[name]):
                return None
        if not self.named:
            return fields
        told = dict(fields)
        for name, known in self.named:
            member = known.get(fields[name])
            if member is None:
                return None
            told[name] = member
        return told

    def _fits(self, fields: dict[str, Any]) -> bool:
        """Whether every field is there, and of the type that it should be."""
        texts = (*self.lists, *(name for name, _ in self.named))
        return all(name in fields and type(fields[name]) in types for name, types in self.plain) and all(
            type(fields.get(name)) is (list if name in self.lists else str) for name in texts
        )


class Plan:
    """All that the verifier asks of a table."""

    def __init__(self, table: Table) -> None:
        starts = {counter.name: counter.start for counter in table.counters}
        self.table = table
        self.initial = str(table.initial)
        self.final = frozenset(str(state) for state in table.final)
        self.states = frozenset(str(state) for state in table.states)
        self.counters = starts
        self.bounds = {counter.name: counter.bound for counter in table.counters}
        told = table.description
        self.events: dict[str, EventPlan] = {name: EventPlan.of(name, one) for name, one in told["events"].items()}
        self.decisions = table.decisions
        self._context = {**told["context"], **starts}
        self._answers: dict[str, list[str]] = told["commands"]
        self.alternatives: dict[tuple[str, str], Alternatives] = {}
        for state in table.states:
            for event in {row.event for row in table.rows}:
                rows = table.alternatives(state, event)
                if rows:
                    self.alternatives[str(state), event.__name__] = self._alternatives(str(state), rows, starts)

    def _alternatives(self, source: str, rows: tuple[Transition, ...], starts: dict[str, int]) -> Alternatives:
        plans = tuple(RowPlan.of(row, source, starts, self._answers) for row in rows)
        blind = all(not row.guard.reads for row in rows)
        fold = cast("Any", self.fold(Limits()))
        return Alternatives(
            rows=plans,
            names=[row.guard.name for row in rows],
            tests=tuple(row.guard.test for row in rows),
            constant=[[row.guard.name, row.guard.test(fold, Fact({}))] for row in rows] if blind else None,
            targets=frozenset(plan.target for plan in plans),
            bools=[bool] * len(plans),
        )

    def fold(self, limits: Limits) -> Fold:
        """The context that a run under `limits` starts with."""
        return Fold(limits, self._context)

    def bound(self, counter: str, fold: Fold) -> int:
        """The bound of `counter` in this run."""
        bound = self.bounds[counter]
        value: int = bound if isinstance(bound, int) else getattr(fold.limits, bound)
        return value


@lru_cache(maxsize=8)
def plan_of(table: Table) -> Plan:
    """The plan of `table`, made once."""
    return Plan(table)


REASONS: Final = {str(reason): reason for reason in Continue}
TROUBLES: Final = {str(kind): kind for kind in TroubleKind}
