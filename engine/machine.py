"""The machine: a table compiled to `transitions`, the one place where a run's state changes.

It takes an event and returns a `Move`: which row held, what every guard said, what the context became, and the
commands that follow. It performs nothing, and knows neither clock nor chance.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import attrs
import transitions

from looplatch.states.commands import Command
from looplatch.states.context import TOTALS, Context
from looplatch.states.errors import IllegalTransition, NoGuardPassed, RefusedEvent
from looplatch.states.event import Event, reader_of
from looplatch.states.record import MAX_INT
from looplatch.states.state import State
from looplatch.states.table import TABLE
from looplatch.states.transition import Counter, Table, Transition


class CounterExceeded(RefusedEvent):
    """A row would raise a counter beyond its bound: the guards of the table let a run go on that must end."""

    def __init__(
        self,
        counter: str,
        bound: int,
        row: str,
        *,
        state: str,
        event: str,
        verdicts: Mapping[str, bool],
        legal: Sequence[str],
    ) -> None:
        text = f"the counter {counter} is at its bound of {bound} and cannot be raised by {row}; guard that row"
        super().__init__(text, state, event, verdicts, legal)
        self.counter = counter
        self.bound = bound
        self.row = row


class Move(NamedTuple):
    """One accepted event. `target` equals `source` for a row that stays; `change` holds what the context changed.

    recorded: the names in its record: source, event, target, reason, strategy and terminal.
    """

    source: State
    event: Event
    target: State
    row: Transition
    verdicts: tuple[tuple[str, bool], ...]
    change: dict[str, Any]
    context: Context
    recorded: Mapping[str, str | None]

    @property
    def commands(self) -> tuple[Command, ...]:
        """What the driver has to do now, in order."""
        return self.row.commands


@attrs.define(eq=False, kw_only=True)
class Cursor:
    """Where one run stands. Only `Machine` changes it."""

    state: str
    context: Context


class _CompiledEvent(transitions.Event):
    """An event as `transitions` takes it: its guards were asked already, and there is neither queue nor callback."""

    def trigger(self, model: Any, *args: Any, **kwargs: Any) -> bool:
        """Take the row of this place, of those that leave the model's state; False where there is none."""
        rows: Sequence[Any] = self.transitions.get(model.state, ())
        place: int = args[0]
        if place >= len(rows):
            return False
        if (target := rows[place].dest) is not None:
            model.state = target
        return True


class _Compiled(transitions.Machine):
    """A table as `transitions` takes it."""

    event_cls = _CompiledEvent


@attrs.frozen
class _Alternative:
    """A row that may hold from one state: what its guard asks, what a record names, and what changes in the context.

    place: among the alternatives. verdicts: of all of them, where this one holds. target: the state that is entered, or
    the one that stays. names: of the fields that get a value of the row's own, which `values` are; `held` reads them.
    takes: those that get the event's. raises: the counters that go up.
    """

    row: Transition
    place: int
    test: Callable[[Context, Any], bool]
    verdicts: tuple[tuple[str, bool], ...]
    target: State
    recorded: Mapping[str, str | None]
    names: tuple[str, ...]
    values: tuple[object, ...]
    held: Callable[[Context], tuple[object, ...]]
    takes: tuple[str, ...]
    raises: tuple[Counter, ...]


@attrs.frozen
class _Choice:
    """The alternatives of one state and event, in the table's order, and what asks `transitions`."""

    source: State
    alternatives: tuple[_Alternative, ...]
    trigger: Callable[..., bool]


class Machine:
    """A compiled table. Built once, shared by all runs; it holds nothing of any of them."""

    def __init__(self, table: Table = TABLE) -> None:
        self.table = table
        self._states = {str(state): state for state in table.states}
        counters = {counter.name: counter for counter in table.counters}
        machine = _Compiled(
            model=None,
            states=[str(state) for state in table.states],
            initial=str(table.initial),
            send_event=True,
            auto_transitions=False,
            queued=False,
        )
        for state in table.states:
            for row in table.rows:
                if state in row.sources:
                    target = None if row.target is None else str(row.target)
                    machine.add_transition(row.event.__name__, str(state), target)
        self._choices = {
            (str(state), kind): _Choice(
                state,
                tuple(_alternative(state, rows, place, counters) for place in range(len(rows))),
                machine.events[kind.__name__].trigger,
            )
            for state in table.states
            for kind in {row.event for row in table.rows}
            if (rows := table.alternatives(state, kind))
        }

    def start(self, context: Context, state: State | None = None) -> Cursor:
        """Return a cursor in `state`: where a log says that a run stands, the initial state by default."""
        return Cursor(state=str(state or self.table.initial), context=context)

    def restore(self, cursor: Cursor, context: Context) -> None:
        """Give a cursor the context that a log tells of, its limits above all; no move is made."""
        cursor.context = context

    def send(self, cursor: Cursor, event: Event) -> Move:
        """Move `cursor` by `event`.

        Raises IllegalTransition when the state has no row for the event, NoGuardPassed when not exactly one guard
        holds, CounterExceeded when the row would raise a counter beyond its bound; the cursor is unchanged then.
        """
        kind, context = type(event), cursor.context
        choice = self._choices.get((cursor.state, kind))
        if choice is None:
            source = self._states[cursor.state]
            raise IllegalTransition(source, kind.__name__, self.table.legal_events(source))
        held = [one for one in choice.alternatives if one.test(context, event) is True]
        if len(held) != 1:
            raise self._no_guard_passed(choice, context, event)
        taken = held[0]
        change = _change(context, taken, event)
        for counter in taken.raises:
            if (raised := getattr(context, counter.name)) >= (bound := counter.bound_in(context)):
                legal, verdicts = self.table.legal_events(choice.source), dict(taken.verdicts)
                raise CounterExceeded(
                    counter.name,
                    bound,
                    taken.row.name,
                    state=choice.source,
                    event=kind.__name__,
                    verdicts=verdicts,
                    legal=legal,
                )
            change[counter.name] = raised + 1
        if choice.trigger(cursor, taken.place) is not True:
            raise self._no_guard_passed(choice, context, event)
        if change:
            context = cursor.context = context.changed(change)
        return Move(choice.source, event, taken.target, taken.row, taken.verdicts, change, context, taken.recorded)

    def _no_guard_passed(self, choice: _Choice, context: Context, event: Event) -> NoGuardPassed:
        source, kind = choice.source, type(event)
        verdicts = dict(self.verdicts(source, context, event))
        return NoGuardPassed(source, kind.__name__, verdicts, self.table.legal_events(source))

    def verdicts(self, state: State, context: Context, event: Event) -> tuple[tuple[str, bool], ...]:
        """What every alternative of `event` in `state` says, in the table's order; empty where the event is illegal."""
        return tuple(
            (row.guard.name, row.guard.test(context, event)) for row in self.table.alternatives(state, type(event))
        )


def _alternative(state: State, rows: Sequence[Transition], place: int, counters: Mapping[str, Counter]) -> _Alternative:
    """A row as an alternative. What is said later counts: the row's values, the event's, resets, raises and totals."""
    row = rows[place]
    target = row.target or state
    said = {*row.raises, *(TOTALS if row.adds else ())}
    resets = {name: counters[name].start for name in row.resets if name not in said}
    takes = tuple(name for name in row.takes if name not in said and name not in resets)
    values = {**dict(row.sets), **({} if row.reason is None else {"reason": row.reason})}
    sets = {name: value for name, value in values.items() if name not in said and name not in takes} | resets
    names = tuple(sets)
    return _Alternative(
        row,
        place,
        row.guard.test,
        tuple((one.guard.name, one is row) for one in rows),
        target,
        {
            "source": str(state),
            "event": row.event.__name__,
            "target": str(target),
            "reason": None if row.reason is None else str(row.reason),
            "strategy": None if row.strategy is None else str(row.strategy),
            "terminal": None if row.terminal is None else str(row.terminal),
        },
        names,
        tuple(sets.values()),
        reader_of(names),
        takes,
        tuple(counters[name] for name in row.raises),
    )


_totals = reader_of(TOTALS)


def _change(context: Context, taken: _Alternative, event: Event) -> dict[str, Any]:
    """The fields of the context that a row changes, with their new values."""
    change = dict[str, Any]()
    have = taken.held(context)
    if have != taken.values:  # mostly, all of that is so already
        change |= {name: new for name, old, new in zip(taken.names, have, taken.values, strict=True) if new != old}
    for name in taken.takes:
        if (value := getattr(event, name)) != getattr(context, name):
            change[name] = value
    if taken.row.adds:
        for name, have, more in zip(TOTALS, _totals(context), _totals(event), strict=True):
            if more and have < MAX_INT:  # what a record can hold
                change[name] = min(have + more, MAX_INT)
    return change
