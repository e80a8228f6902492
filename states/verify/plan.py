"""A table laid out for the verifier: what it says of each state and event, as plain values, looked up by name."""

from collections.abc import Callable, Mapping
from enum import Enum
from functools import lru_cache
from operator import itemgetter
from types import NoneType
from typing import Any, Final, cast

import attrs

from looplatch.states.context import TOKENS, TOTALS
from looplatch.states.event import ENUMS
from looplatch.states.limits import Limits
from looplatch.states.reasons import Continue
from looplatch.states.state import State
from looplatch.states.transition import Table, Transition
from looplatch.states.trouble import TroubleKind
from looplatch.states.verify.kinds import EVENTS, move_kind
from looplatch.states.verify.values import is_object, is_texts

_RECOVER: Final = str(State.RECOVER)
_TYPES: Final[dict[str, type]] = {"int": int, "text": str, "bool": bool, "null": NoneType}


totals_of: Final = itemgetter(*list(TOTALS))
"""Reads the totals of a context, of an event or of what was spent."""


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
        total: int = sum(vars(self)[name] for name in TOKENS)
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


SAID: Final = ("target", "reason", "strategy", "terminal")
"""What the record of a move says of its row."""


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
    ends: bool
    enters_recover: bool
    changes: bool
    counts: bool  # it changes what is not the same whenever it is taken
    says: tuple[str | None, ...]  # what a record of it has in the fields `SAID`
    fixes: Callable[[dict[str, Any]], object] | None  # reads of a context what `fixed` is about; None: that is nothing
    values: object  # what it reads where the row changes nothing of that

    @classmethod
    def of(
        cls,
        row: Transition,
        source: str,
        starts: dict[str, int],
        answers: Mapping[str, list[str]],
        final: frozenset[str],
    ) -> "RowPlan":
        """`row` as it leaves `source`. `answers`: the events that each command may bring."""
        fixed: dict[str, Any] = dict(row.sets)
        if row.reason is not None:
            fixed["reason"] = row.reason
        fixed.update((name, starts[name]) for name in row.resets)
        for name in (*row.takes, *row.raises, *(TOTALS if row.adds else ())):
            fixed.pop(name, None)  # the fields say it, or the counter itself
        target, reason = source if row.target is None else str(row.target), _text(row.reason)
        strategy, terminal = _text(row.strategy), _text(row.terminal)
        fixes = itemgetter(*fixed) if fixed else None
        return cls(
            target=target,
            reason=reason,
            strategy=strategy,
            terminal=terminal,
            raises=row.raises,
            fixed=tuple(fixed.items()),
            takes=row.takes,
            adds=row.adds,
            awaited=frozenset(event for command in row.commands for event in answers[command.name]),
            ends=target in final,
            enters_recover=target == _RECOVER != source,
            changes=bool(row.raises or fixed or row.takes or row.adds),
            counts=bool(row.raises or row.takes or row.adds),
            says=(target, reason, strategy, terminal),
            fixes=fixes,
            values=None if fixes is None else fixes(fixed),
        )


def _text(name: str | None) -> str | None:
    return None if name is None else str(name)


@attrs.frozen
class EventPlan:
    """An event: which fields it has, and what each may hold."""

    name: str
    external: bool
    kind: str | None  # of common records that hold this event, with its fields as it has them
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
        kind = move_kind(event) if EVENTS.get(event) == fields else None
        return cls(event, described["external"], kind, tuple(plain), tuple(lists), tuple(named), len(fields))

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
        if any(fields[name] not in known for name, known in self.named):
            return None
        return self.told(fields)

    def told(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Right fields as guards read them."""
        return {**fields, **{name: known[fields[name]] for name, known in self.named}} if self.named else fields

    def _fits(self, fields: dict[str, Any]) -> bool:
        """Whether every field is there, and of the type that it should be."""
        texts = (*self.lists, *(name for name, _ in self.named))
        return all(name in fields and type(fields[name]) in types for name, types in self.plain) and all(
            type(fields.get(name)) is (list if name in self.lists else str) for name in texts
        )


@attrs.frozen
class Outcome:
    """What the guards of some alternatives say. pairs: as the reader of a common record gives them. row: the one whose
    guard holds; None where that is not one alone."""

    pairs: list[tuple[str, bool]]
    row: RowPlan | None


@attrs.frozen
class Alternatives:
    """The rows of one state and event, in the table's order."""

    event: EventPlan
    rows: tuple[RowPlan, ...]
    names: list[str]
    tests: tuple[Callable[[Any, Any], bool], ...]
    constant: Outcome | None  # where no guard looks at anything
    targets: frozenset[str]
    bools: list[type]  # of what class each verdict is
    outcomes: dict[tuple[bool, ...], Outcome] = attrs.field(factory=dict[tuple[bool, ...], Outcome])

    def outcome(self, verdicts: tuple[bool, ...]) -> Outcome:
        """What these verdicts come to."""
        outcome = self.outcomes.get(verdicts)
        if outcome is None:
            row = self.rows[verdicts.index(True)] if verdicts.count(True) == 1 else None
            outcome = Outcome(list(zip(self.names, verdicts, strict=True)), row)
            self.outcomes[verdicts] = outcome
        return outcome


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
        self._context = {**starts, **told["context"]}  # in the order in which it is soonest seen that one is another
        self._answers: dict[str, list[str]] = told["commands"]
        self.alternatives: dict[tuple[str, str], Alternatives] = {}
        for state in table.states:
            for event in {row.event for row in table.rows}:
                rows = table.alternatives(state, event)
                if rows:
                    told_of = self.events[event.__name__]
                    self.alternatives[str(state), event.__name__] = self._alternatives(told_of, state, rows, starts)

    def _alternatives(
        self, event: EventPlan, source: State, rows: tuple[Transition, ...], starts: dict[str, int]
    ) -> Alternatives:
        plans = tuple(RowPlan.of(row, str(source), starts, self._answers, self.final) for row in rows)
        blind = all(not row.guard.reads for row in rows)
        fold = cast("Any", self.fold(Limits()))
        tests = tuple(row.guard.test for row in rows)
        known = Alternatives(
            event=event,
            rows=plans,
            names=[row.guard.name for row in rows],
            tests=tests,
            constant=None,
            targets=frozenset(plan.target for plan in plans),
            bools=[bool] * len(plans),
        )
        constant = known.outcome(tuple(test(fold, Fact({})) for test in tests)) if blind else None
        return attrs.evolve(known, constant=constant)

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
