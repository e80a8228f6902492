"""Replay: the recorded events once more through the real machine, move by move."""

import os
from collections.abc import Iterable
from typing import Any, Final

import attrs

from looplatch.audit import Log, LogDamaged, read
from looplatch.machine import Cursor, Machine
from looplatch.states.context import Context
from looplatch.states.errors import RefusedEvent, UsageError
from looplatch.states.event import Event
from looplatch.states.events import EVENTS
from looplatch.states.limits import Limits
from looplatch.states.record import MAX_INT, Kind, Record
from looplatch.states.table import TABLE
from looplatch.states.transition import Table

_EVENTS: Final = {event.__name__: event for event in EVENTS}


@attrs.frozen(kw_only=True)
class Divergence:
    """The first place where the machine does not do what the log says: a record, a field of it, and both values."""

    seq: int
    field: str
    expected: Any
    recorded: Any

    def __str__(self) -> str:
        return f"record {self.seq}: {self.field}: the machine gives {self.expected!r}, the log has {self.recorded!r}"


@attrs.frozen(kw_only=True)
class Replay:
    """How a replay went: the moves and refusals that agree, and the first divergence, if there is one."""

    agreed: int
    divergence: Divergence | None = None

    @property
    def ok(self) -> bool:
        """Whether the machine does all that the log says."""
        return self.divergence is None

    def __str__(self) -> str:
        told = "every move is the machine's own" if self.divergence is None else str(self.divergence)
        return f"{self.agreed} moves replayed: {told}"


def replay(log: Log | str | os.PathLike[str], *, table: Table = TABLE) -> Replay:
    """Derive every move of a log again: each recorded event is sent to the machine, and what it does is compared.

    Raises UsageError for a log whose genesis is missing, LogDamaged and UsageError as `read` does.
    """
    records = (log if isinstance(log, Log) else read(log)).records
    if not records or records[0].kind is not Kind.GENESIS:
        raise UsageError("log", "it does not begin with a genesis", "Give a whole log; `looplatch verify` tells more")
    return _replayed(records, Machine(table))


def _replayed(records: Iterable[Record], machine: Machine) -> Replay:
    cursor = machine.start(Context())
    agreed = 0
    for record in records:
        match record.kind:
            case Kind.GENESIS:
                machine.restore(cursor, Context(limits=_limits(record, record.get("limits"))))
            case Kind.RESUMED:
                match record.get("changes"):
                    case {"limits": {"now": now}}:
                        machine.restore(cursor, attrs.evolve(cursor.context, limits=_limits(record, now)))
                    case _:
                        pass
            case Kind.TRANSITION | Kind.REJECTED:
                found = _compared(machine, cursor, record)
                if found is not None:
                    return Replay(agreed=agreed, divergence=found)
                agreed += 1
            case Kind.MESSAGE | Kind.EFFECT_BEGIN | Kind.EFFECT_END | Kind.CHECKPOINT | Kind.TOMBSTONE | Kind.TERMINAL:
                pass
    return Replay(agreed=agreed)


def _limits(record: Record, fields: Any) -> Limits:
    try:
        return Limits.read(fields)
    except (TypeError, ValueError, AttributeError, UsageError) as error:
        raise LogDamaged(None, record.seq + 1, f"its limits are none ({error})") from error


def _compared(machine: Machine, cursor: Cursor, record: Record) -> Divergence | None:
    """Send a recorded event, and compare what happens with what the record says happened."""
    state = cursor.state
    kind = _EVENTS.get(str(record.event))
    if kind is None:
        return Divergence(seq=record.seq, field="event", expected="a known event", recorded=record.event)
    try:
        event = kind.read(record.get("fields"))
    except (TypeError, ValueError, AttributeError) as error:
        return Divergence(seq=record.seq, field="fields", expected=str(error), recorded=record.get("fields"))
    told = _told(machine, cursor, state, event)
    for field, expected in told.items():
        recorded = record.data["kind"] if field == "kind" else record.get(field)
        if recorded != expected:
            return Divergence(seq=record.seq, field=field, expected=expected, recorded=recorded)
    return None


def _told(machine: Machine, cursor: Cursor, state: str, event: Event) -> dict[str, Any]:
    """What the machine does by an event, in the fields of its record."""
    try:
        move = machine.send(cursor, event)
    except RefusedEvent as refused:
        nothing = dict.fromkeys(("reason", "strategy", "terminal"))
        guards = [[name, verdict] for name, verdict in refused.verdicts.items()]
        return {"kind": "rejected", "source": state, "target": state, **nothing, "guards": guards, "change": {}}
    row = move.row
    return {
        "kind": "transition",
        "source": state,
        "guards": [[name, verdict] for name, verdict in move.verdicts],
        "target": str(move.target),
        "reason": None if row.reason is None else str(row.reason),
        "strategy": None if row.strategy is None else str(row.strategy),
        "terminal": None if row.terminal is None else str(row.terminal),
        "change": {name: _plain(value) for name, value in move.change.items()},
    }


def _plain(value: object) -> object:
    """A value of the context as a record holds it."""
    if isinstance(value, int) and not isinstance(value, bool):
        return max(-MAX_INT, min(value, MAX_INT))
    return value if value is None or isinstance(value, bool) else str(value)
