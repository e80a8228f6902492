"""Exploring a table: every configuration that a run can reach under small limits, one by one, and what is wrong there.

A configuration is a state, the events that are awaited in it, and the fields of the context that guards read. Fields of
events take every value at the edges of what guards compare them with; so do the totals, which grow as they like.
"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple, cast

import attrs

from looplatch.states.check.cycles import measure
from looplatch.states.check.domains import Domain, domain_of
from looplatch.states.check.guards import ask, trials
from looplatch.states.check.longest import longest_way
from looplatch.states.context import FIELDS, TOTALS, Context
from looplatch.states.errors import UsageError
from looplatch.states.event import Event
from looplatch.states.limits import Limits
from looplatch.states.reasons import Continue
from looplatch.states.state import WAITING, State
from looplatch.states.table import TABLE
from looplatch.states.transition import Table, Transition

SMALL: Final = Limits(
    max_turns=2,
    max_attempts=1,
    max_output_recoveries=1,
    max_blocks=2,
    max_pauses=1,
    max_low_progress=2,
    max_continuations=2,
    breaker_threshold=2,
    output_target=1_000,
    max_total_tokens=2_000,
)
"""Limits under which a table is explored: each counter can rise at least once, and budgets can be spent."""

MOST: Final = 1_000_000  # configurations that are explored before it is given up

_Values = tuple[object, ...]


class Configuration(NamedTuple):
    """Where a run can stand. `values`: of the fields that guards read, in the order of the context's."""

    state: State
    awaited: frozenset[type[Event]]
    values: _Values


@attrs.frozen(kw_only=True, eq=False)
class _Change:
    """What a row does to a configuration. Places are those of the fields among the values."""

    row: Transition
    number: int
    sets: tuple[tuple[int, object], ...]
    raises: tuple[tuple[int, str, int], ...]  # place, name and bound
    takes: tuple[tuple[int, str], ...]
    awaited: frozenset[type[Event]]
    idle: bool  # it orders nothing that would bring another event


@attrs.frozen(kw_only=True, eq=False)
class _Question:
    """What is asked of an event in a state: its rows, and the fields of the context that decide between them."""

    state: State
    event: type[Event]
    rows: tuple[Transition, ...]
    names: tuple[str, ...]
    places: tuple[int, ...]
    mirrored: tuple[str, ...]  # fields in which the event repeats what the context has
    known: dict[_Values, tuple["_Way", ...]] = attrs.field(factory=dict[_Values, "tuple[_Way, ...]"])


_Way = tuple[_Change, _Values]  # a row that some event takes, and what the event brings along


@attrs.frozen(kw_only=True)
class Exploration:
    """What exploring a table came to.

    configurations, moves: how many were found, and how many ways lead from one to another. longest: moves of the
    longest run that nobody interrupts; None where a run may go on for ever. measure: the counters, in the order in
    which they bound the run. reasons: the reasons to go on that were used. faults: what is wrong, in words.
    """

    configurations: int
    moves: int
    longest: int | None
    measure: tuple[str, ...]
    reasons: tuple[str, ...]
    faults: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.faults


def explore(table: Table = TABLE, limits: Limits = SMALL) -> Exploration:
    """Walk `table` from its initial state in every way that it allows under `limits`, and judge what is found.

    Takes seconds. Raises UsageError where more than a million configurations can be reached.
    """
    return _Explorer(table, limits).run()


class _Explorer:
    def __init__(self, table: Table, limits: Limits) -> None:
        read = {name for row in table for name in row.guard.reads}
        counters = {counter.name for counter in table.counters}
        self._table = table
        self._limits = limits
        self._fields = tuple(name for name in FIELDS if (name in read or name in counters) and name not in TOTALS)
        self._flags = set(self._fields) - counters  # an event's field of the same name tells of them
        self._place = {name: place for place, name in enumerate(self._fields)}
        fresh = Context(limits=limits)
        self._starts = {counter.name: counter.start for counter in table.counters}
        self._bounds = {counter.name: counter.bound_in(fresh) for counter in table.counters}
        self._events = {state: tuple(dict.fromkeys(r.event for r in table if state in r.sources)) for state in State}
        self._changes = {id(row): self._change(row, number) for number, row in enumerate(table)}
        self._questions = {
            (state, event): self._question(state, event) for state, events in self._events.items() for event in events
        }
        self._domains: dict[type[Event], Domain] = {}
        self._faults: dict[str, str] = {}
        self._walked: dict[int, Transition] = {}
        start = tuple(self._starts.get(name, getattr(fresh, name)) for name in self._fields)
        self._start = Configuration(table.initial, frozenset(), start)

    def _change(self, row: Transition, number: int) -> _Change:
        place = self._place
        sets: dict[str, object] = {**dict(row.sets), **{name: self._starts[name] for name in row.resets}}
        awaited = frozenset(event for command in row.commands for event in command.answers)
        rests = row.event.external or row.target in (*WAITING, *self._table.final)
        return _Change(
            row=row,
            number=number,
            sets=tuple((place[name], value) for name, value in sets.items() if name in place),
            raises=tuple((place[name], name, self._bounds[name]) for name in row.raises),
            takes=tuple((place[name], name) for name in row.takes if name in place),
            awaited=awaited,
            idle=not awaited and not rests,
        )

    def _question(self, state: State, event: type[Event]) -> _Question:
        rows = self._table.alternatives(state, event)
        mirrored = [name for name in event.field_names() if name in self._flags and not event.external]
        names = dict.fromkeys(name for row in rows for name in row.guard.reads if name in self._place)
        names |= dict.fromkeys(mirrored)
        return _Question(
            state=state,
            event=event,
            rows=rows,
            names=tuple(names),
            places=tuple(self._place[name] for name in names),
            mirrored=tuple(mirrored),
        )

    def run(self) -> Exploration:
        numbers, waiting, moves = {self._start: 0}, [self._start], 0
        by_itself: list[list[tuple[int, Transition]]] = []  # the moves that nobody outside makes, by number
        for here in waiting:  # it grows meanwhile
            ways: list[tuple[int, Transition]] = []
            by_itself.append(ways)
            for row, goal in self._moves(here):
                moves += 1
                number = numbers.setdefault(goal, len(numbers))
                if number == len(waiting):
                    waiting.append(goal)
                    if len(waiting) > MOST:
                        raise UsageError("limits", f"more than {MOST:,} configurations can be reached", "Lower them")
                if not row.event.external:
                    ways.append((number, row))
        longest = longest_way([[number for number, _ in ways] for ways in by_itself])
        if longest.cycle:
            self._note("cycle", f"a run may go round for ever: {_cycle_text(longest.cycle, by_itself)}")
        self._note_unreached()
        return Exploration(
            configurations=len(numbers),
            moves=moves,
            longest=None if longest.cycle else longest.length,
            measure=measure(self._table),
            reasons=tuple(str(one) for one in Continue if any(one is row.reason for row in self._walked.values())),
            faults=tuple(self._faults.values()),
        )

    def _note(self, kind: str, fault: str) -> None:
        """Note a fault, each kind once with the first configuration that shows it."""
        self._faults.setdefault(kind, fault)

    def _note_unreached(self) -> None:
        for number, row in enumerate(self._table):
            if number not in self._walked:
                self._note(row.name, f"no run can take the row {row.name}")
        used = {row.reason for row in self._walked.values()}
        for reason in Continue:
            if reason not in used and any(row.reason is reason for row in self._table):
                self._note(reason, f"no run goes on for the reason {reason}")

    def _moves(self, here: Configuration) -> Iterator[tuple[Transition, Configuration]]:
        """Every move from a configuration, and where it leads."""
        for event in here.awaited:
            if event not in self._events[here.state]:
                self._note(
                    f"lost {event} {here.state}", f"{self._described(here)} awaits {event.__name__}, and has no row"
                )
        led = False
        for event in self._events[here.state]:
            if event.external or event in here.awaited:
                for way in self._ways(here, self._questions[here.state, event]):
                    led = led or not event.external
                    yield way[0].row, self._after(here, way)
        if not led and here.awaited:
            self._note(
                f"stuck {here.state}", f"{self._described(here)} cannot go on: no awaited event has a row that holds"
            )

    def _ways(self, here: Configuration, question: _Question) -> tuple[_Way, ...]:
        held = tuple([here.values[place] for place in question.places])
        if held not in question.known:
            question.known[held] = tuple(self._tried(question, dict(zip(question.names, held, strict=True))))
        return question.known[held]

    def _tried(self, question: _Question, held: Mapping[str, object]) -> Iterator[_Way]:
        """The ways that an event takes from where the context holds this, whatever it brings; each once."""
        event, rows = question.event, question.rows
        taken = {name for row in rows for name in row.takes}
        fixed = dict(held) | {f"event.{name}": held[name] for name in question.mirrored if name not in taken}
        if any(value is None for name, value in fixed.items() if name.startswith("event.")):
            return  # nothing that it could tell of
        if event not in self._domains:
            self._domains[event] = domain_of(self._table.counters, event, self._limits)
        domain = self._domains[event]
        found: dict[tuple[str, _Values], _Way] = {}
        for trial in trials(domain, fixed):
            holding = [row for row in rows if ask(row.guard, event, trial, self._limits)[0] is True]
            if len(holding) != 1:
                names = " and ".join(row.guard.name for row in holding)
                words = f"the guards {names} both hold" if holding else "no guard holds"
                values = ", ".join(f"{name}={value}" for name, value in sorted(trial.values.items()))
                place = f"{question.state}, {event.__name__}"
                self._note(f"{len(holding)} {place}", f"{place}: {words} for {values or 'anything'}")
                continue
            change = self._changes[id(holding[0])]
            takes = tuple(trial.value(f"event.{name}") for _, name in change.takes)
            found.setdefault((change.row.name, takes), (change, takes))
        yield from found.values()

    def _after(self, here: Configuration, way: _Way) -> Configuration:
        change, takes = way
        row = change.row
        self._walked[change.number] = row
        if change.idle:
            self._note(f"idle {row.name}", f"the row {row.name} orders nothing that would bring another event")
        state = here.state if row.target is None else row.target
        if state in self._table.final:
            return Configuration(state, change.awaited, self._start.values)  # it is over, however it came to that
        values = list(here.values)
        for place, value in change.sets:
            values[place] = value
        for (place, _), value in zip(change.takes, takes, strict=True):
            values[place] = value
        for place, name, bound in change.raises:
            count = cast("int", here.values[place])
            if count < bound:
                values[place] = count + 1
            else:  # it stays there, or it would rise for ever
                self._note(f"past {name} {row.name}", f"the row {row.name} raises {name} past its bound of {bound}")
        return Configuration(state, change.awaited, tuple(values))

    def _described(self, here: Configuration) -> str:
        """A configuration in words: what is not as it was in the beginning."""
        start = dict(zip(self._fields, self._start.values, strict=True))
        held = dict(zip(self._fields, here.values, strict=True))
        other = ", ".join(f"{name}={value}" for name, value in held.items() if value != start[name])
        return f"{here.state} ({other})" if other else str(here.state)


def _cycle_text(cycle: list[int], ways: list[list[tuple[int, Transition]]]) -> str:
    steps = zip(cycle, [*cycle[1:], cycle[0]], strict=True)
    return ", ".join(next(row.name for number, row in ways[at] if number == to) for at, to in steps)
