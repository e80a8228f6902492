"""The counts of a run: how many turns, requests, calls, tokens; what it cost, and how long it took."""

from collections import Counter

import attrs

from looplatch.analysis.fields import object_in
from looplatch.states.context import TOTALS
from looplatch.states.record import Kind, Record
from looplatch.states.vocabulary import EffectClass


@attrs.define(kw_only=True)
class Counts:
    """Adds up the records of one run. Tokens and cost are those of the run's own totals."""

    moves: int = 0
    refused: int = 0
    turns: int = 1
    requests: int = 0
    retries: int = 0
    summaries: int = 0
    resumptions: int = 0
    compressions: Counter[str] = attrs.field(factory=Counter[str])
    reasons: Counter[str] = attrs.field(factory=Counter[str])
    calls: Counter[str] = attrs.field(factory=Counter[str])
    failed_calls: Counter[str] = attrs.field(factory=Counter[str])
    totals: dict[str, int] = attrs.field(factory=lambda: dict.fromkeys(TOTALS, 0))
    ended: str | None = None
    duration_ms: int = 0
    _names: dict[int, str] = attrs.field(factory=dict[int, str], init=False)
    _epoch_ms: int = attrs.field(default=0, init=False)
    _epoch: int = attrs.field(default=0, init=False)

    def take(self, record: Record) -> None:
        """Count the next record."""
        if record["epoch"] != self._epoch:
            self.duration_ms += self._epoch_ms
            self._epoch = record["epoch"]
        self._epoch_ms = record["mono_ns"] // 1_000_000
        match record.kind:
            case Kind.TRANSITION:
                self._move(record)
            case Kind.REJECTED:
                self.refused += 1
            case Kind.EFFECT_BEGIN:
                self._begin(record)
            case Kind.EFFECT_END:
                name = self._names.pop(record["effect"], None)
                if name is not None and record.get("is_error"):
                    self.failed_calls[name] += 1
            case Kind.RESUMED:
                self.resumptions += 1
            case Kind.TERMINAL:
                self.ended = record.terminal
            case Kind.GENESIS | Kind.MESSAGE | Kind.CHECKPOINT | Kind.TOMBSTONE:
                pass

    def _move(self, move: Record) -> None:
        self.moves += 1
        change = object_in(move, "change")
        self.turns = change.get("turn", self.turns)
        self.totals.update((name, change[name]) for name in TOTALS if name in change)
        if move.reason is not None:
            self.reasons[move.reason] += 1
        if move.event == "HistoryCompressed":
            self.compressions[str(move["fields"]["level"])] += 1
        if move.event == "BackoffElapsed":
            self.retries += 1

    def _begin(self, begin: Record) -> None:
        match begin.effect_class:
            case EffectClass.MODEL:
                self.requests += 1
            case EffectClass.SUMMARY:
                self.summaries += 1
            case EffectClass.TOOL:
                self.calls[begin["name"]] += 1
                self._names[begin["effect"]] = begin["name"]
            case EffectClass.HOOK | EffectClass.SLEEP | EffectClass.COUNT | EffectClass.SIZE | EffectClass.NOTE | None:
                pass

    def flat(self) -> dict[str, int | str | None]:
        """All counts by name, the time taken last; of tools, reasons and levels those that occurred."""
        flat: dict[str, int | str | None] = {
            name: getattr(self, name)
            for name in ("turns", "moves", "refused", "requests", "retries", "summaries", "resumptions")
        }
        for noun, counter in (
            ("compressions by", self.compressions),
            ("continued with", self.reasons),
            ("calls of", self.calls),
            ("failed calls of", self.failed_calls),
        ):
            flat.update((f"{noun} {name}", counter[name]) for name in sorted(counter))
        flat.update(self.totals)
        return {**flat, "ended": self.ended, "duration_ms": self.duration_ms + self._epoch_ms}
