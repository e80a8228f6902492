"""The kit's walk of a table: it holds the table to what it promises, and finds one that does not keep it."""

from typing import ClassVar

import attrs
import pytest
from hypothesis import given, settings
from hypothesis.stateful import run_state_machine_as_test

from looplatch.states.context import Context
from looplatch.states.event import Event
from looplatch.states.events import EVENTS
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


@given(events())
def test_any_event_can_be_written_and_read(event: Event) -> None:
    assert type(event) in EVENTS
    assert type(event).read(event.fields()) == event


@given(contexts())
def test_any_context_is_within_its_bounds(context: Context) -> None:
    for counter in TABLE.counters:
        assert counter.start <= getattr(context, counter.name) <= max(counter.start, counter.bound_in(context))
