"""Coverage: which rows of the table the runs of a test session walked together."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final, cast

import attrs

from looplatch.audit import Log
from looplatch.diagrams.rendering import Format, check_format, coverage
from looplatch.diagrams.walk import Walk, walk_of
from looplatch.states.brief import brief
from looplatch.states.errors import UsageError
from looplatch.states.state import State
from looplatch.states.table import TABLE
from looplatch.states.transition import Table, Transition

_SUFFIXES: Final = {"txt": "text", "mmd": "mermaid"}


class Coverage:
    """What was walked of the rows that are wanted, and the picture of it.

    file: where the picture goes; its suffix tells the format. only: what the wanted rows are named by, all if empty.
    without: what those are named by that are not wanted, whatever `only` says. A row is named by a state that it
    leaves, its event (`TurnPaused`), its event and guard (`TurnPaused[pauses_spent]`), or as `missed` names it; one
    that leaves several states stays wanted from those that are not named. Raises UsageError for a name of no row, and
    for a file whose suffix tells no format.
    """

    def __init__(
        self, file: Path, only: Sequence[str] = (), without: Sequence[str] = (), *, table: Table = TABLE
    ) -> None:
        self.file = file
        self.walks: list[Walk] = []
        self._only, self._without, self._table = only, without, table
        check_format(self._format)
        if self._format == "html":
            raise UsageError("file", "a page shows one run", "Take one of .svg, .png, .dot, .mmd, .txt")
        for name in (*only, *without):
            if not any(_is_named(row, source, name) for row in table for source in row.sources):
                problem = f"{brief(name)} names no row of the table"
                raise UsageError("coverage", problem, "Take a state, EVENT, EVENT[guard], or a row as it is printed")
        if not self._wanted:
            raise UsageError("coverage", "no row of the table is left", "Leave out less")

    @property
    def _format(self) -> Format:
        suffix = self.file.suffix[1:]
        return cast("Format", _SUFFIXES.get(suffix, suffix))

    @cached_property
    def _wanted(self) -> tuple[tuple[str, Transition], ...]:
        """The rows that are wanted, from the states that they are wanted from, by the names they have in the table."""
        found = ((row, tuple(source for source in row.sources if self._wants(row, source))) for row in self._table)
        return tuple((row.name, attrs.evolve(row, sources=sources)) for row, sources in found if sources)

    def _wants(self, row: Transition, source: State) -> bool:
        if any(_is_named(row, source, name) for name in self._without):
            return False
        return not self._only or any(_is_named(row, source, name) for name in self._only)

    @cached_property
    def _part(self) -> Table:
        return attrs.evolve(self._table, rows=tuple(row for _, row in self._wanted))

    def add(self, log: Log) -> None:
        """Count what a log walked."""
        self.walks.append(walk_of(log, self._part))

    def dump(self) -> list[Any]:
        """What was counted as plain data, for another process: strings, numbers and lists alone."""
        return [
            [
                [[index, str(state), count] for (index, state), count in walk.steps.items()],
                [[str(state), count] for state, count in walk.visits.items()],
            ]
            for walk in self.walks
        ]

    def take(self, counts: Sequence[Any]) -> None:
        """Add what `dump` gave in another process, whose table and names are the same."""
        for steps, visits in counts:
            counted = {(index, State(state)): count for index, state, count in steps}
            visited = {State(state): count for state, count in visits}
            self.walks.append(Walk(steps=counted, times={}, visits=visited, dwelt={}, last=None))

    @property
    def missed(self) -> tuple[str, ...]:
        """The names of the wanted rows that nothing walked."""
        return tuple(
            name
            for index, (name, row) in enumerate(self._wanted)
            if not any(walk.count(index, row.sources) for walk in self.walks)
        )

    def draw(self) -> None:
        """Write the picture of the wanted rows."""
        drawn = coverage(self.walks, table=self._part, format=self._format)
        self.file.write_bytes(drawn.encode() if isinstance(drawn, str) else drawn)


def _is_named(row: Transition, source: State, name: str) -> bool:
    event = row.event.__name__
    return name in (str(source), event, f"{event}[{row.guard.name}]", row.name)
