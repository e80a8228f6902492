"""Events: as the log holds them, and read back."""

from typing import Any

import attrs
import orjson
import pytest
from hypothesis import given

from looplatch.states import events as on
from looplatch.states.event import Event
from looplatch.states.events import EVENTS
from looplatch.states.trouble import CALL_TROUBLES, TroubleKind
from tests.drawn import events


@given(events())
def test_what_the_log_holds_of_an_event_is_read_back_as_the_event(event: Event) -> None:
    kept = orjson.loads(orjson.dumps(event.fields(), option=orjson.OPT_SORT_KEYS | orjson.OPT_STRICT_INTEGER))
    again = type(event).read(kept)
    assert again == event
    assert [type(getattr(again, name)) for name in event.field_names()] == [
        type(getattr(event, name)) for name in event.field_names()
    ]


@given(events())
def test_the_log_holds_plain_values_only(event: Event) -> None:
    for value in event.fields().values():
        assert type(value) in (int, str, bool, type(None), list)


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.__name__)
def test_each_event_is_frozen_and_says_when_it_occurs(event: type[Event]) -> None:
    assert attrs.has(event)
    assert event.__doc__
    assert event.__doc__.strip().endswith(".")
    assert event.__setattr__ is not object.__setattr__


def test_events_from_outside_are_marked() -> None:
    assert [event.__name__ for event in EVENTS if event.external] == [
        "RunStarted",
        "ApprovalGiven",
        "RunResumed",
        "RunPaused",
        "RunAborted",
        "DeadlinePassed",
        "RunClosed",
        "DriverFailed",
    ]


@pytest.mark.parametrize("trouble", sorted(set(TroubleKind) - set(CALL_TROUBLES)))
def test_a_model_call_cannot_fail_with_a_trouble_that_is_not_its_own(trouble: TroubleKind) -> None:
    """It would take a recovery that raises none of the counters that bound it."""
    with pytest.raises(ValueError, match="trouble"):
        on.ModelFailed(trouble=trouble, failure="api_error")


@pytest.mark.parametrize(
    ("event", "fields"),
    [
        (on.TroubleNamed, {"trouble": "boredom"}),
        (on.ModelFailed, {"trouble": "truncated", "failure": "x"}),
        (on.ContextReady, {"tokens": 1, "window": None, "more": 1}),
        (on.ContextReady, {"tokens": 1}),
    ],
)
def test_fields_that_are_not_the_events_own_are_refused(event: type[Event], fields: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError)):
        event.read(fields)
