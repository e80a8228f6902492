"""What a run walked: how often each row of the table, from which state, and where it ended."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Protocol, cast

import attrs

from looplatch.states.errors import UsageError
from looplatch.states.record import Kind
from looplatch.states.state import State
from looplatch.states.transition import Table, Transition


class Fields(Protocol):
    """A record, or the plain fields of one."""

    def get(self, name: str, /) -> Any:
        """The field `name`; None where there is none."""
        ...


@attrs.frozen
class Walk:
    """Counts of one run. `steps` counts by place in the table and state left; `visits` by state entered."""

    steps: Mapping[tuple[int, State], int]
    visits: Mapping[State, int]
    last: State

    def count(self, index: int, states: Iterable[State]) -> int:
        """How often the row at `index` was walked from any of `states`."""
        return sum(self.steps.get((index, state), 0) for state in states)


def walk_of(source: object, table: Table) -> Walk:
    """What `source` walked: a log, a run, or the records themselves.

    Raises UsageError where `source` is none of these, or holds a move that `table` does not have.
    """
    steps: Counter[tuple[int, State]] = Counter()
    visits: Counter[State] = Counter({table.initial: 1})
    last = table.initial
    for record in _records(source):
        if record.get("kind") not in (None, Kind.TRANSITION):
            continue
        index, row = _row(record, table)
        state = State(record.get("source"))
        steps[index, state] += 1
        last = state
        if row.target is not None:
            last = row.target
            visits[last] += 1
    return Walk(steps, visits, last)


def _records(source: object) -> Iterable[Fields]:
    kind = type(source).__name__
    transitions = getattr(source, "transitions", None)
    if transitions is not None:
        return cast("Iterable[Fields]", transitions)
    log = getattr(source, "log", None)
    if log is not None:
        return _records(log)
    if isinstance(source, Iterable) and not isinstance(source, str | bytes | dict):
        return cast("Iterable[Fields]", source)
    raise UsageError(
        "log_or_run",
        f"{kind} is neither a log nor a run nor a list of records",
        "Read a file with looplatch.read(path) first",
    )


def _row(record: Fields, table: Table) -> tuple[int, Transition]:
    """The row that a record of a move stands for: its verdicts single it out, or else its ends and its reasons do."""
    held = {name for name, verdict in record.get("guards") or () if verdict}
    for index, row in enumerate(table.rows):
        if (
            record.get("source") in row.sources
            and record.get("event") == row.event.__name__
            and record.get("target") == (row.target or record.get("source"))
            and record.get("reason") == row.reason
            and record.get("terminal") == row.terminal
            and (not held or row.guard.name in held)
        ):
            return index, row
    raise UsageError(
        "log_or_run",
        f"record {record.get('seq')} moves from {record.get('source')} by {record.get('event')} "
        f"to {record.get('target')}, and the table has no such row",
        "Draw a run with the table that it ran on",
    )
