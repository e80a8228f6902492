"""The checker of tables: what makes a table one that a run can rely on, proved once, before anything runs."""

from collections.abc import Iterator

from looplatch.states.check.cycles import run_faults
from looplatch.states.check.guards import guard_faults
from looplatch.states.context import FIELDS, TOTALS
from looplatch.states.errors import TableError
from looplatch.states.events import EVENTS
from looplatch.states.reasons import Continue, Strategy, Terminal
from looplatch.states.state import State
from looplatch.states.transition import Table, Transition, check_is_table


def check_table(table: Table) -> None:
    """Raise TableError, which lists every fault, unless `table` keeps all rules. Takes a second or two."""
    found = faults(table)
    if found:
        raise TableError(found)


def faults(table: Table) -> tuple[str, ...]:
    """Return every fault of `table`, each in words that name the row, state or field; empty for a sound table."""
    check_is_table(table)
    shape = (*_state_faults(table), *_row_faults(table), *_unused(table), *_command_faults(table))
    guards = tuple(guard_faults(table))
    # Without sound rows and guards there is nothing to walk.
    return shape + guards or tuple(run_faults(table))


def _state_faults(table: Table) -> Iterator[str]:
    for row in table.rows:
        for state in (*row.sources, row.target):
            if state is not None and not isinstance(state, State):  # pyright: ignore[reportUnnecessaryIsInstance]
                yield f"the row {row.name} names the unknown state {state!r}"
    forth = {state: {r.target for r in table.rows if state in r.sources and r.target} for state in State}
    reached = _closure(forth, {table.initial})
    back = {state: {s for r in table.rows if r.target == state for s in r.sources} for state in State}
    ending = _closure(back, set(table.final))
    for state in table.states:
        if state not in reached:
            yield f"the state {state} cannot be reached from {table.initial}"
        if state not in ending:
            yield f"no final state can be reached from {state}"


def _closure(ways: dict[State, set[State]], start: set[State]) -> set[State]:
    found, waiting = set(start), list(start)
    while waiting:
        new = ways.get(waiting.pop(), set()) - found
        found |= new
        waiting += new
    return found


def _row_faults(table: Table) -> Iterator[str]:
    seen: set[tuple[str, str, str]] = set()
    for row in table.rows:
        for source in row.sources:
            key = source, row.event.__name__, row.guard.name
            if key in seen:
                yield f"{source}, {row.event.__name__}: there are two rows with the guard {row.guard.name}"
            seen.add(key)
            if source in table.final:
                yield f"the row {row.name} leads out of the final state {source}"
        yield from (f"the row {row.name} {fault}" for fault in _own_faults(table, row))


def _own_faults(table: Table, row: Transition) -> Iterator[str]:
    if row.target is State.PREPARE and row.reason is None:
        yield "enters prepare without a reason to go on"
    if row.target is not State.PREPARE and row.reason is not None:
        yield f"has the reason {row.reason} but does not enter prepare"
    if row.strategy is not None and row.reason is None:
        yield f"has the strategy {row.strategy} but no reason to go on"
    if row.target in table.final and row.terminal is None:
        yield f"ends the run in {row.target} without a terminal reason"
    if row.target not in table.final and row.terminal is not None:
        yield f"has the terminal reason {row.terminal} but does not end the run"
    yield from _change_faults(table, row)


def _change_faults(table: Table, row: Transition) -> Iterator[str]:
    counters = {counter.name for counter in table.counters}
    fields = row.event.field_names()
    for word, names in (("raises", row.raises), ("resets", row.resets)):
        for name in names:
            if name not in counters:
                yield f"{word} {name}, which is no counter"
    for name in set(row.raises) & set(row.resets):
        yield f"raises and resets {name}"
    for word, names in (("sets", tuple(name for name, _ in row.sets)), ("takes", row.takes)):
        for name in names:
            if name not in FIELDS:
                yield f"{word} {name}, which is no field of the context"
            elif name in counters:
                yield f"{word} {name}, which is a counter: only raises and resets may change it"
    for name in row.takes:
        if name not in fields:
            yield f"takes {name}, which {row.event.__name__} does not have"
    if row.adds and not set(TOTALS) <= set(fields):
        yield f"adds tokens and cost, which {row.event.__name__} does not have"


def _unused(table: Table) -> Iterator[str]:
    events = {row.event for row in table.rows}
    for event in EVENTS:
        if event not in events:
            yield f"the event {event.__name__} has no row"
    for word, members, used in (
        ("reason", tuple(Continue), {row.reason for row in table.rows}),
        ("strategy", tuple(Strategy), {row.strategy for row in table.rows}),
        ("terminal reason", tuple(Terminal), {row.terminal for row in table.rows}),
    ):
        for member in members:
            if member not in used:
                yield f"the {word} {member} has no row"
    for counter in table.counters:
        if counter.name not in FIELDS:
            yield f"the counter {counter.name} is no field of the context"
        if not any(counter.name in row.raises for row in table.rows):
            yield f"the counter {counter.name} is raised by no row"
        if not any(counter.name in row.guard.reads for row in table.rows):
            yield f"the counter {counter.name} has a bound that no guard reads"


def _command_faults(table: Table) -> Iterator[str]:
    """Every event that a command may bring must be legal where the command runs."""
    known: set[str] = set()
    for row in table.rows:
        for state in row.sources if row.target is None else (row.target,):
            for command in row.commands:
                for answer in command.answers:
                    fault = f"{command.name} may bring {answer.__name__} in {state}, where it has no row"
                    if not table.alternatives(state, answer) and fault not in known:
                        known.add(fault)
                        yield fault
    decisions = table.decisions
    ends = {f"the stop reason {reason}": event for reason, event in decisions.by_reason.items()}
    ends |= {"an answer with calls": decisions.with_calls, "an unknown stop reason": decisions.otherwise}
    for end, event in ends.items():
        if not table.alternatives(State.DECIDE, event):
            yield f"{end} leads to {event.__name__}, which has no row in decide"
    for reason in sorted(decisions.cut - set(decisions.by_reason)):
        yield f"the stop reason {reason} is said to cut an answer, and leads nowhere"
