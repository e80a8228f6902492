"""The judges of a run, from its genesis on: each kind of record has one that hands it to all whom it concerns."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from looplatch.states.state import State
from looplatch.states.verify.children import Children
from looplatch.states.verify.claims import OF_CLAIMS, Claims
from looplatch.states.verify.course import Course
from looplatch.states.verify.effects import Effects
from looplatch.states.verify.findings import Findings
from looplatch.states.verify.history import History
from looplatch.states.verify.kinds import COMMON
from looplatch.states.verify.moves import Moves
from looplatch.states.verify.payloads import Kept
from looplatch.states.verify.plan import plan_of
from looplatch.states.verify.privacy import Privacy
from looplatch.states.verify.saying import Saying
from looplatch.states.verify.signatures import Signatures
from looplatch.states.verify.tables import Tables

_COMPRESSING: Final = frozenset((State.PREPARE, State.RECOVER))
_STREAM: Final = str(State.STREAM)
_RESUMED: Final = "RunResumed"


class Judges:
    """Judges the records of a run that has a right genesis, one after the other.

    Each method takes a record and the common kind that it was read as, None where it was read as none. They raise
    whatever comes of a record whose fields are not what they must be.
    """

    def __init__(
        self,
        findings: Findings,
        genesis: dict[str, Any],
        *,
        moves: Moves,
        tables: Tables,
        children: Children,
        signatures: Signatures,
        privacy: Privacy,
        kept: Kept,
    ) -> None:
        self._findings = findings
        self.moves = moves
        self.history = History(findings)
        self._tables = tables
        self._children = children
        self._signatures = signatures
        self._privacy = privacy
        self._kept = kept
        self._saying = Saying(findings)
        self._claims = Claims(findings, genesis)
        self._claimed = False  # by a new owner, who has made no move yet
        self._course = Course(findings)
        self._course.configure(genesis)
        self.effects = Effects(findings, genesis["run"], genesis)

    def move(self, record: dict[str, Any], kind: str | None) -> None:
        """A move."""
        event, moves, effects = record["event"], self.moves, self.effects
        if self._claimed or event in OF_CLAIMS:
            self._take_up(event)
        if record["reason"] is not None:
            self._saying.go_on()
        context = vars(moves.context)
        tried, fell_back = context["attempts"], context["fallback"]
        fields = moves.move(record, kind)
        if fields is None:
            return
        if "begun" in fields and (record["source"] == _STREAM or event == _RESUMED):
            effects.check_begun(event, record["source"], fields["begun"], self.history.answers)
        cut = event == "ModelResponded" and fields["stop_reason"] in moves.decisions.cut
        calls = self.history.calls
        self._course.move(record, fields, tried, fell_back, calls, external=moves.external, cut=cut)
        effects.move(event, record["source"], record["target"], fields)
        if event == "ModelResponded":
            self._check_response(fields)
        elif event == "DeadlinePassed":
            effects.check_deadline(record["mono_ns"])
        elif event == "ToolsAnswered":
            self.history.check_end("when all are answered")
            told, counted = (fields["results"], fields["errors"]), (len(self.history.answered), self.history.errors)
            if told != counted:
                self._findings.add("T2", "the event counts other results than the history has", counted, told)

    def _take_up(self, event: str) -> None:
        """The first move of a new owner, or one of `OF_CLAIMS`."""
        self._claimed = False
        self._claims.move(event, paused=self.moves.paused)
        self._saying.take_up()

    def _check_response(self, fields: dict[str, Any]) -> None:
        calls = fields["calls"]
        self.history.answers.check_kept(fields["stop_reason"], calls, self.moves.decisions)
        joined = self.history.calls
        exact = fields["stop_reason"] == "tool_use"
        if calls != joined and (exact or [call for call in joined if call in calls] != calls):
            self._findings.add("M13", "the calls are not those of the answer", joined, calls)

    def message(self, record: dict[str, Any], kind: str | None) -> None:
        """A message joins the history, goes on or leaves it."""
        moves, history = self.moves, self.history
        goes_on = history.change(record, begun=moves.started, compressing=moves.state in _COMPRESSING)
        if not moves.started:
            return
        if goes_on:
            self._course.sizes.grow()
        else:
            self._course.sizes.rewrite()
        if not history.changed:
            self._saying.check(record, moves.state, moves.context.reason)

    def begin(self, record: dict[str, Any], kind: str | None) -> None:
        """An effect begins."""
        of = record["class"]
        if self._claimed:
            self._claims.check_taken_up(of)
        name, context = self.effects.begin(record, self.moves.state), vars(self.moves.context)
        self._course.begin(name, record, context)
        if name == "model":
            tried = context["attempts"]
            if record["attempt"] != tried:
                self._findings.add("C2", "the attempt is not what the counter says", tried, record["attempt"])
            self.history.check_sent(record["sent"])
        elif name == "tool":
            self.history.begin(record)
            self._children.begin(record)
        elif name == "note" and record["calls"] != (answered := self.history.answered):
            self._findings.add("T2", "the note is of other calls than were answered", answered, record["calls"])

    def end(self, record: dict[str, Any], kind: str | None) -> None:
        """An effect ends."""
        of = record["class"]
        if self._claimed:
            self._claims.check_taken_up(of)
        begun = self.effects.end(record)
        if begun is None:
            return
        self._course.end(begun.kind, record, begun.point, begun.tool_use_id or begun.call)
        if begun.tool_use_id is not None:
            self.history.end(begun.tool_use_id, record)
            self._children.end(begun.tool_use_id, record)
        elif begun.kind == "model":
            self.history.answers.end(record)

    def claim(self, record: dict[str, Any], kind: str | None) -> None:
        """A new process owns the run: with the limits that it was resumed with, where they are others."""
        self._claimed = True
        self._claims.claim(record)
        self._course.claim(record)
        self._signatures.claim(record)
        if "secrets" in record:
            self._privacy.configure(record)
        self._saying.claim()
        self.effects.resume(record)
        self.history.resume()
        changes: dict[str, Any] = record.get("changes", {})
        if (limits := changes.get("limits")) is not None:
            self.moves.limit(limits["now"])
        if (table := changes.get("table")) is not None:
            self._judge_by(table["now"])

    def _judge_by(self, fingerprint: object) -> None:
        table = self._tables.find(fingerprint)
        if table is not None:
            self.moves.judge_by(plan_of(table))

    def seal(self, record: dict[str, Any], kind: str | None) -> None:
        """The run has ended, and its log is whole."""
        moves = self.moves
        ended = (moves.state, moves.terminal) if moves.ended else ("no final state", None)
        told = record["state"], record["terminal"]
        if told != ended and not moves.lost:
            self._findings.add("I8", "the seal is not that of the run's end", ended, told)
        for seq, effect in self.effects.running.items():
            found = f"the {effect.kind} of record {seq}"
            self._findings.add("E1", "an effect has no end", "an effect_end before the seal", found)
        self.history.check_end("at the end of the run")
        self.history.check_named(record.get("history"), "the seal")
        self._signatures.check(record)

    def reject(self, record: dict[str, Any], kind: str | None) -> None:
        """An event was refused."""
        self.moves.reject(record)

    def checkpoint(self, record: dict[str, Any], kind: str | None) -> None:
        """A checkpoint."""
        self._signatures.check(record)

    def tombstone(self, record: dict[str, Any], kind: str | None) -> None:
        """A payload was deleted."""
        self._kept.bury(record)


Judge = Callable[[Judges, dict[str, Any], str | None], None]
JUDGES: Final[Mapping[str, Judge]] = {
    "transition": Judges.move,
    "message": Judges.message,
    "effect_begin": Judges.begin,
    "effect_end": Judges.end,
    "rejected": Judges.reject,
    "resumed": Judges.claim,
    "terminal": Judges.seal,
    "checkpoint": Judges.checkpoint,
    "tombstone": Judges.tombstone,
}
"""What judges each kind of record."""
COMMON_JUDGES: Final[Mapping[str, Judge]] = {kind: JUDGES[kind.partition(" ")[0]] for kind in COMMON}
"""What judges each common kind."""
