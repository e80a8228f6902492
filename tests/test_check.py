"""The checker of tables: one broken table for each fault, found by its message."""

from collections.abc import Callable
from typing import Any

import attrs
import pytest

from looplatch.states import commands as do
from looplatch.states import events as on
from looplatch.states.check.table import check_table, faults
from looplatch.states.context import Context
from looplatch.states.decisions import Decisions
from looplatch.states.errors import TableError
from looplatch.states.event import Event
from looplatch.states.reasons import Continue, Strategy, Terminal
from looplatch.states.state import State
from looplatch.states.table import TABLE
from looplatch.states.transition import Counter, Guard, Table, Transition

Rows = tuple[Transition, ...]


def table(rows: Rows, **changes: Any) -> Table:
    fields: dict[str, Any] = {"rows": rows, "counters": TABLE.counters, "decisions": TABLE.decisions}
    return Table(**{**fields, **changes})


def decided(**changes: Any) -> Decisions:
    return attrs.evolve(TABLE.decisions, **changes)


def unread(guard: Guard[Any], name: str) -> Guard[Any]:
    """The guard, which says that it does not read `name`."""
    return attrs.evolve(guard, reads=tuple(one for one in guard.reads if one != name))


def row_of(event: type[Event], guard: str) -> Transition:
    return next(row for row in TABLE if row.event is event and row.guard.name == guard)


def without(*rows: Transition) -> Rows:
    return tuple(row for row in TABLE if row not in rows)


def with_row(event: type[Event], name: str, **changes: Any) -> Table:
    """The table with one row changed: that of an event and the guard of this name."""
    old = row_of(event, name)
    return table(tuple(attrs.evolve(row, **changes) if row is old else row for row in TABLE))


def with_guard(event: type[Event], name: str, test: Callable[[Context, Any], Any], *reads: str) -> Table:
    """The table with the guard of one row exchanged."""
    return with_row(event, name, guard=Guard(name, test, reads, ""))


def test_the_table_is_sound() -> None:
    check_table(TABLE)
    assert faults(TABLE) == ()


def test_a_faulty_table_is_refused_with_every_fault() -> None:
    broken = table((*TABLE.rows, TABLE.rows[0], TABLE.rows[1]))
    with pytest.raises(TableError) as raised:
        check_table(broken)
    assert raised.value.faults == faults(broken)
    assert raised.value.faults[:2] == (
        "prepare, RunStarted: there are two rows with the guard always",
        "prepare, HistoryCompressed: there are two rows with the guard edited",
    )
    assert str(raised.value).startswith("the table is not valid:\n  - prepare, RunStarted: there are two rows")


SHAPES: dict[str, Table] = {
    "prepare, RunStarted: there are two rows with the guard always": table((*TABLE.rows, TABLE.rows[0])),
    "the row prepare --RunStarted[always]--> limbo names the unknown state 'limbo'": with_row(
        on.RunStarted, "always", target="limbo"
    ),
    "the state suspended cannot be reached from prepare": table(without(row_of(on.ApprovalAwaited, "always"))),
    "no final state can be reached from suspended": table(
        tuple(
            attrs.evolve(row, sources=tuple(source for source in row.sources if source is not State.SUSPENDED))
            if row.target in TABLE.final
            else row
            for row in without(row_of(on.ApprovalGiven, "all_answered"))
        )
    ),
    "the row completed --RunStarted[always]--> stays leads out of the final state completed": table(
        (*TABLE.rows, attrs.evolve(TABLE.rows[0], sources=(State.COMPLETED,)))
    ),
    "the row orchestrate --ToolsAnswered[turns_left]--> prepare enters prepare without a reason to go on": with_row(
        on.ToolsAnswered, "turns_left", reason=None
    ),
    "the row decide --ToolsRequested[always]--> orchestrate has the reason next_turn but does not enter prepare": (
        with_row(on.ToolsRequested, "always", reason=Continue.NEXT_TURN)
    ),
    "the row decide --AnswerGiven[always]--> stays has the strategy stop_hook_blocking but no reason to go on": (
        with_row(on.AnswerGiven, "always", strategy=Strategy.STOP_HOOK_BLOCKING)
    ),
    "the row decide --StopHooksHalted[always]--> failed ends the run in failed without a terminal reason": with_row(
        on.StopHooksHalted, "always", terminal=None
    ),
    "the row decide --AnswerGiven[always]--> stays has the terminal reason answered but does not end the run": (
        with_row(on.AnswerGiven, "always", terminal=Terminal.ANSWERED)
    ),
    "the row decide --AnswerGiven[always]--> stays raises patience, which is no counter": with_row(
        on.AnswerGiven, "always", raises=("patience",)
    ),
    "the row decide --AnswerGiven[always]--> stays resets sealed, which is no counter": with_row(
        on.AnswerGiven, "always", resets=("sealed",)
    ),
    "the row decide --AnswerGiven[always]--> stays raises and resets pauses": with_row(
        on.AnswerGiven, "always", raises=("pauses",)
    ),
    "the row decide --AnswerGiven[always]--> stays sets mood, which is no field of the context": with_row(
        on.AnswerGiven, "always", sets=(("mood", 1),)
    ),
    "the row decide --AnswerGiven[always]--> stays takes mood, which is no field of the context": with_row(
        on.AnswerGiven, "always", takes=("mood",)
    ),
    "the row decide --AnswerGiven[always]--> stays sets turn, which is a counter: "
    "only raises and resets may change it": with_row(on.AnswerGiven, "always", sets=(("turn", 1),)),
    "the row decide --AnswerGiven[always]--> stays takes trouble, which AnswerGiven does not have": with_row(
        on.AnswerGiven, "always", takes=("trouble",)
    ),
    "the row decide --AnswerGiven[always]--> stays adds tokens and cost, which AnswerGiven does not have": with_row(
        on.AnswerGiven, "always", adds=True
    ),
    "the event StopHooksHalted has no row": table(without(row_of(on.StopHooksHalted, "always"))),
    "the reason collapse_drain_retry has no row": table(without(row_of(on.TroubleNamed, "collapses_staged"))),
    "the strategy stop_hook_blocking has no row": table(without(row_of(on.TroubleNamed, "blocks_left"))),
    "the terminal reason hook_halted has no row": table(without(row_of(on.StopHooksHalted, "always"))),
    "the counter mood is no field of the context": table(
        TABLE.rows, counters=(*TABLE.counters, Counter(name="mood", bound=1, doc=""))
    ),
    "the counter drained is raised by no row": with_row(on.TroubleNamed, "collapses_staged", raises=()),
    "RunStopHooks may bring StopHooksHalted in decide, where it has no row": table(
        without(row_of(on.StopHooksHalted, "always"))
    ),
    "AnswerCalls may bring ToolsAnswered in stream, where it has no row": with_row(
        on.ContextReady, "fits", commands=(do.AnswerCalls(),)
    ),
    "the stop reason boredom leads to RunStarted, which has no row in decide": table(
        TABLE.rows, decisions=decided(by_reason={**TABLE.decisions.by_reason, "boredom": on.RunStarted})
    ),
    "an answer with calls leads to RunStarted, which has no row in decide": table(
        TABLE.rows, decisions=decided(with_calls=on.RunStarted)
    ),
    "an unknown stop reason leads to RunStarted, which has no row in decide": table(
        TABLE.rows, decisions=decided(otherwise=on.RunStarted)
    ),
    "the stop reason boredom is said to cut an answer, and leads nowhere": table(
        TABLE.rows, decisions=decided(cut=TABLE.decisions.cut | {"boredom"})
    ),
    "the counter level has a bound that no guard reads": table(
        tuple(attrs.evolve(row, guard=unread(row.guard, "level")) for row in TABLE)
    ),
}  # fmt: skip

GUARDS: dict[str, Table] = {
    "decide, OutputTruncated: no guard holds for event.begun=0": with_guard(
        on.OutputTruncated, "no_call_begun", lambda c, e: e.begun < 0, "event.begun"
    ),
    "decide, OutputTruncated: the guards no_call_begun and call_begun both hold for event.begun=1": with_guard(
        on.OutputTruncated, "no_call_begun", lambda c, e: e.begun < 2, "event.begun"
    ),
    "recover, BackoffElapsed: the guard unsealed reads summary_pending and does not say so": with_guard(
        on.BackoffElapsed, "unsealed", lambda c, e: not c.summary_pending and not c.sealed, "sealed"
    ),
    "decide, OutputTruncated: the guard no_call_begun says that it reads event.mood, which does not exist": with_guard(
        on.OutputTruncated, "no_call_begun", lambda c, e: e.begun == 0, "event.begun", "event.mood"
    ),
    "decide, OutputTruncated: the guard no_call_begun says 1, which is no boolean, for event.begun=0": with_guard(
        on.OutputTruncated, "no_call_begun", lambda c, e: int(e.begun == 0), "event.begun"
    ),
    "decide, OutputTruncated: the guard no_call_begun raises ZeroDivisionError: integer division or modulo by zero, "
    "for event.begun=0": with_guard(on.OutputTruncated, "no_call_begun", lambda c, e: 1 // e.begun > 9, "event.begun"),
    "prepare, ContextReady: the guard fits reads input_tokens and does not say so": with_guard(
        on.ContextReady, "fits", lambda c, e: c.total_tokens < 0, "event.tokens", "event.window"
    ),
}


@pytest.mark.parametrize("fault", [*SHAPES, *GUARDS])
def test_each_fault_is_named(fault: str) -> None:
    assert fault in faults({**SHAPES, **GUARDS}[fault])


def test_an_edge_beside_a_bound_is_tried() -> None:
    """A gap at exactly one attempt before the last, and one at exactly 499 tokens."""
    narrow = with_guard(
        on.TroubleNamed,
        "fatal",
        lambda c, e: e.trouble == "fatal" and c.attempts != c.limits.max_attempts - 1,
        "event.trouble",
        "attempts",
    )
    assert faults(narrow)[0].startswith("recover, TroubleNamed: no guard holds for attempts=4, event.trouble=fatal")
    narrow = with_guard(
        on.TroubleNamed, "fatal", lambda c, e: e.trouble == "fatal" and e.new_tokens != 499, "event.trouble",
        "event.new_tokens",
    )  # fmt: skip
    gap = "recover, TroubleNamed: no guard holds for event.new_tokens=499, event.trouble=fatal"
    assert faults(narrow)[0].startswith(gap)


@pytest.mark.parametrize(
    ("event", "guard", "changes", "cycle"),
    [
        (on.TroubleNamed, "blocks_left", {"resets": ("blocks",)}, "TroubleNamed[blocks_left]"),
        (on.TroubleNamed, "retry_allowed", {"raises": ()}, "TroubleNamed[retry_allowed]"),
        (on.SummaryFailed, "summary_retry_allowed", {"raises": ()}, "SummaryFailed[summary_retry_allowed]"),
        (on.ToolsAnswered, "turns_left", {"raises": ()}, "ToolsAnswered[turns_left]"),
        (on.HistoryCompressed, "edited", {"raises": ()}, "HistoryCompressed[edited]"),
        (
            on.ContextReady,
            "fits",
            {"resets": ("level", "escalated")},
            "TroubleNamed[can_escalate]",
        ),
    ],
)
def test_a_cycle_that_nothing_bounds_is_named(
    event: type[Event], guard: str, changes: dict[str, Any], cycle: str
) -> None:
    (fault, *_) = [fault for fault in faults(with_row(event, guard, **changes)) if "bounds" in fault] or [""]
    assert fault.startswith("no counter bounds this cycle: ")
    assert cycle in fault


def test_a_counter_that_its_own_cycle_resets_bounds_nothing() -> None:
    """A retry resets what the waiting raises."""
    looping = with_row(on.BackoffElapsed, "unsealed", resets=("attempts",))
    (fault,) = faults(looping)
    assert fault.startswith("no counter bounds this cycle: ")
    assert "recover --BackoffElapsed[unsealed]--> stream" in fault


def test_a_row_that_no_run_can_take_is_named() -> None:
    """Nothing that runs in stream brings a refusal."""
    more = attrs.evolve(row_of(on.Refused, "no_call_begun"), sources=(State.STREAM,))
    other = attrs.evolve(row_of(on.Refused, "call_begun"), sources=(State.STREAM,))
    assert faults(table((*TABLE.rows, more, other))) == (
        "no run can take the row stream --Refused[no_call_begun]--> recover",
        "no run can take the row stream --Refused[call_begun]--> orchestrate",
    )
