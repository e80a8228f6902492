"""The shape of a table: its rows, its counters, and the questions one can ask of it."""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, Final, Generic, TypeVar

import attrs
import orjson

from looplatch.states.commands import Command
from looplatch.states.context import FIELDS, Context
from looplatch.states.counted import counted
from looplatch.states.decisions import Decisions
from looplatch.states.event import Event
from looplatch.states.given import check_kind
from looplatch.states.reasons import Continue, Strategy, Terminal
from looplatch.states.state import FINAL, INITIAL, State

AnEvent = TypeVar("AnEvent", bound=Event)
AskedEvent = TypeVar("AskedEvent", bound=Event, contravariant=True)


@attrs.frozen(eq=False)
class Guard(Generic[AskedEvent]):
    """A named pure predicate over a context and events of its kind.

    `reads` names every field it looks at, those of the event as `event.NAME`. It is declared so that the checker can
    try every combination of just these fields; that the declaration is true is checked too.
    """

    name: str
    test: Callable[[Context, AskedEvent], bool]
    reads: tuple[str, ...]
    doc: str

    def __call__(self, context: Context, event: AskedEvent) -> bool:
        """The guard's verdict."""
        return self.test(context, event)


def guard(*reads: str) -> Callable[[Callable[[Context, AnEvent], bool]], Guard[AnEvent]]:
    """Make a guard of a predicate: its name and its docstring are the function's."""

    def name_it(test: Callable[[Context, AnEvent], bool]) -> Guard[AnEvent]:
        return Guard(test.__name__, test, reads, (test.__doc__ or "").strip())

    return name_it


@attrs.frozen(kw_only=True)
class Transition:
    """A row of the table: from any of `sources`, by `event`, when `guard` holds.

    target: the state entered; None when the run stays where it is (nothing is entered, the commands run all the same).
    reason: why the loop goes on; exactly the rows that enter `prepare` have one. strategy: how the trouble is mended.
    terminal: why the run ended; exactly the rows into a final state have one.
    commands: what the driver has to do next, in order.
    raises, resets: counters that go up by one, or back to their start. sets: context fields and their new values.
    takes: context fields that take the value of the event's field of the same name.
    adds: whether the event's tokens and cost are added to the totals.
    """

    sources: tuple[State, ...]
    event: type[Event]
    guard: Guard[Any]
    target: State | None
    reason: Continue | None = None
    strategy: Strategy | None = None
    terminal: Terminal | None = None
    commands: tuple[Command, ...] = ()
    raises: tuple[str, ...] = ()
    resets: tuple[str, ...] = ()
    sets: tuple[tuple[str, Any], ...] = ()
    takes: tuple[str, ...] = ()
    adds: bool = False

    @property
    def name(self) -> str:
        """The row's name: unique in a table, used by diagrams, coverage and findings."""
        return f"{'|'.join(self.sources)} --{self.event.__name__}[{self.guard.name}]--> {self.target or 'stays'}"

    def description(self) -> dict[str, Any]:
        """The row as plain data, for the fingerprint and for renderers."""
        return {
            "sources": [str(source) for source in self.sources],
            "event": self.event.__name__,
            "guard": self.guard.name,
            "target": None if self.target is None else str(self.target),
            "reason": None if self.reason is None else str(self.reason),
            "strategy": None if self.strategy is None else str(self.strategy),
            "terminal": None if self.terminal is None else str(self.terminal),
            "commands": [command.name for command in self.commands],
            "raises": list(self.raises),
            "resets": list(self.resets),
            "sets": {
                name: value if value is None or isinstance(value, bool | int) else str(value)
                for name, value in self.sets
            },
            "takes": list(self.takes),
            "adds": self.adds,
        }


@attrs.frozen(kw_only=True)
class Counter:
    """A field of the context that only rows move: up by one where a row raises it, never past its bound.

    bound: a number, or the name of the field of `Limits` that holds it.
    """

    name: str
    start: int = 0
    bound: int | str
    doc: str

    def bound_in(self, context: Context) -> int:
        """The bound that holds in this run."""
        if isinstance(self.bound, int):
            return self.bound
        value: int = getattr(context.limits, self.bound)
        return value


@attrs.frozen(eq=False, slots=False)
class Table:
    """All legal moves, as data. Immutable; every other part of looplatch reads its machine from here.

    past: the description that a table of an earlier looplatch was read from; None for one of this looplatch.
    """

    rows: tuple[Transition, ...]
    counters: tuple[Counter, ...]
    decisions: Decisions = attrs.field(factory=Decisions)
    initial: State = INITIAL
    final: tuple[State, ...] = FINAL
    past: Mapping[str, Any] | None = None

    def __repr__(self) -> str:
        return f"Table({counted(len(self.rows), 'row')}, {self.fingerprint[:8]}…)"

    def __iter__(self) -> Iterator[Transition]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def _by_state_and_event(self) -> dict[tuple[State, type[Event]], tuple[Transition, ...]]:
        found: dict[tuple[State, type[Event]], list[Transition]] = {}
        for row in self.rows:
            for source in row.sources:
                found.setdefault((source, row.event), []).append(row)
        return {key: tuple(rows) for key, rows in found.items()}

    def alternatives(self, state: State, event: type[Event]) -> tuple[Transition, ...]:
        """The rows of one state and event, in the table's order; empty where the event is illegal."""
        return self._by_state_and_event.get((state, event), ())

    @cached_property
    def states(self) -> tuple[State, ...]:
        """Every state that a row names, and the initial one, in the order of `State`."""
        named = (
            {self.initial} | {s for row in self.rows for s in row.sources} | {r.target for r in self.rows if r.target}
        )
        return tuple(state for state in State if state in named)

    def legal_events(self, state: State) -> tuple[str, ...]:
        """The names of the events that have a row from `state`."""
        return tuple(dict.fromkeys(row.event.__name__ for row in self.rows if state in row.sources))

    def is_final(self, state: State) -> bool:
        """Whether a run ends in `state`."""
        return state in self.final

    @cached_property
    def description(self) -> Mapping[str, Any]:
        """All that decides a move, as plain data: the rows, what their guards read, what the commands may bring, what
        the events hold, where the context starts. `looplatch.states.past` reads it."""
        if self.past is not None:
            return self.past
        decisions, counters = self.decisions, {counter.name for counter in self.counters}
        fresh, commands = Context(), {command for row in self.rows for command in row.commands}
        named = {event for command in commands for event in command.answers}
        events = {*(row.event for row in self.rows), *named}
        return {
            "rows": [row.description() for row in self.rows],
            "counters": [[c.name, c.start, c.bound] for c in self.counters],
            "decisions": {reason: event.__name__ for reason, event in decisions.by_reason.items()},
            "cut": sorted(decisions.cut),
            "with_calls": decisions.with_calls.__name__,
            "otherwise": decisions.otherwise.__name__,
            "initial": str(self.initial),
            "final": [str(state) for state in self.final],
            "guards": {row.guard.name: list(row.guard.reads) for row in self.rows},
            "commands": {one.name: [event.__name__ for event in one.answers] for one in commands},
            "events": {one.__name__: {"external": one.external, "fields": one.shape()} for one in events},
            "context": {name: getattr(fresh, name) for name in FIELDS if name not in counters},
        }

    @cached_property
    def fingerprint(self) -> str:
        """The SHA-256 of the description: a log names the table that judged its run."""
        return fingerprint_of(self.description)


_FIRST: Final = ("rows", "counters", "decisions", "initial", "final")  # what the first tables were named by


def fingerprint_of(description: Mapping[str, Any]) -> str:
    """The SHA-256 of a table's description; one that has a `named_by_rows` is of the time when only that was hashed."""
    if description.get("named_by_rows"):
        description = {name: description[name] for name in _FIRST}
    return hashlib.sha256(orjson.dumps(description, option=orjson.OPT_SORT_KEYS)).hexdigest()


def check_is_table(given: object) -> None:
    """Raise UsageError where `given` is no table."""
    check_kind("table", given, Table, "Give looplatch.states.TABLE, or a Table of your own")
