"""Guards: whatever the context and the event, exactly one of a state and event holds, in whatever order."""

from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from looplatch.states import events as on
from looplatch.states.check.table import faults
from looplatch.states.context import Context
from looplatch.states.event import Event
from looplatch.states.limits import Limits
from looplatch.states.reasons import Continue
from looplatch.states.state import State
from looplatch.states.table import COUNTERS, TABLE
from looplatch.states.transition import Table, Transition
from looplatch.states.trouble import TroubleKind
from looplatch.testing import contexts, events
from looplatch.testing import events_of as of


def holding(table: Table, state: State, context: Context, event: Event) -> list[str]:
    return [row.name for row in table.alternatives(state, type(event)) if row.guard(context, event)]


@given(contexts(), events())
def test_exactly_one_guard_holds_wherever_an_event_is_legal(context: Context, event: Event) -> None:
    for state in State:
        rows = TABLE.alternatives(state, type(event))
        verdicts = [row.guard(context, event) for row in rows]
        assert all(type(verdict) is bool for verdict in verdicts)
        assert verdicts.count(True) == (1 if rows else 0)


@given(contexts(), st.sampled_from(list(TroubleKind)), st.data())
def test_each_trouble_has_exactly_one_way_out(context: Context, trouble: TroubleKind, data: st.DataObject) -> None:
    event = data.draw(of(on.TroubleNamed, trouble=trouble))
    assert len(holding(TABLE, State.RECOVER, context, event)) == 1


@given(st.permutations(TABLE.rows), contexts(), events())
def test_the_order_of_the_rows_decides_nothing(rows: list[Transition], context: Context, event: Event) -> None:
    shuffled = Table(rows=tuple(rows), counters=TABLE.counters, decisions=TABLE.decisions)
    for state in State:
        assert holding(shuffled, state, context, event) == holding(TABLE, state, context, event)


def test_a_shuffled_table_is_as_sound() -> None:
    mixed = Table(rows=tuple(reversed(TABLE.rows)), counters=TABLE.counters, decisions=TABLE.decisions)
    assert faults(mixed) == ()


@given(contexts(), events())
def test_a_guard_reads_only_what_it_declares(context: Context, event: Event) -> None:
    """Whatever else changes, its verdict does not."""
    other = attrs.evolve(Context(limits=context.limits), turn=2, reason=Continue.NEXT_TURN, fallback=True)
    for row in TABLE:
        if row.event is type(event):
            read = {name: getattr(context, name) for name in row.guard.reads if not name.startswith("event.")}
            assert row.guard(attrs.evolve(other, **read), event) is row.guard(context, event)


def test_every_guard_says_in_words_what_it_asks() -> None:
    for guard in {row.guard for row in TABLE}:
        assert guard.doc.endswith(".")
        assert guard.name.isidentifier()


NAMED = on.TroubleNamed


@pytest.mark.parametrize(
    ("context", "event", "expected"),
    [
        ({"blocks": 4}, NAMED(trouble=TroubleKind.HOOK_BLOCKED), "blocks_left"),
        ({"blocks": 5}, NAMED(trouble=TroubleKind.HOOK_BLOCKED), "blocks_spent"),
        ({"output_recoveries": 2}, NAMED(trouble=TroubleKind.TRUNCATED), "recoveries_left"),
        ({"output_recoveries": 3}, NAMED(trouble=TroubleKind.TRUNCATED), "recoveries_spent"),
        ({}, NAMED(trouble=TroubleKind.TRUNCATED, output_limit=64_000), "can_escalate"),
        ({"escalated": 1}, NAMED(trouble=TroubleKind.TRUNCATED, output_limit=64_000), "recoveries_left"),
        ({"sealed": True}, NAMED(trouble=TroubleKind.TRUNCATED, output_limit=64_000), "recoveries_left"),
        ({"attempts": 4}, NAMED(trouble=TroubleKind.TRANSIENT, delay_ms=600_000), "retry_allowed"),
        ({"attempts": 4}, NAMED(trouble=TroubleKind.TRANSIENT, delay_ms=600_001), "retries_spent"),
        ({"attempts": 5}, NAMED(trouble=TroubleKind.TRANSIENT), "retries_spent"),
        ({"sealed": True, "turn": 99}, NAMED(trouble=TroubleKind.TRANSIENT), "retry_allowed"),
        ({"sealed": True, "turn": 100}, NAMED(trouble=TroubleKind.TRANSIENT), "retries_spent"),
        ({"turn": 100}, NAMED(trouble=TroubleKind.TRANSIENT), "retry_allowed"),
        ({}, NAMED(trouble=TroubleKind.OVERFLOW, staged=1), "collapses_staged"),
        ({"drained": 1}, NAMED(trouble=TroubleKind.OVERFLOW, staged=1), "context_blocked"),
        ({"drained": 1}, NAMED(trouble=TroubleKind.OVERFLOW, staged=1, can_summarise=True), "compaction_allowed"),
        ({"compact_tried": 1}, NAMED(trouble=TroubleKind.OVERFLOW, can_summarise=True), "context_blocked"),
        ({"breaker": 3}, NAMED(trouble=TroubleKind.OVERFLOW, can_summarise=True), "context_blocked"),
        (
            {"breaker": 3},
            NAMED(trouble=TroubleKind.OVERFLOW, can_summarise=True, breaker_cooled=True),
            "compaction_allowed",
        ),
        ({}, NAMED(trouble=TroubleKind.TARGET_UNMET, new_tokens=0), "progressing"),
        ({"continuations": 1}, NAMED(trouble=TroubleKind.TARGET_UNMET, new_tokens=499), "little_progress"),
        ({"continuations": 1}, NAMED(trouble=TroubleKind.TARGET_UNMET, new_tokens=500), "progressing"),
        ({}, NAMED(trouble=TroubleKind.FATAL), "fatal"),
        ({}, NAMED(trouble=TroubleKind.REFUSED), "refused"),
        ({"breaker": 2}, on.HistorySummarised(tokens_before=2, tokens_after=2), "not_shorter"),
        ({"breaker": 3}, on.HistorySummarised(tokens_before=2, tokens_after=2), "not_shorter_breaker_open"),
        ({"breaker": 3}, on.HistorySummarised(tokens_before=2, tokens_after=1), "shorter"),
        ({"attempts": 4}, on.SummaryFailed(failure="x", transient=True), "summary_retry_allowed"),
        ({"attempts": 5}, on.SummaryFailed(failure="x", transient=True), "summary_given_up"),
        ({"breaker": 1}, on.SummaryFailed(failure="x", transient=True), "summary_retry_allowed"),
        ({"breaker": 2}, on.SummaryFailed(failure="x", transient=True), "summary_given_up"),
        ({"breaker": 3}, on.SummaryFailed(failure="x", transient=True), "summary_given_up_breaker_open"),
        ({}, on.SummaryFailed(failure="x", transient=False), "summary_given_up"),
        ({"breaker": 3}, on.SummaryFailed(failure="x", transient=False), "summary_given_up_breaker_open"),
        ({}, on.BackoffElapsed(), "unsealed"),
        ({"sealed": True}, on.BackoffElapsed(), "sealed"),
        ({"sealed": True, "summary_pending": True}, on.BackoffElapsed(), "summary_pending"),
    ],
)
def test_recover_takes_the_strategy_that_fits(context: dict[str, int], event: Event, expected: str) -> None:
    fields: dict[str, Any] = {**context}
    told = Context(**fields)
    rows = TABLE.alternatives(State.RECOVER, type(event))
    assert [row.guard.name for row in rows if row.guard(told, event)] == [expected]


@pytest.mark.parametrize(
    ("limits", "context", "event", "state", "expected"),
    [
        (Limits(), {}, on.ContextReady(tokens=200, window=200), State.PREPARE, "fits"),
        (Limits(), {}, on.ContextReady(tokens=201, window=200), State.PREPARE, "overflow"),
        (Limits(), {}, on.ContextReady(tokens=10**9, window=None), State.PREPARE, "fits"),
        (
            Limits(max_total_tokens=10), {"input_tokens": 3, "output_tokens": 3, "cache_read_tokens": 3},
            on.ContextReady(tokens=1, window=None), State.PREPARE, "fits",
        ),
        (
            Limits(max_total_tokens=10), {"input_tokens": 7, "cache_write_tokens": 3},
            on.ContextReady(tokens=201, window=200), State.PREPARE, "budget_spent",
        ),
        (
            Limits(max_cost_usd=0.01), {"cost_micro_usd": 10_000},
            on.ContextReady(tokens=1, window=None), State.PREPARE, "budget_spent",
        ),
        (Limits(output_target=1_000), {"output_tokens": 899}, on.StopHooksPassed(), State.DECIDE, "target_unmet"),
        (Limits(output_target=1_000), {"output_tokens": 900}, on.StopHooksPassed(), State.DECIDE, "may_complete"),
        (Limits(), {"output_tokens": 1}, on.StopHooksPassed(), State.DECIDE, "may_complete"),
        (
            Limits(output_target=1_000, max_low_progress=1), {"continuations": 1},
            on.StopHooksPassed(new_tokens=499), State.DECIDE, "may_complete",
        ),
        (
            Limits(output_target=1_000, max_low_progress=1), {"continuations": 1},
            on.StopHooksPassed(new_tokens=500), State.DECIDE, "target_unmet",
        ),
        (Limits(output_target=1_000, max_continuations=0), {}, on.StopHooksPassed(), State.DECIDE, "may_complete"),
    ],
)  # fmt: skip
def test_budgets_and_targets(
    limits: Limits, context: dict[str, int], event: Event, state: State, expected: str
) -> None:
    fields: dict[str, Any] = {**context}
    told = Context(limits=limits, **fields)
    rows = TABLE.alternatives(state, type(event))
    assert [row.guard.name for row in rows if row.guard(told, event)] == [expected]


# --- a run that walks at random


@given(st.data())
def test_every_walk_keeps_the_counters_within_their_bounds_and_ends(data: st.DataObject) -> None:
    """Events are drawn as the commands ask for them; only those of the loop's own, so that the walk must end."""
    limits = Limits(
        max_turns=2, max_attempts=1, max_output_recoveries=1, max_blocks=1, max_pauses=1, max_low_progress=1,
        max_continuations=1, breaker_threshold=1, output_target=data.draw(st.none() | st.just(10_000)),
    )  # fmt: skip
    state, context = State.PREPARE, Context(limits=limits)
    awaited: tuple[type[Event], ...] = (on.RunStarted,)
    starts = {counter.name: counter.start for counter in COUNTERS}
    for _ in range(300):
        if state in TABLE.final or not awaited or state is State.SUSPENDED:
            return
        kind = data.draw(st.sampled_from(awaited))
        named = {"trouble": context.trouble} if kind is on.TroubleNamed else {}
        event = data.draw(of(kind, **named))
        (row,) = [row for row in TABLE.alternatives(state, kind) if row.guard(context, event)]
        new: dict[str, Any] = dict(row.sets)
        new |= {name: getattr(event, name) for name in row.takes}
        new |= {name: starts[name] for name in row.resets}
        new |= {name: getattr(context, name) + 1 for name in row.raises}
        context = attrs.evolve(context, **new)
        for counter in COUNTERS:
            assert getattr(context, counter.name) <= counter.bound_in(context), (counter.name, row.name)
        state = row.target or state
        awaited = tuple(answer for command in row.commands for answer in command.answers)
    raise AssertionError("the walk did not end")
