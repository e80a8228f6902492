"""What a run walked: how often each row of the table, from which state, how long that took, and where it ended."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, cast

import attrs

from looplatch.diagrams.elapsed import Elapsed, Fields
from looplatch.diagrams.source import Source, records_of
from looplatch.states.errors import UsageError
from looplatch.states.record import Kind
from looplatch.states.state import State
from looplatch.states.transition import Table, check_is_table

Step = tuple[int, State]


@attrs.frozen(kw_only=True)
class Walk:
    """Counts and times of one run, or of several together.

    steps: how often each row was walked, by its place in the table and the state left. times: the nanoseconds spent in
    that state before. visits, dwelt: the same by state. last: where the run is, None for several. terminal: why it
    ended there. timed: whether the records tell times. away: how often another process took the run over. others: moves
    by rows that this table does not have, of a run that was judged by another one.
    """

    steps: Mapping[Step, int]
    times: Mapping[Step, int]
    visits: Mapping[State, int]
    dwelt: Mapping[State, int]
    last: State | None
    terminal: str | None = None
    timed: bool = False
    away: int = 0
    others: int = 0

    def count(self, index: int, states: Iterable[State]) -> int:
        """How often the row at `index` was walked from any of `states`."""
        return sum(self.steps.get((index, state), 0) for state in states)

    def time(self, index: int, states: Iterable[State]) -> int:
        """The nanoseconds spent in any of `states` before the row at `index` was walked."""
        return sum(self.times.get((index, state), 0) for state in states)

    @property
    def whole(self) -> int:
        """The nanoseconds of the whole run."""
        return sum(self.dwelt.values())


def walk_of(source: Source, table: Table) -> Walk:
    """What `source` walked: a log, a run, or the records themselves.

    Raises UsageError where `source` is none of these, or holds a move that `table` does not have though no other table
    judged it.
    """
    check_is_table(table)
    steps: Counter[Step] = Counter()
    times: Counter[Step] = Counter()
    visits: Counter[State] = Counter({table.initial: 1})
    dwelt: Counter[State] = Counter()
    rows = _Rows(table)
    elapsed, since = Elapsed(), 0
    last, terminal = table.initial, None
    judge: str | None = None
    others = 0
    for record in records_of(source):
        now = elapsed.at(record)
        judge = _judge(record) or judge
        if record.get("kind") not in (None, Kind.TRANSITION):
            continue
        index = rows.of(record)
        if index is None and judge in (None, table.fingerprint):
            raise _no_such_row(record)
        state, target = State(record.get("source")), State(record.get("target"))
        if index is None:
            others += 1
        else:
            steps[index, state] += 1
            times[index, state] += now - since
        dwelt[state] += now - since
        since, last, terminal = now, target, record.get("terminal")
        if target is not state or (index is not None and table.rows[index].target is not None):
            visits[target] += 1
    if not table.is_final(last):
        dwelt[last] += elapsed.now - since
    return Walk(
        steps=steps,
        times=times,
        visits=visits,
        dwelt=dwelt,
        last=last,
        terminal=terminal,
        timed=elapsed.timed,
        away=elapsed.away,
        others=others,
    )


def together(walks: Iterable[Walk]) -> Walk:
    """Several runs as one; there is no state where they are."""
    steps: Counter[Step] = Counter()
    times: Counter[Step] = Counter()
    visits: Counter[State] = Counter()
    dwelt: Counter[State] = Counter()
    for walk in walks:
        steps.update(walk.steps)
        times.update(walk.times)
        visits.update(walk.visits)
        dwelt.update(walk.dwelt)
    return Walk(steps=steps, times=times, visits=visits, dwelt=dwelt, last=None)


class _Rows:
    """Finds the row that a record of a move stands for: its verdicts single it out, or its ends and reasons do."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._found: dict[tuple[Any, ...], int | None] = {}

    def of(self, record: Fields) -> int | None:
        """The row's place in the table; None where it has no such row."""
        held = frozenset(name for name, verdict in record.get("guards") or () if verdict)
        names = tuple(record.get(name) for name in ("source", "event", "target", "reason", "strategy", "terminal"))
        key = (*names, held)
        if key not in self._found:
            self._found[key] = self._look_up(record, held)
        return self._found[key]

    def _look_up(self, record: Fields, held: frozenset[str]) -> int | None:
        for index, row in enumerate(self._table.rows):
            if (
                record.get("source") in row.sources
                and record.get("event") == row.event.__name__
                and record.get("target") == (row.target or record.get("source"))
                and record.get("reason") == row.reason
                and record.get("strategy") in (None, row.strategy)
                and record.get("terminal") == row.terminal
                and (not held or row.guard.name in held)
            ):
                return index
        return None


def _no_such_row(record: Fields) -> UsageError:
    return UsageError(
        "log_or_run",
        f"record {record.get('seq')} moves from {record.get('source')} by {record.get('event')} "
        f"to {record.get('target')}, and the table has no such row",
        "Draw a run with the table that it ran on",
    )


def _judge(record: Fields) -> str | None:
    """The fingerprint of the table that judges the run from this record on; None where it is not told."""
    named: object = None
    if record.get("kind") == Kind.GENESIS:
        named = record.get("table")
    elif record.get("kind") == Kind.RESUMED:
        named = _member(_member(record.get("changes"), "table"), "now")
    return named if isinstance(named, str) else None


def _member(value: object, name: str) -> object:
    return cast("dict[str, object]", value).get(name) if isinstance(value, dict) else None
