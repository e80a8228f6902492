"""The kit's walk of a table: it holds the table to what it promises, and finds one that does not keep it."""

from typing import ClassVar

import attrs
import pytest
from hypothesis import given, settings
from hypothesis.stateful import run_state_machine_as_test

from looplatch.machine import CounterExceeded
from looplatch.states import events as on
from looplatch.states.context import Context
from looplatch.states.event import Event
from looplatch.states.events import EVENTS
from looplatch.states.limits import Limits
from looplatch.states.state import State
from looplatch.states.table import TABLE
from looplatch.states.transition import Table
from looplatch.testing import TableWalk, contexts, events

QUICK = settings(max_examples=30, stateful_step_count=30, deadline=None)


TestOurs = TableWalk.TestCase
TestOurs.settings = QUICK


def unending() -> Table:
    """The table with ends that have no reason."""
    return attrs.evolve(TABLE, rows=tuple(attrs.evolve(row, terminal=None) for row in TABLE))


def test_an_end_without_a_reason_is_found() -> None:
    class Walk(TableWalk):
        table: ClassVar[Table] = unending()

    with pytest.raises(AssertionError):
        run_state_machine_as_test(Walk, settings=QUICK)


def in_recover_without_turns() -> TableWalk:
    """A walk to a cut answer whose call had begun, at the last turn that is allowed."""
    walk = TableWalk()
    walk.begin(given=Limits(max_turns=1))
    for event in (
        on.RunStarted(),
        on.ContextReady(tokens=1, window=None),
        on.ModelResponded(stop_reason="max_tokens", calls=("t1",), begun=1),
        on.OutputTruncated(begun=1),
        on.ToolsAnswered(results=1),
    ):
        walk.send(event)
    return walk


def test_an_event_that_no_command_asked_for_may_be_refused_by_a_counter() -> None:
    walk = in_recover_without_turns()
    walk.anything_happens(event=on.BackoffElapsed())
    assert (walk.state, walk.context.turn, len(walk.moves)) == (State.RECOVER, 1, 5)


def test_an_answer_to_a_command_that_a_counter_refuses_is_a_fault_of_the_table() -> None:
    class Impatient(TableWalk):
        @property
        def awaited(self) -> tuple[type[Event], ...]:
            return (on.BackoffElapsed,)

    walk = in_recover_without_turns()
    impatient = Impatient()
    impatient.cursor, impatient.moves = walk.cursor, walk.moves
    with pytest.raises(CounterExceeded, match="turn"):
        impatient.anything_happens(event=on.BackoffElapsed())


@given(events())
def test_any_event_can_be_written_and_read(event: Event) -> None:
    assert type(event) in EVENTS
    assert type(event).read(event.fields()) == event


@given(contexts())
def test_any_context_is_within_its_bounds(context: Context) -> None:
    for counter in TABLE.counters:
        assert counter.start <= getattr(context, counter.name) <= max(counter.start, counter.bound_in(context))
