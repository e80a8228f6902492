"""Comparing what a loop does with what a log says, record by record, as it is done."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import attrs

from looplatch.analysis.comparison import difference_of
from looplatch.analysis.fields import object_in
from looplatch.analysis.quotes import Quotes
from looplatch.analysis.steps import Step, Steps
from looplatch.audit import PayloadSource
from looplatch.playback.report import PlaybackDifference
from looplatch.states.record import Kind, Record
from looplatch.states.state import INITIAL


class Comparing:
    """Takes the records of one part of a run as they are made. known: the records before it, the same on both sides."""

    def __init__(
        self, known: Iterable[Record], part: Sequence[Record], recorded: PayloadSource, made: PayloadSource
    ) -> None:
        expected, self._made = Steps(Quotes(recorded)), Steps(Quotes(made))
        self._state = str(INITIAL)
        for record in known:
            for steps in (expected, self._made):
                deque(steps.take(record), maxlen=0)
            self._follow(record)
        self._expected = deque(step for record in part for step in _compared(expected, record))

    def difference(self, record: Record) -> PlaybackDifference | None:
        """Compare what the next record tells; None where it is as recorded."""
        for came in _compared(self._made, record):
            step = self._expected.popleft() if self._expected else None
            if (found := self._difference(step, came)) is not None:
                return found
        self._follow(record)
        return None

    def missing(self, came: str) -> PlaybackDifference:
        """The difference where the loop makes no more moves, and the log has one."""
        step = self._expected[0] if self._expected else None
        recorded = "nothing more" if step is None else step.what
        seq = None if step is None else step.seq
        return PlaybackDifference(
            seq=seq, state=self._state, what="another step", path="step", recorded=recorded, came=came
        )

    def _difference(self, step: Step | None, came: Step) -> PlaybackDifference | None:
        found = difference_of(step, came, self._state)
        if found is None:
            return None
        seq = None if step is None else step.seq
        return PlaybackDifference(
            seq=seq, state=self._state, what=found.what, path=found.path, recorded=found.a, came=found.b
        )  # fmt: skip

    def _follow(self, record: Record) -> None:
        if record.kind is Kind.TRANSITION:
            self._state = str(record.target)


# Sizes of the history in tokens are estimated from contents that are compared themselves.
_ESTIMATES: Final = frozenset(
    {"tokens", "tokens_before", "tokens_after", "span_tokens", "summary_tokens", "cache_lost"}
)


def _compared(steps: Steps, record: Record) -> Iterator[Step]:
    """The steps that a record brings, but for what the run was made of, which was compared before."""
    if record.kind is Kind.GENESIS:
        return
    for step in steps.take(record):
        fields = object_in(step.fields, "event fields")
        kept = {name: value for name, value in fields.items() if name not in _ESTIMATES}
        yield attrs.evolve(step, fields={**step.fields, "event fields": kept}) if len(kept) < len(fields) else step
