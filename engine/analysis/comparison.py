"""diff: where two runs part, and in which counts they differ."""

import itertools
from collections.abc import Iterator
from typing import Any, Final

import attrs

from looplatch.analysis.counts import Counts
from looplatch.analysis.quotes import Quotes
from looplatch.analysis.reading import Readable, Reading, nothing_in, reading
from looplatch.analysis.steps import Step, Steps, unlike
from looplatch.audit import LogDamaged
from looplatch.cleaning import one_line
from looplatch.encoding import EncodeError, encode
from looplatch.states.brief import brief
from looplatch.states.counted import counted
from looplatch.states.record import Kind, Record
from looplatch.states.state import INITIAL

_SHOWN: Final = 120  # characters of a value
_TIMES: Final = "duration_ms"


@attrs.frozen(kw_only=True)
class Difference:
    """The first place where two runs are not the same.

    seq_a, seq_b: the records; None where that run has nothing more. state: the state that the runs were in.
    what: what differs, in words. path: the field of it. a, b: both values.
    """

    seq_a: int | None
    seq_b: int | None
    state: str
    what: str
    path: str
    a: Any
    b: Any

    def __str__(self) -> str:
        where = f"records {_or_none(self.seq_a)} and {_or_none(self.seq_b)}"
        return one_line(f"{where}, in {self.state}: {self.what}: {self.path}: {shown(self.a)} and {shown(self.b)}", 800)

    def fields(self) -> dict[str, Any]:
        """The same as plain data, for JSON."""
        plain = attrs.asdict(self, recurse=False)
        return {**plain, "a": _plain(self.a), "b": _plain(self.b)}


@attrs.frozen(kw_only=True)
class Comparison:
    """What comparing two runs came to: where they part, if they do, and the counts that differ, each as both values.

    How long the runs took is among the counts, and makes them no others.
    """

    difference: Difference | None
    counts: dict[str, tuple[Any, Any]]
    steps: int

    @property
    def same(self) -> bool:
        """Whether both runs did the same."""
        return self.difference is None and set(self.counts) <= {_TIMES}

    def __str__(self) -> str:
        first = f"the runs are the same, in all {counted(self.steps, 'step')}" if self.same else ""
        if self.difference is not None:
            first = f"the runs part after {counted(self.steps, 'step')}\n{self.difference}"
        elif not first:
            first = "the runs take the same steps, and differ in their counts"
        lines = [
            f"  {name}: {one_line(str(a), _SHOWN)} and {one_line(str(b), _SHOWN)}"
            for name, (a, b) in self.counts.items()
        ]
        return "\n".join([first, *lines])

    def fields(self) -> dict[str, Any]:
        """The same as plain data, for JSON."""
        return {
            "same": self.same,
            "steps": self.steps,
            "difference": None if self.difference is None else self.difference.fields(),
            "counts": {name: list(both) for name, both in self.counts.items()},
        }


def diff(a: Readable, b: Readable) -> Comparison:
    """Compare two runs, step by step: settings, messages, requests, moves, tools, hooks and summaries.

    Stamps, ids, salts and hashes do not count, nor how long things took; contents are compared as long as both logs
    keep them, else by their sizes. Of calls that ran side by side the order does not count.
    Raises UsageError for a log that cannot be read, or holds no record, LogDamaged for one with a line that is none.
    """
    one, other = _Side(reading(a)), _Side(reading(b))
    steps, difference = 0, None
    for step, facing in itertools.zip_longest(one.steps(), other.steps()):
        if (difference := difference_of(step, facing, one.state)) is not None:
            break
        steps += 1
    one.finish()
    other.finish()
    left, right = one.counts.flat(), other.counts.flat()
    counts = {
        name: (left.get(name, 0), right.get(name, 0))
        for name in dict.fromkeys([*left, *right])
        if left.get(name, 0) != right.get(name, 0)
    }
    return Comparison(difference=difference, counts=counts, steps=steps)


def difference_of(one: Step | None, other: Step | None, state: str) -> Difference | None:
    """Where two steps part, of which one may be missing; None where they are the same."""
    seq_a, seq_b = (None if step is None else step.seq for step in (one, other))

    def difference(what: str, path: str, a: Any, b: Any) -> Difference:
        return Difference(seq_a=seq_a, seq_b=seq_b, state=state, what=what, path=path, a=a, b=b)

    if one is None or other is None:
        nothing = "nothing more"
        return difference("one run goes on", "step", one.what if one else nothing, other.what if other else nothing)
    if one.what != other.what:
        return difference("another step", "step", one.what, other.what)
    found = unlike(one.fields, other.fields)
    return None if found is None else difference(one.what, found.path, found.one, found.other)


class _Side:
    """One of the two runs."""

    def __init__(self, log: Reading) -> None:
        self.counts = Counts()
        self.state = str(INITIAL)
        self._log = log
        self._records = iter(log)
        self._making = Steps(Quotes(log.payloads))
        self._line = 0

    def steps(self) -> Iterator[Step]:
        """The steps of the run. Raises LogDamaged at a record that is none of its kind."""
        making = self._making.all(self._counted())
        while True:
            try:
                step = next(making)
            except StopIteration:
                return
            except (AttributeError, KeyError, TypeError, ValueError) as error:
                raise LogDamaged(
                    self._log.file, self._line, f"it is not what its kind must be ({brief(error)})"
                ) from error
            yield step

    def finish(self) -> None:
        """Count what is left. Raises UsageError where there was no record at all, LogDamaged where a line is none."""
        for _ in self._counted():
            pass
        if self._log.damage is not None and self._line:
            raise self._log.damage
        if not self._line:
            raise nothing_in(self._log)

    def _counted(self) -> Iterator[Record]:
        for record in self._records:
            self._line = record.seq + 1
            self.counts.take(record)
            yield record
            if record.kind is Kind.TRANSITION:
                self.state = str(record.target)


def shown(value: Any) -> str:
    """A value in short, as it would stand in JSON."""
    return one_line(_json(value), _SHOWN)


def _json(value: Any) -> str:
    try:
        return encode(value).decode()
    except EncodeError:
        return repr(value)


def _plain(value: Any) -> Any:
    try:
        encode(value)
    except EncodeError:
        return None
    return value


def _or_none(seq: int | None) -> str:
    return "none" if seq is None else str(seq)
