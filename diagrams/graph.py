"""A table as a picture sees it: nodes, edges, and the moves that stay inside a node.

Rows that leave the same state for the same state, for the same reason, are one edge with several lines. A row that
three or more states share is drawn once, from a node that stands for them all.
"""

from collections.abc import Iterable
from enum import StrEnum

import attrs

from looplatch.diagrams.walk import Walk
from looplatch.states.reasons import Continue, Strategy, Terminal
from looplatch.states.state import WORKING, State
from looplatch.states.transition import Table, Transition

SHARED = 3  # sources from which on a row is drawn once for all of them
TIMES = "\u00d7"  # the sign of multiplication

# The order of the loop: a turn runs down this list, trouble comes last.
LOOP_ORDER = (
    State.PREPARE,
    State.STREAM,
    State.DECIDE,
    State.ORCHESTRATE,
    State.SUSPENDED,
    State.RECOVER,
    State.COMPLETED,
    State.ABORTED,
    State.FAILED,
)


class NodeKind(StrEnum):
    """What a node stands for."""

    STATE = "state"
    FINAL = "final"
    SHARED = "shared"  # several states that have rows in common


@attrs.frozen(kw_only=True)
class Line:
    """A row as one line of text. `count` is how often it was walked; None where no run is laid over the machine."""

    row: Transition
    count: int | None = None

    @property
    def trigger(self) -> str:
        """The event, with the guard's name where there is a choice, and the count where it was walked."""
        name = "".join(char if char.isprintable() else "\ufffd" for char in self.row.guard.name)
        guard = "" if name == "always" else f" [{name}]"
        return f"{self.row.event.__name__}{guard}{times(self.count)}"

    @property
    def commands(self) -> str:
        """The names of the commands, in order; empty where there are none."""
        return ", ".join(command.name for command in self.row.commands)

    @property
    def text(self) -> str:
        """Trigger and commands, as they stand inside a state."""
        return f"{self.trigger} / {self.commands}" if self.commands else self.trigger

    @property
    def faint(self) -> bool:
        """Whether a run was laid over the machine that never walked this row."""
        return self.count == 0


@attrs.frozen(kw_only=True)
class Node:
    """A state, or several that share rows. `stays` are the moves that do not leave it.

    does: the command that every way into the state ends with; None where they differ.
    visits: how often a run entered the state; None where no run is laid over the machine.
    """

    name: str
    title: str
    kind: NodeKind
    states: tuple[State, ...]
    stays: tuple[Line, ...] = ()
    does: str | None = None
    initial: bool = False
    visits: int | None = None
    last: bool = False

    @property
    def faint(self) -> bool:
        """Whether a run was laid over the machine that never came here."""
        return self.visits == 0


@attrs.frozen(kw_only=True)
class Edge:
    """Rows with the same ends and the same meaning: reason and strategy where the loop goes on, terminal at its end."""

    source: str
    target: str
    lines: tuple[Line, ...]
    reason: Continue | None = None
    strategy: Strategy | None = None
    terminal: Terminal | None = None

    @property
    def outcome(self) -> str:
        """What the edge means: the strategy, else the reason, else the terminal reason, else nothing."""
        return str(self.strategy or self.reason or self.terminal or "")

    @property
    def faint(self) -> bool:
        """Whether a run was laid over the machine that never walked any of these rows."""
        return all(line.faint for line in self.lines)


@attrs.frozen(kw_only=True)
class Graph:
    """What the renderers draw. `nodes` stand in the loop's order, the shared ones before the final ones."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    fold: bool = False
    walked: bool = False

    def inside(self, node: Node) -> tuple[tuple[str, bool], ...]:
        """The lines inside a node, each with whether it is faint; folded, one line that counts them."""
        if self.fold and node.stays:
            moves = "1 move stays" if len(node.stays) == 1 else f"{len(node.stays)} moves stay"
            return ((moves, all(line.faint for line in node.stays)),)
        return tuple((line.text, line.faint) for line in node.stays)

    def of_kind(self, kind: NodeKind) -> tuple[Node, ...]:
        """The nodes of one kind."""
        return tuple(node for node in self.nodes if node.kind is kind)

    def leaving(self, name: str) -> tuple[Edge, ...]:
        """The edges that leave the node `name`."""
        return tuple(edge for edge in self.edges if edge.source == name)


def times(count: int | None) -> str:
    """A count as it stands behind a label: nothing for none."""
    return f" {TIMES}{count}" if count else ""


def graph_of(table: Table, walk: Walk | None = None, *, fold: bool = False) -> Graph:
    """The graph of `table`, with what `walk` counted laid over it."""
    leaving = {source for row in table.rows for source in row.sources}
    final = [state for state in table.states if table.is_final(state) and state not in leaving]
    open_states = [state for state in LOOP_ORDER if state in table.states and state not in final]
    shared = tuple(dict.fromkeys(sources for row in table.rows if len(sources := _sources(row)) >= SHARED))

    titles = {sources: _title(sources, open_states) for sources in shared}
    nodes = [
        *(_state_node(table, state, NodeKind.STATE, walk) for state in open_states),
        *(_shared_node(table, sources, titles[sources], walk) for sources in shared),
        *(_state_node(table, state, NodeKind.FINAL, walk) for state in LOOP_ORDER if state in final),
    ]
    return Graph(
        nodes=tuple(nodes),
        edges=tuple(edge for node in nodes for edge in _edges(table, node, walk)),
        fold=fold,
        walked=walk is not None,
    )


def _sources(row: Transition) -> tuple[State, ...]:
    return tuple(state for state in LOOP_ORDER if state in row.sources)


def _title(sources: tuple[State, ...], open_states: list[State]) -> str:
    if set(sources) >= set(open_states):
        return "every state"
    if set(sources) == set(open_states) & set(WORKING):
        return "every working state"
    return f"{', '.join(sources[:-1])} or {sources[-1]}"


def _lines(table: Table, states: tuple[State, ...], walk: Walk | None) -> Iterable[Line]:
    """The rows drawn from the node that stands for `states`."""
    for index, row in enumerate(table.rows):
        sources = _sources(row)
        if sources == states if len(sources) >= SHARED else (len(states) == 1 and states[0] in sources):
            yield Line(row=row, count=None if walk is None else walk.count(index, states))


def _state_node(table: Table, state: State, kind: NodeKind, walk: Walk | None) -> Node:
    last_commands = {row.commands[-1].name if row.commands else None for row in table.rows if row.target is state}
    return Node(
        name=str(state),
        title=str(state),
        kind=kind,
        states=(state,),
        stays=tuple(line for line in _lines(table, (state,), walk) if line.row.target is None),
        does=last_commands.pop() if len(last_commands) == 1 else None,
        initial=state is table.initial,
        visits=None if walk is None else walk.visits.get(state, 0),
        last=walk is not None and walk.last is state,
    )


def _shared_node(table: Table, sources: tuple[State, ...], title: str, walk: Walk | None) -> Node:
    return Node(
        name=title.replace(",", "").replace(" ", "_"),
        title=title,
        kind=NodeKind.SHARED,
        states=sources,
        stays=tuple(line for line in _lines(table, sources, walk) if line.row.target is None),
    )


def _edges(table: Table, node: Node, walk: Walk | None) -> Iterable[Edge]:
    found: dict[tuple[State, Continue | None, Strategy | None, Terminal | None], list[Line]] = {}
    for line in _lines(table, node.states, walk):
        row = line.row
        if row.target is not None:
            found.setdefault((row.target, row.reason, row.strategy, row.terminal), []).append(line)
    for (target, reason, strategy, terminal), lines in found.items():
        yield Edge(
            source=node.name,
            target=str(target),
            lines=tuple(lines),
            reason=reason,
            strategy=strategy,
            terminal=terminal,
        )
