"""How far the log of a sub-agent must reach: at least to where its parent's says that it had come."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from looplatch.agents.opened import open_calls
from looplatch.agents.past import Past, past_at
from looplatch.audit import AuditLog, LogDamaged
from looplatch.plan import Plan
from looplatch.recovery.resume.snapshot import Snapshot
from looplatch.states.errors import UsageError
from looplatch.states.record import Record


def check_heads(plan: Plan, snapshot: Snapshot, file: Path | None, children: Mapping[str, AuditLog]) -> None:
    """Check the logs of the sub-agents that are in the middle of a call, however deep they are.

    A log that is missing, or ends before that record, would have its sub-agent do again what it has done; it may well
    be longer, since a process may die before it tells its parent. file, children: see `changes_inside`.

    Raises LogDamaged for a log that lacks the record that its parent's names, or has another one there.
    """
    for call, (_, own, tool) in open_calls(plan, snapshot).items():
        try:
            past = past_at(snapshot.run, file, children, call)
        except LogDamaged as damage:
            if tool.child is None:
                raise
            problem = f"{damage.problem}; {_named(file, call, tool.child)}"
            raise LogDamaged(damage.file, damage.line, problem) from damage
        except UsageError:
            continue  # it cannot go on, and so does nothing again: the call will say so
        if tool.child is not None:
            _check(past, tool.child, file, call)
        if past.log is not None and past.snapshot is not None:
            check_heads(own, past.snapshot, past.file, past.log.child_logs)


def _check(past: Past, child: Mapping[str, Any], file: Path | None, call: str) -> None:
    seq: int = child["seq"]
    records: Sequence[Record] = () if past.log is None else past.log.records
    place = past.file
    if file is not None and child["log"] is not None and past.log is None:
        place = file.with_name(Path(child["log"]).name)  # where it was
    if seq < len(records):
        found = records[seq]
        if (found.run, found.hash) == (child["run"], child["hash"]):
            return
        found_text = f"that is record {seq} of the run {found.run} with the hash {found.hash}"
    elif records:
        found_text = f"the log ends with record {len(records) - 1} of the run {records[0].run}"
    else:
        found_text = "no log of the sub-agent is there"
        if past.file != place:
            found_text = f"no log of the sub-agent is there, and none at {past.file}"
    problem = f"{found_text}; {_named(file, call, child)}. Put the log back as it was"
    raise LogDamaged(place, seq + 1, problem)


def _named(file: Path | None, call: str, child: Mapping[str, Any]) -> str:
    """What the parent's log expects."""
    parent = "the log of its parent" if file is None else f"the log of its parent, {file},"
    expected = f"record {child['seq']} of the run {child['run']} with the hash {child['hash']}"
    return f"{parent} says that it has, for the call {call}, {expected}"
