"""The summaries of a run, as the records of their calls and of the moves tell of them."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from looplatch.recovery.compression.exchanges import THINKING
from looplatch.recovery.compression.levels import Step
from looplatch.recovery.failure import Failure, trouble_of
from looplatch.recovery.resume.past import Entry, PastStaged, PastSummary
from looplatch.states.level import Level
from looplatch.states.reasons import Continue
from looplatch.states.record import Record
from looplatch.states.trouble import TroubleKind
from looplatch.states.vocabulary import EffectOutcome

_STEPS: Final = {str(Level.COLLAPSE): Step.STAGE, str(Level.COMPACT): Step.COMPACT}


class SummaryFold:
    """Follows what was written, what waits to be applied, and what was in vain.

    written: the summary that no event has told of yet. in_vain: at how many tokens a summary was asked for and was of
    no use. failed_at: when the last one failed. api_refuses: the API's own compaction is not to be had.
    """

    def __init__(self) -> None:
        self.written: PastSummary | None = None
        self.in_vain: dict[Step, int] = {}
        self.failed_at: str | None = None
        self.api_refuses = False
        self._staged: list[PastStaged] = []
        self._begin: Record | None = None
        self._due: Step | None = None
        self._edited = False  # by the last move, or by what it had done: what was staged may be gone

    def staged(self, entries: Sequence[Entry]) -> tuple[PastStaged, ...]:
        """The summaries whose spans are in the history still."""
        if self._edited:
            there = {block["commitment"] for entry in entries for block in entry.blocks}
            self._staged = [one for one in self._staged if there.issuperset(_said_in(one))]
        return tuple(self._staged)

    def begin(self, record: Record) -> None:
        """A summary is asked for."""
        self._begin, self.written = record, None

    def end(self, record: Record) -> None:
        """It is there, or is not to be had."""
        begin = self._begin
        if begin is None:
            return
        if record["outcome"] == EffectOutcome.OK:
            self.written = PastSummary(level=begin["level"], text=record["result"], spent=record["usage"])
        elif begin.get("by") == "api" and trouble_of(Failure(type=record["outcome"])) is TroubleKind.FATAL:
            self.api_refuses = record["outcome"] != EffectOutcome.INTERRUPTED

    def move(self, record: Record, entries: Sequence[Entry]) -> None:
        """A move was made."""
        fields: Mapping[str, Any] = record["fields"]
        match record["event"]:
            case "SummaryDue":
                self._due = _STEPS.get(fields["level"])
            case "CollapseStaged":
                self._stage(entries)
            case "SummaryFailed":
                self.failed_at = record["ts"]
                self._use()
            case "HistoryCompressed" | "HistorySummarised":
                self._changed()
                self._use()
            case "ContextReady":
                if self._due is not None:
                    self.in_vain[self._due] = fields["tokens"]
                self._due = None
                self._use()
            case _:
                pass
        if record["reason"] == Continue.COLLAPSE_DRAIN_RETRY:
            self._changed()

    def _stage(self, entries: Sequence[Entry]) -> None:
        if self._begin is not None and self.written is not None and self._begin.get("span"):
            start, stop = self._begin["span"]
            self._staged.append(PastStaged(entries=entries, start=start, stop=stop, text=self.written.text))
        self._due = None
        self._use()

    def _changed(self) -> None:
        self._edited, self._due = True, None
        self.in_vain.clear()

    def _use(self) -> None:
        """An event has told of what was written."""
        self._begin = self.written = None


def _said_in(staged: PastStaged) -> list[str]:
    """What the model said in a span, thinking apart: compression leaves it as it is."""
    answers = [entry for entry in staged.entries[staged.start : staged.stop] if entry.role == "assistant"]
    return [block["commitment"] for entry in answers for block in entry.blocks if block["type"] not in THINKING]
