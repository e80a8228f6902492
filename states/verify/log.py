"""The verifier: a second implementation that judges a log by its lines and the table alone.

It never sees the machine or the driver. It folds the context from the rows itself, asks every guard again, and follows
the history, the effects and the calls through the records. One pass, record by record; what it remembers grows with
the messages and calls of the run, not with its records.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import orjson

from looplatch.states.errors import UsageError
from looplatch.states.secrets import Secrets
from looplatch.states.state import State
from looplatch.states.table import TABLE
from looplatch.states.transition import Table
from looplatch.states.verify.chain import Chain
from looplatch.states.verify.children import Children, Lines, ParentLines, look_at_parent, no_children, no_parent
from looplatch.states.verify.claims import Claims, check_genesis
from looplatch.states.verify.course import Course
from looplatch.states.verify.effects import Effects
from looplatch.states.verify.findings import Findings, Report, Status, Violation
from looplatch.states.verify.history import History
from looplatch.states.verify.moves import Moves
from looplatch.states.verify.payloads import Kept, Source, Stored, nothing_stored
from looplatch.states.verify.plan import plan_of
from looplatch.states.verify.privacy import SILENT, Privacy
from looplatch.states.verify.saying import Saying
from looplatch.states.verify.shapes import Shapes
from looplatch.states.verify.signatures import PublicKey, Signatures
from looplatch.states.verify.tables import Past, Tables, no_past

__all__ = ["Report", "Violation", "verify_lines"]

_COMMITTING: Final = frozenset(("message", "effect_begin", "effect_end", "resumed"))
_COMPRESSING: Final = frozenset((State.PREPARE, State.RECOVER))
_STREAM: Final = str(State.STREAM)
_MALFORMED: Final = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, UsageError)


def verify_lines(
    lines: Iterable[bytes],
    table: Table = TABLE,
    payloads: Source | None = None,
    past: Past = no_past,
    children: Lines = no_children,
    keys: Sequence[PublicKey] = (),
    secrets: Secrets | None = None,
    stored: Stored = nothing_stored,
    parent: ParentLines = no_parent,
) -> Report:
    """Judge a log, given as its lines, each with its newline.

    `payloads` finds kept payloads, which are compared with their commitments; without it they are left aside. `past`
    finds a table by its fingerprint, for a log that was not judged by `table`; `children` the logs of sub-agents, whose
    links are compared with the records of their calls, `parent` the log of the run that this one is a sub-agent of; the
    report notes those that it does not find. `keys` check the signatures of the seal and of checkpoints, each those of
    its own; they are left aside without any. A last line that a crash tore off is no violation; the report
    says how long it is. Never raises for what stands in the lines; what `lines`, `payloads` or `past` raise passes
    through. secrets: patterns that must match nothing, beside those that the run takes out by itself. stored: the
    commitments of all payloads, so that those are judged, too, which no record names.
    """
    return _Verifier(table, payloads, past, children, keys, secrets, stored, parent).run(lines)


class _Verifier:
    def __init__(
        self,
        table: Table,
        payloads: Source | None,
        past: Past,
        children: Lines,
        keys: Sequence[PublicKey],
        secrets: Secrets | None,
        stored: Stored,
        parent: ParentLines,
    ) -> None:
        self._findings = Findings()
        self._tables = Tables(table, past)
        self._chain = Chain(self._findings, self._tables.knows, table.fingerprint)
        self._moves = Moves(plan_of(table), self._findings)
        self._history = History(self._findings)
        self._effects: Effects | None = None
        self._course = Course(self._findings)
        self._claims: Claims | None = None
        self._privacy = Privacy(self._findings, secrets)
        self._kept = Kept(self._findings, self._privacy, payloads, stored)
        self._saying = Saying(self._findings)
        self._shapes = Shapes(self._findings)
        self._children = Children(self._findings, children)
        self._signatures = Signatures(self._findings, keys)
        self._parent = parent

    def _judges(self) -> dict[str, Callable[[dict[str, Any], Effects], None]]:
        """What judges each kind; not kept here, where it would be a cycle that only the collector ends."""
        return {
            "transition": self._judge_move,
            "message": self._judge_message,
            "effect_begin": self._judge_begin,
            "effect_end": self._judge_end,
            "rejected": lambda record, effects: self._moves.reject(record),
            "resumed": self._judge_claim,
            "terminal": self._judge_seal,
            "checkpoint": lambda record, effects: self._signatures.check(record),
            "tombstone": lambda record, effects: self._kept.bury(record),
        }

    def run(self, lines: Iterable[bytes]) -> Report:
        chain, read, check, judges = self._chain, self._chain.read, self._shapes.check, self._judges()
        keeps = self._kept.check if self._kept.has_source else None
        look, look_at = self._privacy.check_record, self._privacy.check_common
        held: bytes | None = None  # a line without a newline: torn, if it is the last
        for line in lines:
            if held is not None:
                read(held)
                held = None
            if line[-1:] != b"\n":
                held = line
                continue
            record = read(line)
            if record is None or not chain.whole:
                continue
            effects = self._effects
            if effects is None:
                self._begin(record)
                continue
            try:
                if chain.kind is None:
                    check(record)
                    look(record)
                elif chain.kind not in SILENT:
                    look_at(record, chain.kind)
                judge = judges.get(record["kind"])
                if judge is not None:
                    judge(record, effects)
                if keeps is not None and record["kind"] in _COMMITTING:
                    keeps(record)
            except _MALFORMED as error:
                self._malformed(record, error)
        torn = 0
        if held:
            if _is_torn(held):
                torn = len(held)
                if chain.sealed:
                    self._findings.add("I8", "bytes follow the seal", "the end of the log", f"{torn} bytes")
            else:
                read(held)
        return self._report(torn)

    def _report(self, torn: int) -> Report:
        self._check_end()
        chain, findings = self._chain, self._findings
        return Report(
            status=self._status(),
            violations=tuple(findings.kept),
            omitted=findings.omitted,
            count=chain.count,
            head=chain.head,
            root=chain.merkle.root(),
            torn=torn,
            signed=self._signatures.covered,
            notes=tuple(findings.notes),
        )

    def _check_end(self) -> None:
        chain, moves = self._chain, self._moves
        chain.end()
        self._privacy.flush()
        self._kept.end()
        self._signatures.end()
        if chain.count == 0:
            self._findings.add("I5", "the log has no record", "a genesis", "nothing")
        elif not chain.recognised:
            self._findings.replace("I5", "this is no log of looplatch", "a genesis, and records after it", "no record")
        elif chain.whole and moves.ended and not chain.sealed:
            self._history.check_end("at the end of the run")
            self._findings.note("the run has ended, and its seal is not set yet: resuming the run sets it")

    def _status(self) -> Status:
        if self._chain.sealed:
            return "sealed"
        if self._effects is not None and self._effects.running:
            return "in_doubt"
        return "suspended" if self._moves.paused or self._moves.state == State.SUSPENDED else "open"

    def _begin(self, record: dict[str, Any] | None) -> None:
        """The genesis: without a right one, nothing that follows can be judged as a run."""
        if record is None or record.get("kind") != "genesis":
            return
        try:
            self._shapes.check(record)
            self._judge_by(record["table"])
            self._moves.begin(record["limits"])
            check_genesis(self._findings, record)
            self._kept.begin(record)
            self._privacy.configure(record)
            self._privacy.check_record(record)
            self._signatures.begin(record)
            look_at_parent(self._findings, record, self._parent)
            self._claims = Claims(self._findings, record)
            self._course.configure(record)
            self._effects = Effects(self._findings, record["run"], record)
        except _MALFORMED as error:
            self._malformed(record, error)

    def _judge_by(self, fingerprint: object) -> None:
        table = self._tables.find(fingerprint)
        if table is not None:
            self._moves.judge_by(plan_of(table))

    def _malformed(self, record: dict[str, Any], error: Exception) -> None:
        found = f"{type(error).__name__}: {error}"
        self._findings.add("I4", f"the record is not as a {record.get('kind')} record is", "its fields", found)

    def _judge_message(self, record: dict[str, Any], effects: Effects) -> None:
        moves, history = self._moves, self._history
        goes_on = history.change(record, begun=moves.started, compressing=moves.state in _COMPRESSING)
        if not moves.started:
            return
        if goes_on:
            self._course.sizes.grow()
        else:
            self._course.sizes.rewrite()
        if not history.changed:
            self._saying.check(record, moves.state, moves.context.reason)

    def _judge_end(self, record: dict[str, Any], effects: Effects) -> None:
        if self._claims is not None:
            self._claims.check_taken_up(record["class"])
        begun = effects.end(record)
        if begun is None:
            return
        self._course.end(begun.kind, record, begun.point, begun.tool_use_id or begun.call)
        if begun.tool_use_id is not None:
            self._history.end(begun.tool_use_id, record)
            self._children.end(begun.tool_use_id, record)
        elif begun.kind == "model":
            self._history.answers.end(record)

    def _judge_move(self, record: dict[str, Any], effects: Effects) -> None:
        if self._claims is not None:
            self._claims.move(record["event"], paused=self._moves.paused)
            self._saying.take_up()
        if record["reason"] is not None:
            self._saying.go_on()
        event, moves, context = record["event"], self._moves, vars(self._moves.context)
        before = context["attempts"], context["fallback"]
        fields = moves.move(record, self._chain.kind)
        if fields is None:
            return
        if "begun" in fields and (record["source"] == _STREAM or event == "RunResumed"):
            effects.check_begun(event, record["source"], fields["begun"], self._history.answers)
        cut = event == "ModelResponded" and fields["stop_reason"] in moves.decisions.cut
        self._course.move(record, fields, before, self._history.calls, external=moves.external, cut=cut)
        effects.move(event, record["source"], record["target"], fields)
        if event == "ModelResponded":
            self._check_response(fields)
        elif event == "DeadlinePassed":
            effects.check_deadline(record["mono_ns"])
        elif event == "ToolsAnswered":
            self._history.check_end("when all are answered")
            told, counted = (fields["results"], fields["errors"]), (len(self._history.answered), self._history.errors)
            if told != counted:
                self._findings.add("T2", "the event counts other results than the history has", counted, told)

    def _judge_claim(self, record: dict[str, Any], effects: Effects) -> None:
        """A new process owns the run: with the limits that it was resumed with, where they are others."""
        if self._claims is not None:
            self._claims.claim(record)
        self._course.claim(record)
        self._signatures.claim(record)
        if "secrets" in record:
            self._privacy.configure(record)
        self._saying.claim()
        effects.resume(record)
        self._history.resume()
        changes: dict[str, Any] = record.get("changes", {})
        if (limits := changes.get("limits")) is not None:
            self._moves.limit(limits["now"])
        if (table := changes.get("table")) is not None:
            self._judge_by(table["now"])

    def _check_response(self, fields: dict[str, Any]) -> None:
        calls = fields["calls"]
        self._history.answers.check_kept(fields["stop_reason"], calls, self._moves.decisions)
        joined = self._history.calls
        exact = fields["stop_reason"] == "tool_use"
        if calls != joined and (exact or [call for call in joined if call in calls] != calls):
            self._findings.add("M13", "the calls are not those of the answer", joined, calls)

    def _judge_begin(self, record: dict[str, Any], effects: Effects) -> None:
        if self._claims is not None:
            self._claims.check_taken_up(record["class"])
        kind, context = effects.begin(record, self._moves.state), vars(self._moves.context)
        self._course.begin(kind, record, context)
        if kind == "model":
            tried = context["attempts"]
            if record["attempt"] != tried:
                self._findings.add("C2", "the attempt is not what the counter says", tried, record["attempt"])
            self._history.check_sent(record["sent"])
        elif kind == "tool":
            self._history.begin(record)
            self._children.begin(record)
        elif kind == "note" and record["calls"] != (answered := self._history.answered):
            self._findings.add("T2", "the note is of other calls than were answered", answered, record["calls"])

    def _judge_seal(self, record: dict[str, Any], effects: Effects) -> None:
        moves = self._moves
        ended = (moves.state, moves.terminal) if moves.ended else ("no final state", None)
        told = record["state"], record["terminal"]
        if told != ended and not moves.lost:
            self._findings.add("I8", "the seal is not that of the run's end", ended, told)
        for seq, effect in effects.running.items():
            found = f"the {effect.kind} of record {seq}"
            self._findings.add("E1", "an effect has no end", "an effect_end before the seal", found)
        self._history.check_end("at the end of the run")
        self._history.check_named(record.get("history"), "the seal")
        self._signatures.check(record)


def _is_torn(line: bytes) -> bool:
    """Whether a line without its newline is the beginning of a record; a whole one and a wrong byte are damage."""
    for end in (len(line), len(line) - 1):
        try:
            orjson.loads(line[:end])
        except orjson.JSONDecodeError:
            continue
        return False
    return line.startswith(b"{")
