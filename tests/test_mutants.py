"""Mutants of the table: each row dropped, redirected or changed, each guard weakened. What runs do tells each apart.

What runs did is walked again with the mutant, event by event. Neither the rows' names nor the verdicts are compared:
only where a run goes, why, what its context becomes, and what is ordered next.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import attrs
import pytest

from looplatch.machine import Machine
from looplatch.states import events as on
from looplatch.states.context import Context
from looplatch.states.errors import RefusedEvent
from looplatch.states.event import Event
from looplatch.states.events import EVENTS
from looplatch.states.level import Level
from looplatch.states.limits import Limits
from looplatch.states.state import State
from looplatch.states.table import TABLE
from looplatch.states.transition import Guard, Table, Transition
from looplatch.states.trouble import TroubleKind
from tests.compressing import compressed
from tests.test_rows import denied, ends_of_all_kinds, from_outside, taken_up_again, told, withdrawn

KINDS = {event.__name__: event for event in EVENTS}
Told = tuple[Any, ...]


@attrs.frozen
class Step:
    """An event where it came, and what the run did."""

    state: State
    context: Context
    event: Event
    did: Told


def did(machine: Machine, state: State, context: Context, event: Event) -> Told:
    """What a run does by an event, as others can see it."""
    cursor = machine.start(context)
    cursor.state = str(state)
    try:
        move = machine.send(cursor, event)
    except (RefusedEvent, KeyError) as refused:
        return (type(refused).__name__,)
    row = move.row
    return (move.target, row.target is None, row.reason, row.strategy, row.terminal, move.commands, move.context)


# What no run of the tests does: a process dies in the middle of a stream, and compression that goes on and on.
RARE = (
    (State.STREAM, Context(), on.RunResumed(begun=1), State.ORCHESTRATE),
    (
        State.PREPARE,
        Context(level=8),
        on.HistoryCompressed(level=Level.SNIP, tokens_before=9, tokens_after=8, output_tokens=3),
        State.FAILED,
    ),
    (State.PREPARE, Context(level=8), on.SummaryDue(level=Level.COMPACT), State.FAILED),
)


# A run that has used up a bit of everything, what happens to it, and what it has left then: written by hand.
WORN: dict[str, Any] = {
    "turn": 2, "level": 3, "attempts": 1, "output_recoveries": 1, "escalated": 1, "drained": 1, "compact_tried": 1,
    "blocks": 1, "pauses": 1, "low_progress": 1, "continuations": 1, "breaker": 1, "output_limit": 64_000,
}  # fmt: skip
NEW_TURN: dict[str, Any] = {
    "turn": 3, "output_recoveries": 0, "escalated": 0, "drained": 0, "compact_tried": 0, "trouble": None,
    "sealed": False, "summary_pending": False, "output_limit": 0,
}  # fmt: skip
MENDED: dict[str, Any] = {"trouble": None, "sealed": False, "summary_pending": False}
TANGLED: dict[str, Any] = {"sealed": True, "summary_pending": True}
TARGET: dict[str, Any] = {"limits": Limits(output_target=9_000)}
SPENT: dict[str, Any] = {"output_tokens": 3}
PREPARE, DECIDE, ORCHESTRATE, RECOVER = State.PREPARE, State.DECIDE, State.ORCHESTRATE, State.RECOVER


def named(trouble: TroubleKind, **more: Any) -> Event:
    return on.TroubleNamed(trouble=trouble, **more)


def failed(**more: Any) -> Event:
    return on.SummaryFailed(failure="no_text", transient=True, output_tokens=3, **more)


AFTERWARDS: list[tuple[State, dict[str, Any], Event, dict[str, Any]]] = [
    (PREPARE, {}, on.HistoryCompressed(level=Level.SNIP, tokens_before=9, tokens_after=8, **SPENT), SPENT),
    (PREPARE, {}, on.HistoryCompressed(level=Level.COMPACT, tokens_before=9, tokens_after=8), {"breaker": 0}),
    (PREPARE, {}, on.CollapseStaged(span_tokens=9, summary_tokens=1), {"breaker": 0}),
    (PREPARE, {}, failed(), {**SPENT, "breaker": 2}),
    (PREPARE, {"breaker": 3}, failed(), {**SPENT, "breaker": 3}),
    (PREPARE, {}, on.ContextReady(tokens=9, window=8), {"level": 0}),
    (PREPARE, {}, on.RunResumed(), {"level": 0}),
    (DECIDE, {}, on.ToolsRequested(calls=1), {"pauses": 0}),
    (DECIDE, {**TANGLED, "trouble": TroubleKind.OVERFLOW}, on.TurnPaused(), {**NEW_TURN, "pauses": 2}),
    *((DECIDE, {}, kind(begun=begun), {"pauses": 0})
      for kind in (on.OutputTruncated, on.ContextExceeded, on.Refused) for begun in (0, 1)),
    (DECIDE, TARGET, on.StopHooksPassed(new_tokens=600), {"blocks": 0}),
    (ORCHESTRATE, {"trouble": TroubleKind.TRUNCATED}, on.ToolsAnswered(results=1, **SPENT), SPENT),
    (ORCHESTRATE, {}, on.ToolsAnswered(results=1, stop_asked=True, **SPENT), SPENT),
    (ORCHESTRATE, TANGLED, on.ToolsAnswered(results=1, **SPENT), {**NEW_TURN, **SPENT}),
    (ORCHESTRATE, {"turn": 100}, on.ToolsAnswered(results=1, **SPENT), SPENT),
    (RECOVER, {**TANGLED, "drained": 0}, named(TroubleKind.OVERFLOW, staged=1), {**MENDED, "drained": 1}),
    (
        RECOVER, {**TANGLED, "compact_tried": 0}, on.HistorySummarised(tokens_before=9, tokens_after=8),
        {**MENDED, "breaker": 0},
    ),
    (RECOVER, {}, failed(), {**SPENT, "attempts": 2, "breaker": 2}),
    (RECOVER, {}, failed(delay_ms=700_000), {**SPENT, "breaker": 2}),
    (RECOVER, {"breaker": 3}, failed(), {**SPENT, "breaker": 3}),
    (RECOVER, {"summary_pending": True, "escalated": 0}, named(TroubleKind.TRUNCATED, output_limit=9), MENDED),
    (RECOVER, TANGLED, named(TroubleKind.TRUNCATED), {**MENDED, "output_recoveries": 2}),
    (RECOVER, TANGLED, named(TroubleKind.HOOK_BLOCKED), MENDED),
    (RECOVER, TANGLED, named(TroubleKind.TARGET_UNMET, new_tokens=600), {**MENDED, "low_progress": 0}),
    (RECOVER, TANGLED, named(TroubleKind.TARGET_UNMET, new_tokens=6), {**MENDED, "low_progress": 2}),
    (RECOVER, {}, named(TroubleKind.TRANSIENT, fallback=True), {"fallback": True, "attempts": 2}),
    (RECOVER, {"sealed": True}, on.BackoffElapsed(), NEW_TURN),
]  # fmt: skip

# What a guard demands already, a row need not set: such a mutant is the table.
EQUAL: dict[str, set[str]] = {
    "ToolsAnswered[turns_left]": {"without sets ('trouble', None)"},
    "TroubleNamed[can_escalate]": {"without sets ('sealed', False)"},
    "BackoffElapsed[unsealed]": {"without sets ('sealed', False)", "without sets ('summary_pending', False)"},
    "BackoffElapsed[sealed]": {"without sets ('summary_pending', False)"},
}


@cache
def steps() -> dict[tuple[State, type[Event]], list[Step]]:
    """What runs did, by state and event; each kind of thing once."""
    machine = Machine(TABLE)
    found: dict[tuple[State, type[Event]], dict[Any, Step]] = {}
    plays = [*told(), *ends_of_all_kinds(), *from_outside(), denied(), *compressed()]
    for log in [*(one.log for one in plays), *(one.log for one in taken_up_again()), *withdrawn()]:
        assert log.genesis is not None
        cursor = machine.start(Context(limits=Limits.read(log.genesis["limits"])))
        for record in log.transitions:
            event = KINDS[str(record.event)].read(record["fields"])
            state, context = State(cursor.state), cursor.context
            seen = did(machine, state, context, event)
            machine.send(cursor, event)
            held = tuple(name for name, verdict in record["guards"] if verdict)
            same = (held, *(name for name in seen[-1].__dict__ if getattr(seen[-1], name) != getattr(context, name)))
            found.setdefault((state, type(event)), {}).setdefault(same, Step(state, context, event, seen))
    for state, context, event, target in RARE:
        seen = did(machine, state, context, event)
        assert seen[0] is target
        found.setdefault((state, type(event)), {})["rare", target] = Step(state, context, event, seen)
    for number, (state, changes, event, after) in enumerate(AFTERWARDS):
        context = Context(**{**WORN, **changes})
        seen = did(machine, state, context, event)
        assert {name: getattr(seen[-1], name) for name in after} == after
        found.setdefault((state, type(event)), {})["afterwards", number] = Step(state, context, event, seen)
    return {place: list(known.values()) for place, known in found.items()}


def survives(mutant: Table, row: Transition) -> bool:
    """Whether nothing that runs did tells the mutant from the table."""
    machine = Machine(mutant)
    known = (step for source in row.sources for step in steps().get((source, row.event), ()))
    return all(did(machine, step.state, step.context, step.event) == step.did for step in known)


def with_row(old: Transition, new: Transition | None) -> Table:
    rows = (new if row is old else row for row in TABLE)
    return attrs.evolve(TABLE, rows=tuple(row for row in rows if row is not None))


def always(context: Context, event: Any) -> bool:
    return True


def weak(guard: Guard[Any]) -> Guard[Any]:
    return attrs.evolve(guard, test=always)


def mutants(row: Transition) -> Iterator[tuple[str, Table]]:
    yield "dropped", with_row(row, None)
    targets: Sequence[State | None] = (None, *State)
    for target in targets:
        if target is not row.target and (target is None or (target,) != row.sources or row.target is not None):
            yield f"to {target or 'stay'}", with_row(row, attrs.evolve(row, target=target))
    for field in ("raises", "resets", "sets", "takes"):
        values: tuple[Any, ...] = getattr(row, field)
        for place, value in enumerate(values):
            rest = (*values[:place], *values[place + 1 :])
            changes: dict[str, Any] = {field: rest}
            yield f"without {field} {value}", with_row(row, attrs.evolve(row, **changes))
    if row.adds:
        yield "adds nothing", with_row(row, attrs.evolve(row, adds=False))
    for place, command in enumerate(row.commands):
        rest = (*row.commands[:place], *row.commands[place + 1 :])
        yield f"without {command.name}", with_row(row, attrs.evolve(row, commands=rest))
    if row.guard.reads:
        yield "guard weakened", with_row(row, attrs.evolve(row, guard=weak(row.guard)))


@pytest.mark.parametrize("row", TABLE.rows, ids=lambda row: row.name)
def test_no_mutant_of_the_row_survives(row: Transition) -> None:
    left = {name for name, mutant in mutants(row) if survives(mutant, row)}
    assert left == EQUAL.get(f"{row.event.__name__}[{row.guard.name}]", set())


def test_the_table_itself_survives() -> None:
    assert all(survives(TABLE, row) for row in TABLE)
