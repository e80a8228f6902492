"""A table laid out for the verifier: what it says of each state and event, as plain values, looked up by name."""

from collections.abc import Callable
from enum import Enum
from functools import lru_cache
from typing import Any, Final, cast, get_args, get_type_hints

import attrs

from looplatch.states.context import FIELDS, TOTALS, Context
from looplatch.states.event import Event
from looplatch.states.events import EVENTS
from looplatch.states.limits import Limits
from looplatch.states.reasons import Continue
from looplatch.states.transition import Table, Transition
from looplatch.states.trouble import TroubleKind
from looplatch.states.verify_values import is_object, is_texts

_COUNTED: Final = tuple(name for name in FIELDS if name not in TOTALS)


class Fold:
    """The context as the verifier folds it from the records; guards read it as they read a `Context`."""

    limits: Limits
    attempts: int
    reason: Continue | None

    def __init__(self, limits: Limits) -> None:
        fresh = Context(limits=limits)
        for name in ("limits", *FIELDS):
            setattr(self, name, getattr(fresh, name))

    @property
    def total_tokens(self) -> int:
        """What `Limits.max_total_tokens` bounds."""
        total: int = sum(vars(self)[name] for name in TOTALS[:4])
        return total

    def standing(self) -> list[Any]:
        """Everything but the totals: where two of them are equal, a run has gone in a circle."""
        own = vars(self)
        return [own[name] for name in _COUNTED]


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
    def of(cls, row: Transition, source: str, starts: dict[str, int]) -> "RowPlan":
        """`row` as it leaves `source`."""
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
            awaited=frozenset(answer.__name__ for command in row.commands for answer in command.answers),
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
    def of(cls, event: type[Event]) -> "EventPlan":
        """What `event` looks like in a record."""
        plain: list[tuple[str, frozenset[type]]] = []
        lists: list[str] = []
        named: list[tuple[str, dict[str, Enum]]] = []
        declared = get_type_hints(event)
        for name in event.field_names():
            parts = get_args(declared[name]) or (declared[name],)
            if isinstance(declared[name], type) and issubclass(declared[name], Enum):
                named.append((name, {str(one): one for one in declared[name] if _accepts(event, name, one)}))
            elif Ellipsis in parts:
                lists.append(name)
            else:
                plain.append((name, frozenset(parts)))
        return cls(event.__name__, event.external, tuple(plain), tuple(lists), tuple(named), len(event.field_names()))

    def read(self, fields: object) -> dict[str, Any] | None:
        """The fields as guards read them; None where they are not this event's."""
        if not is_object(fields) or len(fields) != self.count:
            return None
        shape = (*fields, *map(type, fields.values()))
        if shape not in self.shapes:
            if not self._fits(fields):
                return None
            self.shapes.add(shape)
        if not all(is_texts(fields[name]) for name in self.lists):
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


def _accepts(event: type[Event], name: str, value: Enum) -> bool:
    field = next(field for field in attrs.fields(event) if field.name == name)
    if field.validator is None:
        return True
    try:
        field.validator(None, field, value)
    except ValueError:
        return False
    return True


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
        self.events = {event.__name__: EventPlan.of(event) for event in {*EVENTS, *(row.event for row in table.rows)}}
        self.decisions = {reason: event.__name__ for reason, event in table.decisions.items()}
        self.alternatives: dict[tuple[str, str], Alternatives] = {}
        for state in table.states:
            for event in {row.event for row in table.rows}:
                rows = table.alternatives(state, event)
                if rows:
                    self.alternatives[str(state), event.__name__] = self._alternatives(str(state), rows, starts)

    def _alternatives(self, source: str, rows: tuple[Transition, ...], starts: dict[str, int]) -> Alternatives:
        plans = tuple(RowPlan.of(row, source, starts) for row in rows)
        blind = all(not row.guard.reads for row in rows)
        fold = cast("Context", Fold(Limits()))
        return Alternatives(
            rows=plans,
            names=[row.guard.name for row in rows],
            tests=tuple(row.guard.test for row in rows),
            constant=[[row.guard.name, row.guard.test(fold, Fact({}))] for row in rows] if blind else None,
            targets=frozenset(plan.target for plan in plans),
        )

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
