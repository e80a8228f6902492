"""What is on record of the run inside a call: nothing, a run that has ended, or one that can go on."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from looplatch.agents.parentage import NOTHING, Child, Parentage
from looplatch.audit import AuditLog, Log
from looplatch.audit.children import child_files
from looplatch.audit.payloads import payloads_of
from looplatch.audit.places import place_of, prefix_at
from looplatch.blocks import blocks_of
from looplatch.recovery.resume.fold import snapshot_of
from looplatch.recovery.resume.snapshot import Snapshot
from looplatch.recovery.waiting import waiting
from looplatch.states.context import TOTALS
from looplatch.states.errors import UsageError
from looplatch.states.reasons import Terminal
from looplatch.states.record import Kind, Record
from looplatch.states.vocabulary import EffectClass
from looplatch.tools import ToolResult


@attrs.frozen(kw_only=True)
class Past:
    """What is found of a run.

    file: where its log lies, or is to lie; None: in memory. log: None where the run never began. snapshot: where it
    stands; None where it never began, or has ended.
    """

    file: Path | None = None
    log: Log | None = None
    snapshot: Snapshot | None = None

    @property
    def limits(self) -> Mapping[str, Any]:
        """Its own limits, as its log has them."""
        return {} if self.snapshot is None else self.snapshot.settings["limits"]

    @property
    def awaited(self) -> frozenset[str]:
        """The calls that it waits for someone's word on."""
        snapshot = self.snapshot
        return frozenset(() if snapshot is None else waiting(snapshot.awaited, snapshot.nested_awaited))


def past_of(parent: Parentage) -> Past:
    """What is on record of the run inside the call of `parent`. Raises AuditError for a log that is damaged."""
    own = parent.at.journal.log
    return past_at(own.run, own.file, own.children, parent.call.id)


def past_at(run: str, parent: Path | None, children: Mapping[str, AuditLog], call: str) -> Past:
    """What is on record of the run inside a call of `run`, whose log is the file `parent`, or has `children` in memory.

    Raises AuditError for a log that is damaged.
    """
    if parent is None:
        known = children.get(call)
        return Past() if known is None else _begun(Log.of(known))
    for file in child_files(parent, call):
        if not _holds_anything(file):
            return Past(file=file)
        try:
            place = place_of(file)
            kept = prefix_at(place)
        except UsageError:
            continue  # its process died in the middle of its first record
        linked = kept.genesis.get("parent")
        if linked is not None and linked["run"] == run and _has_begun(kept.records):
            return _begun(Log(kept.lines, place.payloads, file=file, torn=kept.torn))
    raise AssertionError("there is always another name")


def _holds_anything(file: Path) -> bool:
    return any(one.exists() and one.stat().st_size for one in (file, payloads_of(file)))


def _has_begun(records: Iterable[Record]) -> bool:
    return any(record.kind is Kind.TRANSITION for record in records)


def _begun(log: Log) -> Past:
    if log.terminal is not None:
        return Past(file=log.file, log=log)
    return Past(file=log.file, log=log, snapshot=snapshot_of(log.records))


def ended(log: Log) -> tuple[Child, ToolResult]:
    """How a run has ended, and what its parent's model is told of it."""
    records = log.records
    last = log.terminal or records[-1]  # tombstones may stand after it
    terminal = str(last["terminal"])
    file = None if log.file is None else log.file.name
    child = Child(run=last.run, seq=last.seq, hash=last.hash, file=file, spent=spent_by(records))
    return child, tool_result(terminal, None, _last_words(log))


def tool_result(terminal: str, error: str | None, said: str) -> ToolResult:
    """What the model is told of a sub-agent: its answer, or why there is none."""
    if terminal == Terminal.ANSWERED:
        return ToolResult(said)
    text = f"the sub-agent ended without an answer ({terminal})"
    if error:
        text += f": {error}"
    if said:
        text += f"\nIts last words: {said}"
    return ToolResult(text, is_error=True)


def _last_words(log: Log) -> str:
    messages = log.messages
    if not messages or messages[-1]["role"] != "assistant":
        return ""
    return "".join(str(block["text"]) for block in blocks_of(messages[-1]) if block.get("type") == "text")


def spent_by(records: Sequence[Record]) -> dict[str, int]:
    """All that a run has spent, by the names of the totals."""
    totals, unreported = dict(NOTHING), dict(NOTHING)
    for record in records:
        if record.kind is Kind.TRANSITION:
            if TOTALS[-1] in record["fields"]:
                unreported = dict(NOTHING)
            totals |= {name: value for name, value in record["change"].items() if name in totals}
        elif record.kind is Kind.EFFECT_END and record.effect_class in (EffectClass.NOTE, EffectClass.TOOL):
            usage: Mapping[str, int] = record.get("usage") or NOTHING
            unreported = {name: unreported[name] + usage[name] for name in TOTALS}
    return {name: totals[name] + unreported[name] for name in TOTALS}
