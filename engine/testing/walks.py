"""Hypothesis strategies for what moves a machine, and a state machine of Hypothesis's that walks a table.

Subclass `TableWalk` and give it your table; add rules and invariants of your own::

    class Walk(TableWalk):
        table = MY_TABLE

    TestWalk = Walk.TestCase
"""

from typing import Any, ClassVar, cast

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from looplatch.machine import CounterExceeded, Machine, Move
from looplatch.states.context import Context
from looplatch.states.errors import IllegalTransition, NoGuardPassed, RefusedEvent
from looplatch.states.event import ENUMS, Event
from looplatch.states.events import EVENTS
from looplatch.states.limits import Limits
from looplatch.states.record import MAX_INT
from looplatch.states.state import State
from looplatch.states.table import TABLE
from looplatch.states.transition import Table

__all__ = ["TableWalk", "contexts", "events", "events_of", "limits"]

_NUMBERS = st.integers(0, 4) | st.integers(0, 1_000) | st.integers(0, MAX_INT)
_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "int": _NUMBERS,
    "text": st.text(max_size=8),
    "bool": st.booleans(),
    "null": st.none(),
}
_SMALL = st.integers(0, 4)
_BUDGETS = st.none() | st.integers(1, 4_000)


def events_of(kind: type[Event], **fixed: Any) -> st.SearchStrategy[Any]:
    """Events of one class, with any fields that it takes; those in `fixed` have their value."""
    fields = {name: _field(name, shape) for name, shape in kind.shape().items()}
    return st.builds(kind, **{**fields, **{name: st.just(value) for name, value in fixed.items()}})


def events() -> st.SearchStrategy[Event]:
    """Events of any class."""
    return st.sampled_from(EVENTS).flatmap(events_of)


def _field(name: str, shape: Any) -> st.SearchStrategy[Any]:
    match shape:
        case {"one of": members}:
            return st.sampled_from([ENUMS[name](member) for member in members])
        case "texts":
            return st.lists(st.text(max_size=8), max_size=4).map(tuple)
        case _:
            return st.one_of([_VALUES[one] for one in shape])


@st.composite
def limits(draw: st.DrawFn) -> Limits:
    """Small limits, with or without budgets."""
    return Limits(
        max_turns=draw(st.integers(1, 4)),
        max_attempts=draw(_SMALL),
        max_output_recoveries=draw(_SMALL),
        max_blocks=draw(st.integers(1, 4)),
        max_pauses=draw(_SMALL),
        max_low_progress=draw(st.integers(1, 4)),
        max_continuations=draw(_SMALL),
        breaker_threshold=draw(st.integers(1, 4)),
        output_target=draw(_BUDGETS),
        max_total_tokens=draw(_BUDGETS),
        max_cost_usd=draw(st.none() | st.sampled_from([0.000_1, 0.002, 1.0])),
        max_delay_ms=draw(st.sampled_from([0, 1_000, 600_000])),
    )


@st.composite
def contexts(draw: st.DrawFn, table: Table = TABLE) -> Context:
    """Any context under small limits, its counters within their bounds."""
    plain = Context(limits=draw(limits()))
    counters = {
        one.name: draw(st.integers(one.start, max(one.start, one.bound_in(plain)))) for one in table.counters
    }  # fmt: skip
    flags: dict[str, Any] = {
        "trouble": draw(st.none() | st.sampled_from(list(ENUMS["trouble"]))),
        "sealed": draw(st.booleans()),
        "summary_pending": draw(st.booleans()),
    }
    totals = st.integers(0, 2_500)
    spent = {name: draw(totals) for name in ("input_tokens", "output_tokens", "cache_read_tokens", "cost_micro_usd")}
    fields: dict[str, Any] = {**counters, **flags, **spent}
    return Context(limits=plain.limits, **fields)


class TableWalk(RuleBasedStateMachine):
    """Sends a machine whatever may come, and holds it to what every table promises.

    table: the table that is walked. cursor: where the run stands; moves: the rows that were taken, the last one last.
    """

    table: ClassVar[Table] = TABLE

    def __init__(self) -> None:
        super().__init__()
        self.machine = Machine(self.table)
        self.cursor = self.machine.start(Context())
        self.moves: list[Move] = []

    @property
    def state(self) -> State:
        """The state that the run is in."""
        return State(self.cursor.state)

    @property
    def context(self) -> Context:
        """The run's context."""
        return self.cursor.context

    @property
    def awaited(self) -> tuple[type[Event], ...]:
        """The events that the last commands may bring."""
        return tuple(event for one in self.moves[-1].commands for event in one.answers) if self.moves else ()

    @initialize(given=limits())
    def begin(self, given: Limits) -> None:
        """The run begins under some limits."""
        self.cursor = self.machine.start(Context(limits=given))

    @rule(event=events())
    def anything_happens(self, event: Event) -> None:
        """An event comes, legal or not; a refused one changes nothing.

        One that no command asked for may be refused by a counter, too: the guards of the row that gave the command see
        to it that its answers are not.
        """
        before, context = self.state, self.context
        refusals: tuple[type[RefusedEvent], ...] = (IllegalTransition, NoGuardPassed)
        if type(event) not in self.awaited:
            refusals = (*refusals, CounterExceeded)
        try:
            self.send(event)
        except refusals:
            assert (self.state, self.context) == (before, context)

    @precondition(lambda self: not self.table.is_final(self.state))
    @rule(data=st.data())
    def what_is_awaited_happens(self, data: st.DataObject) -> None:
        """An event that the last commands may bring, and what it tells of the context is true."""
        legal = [event for event in self.awaited if self.table.alternatives(self.state, event)]
        if not legal:
            return
        kind = data.draw(st.sampled_from(legal))
        fixed: dict[str, Any] = {}
        if kind.__name__ == "TroubleNamed":
            fixed["trouble"] = self.context.trouble
        self.send(data.draw(events_of(kind, **fixed)))

    def send(self, event: Event) -> Move:
        """Send an event; the row that was taken is checked."""
        source, held = self.state, self.machine.verdicts(self.state, self.context, event)
        move = self.machine.send(self.cursor, event)
        assert [verdict for _, verdict in held].count(True) == 1, "exactly one guard holds"
        assert source in move.row.sources
        assert (move.row.reason is not None) == (move.row.target is State.PREPARE), "the law of Continue"
        assert (move.row.terminal is not None) == self.table.is_final(move.target)
        self.moves.append(move)
        return move

    @invariant()
    def counters_are_within_their_bounds(self) -> None:
        """No counter is past its bound, however the run came here."""
        for counter in self.table.counters:
            value = cast("int", getattr(self.context, counter.name))
            assert counter.start <= value <= max(counter.start, counter.bound_in(self.context)), counter.name

    @invariant()
    def a_final_state_is_final(self) -> None:
        """Nothing is legal in a final state."""
        if self.table.is_final(self.state):
            assert self.table.legal_events(self.state) == ()
