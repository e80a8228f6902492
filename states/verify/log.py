"""The verifier: a second implementation that judges a log by its lines and the table alone.

It never sees the machine or the driver. It folds the context from the rows itself, asks every guard again, and follows
the history, the effects and the calls through the records. One pass, record by record; what it remembers grows with
the messages and calls of the run, not with its records.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import orjson

from looplatch.states.counted import counted
from looplatch.states.errors import UsageError
from looplatch.states.secrets import Secrets
from looplatch.states.state import State
from looplatch.states.table import TABLE
from looplatch.states.transition import Table
from looplatch.states.verify.chain import Chain
from looplatch.states.verify.children import Children, Lines, ParentLines, look_at_parent, no_children, no_parent
from looplatch.states.verify.claims import check_genesis
from looplatch.states.verify.findings import Findings, Report, Status, Violation
from looplatch.states.verify.judges import COMMON_JUDGES, JUDGES, Judges
from looplatch.states.verify.moves import Moves
from looplatch.states.verify.payloads import Kept, Source, Stored, nothing_stored
from looplatch.states.verify.plan import plan_of
from looplatch.states.verify.privacy import SILENT, Privacy
from looplatch.states.verify.shapes import Shapes
from looplatch.states.verify.signatures import PublicKey, Signatures
from looplatch.states.verify.tables import Past, Tables, no_past

__all__ = ["Report", "Violation", "verify_lines"]

_COMMITTING: Final = frozenset(("message", "effect_begin", "effect_end", "resumed"))
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
        self._table = table
        self._tables = Tables(table, past)
        self._chain = Chain(self._findings, self._tables.knows, table.fingerprint)
        self._privacy = Privacy(self._findings, secrets)
        self._kept = Kept(self._findings, self._privacy, payloads, stored)
        self._shapes = Shapes(self._findings)
        self._children = Children(self._findings, children)
        self._signatures = Signatures(self._findings, keys)
        self._parent = parent
        self._judges: Judges | None = None  # from the genesis on

    def run(self, lines: Iterable[bytes]) -> Report:
        chain, passed, look_at = self._chain, self._chain.passed, self._privacy.check_common
        keeps = self._kept.check if self._kept.has_source else None
        judges: Judges | None = None  # None where nothing can be judged as a run
        held: bytes | None = None  # a line without a newline: torn, if it is the last
        for line in lines:
            if held is not None:
                chain.read(held)
                held = judges = None
            record = passed(line)
            if record is None:
                if line[-1:] != b"\n":
                    held = line
                else:
                    self._judge_closely(line)
                    judges = self._judges if chain.whole else None
                continue
            if judges is None:
                continue
            kind = chain.kind
            try:
                if kind not in SILENT:
                    look_at(record, kind)
                COMMON_JUDGES[kind](judges, record, kind)
                if keeps is not None and record["kind"] in _COMMITTING:
                    keeps(record)
            except _MALFORMED as error:
                self._malformed(record, error)
        torn = 0
        if held:
            if _is_torn(held):
                torn = len(held)
                if chain.sealed:
                    self._findings.add("I8", "bytes follow the seal", "the end of the log", counted(torn, "byte"))
            else:
                chain.read(held)
        return self._report(torn)

    def _judge_closely(self, line: bytes) -> None:
        """A line that has not passed."""
        record, judges = self._chain.read(line), self._judges
        if record is None or not self._chain.whole:
            return
        if judges is None:
            self._begin(record)
            return
        try:
            self._shapes.check(record)
            self._privacy.check_record(record)
            judge = JUDGES.get(record["kind"])
            if judge is not None:
                judge(judges, record, None)
            if self._kept.has_source and record["kind"] in _COMMITTING:
                self._kept.check(record)
        except _MALFORMED as error:
            self._malformed(record, error)

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
        chain, judges = self._chain, self._judges
        chain.end()
        self._privacy.flush()
        self._kept.end()
        self._signatures.end()
        if chain.count == 0:
            self._findings.add("I5", "the log has no record", "a genesis", "nothing")
        elif not chain.recognised:
            self._findings.replace("I5", "this is no log of looplatch", "a genesis, and records after it", "no record")
        elif judges is not None and chain.whole and judges.moves.ended and not chain.sealed:
            judges.history.check_end("at the end of the run")
            self._findings.note("the run has ended, and its seal is not set yet: resuming the run sets it")

    def _status(self) -> Status:
        if self._chain.sealed:
            return "sealed"
        if self._judges is None:
            return "open"
        if self._judges.effects.running:
            return "in_doubt"
        moves = self._judges.moves
        return "suspended" if moves.paused or moves.state == State.SUSPENDED else "open"

    def _begin(self, record: dict[str, Any] | None) -> None:
        """The genesis: without a right one, nothing that follows can be judged as a run."""
        if record is None or record.get("kind") != "genesis":
            return
        try:
            self._shapes.check(record)
            moves = Moves(plan_of(self._tables.find(record["table"]) or self._table), self._findings)
            moves.begin(record["limits"])
            check_genesis(self._findings, record)
            self._kept.begin(record)
            self._privacy.configure(record)
            self._privacy.check_record(record)
            self._signatures.begin(record)
            look_at_parent(self._findings, record, self._parent)
            self._judges = Judges(
                self._findings,
                record,
                moves=moves,
                tables=self._tables,
                children=self._children,
                signatures=self._signatures,
                privacy=self._privacy,
                kept=self._kept,
            )
        except _MALFORMED as error:
            self._malformed(record, error)

    def _malformed(self, record: dict[str, Any], error: Exception) -> None:
        found = f"{type(error).__name__}: {error}"
        self._findings.add("I4", f"the record is not as a {record.get('kind')} record is", "its fields", found)


def _is_torn(line: bytes) -> bool:
    """Whether a line without its newline is the beginning of a record; a whole one and a wrong byte are damage."""
    for end in (len(line), len(line) - 1):
        try:
            orjson.loads(line[:end])
        except orjson.JSONDecodeError:
            continue
        return False
    return line.startswith(b"{")
