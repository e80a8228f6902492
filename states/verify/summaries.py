"""Summaries: what the moves tell of them, against how the calls ended that were to write them."""

from typing import Any, Final

from looplatch.states.level import Level
from looplatch.states.state import State
from looplatch.states.trouble import TroubleKind
from looplatch.states.verify.findings import Findings

_OK: Final = "ok"
_API, _MODEL = "api", "model"  # who writes it
_USELESS: Final = "not_shorter"  # what a failed summary is called that was written

TOLD: Final = frozenset(
    ("SummaryDue", "SummaryFailed", "CollapseStaged", "HistoryCompressed", "HistorySummarised", "TroubleNamed")
)
"""Moves that tell of summaries."""


class Summaries:
    """Follows the summaries that were due, written and used."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._due = str(Level.COMPACT)  # the level that the next one is of
        self._last: dict[str, Any] | None = None  # the end of the last one since it was due, in this process
        self._staged = 0  # how many were staged in the run
        self._failed = False  # one has failed, or was of no use

    def begin(self, record: dict[str, Any]) -> None:
        """A summary is asked for."""
        level, by, span = record["level"], record["by"], record["span"]
        if level != self._due:
            self._findings.add("E2", "a summary of another level is written than was due", self._due, level)
        spans = level == Level.COLLAPSE
        if by not in (_API, _MODEL) or (spans and by != _MODEL):
            self._findings.add("E2", "nobody can write such a summary", f"{_MODEL}, or of a whole history {_API}", by)
        if spans is (span is None) or (spans and not 0 <= span[0] < span[1]):
            wanted = "from a message to a later one" if spans else "no span"
            self._findings.add("E2", f"the summary of the level {level} is not of that", wanted, span)

    def end(self, record: dict[str, Any]) -> None:
        """It is written, or is not to be had."""
        outcome, result = record["outcome"], record["result"]
        if outcome != _OK and result is not None:
            self._findings.add("E1", "a summary that failed was written", f"no result, or {_OK}", outcome)
        self._last = record

    def claim(self) -> None:
        """A new process may use what the one before has written."""
        self._last = None

    def move(self, event: str, state: str, fields: dict[str, Any]) -> None:
        """One of `TOLD`, in this state."""
        if event == "SummaryDue":
            self._due = str(fields["level"])
            self._last = None
            self._check_cooled(fields["breaker_cooled"])
        elif event == "TroubleNamed":
            self._due, self._last = str(Level.COMPACT), None
            if fields["trouble"] is TroubleKind.OVERFLOW:
                self._check_cooled(fields["breaker_cooled"])
            if fields["staged"] > self._staged:
                wanted = f"at most {self._staged}"
                self._findings.add("M8", "more summaries are staged than were written", wanted, fields["staged"])
        elif event == "SummaryFailed":
            self._failed = True
            self._check_failure(state, fields)
        elif event != "HistoryCompressed" or fields["level"] is Level.COMPACT:
            self._staged += event == "CollapseStaged"
            last, self._last = self._last, None
            if last is not None and last["result"] is None:
                self._findings.add("E1", f"{event} uses a summary that was not written", _OK, last["outcome"])

    def _check_cooled(self, cooled: bool) -> None:
        if not cooled and not self._failed:
            self._findings.add("M8", "the breaker is to cool down, and no summary has failed", True, cooled)

    def _check_failure(self, state: str, fields: dict[str, Any]) -> None:
        last, self._last, told = self._last, None, fields["failure"]
        wanted = None if last is None else _USELESS if last["result"] is not None else last["outcome"]
        if last is not None and (told != wanted or (wanted == _USELESS and fields["transient"] and last["result"])):
            self._findings.add("E1", "the summary failed otherwise than its call ended", wanted, told)
        if state == State.PREPARE and fields["delay_ms"]:
            self._findings.add("C5", "nobody waits here", 0, fields["delay_ms"])
