"""The machine against the table: every state and event, and drawn walks beside a second reading of the rows."""

import types
from typing import Any, Union, get_args, get_origin

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from looplatch import IllegalTransition, Limits, LooplatchError, NoGuardPassed
from looplatch.machine import CounterExceeded, Cursor, Machine, Move
from looplatch.states import events as on
from looplatch.states.context import TOTALS, Context
from looplatch.states.event import Event
from looplatch.states.events import EVENTS
from looplatch.states.level import Level
from looplatch.states.reasons import Continue, Terminal
from looplatch.states.state import FINAL, State
from looplatch.states.table import TABLE
from looplatch.states.transition import Counter, Table, Transition
from looplatch.states.trouble import CALL_TROUBLES, TroubleKind

MACHINE = Machine()

NUMBERS = st.sampled_from([0, 1, 2, 499, 500, 1_000, 64_000, 700_000])
OF_TYPE: dict[object, st.SearchStrategy[Any]] = {
    int: NUMBERS,
    bool: st.booleans(),
    str: st.just("a"),
    type(None): st.none(),
    TroubleKind: st.sampled_from(TroubleKind),
    Level: st.sampled_from(Level),
    tuple[str, ...]: st.just(("t1",)),
}


def values_of(annotation: object) -> st.SearchStrategy[Any]:
    if get_origin(annotation) in (Union, types.UnionType):
        return st.one_of([OF_TYPE[part] for part in get_args(annotation)])
    return OF_TYPE[annotation]


def events_of(kind: type[Event]) -> st.SearchStrategy[Event]:
    fields = {field.name: values_of(field.type) for field in attrs.fields(attrs.resolve_types(kind))}
    if kind is on.ModelFailed:
        fields["trouble"] = st.sampled_from(CALL_TROUBLES)
    return st.builds(kind, **fields)


ANY_EVENT = st.sampled_from(EVENTS).flatmap(events_of)


def at(state: State, context: Context | None = None) -> Cursor:
    return Cursor(state=str(state), context=context or Context())


def least(kind: type[Event]) -> Event:
    """An event of the kind, with the simplest values that it may have."""
    simple: dict[object, Any] = {
        int: 0,
        bool: False,
        str: "a",
        int | None: None,
        str | None: None,
        tuple[str, ...]: (),
        TroubleKind: TroubleKind.FATAL,
        Level: Level.SNIP,
    }
    return kind(**{field.name: simple[field.type] for field in attrs.fields(attrs.resolve_types(kind))})


# --- every state and event


def rows_from(state: State, kind: type[Event]) -> list[Transition]:
    return [row for row in TABLE if state in row.sources and row.event is kind]


PAIRS = [(state, kind) for state in State for kind in EVENTS]
LEGAL = [pair for pair in PAIRS if rows_from(*pair)]
ILLEGAL = [pair for pair in PAIRS if not rows_from(*pair)]


def named(value: object) -> str:
    return value.__name__ if isinstance(value, type) else str(value)


@pytest.mark.parametrize(("state", "kind"), ILLEGAL, ids=named)
def test_an_event_without_a_row_is_refused_and_changes_nothing(state: State, kind: type[Event]) -> None:
    context = Context(trouble=TroubleKind.FATAL)
    cursor = at(state, context)
    with pytest.raises(IllegalTransition) as caught:
        MACHINE.send(cursor, least(kind))
    refused = caught.value
    assert (refused.state, refused.event, refused.verdicts) == (state, kind.__name__, {})
    assert refused.legal == tuple(dict.fromkeys(row.event.__name__ for row in TABLE if state in row.sources))
    assert all(name in str(refused) for name in (state, kind.__name__, *refused.legal))
    assert (cursor.state, cursor.context) == (state, context)


@pytest.mark.parametrize(("state", "kind"), LEGAL, ids=named)
@given(data=st.data())
@settings(max_examples=20)
def test_an_event_with_rows_moves_by_the_one_that_holds(state: State, kind: type[Event], data: st.DataObject) -> None:
    rows, event = rows_from(state, kind), data.draw(events_of(kind))
    trouble = getattr(event, "trouble", None)
    cursor = at(state, Context(trouble=trouble))
    move = MACHINE.send(cursor, event)
    assert move.row in rows
    assert cursor.state == move.target == (move.row.target or state)
    assert [name for name, _ in move.verdicts] == [row.guard.name for row in rows]
    assert [name for name, verdict in move.verdicts if verdict] == [move.row.guard.name]


@pytest.mark.parametrize("state", FINAL)
@pytest.mark.parametrize("kind", EVENTS, ids=lambda kind: kind.__name__)
def test_nothing_leads_out_of_a_final_state(state: State, kind: type[Event]) -> None:
    with pytest.raises(IllegalTransition, match="none: the state is final"):
        MACHINE.send(at(state), least(kind))


def test_an_event_that_no_guard_takes_is_refused_with_the_verdicts() -> None:
    cursor = at(State.STREAM)
    with pytest.raises(NoGuardPassed) as caught:
        MACHINE.send(cursor, on.ModelFailed(trouble=TroubleKind.FATAL, failure="a", begun=-1))
    assert caught.value.verdicts == {"no_call_begun": False, "call_begun": False}
    assert caught.value.state == "stream"
    assert caught.value.event == "ModelFailed"
    assert "no_call_begun=False" in str(caught.value)
    assert cursor.state == "stream"


def test_a_move_says_all_of_what_happened() -> None:
    cursor = at(State.ORCHESTRATE, Context(turn=4, escalated=1, output_limit=64_000))
    move = MACHINE.send(cursor, on.ToolsAnswered(results=2, errors=1))
    assert (move.source, move.target) == (State.ORCHESTRATE, State.PREPARE)
    assert move.row.reason is Continue.NEXT_TURN
    assert [command.name for command in move.commands] == ["FitContext"]
    assert dict(move.verdicts) == {
        "trouble_pending": False,
        "stop_asked": False,
        "turns_left": True,
        "turns_spent": False,
    }
    assert move.change == {"turn": 5, "escalated": 0, "output_limit": 0, "reason": Continue.NEXT_TURN}
    assert move.context == cursor.context == Context(turn=5, reason=Continue.NEXT_TURN)


def test_a_move_adds_up_what_was_spent() -> None:
    cursor = at(State.STREAM, Context(input_tokens=10, output_tokens=1, attempts=3))
    move = MACHINE.send(cursor, on.ModelResponded(stop_reason="end_turn", input_tokens=5, output_tokens=2))
    assert move.change == {"attempts": 0, "input_tokens": 15, "output_tokens": 3}


def test_a_total_stays_at_the_largest_number_that_a_record_holds() -> None:
    cursor = at(State.STREAM, Context(input_tokens=2**53 - 1, output_tokens=2**53 - 2))
    move = MACHINE.send(cursor, on.ModelResponded(stop_reason="end_turn", input_tokens=1, output_tokens=2**53 - 1))
    assert move.change == {"output_tokens": 2**53 - 1}


def test_a_move_that_stays_enters_nothing() -> None:
    cursor = at(State.PREPARE)
    move = MACHINE.send(cursor, on.RunStarted())
    assert (move.source, move.target, cursor.state) == (State.PREPARE, State.PREPARE, "prepare")
    assert move.change == {}


# --- tables of one's own


def table_of(*rows: Transition, counters: tuple[Counter, ...] = ()) -> Table:
    return Table(rows=rows, counters=counters)


def row_of(guard: str, target: State | None, **more: Any) -> Transition:
    [found] = {row.guard.name: row.guard for row in TABLE if row.guard.name == guard}.values()
    return Transition(sources=(State.PREPARE,), event=on.RunAborted, guard=found, target=target, **more)


def test_two_guards_that_hold_are_refused_whatever_their_order() -> None:
    rows = (row_of("always", State.ABORTED), row_of("breaker_closed", State.FAILED))
    for order in (rows, rows[::-1]):
        cursor = at(State.PREPARE)
        with pytest.raises(NoGuardPassed) as caught:
            Machine(table_of(*order)).send(cursor, on.RunAborted())
        assert caught.value.verdicts == {"always": True, "breaker_closed": True}
        assert cursor.state == "prepare"


def test_a_counter_is_not_raised_past_its_bound() -> None:
    counter = Counter(name="level", bound=2, doc="")
    machine = Machine(table_of(row_of("always", None, raises=("level",)), counters=(counter,)))
    cursor = machine.start(Context())
    for value in (1, 2):
        machine.send(cursor, on.RunAborted())
        assert cursor.context.level == value
    with pytest.raises(CounterExceeded) as caught:
        machine.send(cursor, on.RunAborted())
    assert isinstance(caught.value, LooplatchError)
    assert (caught.value.counter, caught.value.bound) == ("level", 2)
    assert "level" in str(caught.value)
    assert cursor.context.level == 2


def test_a_guard_that_answers_with_no_bool_does_not_hold() -> None:
    def truthy(context: Context, event: Event) -> Any:
        return 1

    odd = attrs.evolve(row_of("always", State.ABORTED).guard, test=truthy)
    cursor = at(State.PREPARE)
    with pytest.raises(NoGuardPassed):
        Machine(table_of(attrs.evolve(row_of("always", State.ABORTED), guard=odd))).send(cursor, on.RunAborted())
    assert cursor.state == "prepare"


def test_a_guard_that_raises_leaves_the_cursor_alone() -> None:
    def test(context: Context, event: Event) -> bool:
        raise ZeroDivisionError

    broken = attrs.evolve(row_of("always", State.ABORTED).guard, test=test)
    cursor = at(State.PREPARE)
    with pytest.raises(ZeroDivisionError):
        Machine(table_of(attrs.evolve(row_of("always", State.ABORTED), guard=broken))).send(cursor, on.RunAborted())
    assert (cursor.state, cursor.context) == ("prepare", Context())


def test_cursors_of_one_machine_do_not_know_of_each_other() -> None:
    first, second = MACHINE.start(Context()), MACHINE.start(Context())
    MACHINE.send(first, on.RunAborted())
    assert (first.state, second.state) == ("aborted", "prepare")


@given(ANY_EVENT)
def test_an_event_can_be_written_and_read_back(event: Event) -> None:
    assert type(event).read(event.fields()) == event


# --- walks


def expected(context: Context, row: Transition, event: Event) -> dict[str, Any]:
    """The context after a row, read from the row's columns one by one."""
    after = {name: getattr(context, name) for name in (field.name for field in attrs.fields(Context))}
    after.update(row.sets)
    after.update((name, getattr(event, name)) for name in row.takes)
    if row.reason is not None:
        after["reason"] = row.reason
    starts = {counter.name: counter.start for counter in TABLE.counters}
    after.update((name, starts[name]) for name in row.resets)
    for name in row.raises:
        after[name] = getattr(context, name) + 1
    if row.adds:
        for name in TOTALS:
            after[name] = min(getattr(context, name) + getattr(event, name), 2**53 - 1)
    return after


class Walk(RuleBasedStateMachine):
    """A cursor that is sent drawn events, beside the same rows read another way."""

    def __init__(self) -> None:
        super().__init__()
        self.cursor = at(State.PREPARE)
        self.state = State.PREPARE
        self.context = Context()
        self.terminal: Terminal | None = None

    @initialize(
        turns=st.integers(1, 5),
        wanted=st.none() | st.integers(1, 2_000),
        tokens=st.none() | st.integers(1, 9_000),
    )
    def begin(self, turns: int, wanted: int | None, tokens: int | None) -> None:
        self.context = Context(limits=Limits(max_turns=turns, output_target=wanted, max_total_tokens=tokens))
        self.cursor = MACHINE.start(self.context)

    def send(self, event: Event) -> Move | None:
        rows = [row for row in TABLE if self.state in row.sources and isinstance(event, row.event)]
        held = [row for row in rows if row.guard.test(self.context, event) is True]
        try:
            move = MACHINE.send(self.cursor, event)
        except IllegalTransition:
            assert rows == []
            return None
        except NoGuardPassed:
            assert len(held) != 1
            return None
        except CounterExceeded as refused:  # no driver sends this, since no command asks for it
            self.is_past_its_bound(refused, held)
            return None
        [row] = held
        self.context = Context(**expected(self.context, row, event))
        self.state = row.target or self.state
        self.terminal = row.terminal
        assert move.row is row
        assert (row.reason is not None) == (row.target is State.PREPARE)
        return move

    def is_past_its_bound(self, refused: CounterExceeded, held: list[Transition]) -> None:
        assert [row.name for row in held] == [refused.row]
        assert getattr(self.context, refused.counter) == refused.bound

    @rule(event=ANY_EVENT)
    def anything_happens(self, event: Event) -> None:
        self.send(event)

    @precondition(lambda self: self.state not in FINAL)
    @rule(data=st.data())
    def something_legal_happens(self, data: st.DataObject) -> None:
        legal = [kind for kind in EVENTS if kind.__name__ in TABLE.legal_events(self.state) and not kind.external]
        if legal:
            self.send(data.draw(st.sampled_from(legal).flatmap(events_of)))

    @invariant()
    def both_agree(self) -> None:
        assert self.cursor.state == self.state
        assert self.cursor.context == self.context

    @invariant()
    def counters_are_within_their_bounds(self) -> None:
        for counter in TABLE.counters:
            assert counter.start <= getattr(self.context, counter.name) <= counter.bound_in(self.context)

    @invariant()
    def a_final_state_has_a_terminal_reason(self) -> None:
        assert (self.terminal is not None) == (self.state in FINAL)


TestWalk = Walk.TestCase
TestWalk.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
