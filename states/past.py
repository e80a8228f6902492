"""Tables of earlier looplatches, read from their descriptions: what they judged, they judge for ever."""

from collections.abc import Mapping
from typing import Any, Final

from looplatch.states.commands import COMMANDS, Command
from looplatch.states.decisions import Decisions
from looplatch.states.event import ENUMS
from looplatch.states.events import EVENTS
from looplatch.states.past_guards import PAST_GUARDS
from looplatch.states.reasons import Continue, Strategy, Terminal
from looplatch.states.state import State
from looplatch.states.table import TABLE
from looplatch.states.transition import Counter, Guard, Table, Transition

_EVENTS: Final = {event.__name__: event for event in EVENTS}
_COMMANDS: Final = {command.__name__: command for command in COMMANDS}
_GUARDS: Final = {(one.name, one.reads): one for one in (*PAST_GUARDS, *(row.guard for row in TABLE))}


def table_of(description: Mapping[str, Any]) -> Table:
    """The table that `description` came from. Raises ValueError where it names what this looplatch has no longer."""
    try:
        guards = {name: _guard(name, reads) for name, reads in description["guards"].items()}
        return Table(
            rows=tuple(_row(row, guards) for row in description["rows"]),
            counters=tuple(
                Counter(name=n, start=start, bound=bound, doc="") for n, start, bound in description["counters"]
            ),
            decisions=Decisions(
                by_reason={reason: _EVENTS[event] for reason, event in description["decisions"].items()},
                cut=frozenset(description["cut"]),
                with_calls=_EVENTS[description["with_calls"]],
                otherwise=_EVENTS[description["otherwise"]],
            ),
            initial=State(description["initial"]),
            final=tuple(State(state) for state in description["final"]),
            past=description,
        )
    except KeyError as missing:
        raise ValueError(f"this looplatch has no {missing.args[0]!r}, which the table names") from missing


def _guard(name: str, reads: list[str]) -> Guard[Any]:
    return _GUARDS[name, tuple(reads)]


def _row(row: Mapping[str, Any], guards: Mapping[str, Guard[Any]]) -> Transition:
    return Transition(
        sources=tuple(State(source) for source in row["sources"]),
        event=_EVENTS[row["event"]],
        guard=guards[row["guard"]],
        target=None if row["target"] is None else State(row["target"]),
        reason=None if row["reason"] is None else Continue(row["reason"]),
        strategy=None if row["strategy"] is None else Strategy(row["strategy"]),
        terminal=None if row["terminal"] is None else Terminal(row["terminal"]),
        commands=tuple(_command(name) for name in row["commands"]),
        raises=tuple(row["raises"]),
        resets=tuple(row["resets"]),
        sets=tuple((name, _value(name, value)) for name, value in row["sets"].items()),
        takes=tuple(row["takes"]),
        adds=row["adds"],
    )


def _command(name: str) -> Command:
    return _COMMANDS[name]()


def _value(name: str, value: Any) -> Any:
    return ENUMS[name](value) if isinstance(value, str) else value
