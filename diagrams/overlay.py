"""What is laid over the machine: one run, two runs beside each other, or what a test run walked."""

from collections.abc import Iterable
from enum import StrEnum

import attrs

from looplatch.diagrams.elapsed import spent
from looplatch.diagrams.outside import shown
from looplatch.diagrams.walk import Walk
from looplatch.states.counted import counted
from looplatch.states.state import State
from looplatch.states.transition import Table

TIMES = "\u00d7"  # the sign of multiplication
NONE = "\u2013"  # stands for no times at all, beside another count
NAME = 40  # characters of a run's name that are shown


class Kind(StrEnum):
    """Which of the three is laid over the machine."""

    RUN = "run"
    DIFF = "dif"
    COVERAGE = "coverage"


class Tone(StrEnum):
    """How a state, a row or an edge stands out."""

    PLAIN = "plain"  # nothing is laid over the machine
    WALKED = "walked"
    NEVER = "never"  # by no run: faint
    FIRST = "first"  # by the first of two runs only
    SECOND = "second"
    BOTH = "both"
    COVERED = "covered"
    MISSED = "missed"


@attrs.frozen(kw_only=True)
class Mark:
    """What the runs did with a row or a state: how often each, and for how many nanoseconds (empty: not told)."""

    kind: Kind | None = None
    counts: tuple[int, ...] = ()
    times: tuple[int, ...] = ()

    @property
    def tone(self) -> Tone:
        """How it stands out."""
        match self.kind, self.counts:
            case None, _:
                return Tone.PLAIN
            case Kind.RUN, counts:
                return Tone.WALKED if any(counts) else Tone.NEVER
            case Kind.COVERAGE, counts:
                return Tone.COVERED if any(counts) else Tone.MISSED
            case Kind.DIFF, (0, 0):
                return Tone.NEVER
            case Kind.DIFF, (_, 0):
                return Tone.FIRST
            case Kind.DIFF, (0, _):
                return Tone.SECOND
            case Kind.DIFF, _:
                return Tone.BOTH

    @property
    def suffix(self) -> str:
        """What stands behind the label, with a space before it; empty where no run came there."""
        if not any(self.counts):
            return ""
        counted = "|".join(f"{TIMES}{count}" if count else NONE for count in self.counts)
        timed = f", {spent(self.times[0])}" if self.kind is Kind.RUN and self.times else ""
        return f" {counted}{timed}"

    @classmethod
    def sum(cls, marks: Iterable["Mark"]) -> "Mark":
        """Several rows as one."""
        found = list(marks)
        if not found:
            return cls()
        counts, times = zip(*(m.counts for m in found), strict=True), zip(*(m.times for m in found), strict=True)
        return cls(kind=found[0].kind, counts=tuple(map(sum, counts)), times=tuple(map(sum, times)))


UNMARKED = Mark()


@attrs.frozen(kw_only=True)
class Overlay:
    """What is laid over the machine. `names` are those of the two runs of a diff; `runs` counts those of a coverage."""

    kind: Kind
    walks: tuple[Walk, ...]
    names: tuple[str, ...] = ()
    runs: int = 1

    @property
    def timed(self) -> bool:
        """Whether there are times to tell."""
        return all(walk.timed for walk in self.walks)

    def row(self, index: int, states: tuple[State, ...]) -> Mark:
        """The mark of the row at `index` of the table, where it leaves any of `states`."""
        counts = tuple(walk.count(index, states) for walk in self.walks)
        times = tuple(walk.time(index, states) for walk in self.walks) if self.timed else ()
        return Mark(kind=self.kind, counts=counts, times=times)

    def state(self, state: State) -> Mark:
        """The mark of a state: how often it was entered. How long it took is told by `dwelt`."""
        return Mark(kind=self.kind, counts=tuple(walk.visits.get(state, 0) for walk in self.walks))

    def dwelt(self, state: State) -> str:
        """The time spent in a state and its share of the whole, of each run; empty where it is not told."""
        if not self.timed or not any(walk.dwelt.get(state, 0) for walk in self.walks):
            return ""
        return " | ".join(f"{spent(walk.dwelt.get(state, 0))}, {_percent(walk, state)}" for walk in self.walks)

    def share(self, state: State) -> float:
        """The share of a state in the time of one run, from 0 to 1; 0 where it is not told."""
        return _share(self.walks[0], state) if self.kind is Kind.RUN and self.timed else 0.0

    def legend(self, table: Table) -> tuple[tuple[str, Tone], ...]:
        """What the marks mean, line by line."""
        match self.kind:
            case Kind.RUN:
                return self._of_run()
            case Kind.DIFF:
                first, second = (shown(name, NAME) for name in self.names)
                return (
                    (f"{TIMES}1|{TIMES}2: times walked in A|in B", Tone.BOTH),
                    (f"only in A: {first}", Tone.FIRST),
                    (f"only in B: {second}", Tone.SECOND),
                    ("faint, without a number: in neither", Tone.NEVER),
                )
            case Kind.COVERAGE:
                rows = range(len(table))
                walked = sum(any(walk.count(row, table.rows[row].sources) for walk in self.walks) for row in rows)
                runs = counted(self.runs, "run")
                return (
                    (f"{walked} of {len(table)} rows walked, by {runs}", Tone.COVERED),
                    (f"{len(table) - walked} of {len(table)} rows never walked", Tone.MISSED),
                )

    def _of_run(self) -> tuple[tuple[str, Tone], ...]:
        walk = self.walks[0]
        end = f"the run {'ended' if walk.terminal else 'is'} in {walk.last}"
        lines = [
            f"{TIMES}N: times walked; faint, without it: never walked",
            end + (f": {walk.terminal}" if walk.terminal else ""),
        ]
        if self.timed:
            lines.insert(1, "time: spent in the state before that move")
            lines.append(f"the whole run took {spent(walk.whole)}")
        if walk.away:
            lines.append(f"taken over {counted(walk.away, 'time')}; time away is not counted")
        if walk.others:
            lines.append(f"{counted(walk.others, 'move')} by rows that this table does not have")
        return tuple((line, Tone.WALKED) for line in lines)


def _share(walk: Walk, state: State) -> float:
    return walk.dwelt.get(state, 0) / walk.whole if walk.whole else 0.0


def _percent(walk: Walk, state: State) -> str:
    share = _share(walk, state)
    return "<1 %" if 0 < share < 0.005 else f"{share:.0%}".replace("%", " %")
