"""What the API has said of the history's size and of the model's, as the records tell of it."""

from collections.abc import Sequence

from looplatch.recovery.resume.past import Entry, PastCount, measured_in
from looplatch.recovery.sizes import Asked, Learned, Measured, Switched
from looplatch.recovery.windows import ModelSize
from looplatch.states.record import Record
from looplatch.states.vocabulary import EffectOutcome


class SizeFold:
    """Follows what was counted and measured. Each method takes the record that ended the effect in question."""

    def __init__(self) -> None:
        self.counted: PastCount | None = None  # the history, the last time
        self._learned: list[Learned] = []

    @property
    def learned(self) -> tuple[Learned, ...]:
        """What is known of the model, in the order in which it became known."""
        return tuple(self._learned)

    def asked(self, end: Record) -> None:
        """The API was asked how large the model is."""
        self._learned.append(Asked(ModelSize(window=end["window"], output=end["output"])))

    def count(self, end: Record, entries: Sequence[Entry]) -> None:
        """The API was asked how large the history is."""
        if end["outcome"] == EffectOutcome.OK:
            self.counted = PastCount(tokens=end["tokens"], entries=entries)

    def answered(self, end: Record | None, joins: bool, entries: Sequence[Entry]) -> None:
        """An answer came. `joins`: it is in the history."""
        held = None if end is None else end.get("held")
        if held is not None:
            tokens = held["prompt"] + (held["output"] if joins else 0)
            self.counted = PastCount(tokens=tokens, entries=entries)

    def refused(self, end: Record | None, entries: Sequence[Entry]) -> None:
        """A request failed: the API may have measured it."""
        measured = None if end is None else measured_in(end)
        if measured is not None:
            self.counted = PastCount(tokens=measured.input_tokens, entries=entries)
            self._learned.append(Measured(measured.window))

    def exceeded(self, end: Record | None) -> None:
        """An answer ended where the window does."""
        held = None if end is None else end.get("held")
        if held is not None:
            self._learned.append(Measured(held["prompt"] + held["output"]))

    def switched(self) -> None:
        """The fallback model goes on."""
        self._learned.append(Switched())

    def changed(self) -> None:
        """The run was taken up with another model: nothing is known of that."""
        self._learned.clear()
