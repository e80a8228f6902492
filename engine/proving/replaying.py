"""Replay: the recorded events once more through the real machine, move by move."""

import os
from collections.abc import Iterator
from typing import Any, Final

import attrs

from looplatch.audit import Log, LogDamaged, read
from looplatch.machine import Cursor, Machine
from looplatch.proving.tables import table_named
from looplatch.states.brief import brief
from looplatch.states.context import Context
from looplatch.states.counted import counted
from looplatch.states.errors import RefusedEvent, UsageError
from looplatch.states.event import Event
from looplatch.states.events import EVENTS
from looplatch.states.limits import Limits
from looplatch.states.record import MAX_INT, Kind, Record
from looplatch.states.transition import Table, check_is_table

_EVENTS: Final = {event.__name__: event for event in EVENTS}


@attrs.frozen(kw_only=True)
class MoveDifference:
    """The first place where the machine does not do what the log says.

    seq: the record. state: the state that the machine was in. event: the event that it was sent. field: what differs:
    "kind" (moved or refused), "guards" (the verdicts), "target", "change" (of the context) ... expected: what the
    machine gives. recorded: what the log has.
    """

    seq: int
    field: str
    expected: Any
    recorded: Any
    state: str = ""
    event: str | None = None

    def __str__(self) -> str:
        by = f" ({self.event} in {self.state})" if self.event is not None else ""
        values = f"the machine gives {brief(self.expected)}, the log has {brief(self.recorded)}"
        return f"record {self.seq}{by}: {self.field}: {values}"

    def fields(self) -> dict[str, Any]:
        """The difference as plain data, for JSON."""
        return attrs.asdict(self)


@attrs.frozen(kw_only=True)
class Replay:
    """How a replay went: the moves and refusals that agree, and the first difference, if there is one."""

    agreed: int
    difference: MoveDifference | None = None

    @property
    def ok(self) -> bool:
        """Whether the machine does all that the log says."""
        return self.difference is None

    def __str__(self) -> str:
        result = "every move is the machine's own" if self.difference is None else str(self.difference)
        return f"{counted(self.agreed, 'move')} replayed: {result}"

    def fields(self) -> dict[str, Any]:
        """The outcome as plain data, for JSON."""
        difference = None if self.difference is None else self.difference.fields()
        return {"ok": self.ok, "agreed": self.agreed, "difference": difference}


@attrs.frozen(kw_only=True)
class Replayed:
    """A recorded move (or refusal), made again. context: of the run after it. difference: None where it agrees."""

    record: Record
    context: Context
    difference: MoveDifference | None


def replay(log: Log | str | os.PathLike[str], *, table: Table | None = None) -> Replay:
    """Derive every move of a log again: each recorded event is sent to the machine, and what it does is compared.

    table: the machine's; None for the one that judged the run, which the log names. Raises UnknownTable where no
    looplatch up to this one had that table, UsageError for a log whose genesis is missing, LogDamaged and UsageError
    as `read` does.
    """
    agreed = 0
    for made in replayed(log, table=table):
        if made.difference is not None:
            return Replay(agreed=agreed, difference=made.difference)
        agreed += 1
    return Replay(agreed=agreed)


def replayed(log: Log | str | os.PathLike[str], *, table: Table | None = None) -> Iterator[Replayed]:
    """The moves of a log, one after the other, made again by the machine; the last is the first that does not agree.

    Raises as `replay` does, at the first move.
    """
    if table is not None:
        check_is_table(table)
    records = (log if isinstance(log, Log) else read(log)).records
    if not records or records[0].kind is not Kind.GENESIS:
        raise UsageError("log", "it does not begin with a genesis", "Give a whole log; `looplatch verify` tells more")
    machine = Machine(table_named(records[0].get("table")) if table is None else table)
    cursor = machine.start(Context())
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
                state = cursor.state
                found = _compared(machine, cursor, record)
                if found is not None:
                    found = attrs.evolve(found, state=state, event=record.event)
                yield Replayed(record=record, context=cursor.context, difference=found)
                if found is not None:
                    return
            case Kind.MESSAGE | Kind.EFFECT_BEGIN | Kind.EFFECT_END | Kind.CHECKPOINT | Kind.TOMBSTONE | Kind.TERMINAL:
                pass


def _limits(record: Record, fields: Any) -> Limits:
    try:
        return Limits.read(fields)
    except (TypeError, ValueError, AttributeError, UsageError) as error:
        raise LogDamaged(None, record.seq + 1, f"its limits are none ({error})") from error


def _compared(machine: Machine, cursor: Cursor, record: Record) -> MoveDifference | None:
    """Send a recorded event, and compare what happens with what the record says happened."""
    state = cursor.state
    kind = _EVENTS.get(str(record.event))
    if kind is None:
        return MoveDifference(seq=record.seq, field="event", expected="a known event", recorded=record.event)
    try:
        event = kind.read(record.get("fields"))
    except (TypeError, ValueError, AttributeError) as error:
        return MoveDifference(seq=record.seq, field="fields", expected=str(error), recorded=record.get("fields"))
    made = _made(machine, cursor, state, event)
    for field, expected in made.items():
        recorded = record.data["kind"] if field == "kind" else record.get(field)
        if recorded != expected:
            return MoveDifference(seq=record.seq, field=field, expected=expected, recorded=recorded)
    return None


def _made(machine: Machine, cursor: Cursor, state: str, event: Event) -> dict[str, Any]:
    """What the machine does by an event, in the fields of its record."""
    try:
        move = machine.send(cursor, event)
    except RefusedEvent as refused:
        nothing = dict.fromkeys(("reason", "strategy", "terminal"))
        guards = [[name, verdict] for name, verdict in refused.verdicts.items()]
        return {"kind": "rejected", "source": state, "target": state, **nothing, "guards": guards, "change": {}}
    return {
        "kind": "transition",
        **move.recorded,
        "guards": [[name, verdict] for name, verdict in move.verdicts],
        "change": {name: _plain(value) for name, value in move.change.items()},
    }


def _plain(value: object) -> object:
    """A value of the context as a record holds it."""
    if isinstance(value, int) and not isinstance(value, bool):
        return max(-MAX_INT, min(value, MAX_INT))
    return value if value is None or isinstance(value, bool) else str(value)
