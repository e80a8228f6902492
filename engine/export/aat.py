"""The records of the Agent Audit Trail draft (draft-sharif-agent-audit-trail), as JSON Lines.

Moves, effects and what happens to the run itself become records of the draft, chained by its own rule: `prev_hash` is
the SHA-256 of the canonical record before, and null in the first. `action_detail` names the record of the log by its
number and hash, so that both chains can be held together. Nothing is signed. `trust_level` is the number that the
draft's reference verifier reads; looplatch gives no levels, so that it is 0.
"""

import uuid
from collections.abc import Iterator
from typing import Any, Final

from looplatch.analysis.fields import object_in
from looplatch.analysis.reading import Readable
from looplatch.cleaning import json_escape, visible
from looplatch.export.source import Open, records_of
from looplatch.states.record import Kind, Record, canonical, digest
from looplatch.states.vocabulary import EffectClass

_SPACE: Final = uuid.UUID("6ba7b811-9dad-11d1-80b4-00c04fd430c8")  # RFC 9562: names that are URLs
_OUTCOMES: Final = {
    "ok": "success",
    "answered": "success",
    "Allow": "success",
    "Pass": "success",
    "timed_out": "timeout",
    "denied": "denied",
    "Deny": "denied",
    "Ask": "escalated",
    "suspended": "escalated",
}
_BAD_ENDS: Final = frozenset({"failed", "aborted"})


def lines(log: Readable) -> Iterator[str]:
    """The records, one a line."""
    begun, version = Open(), ""
    before: dict[str, Any] | None = None
    for record in records_of(log):
        if record.kind is Kind.GENESIS:
            version = str(record.get("library")).removeprefix("looplatch ")
        action = _action_of(record, begun.take(record))
        if action is None:
            continue
        # The draft wants times that never fall; the record's own stays in the detail where it does.
        ts: str = record["ts"] if before is None else max(before["timestamp"], record["ts"])
        detail = {"seq": record.seq, "hash": record.hash, **action.pop("detail")}
        if ts != record["ts"]:
            detail["ts"] = record["ts"]
        made: dict[str, Any] = {
            "record_id": str(uuid.uuid5(_SPACE, f"urn:looplatch:{record.run}:{record.seq}")),
            "timestamp": ts,
            "agent_id": "looplatch",
            "agent_version": version,
            "session_id": record.run,
            "action_detail": detail,
            "trust_level": 0,
            "parent_record_id": None if before is None else before["record_id"],
            "prev_hash": None if before is None else digest(canonical(before)),
            **action,
        }
        before = made
        yield visible(canonical(made).decode(), json_escape) + "\n"


def _action_of(record: Record, begin: Record | None) -> dict[str, Any] | None:
    """The draft's words for a record: what was done, in which phase, and what came of it; None for no action."""
    names: tuple[str, ...]
    match record.kind:
        case Kind.TRANSITION:
            names = ("source", "event", "target", "reason", "strategy", "terminal", "fields")
            action = "escalation" if record.event == "ApprovalAwaited" else "decision"
            outcome = "escalated" if action == "escalation" else "failure" if record.target in _BAD_ENDS else "success"
            return _action(action, "post_execution", outcome, {name: record.get(name) for name in names})
        case Kind.REJECTED:
            return _action("error", "post_execution", "failure", {n: record.get(n) for n in ("source", "event")})
        case Kind.EFFECT_BEGIN | Kind.EFFECT_END if begin is not None:
            return _effect(record, begin)
        case Kind.GENESIS:
            names = ("model", "library", "sdk", "table", "system", "tools", "params")
            return _action("lifecycle", "post_execution", "success", {name: record.get(name) for name in names})
        case Kind.RESUMED:
            return _action("lifecycle", "post_execution", "success", {"resumed": True, "epoch": record["epoch"]})
        case Kind.TOMBSTONE:
            return _action("lifecycle", "post_execution", "success", {"deleted": True})
        case Kind.TERMINAL:
            names = ("state", "terminal", "count", "root")
            return _action("lifecycle", "post_execution", "success", {name: record.get(name) for name in names})
        case Kind.MESSAGE | Kind.CHECKPOINT | Kind.EFFECT_BEGIN | Kind.EFFECT_END:
            return None


def _effect(record: Record, begin: Record) -> dict[str, Any]:
    ended = record.kind is Kind.EFFECT_END
    names = ("class", "name", "model", "tool_use_id", "idempotency_key", "access", "point")
    detail: dict[str, Any] = {name: begin.get(name) for name in names if begin.get(name) is not None}
    if begin.effect_class is EffectClass.TOOL:
        action = "delegation" if record.get("child") is not None else "tool_response" if ended else "tool_call"
    else:
        action = "decision"
    if not ended:
        return _action(action, "pre_execution", "success", detail)
    how = str(record.get("outcome"))
    detail |= {"outcome": how, "usage": object_in(record, "usage")}
    outcome = "failure" if record.get("is_error") is True and how not in _OUTCOMES else _OUTCOMES.get(how, "failure")
    return _action(action, "post_execution", outcome, detail)


def _action(action: str, phase: str, outcome: str, detail: dict[str, Any]) -> dict[str, Any]:
    return {"action_type": action, "record_phase": phase, "outcome": outcome, "detail": detail}
