"""A table as a picture sees it: nodes, edges, and the moves that stay inside a node.

Rows that leave the same state for the same state, for the same reason, are one edge with several lines. A row that
three or more states share is drawn once, from a node that stands for them all.
"""

from collections.abc import Iterable
from enum import StrEnum

import attrs

from looplatch.diagrams.outside import shown
from looplatch.diagrams.overlay import UNMARKED, Mark, Overlay, Tone
from looplatch.states.reasons import Continue, Strategy, Terminal
from looplatch.states.state import WORKING, State
from looplatch.states.transition import Table, Transition, check_is_table

NAME = 80  # characters of a guard's name that are shown
SHARED = 3  # sources from which on a row is drawn once for all of them

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
    """A row as one line of text, with the mark of what is laid over the machine."""

    row: Transition
    mark: Mark = UNMARKED

    @property
    def trigger(self) -> str:
        """The event, with the guard's name where there is a choice, and how often and how long it was walked."""
        name = shown(self.row.guard.name, NAME)
        guard = "" if name == "always" else f" [{name}]"
        return f"{self.row.event.__name__}{guard}{self.mark.suffix}"

    @property
    def commands(self) -> str:
        """The names of the commands, in order; empty where there are none."""
        return ", ".join(command.name for command in self.row.commands)

    @property
    def text(self) -> str:
        """Trigger and commands, as they stand inside a state."""
        return f"{self.trigger} / {self.commands}" if self.commands else self.trigger

    @property
    def tone(self) -> Tone:
        """How the row stands out."""
        return self.mark.tone


@attrs.frozen(kw_only=True)
class Node:
    """A state, or several that share rows. `stays` are the moves that do not leave it.

    does: the command that every way into the state ends with; None where they differ.
    mark: how often the state was entered. dwelt, share: the time spent in it, and its share of the whole.
    last: whether a run is there, or ended there.
    """

    name: str
    title: str
    kind: NodeKind
    states: tuple[State, ...]
    stays: tuple[Line, ...] = ()
    does: str | None = None
    initial: bool = False
    mark: Mark = UNMARKED
    dwelt: str = ""
    share: float = 0.0
    last: bool = False

    @property
    def tone(self) -> Tone:
        """How the state stands out."""
        return self.mark.tone

    @property
    def head(self) -> str:
        """The title, with how often the state was entered."""
        return self.title if self.kind is NodeKind.SHARED else f"{self.title}{self.mark.suffix}"


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
    def tone(self) -> Tone:
        """How the edge stands out: as its rows together."""
        return Mark.sum(line.mark for line in self.lines).tone


@attrs.frozen(kw_only=True)
class Graph:
    """What the renderers draw. `nodes` stand in the loop's order, the shared ones before the final ones.

    legend: what the marks mean, where something is laid over the machine.
    """

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    fold: bool = False
    legend: tuple[tuple[str, Tone], ...] = ()

    def inside(self, node: Node) -> tuple[tuple[str, Tone], ...]:
        """The lines inside a node, each with its tone: the time spent there, then the moves that stay, or how many."""
        dwelt = ((node.dwelt, node.tone),) if node.dwelt else ()
        if self.fold and node.stays:
            return (*dwelt, self.folded(node))
        return (*dwelt, *((line.text, line.tone) for line in node.stays))

    def folded(self, node: Node) -> tuple[str, Tone]:
        """The moves that stay in a node, as one line."""
        moves = "1 move stays" if len(node.stays) == 1 else f"{len(node.stays)} moves stay"
        mark = Mark.sum(line.mark for line in node.stays)
        return f"{moves}{mark.suffix}", mark.tone

    def way(self) -> "Graph":
        """Only what was walked: the states that were entered, and the rows that led there."""
        nodes = [
            attrs.evolve(node, stays=tuple(line for line in node.stays if any(line.mark.counts)))
            for node in self.nodes
            if any(node.mark.counts)
        ]
        edges = [
            attrs.evolve(edge, lines=tuple(line for line in edge.lines if any(line.mark.counts))) for edge in self.edges
        ]
        legend = tuple(entry for entry in self.legend if "faint" not in entry[0])  # nothing is
        return attrs.evolve(self, nodes=tuple(nodes), edges=tuple(edge for edge in edges if edge.lines), legend=legend)

    def of_kind(self, kind: NodeKind) -> tuple[Node, ...]:
        """The nodes of one kind."""
        return tuple(node for node in self.nodes if node.kind is kind)

    def leaving(self, name: str) -> tuple[Edge, ...]:
        """The edges that leave the node `name`."""
        return tuple(edge for edge in self.edges if edge.source == name)


def graph_of(table: Table, overlay: Overlay | None = None, *, fold: bool = False) -> Graph:
    """The graph of `table`, with `overlay` laid over it. Raises UsageError where `table` is none."""
    check_is_table(table)
    leaving = {source for row in table.rows for source in row.sources}
    final = [state for state in table.states if table.is_final(state) and state not in leaving]
    open_states = [state for state in LOOP_ORDER if state in table.states and state not in final]
    shared = tuple(dict.fromkeys(sources for row in table.rows if len(sources := _sources(row)) >= SHARED))

    titles = {sources: _title(sources, open_states) for sources in shared}
    nodes = [
        *(_state_node(table, state, NodeKind.STATE, overlay) for state in open_states),
        *(_shared_node(table, sources, titles[sources], overlay) for sources in shared),
        *(_state_node(table, state, NodeKind.FINAL, overlay) for state in LOOP_ORDER if state in final),
    ]
    return Graph(
        nodes=tuple(nodes),
        edges=tuple(edge for node in nodes for edge in _edges(table, node, overlay)),
        fold=fold,
        legend=() if overlay is None else overlay.legend(table),
    )


def _sources(row: Transition) -> tuple[State, ...]:
    return tuple(state for state in LOOP_ORDER if state in row.sources)


def _title(sources: tuple[State, ...], open_states: list[State]) -> str:
    if set(sources) >= set(open_states):
        return "every state"
    if set(sources) == set(open_states) & set(WORKING):
        return "every working state"
    return f"{', '.join(sources[:-1])} or {sources[-1]}"


def _lines(table: Table, states: tuple[State, ...], overlay: Overlay | None) -> Iterable[Line]:
    """The rows drawn from the node that stands for `states`."""
    for index, row in enumerate(table.rows):
        sources = _sources(row)
        if sources == states if len(sources) >= SHARED else (len(states) == 1 and states[0] in sources):
            yield Line(row=row, mark=UNMARKED if overlay is None else overlay.row(index, states))


def _state_node(table: Table, state: State, kind: NodeKind, overlay: Overlay | None) -> Node:
    last_commands = {row.commands[-1].name if row.commands else None for row in table.rows if row.target is state}
    return Node(
        name=str(state),
        title=str(state),
        kind=kind,
        states=(state,),
        stays=tuple(line for line in _lines(table, (state,), overlay) if line.row.target is None),
        does=last_commands.pop() if len(last_commands) == 1 else None,
        initial=state is table.initial,
        mark=UNMARKED if overlay is None else overlay.state(state),
        dwelt="" if overlay is None or kind is NodeKind.FINAL else overlay.dwelt(state),
        share=0.0 if overlay is None else overlay.share(state),
        last=overlay is not None and any(walk.last is state for walk in overlay.walks),
    )


def _shared_node(table: Table, sources: tuple[State, ...], title: str, overlay: Overlay | None) -> Node:
    lines = tuple(_lines(table, sources, overlay))
    return Node(
        name=title.replace(",", "").replace(" ", "_"),
        title=title,
        kind=NodeKind.SHARED,
        states=sources,
        stays=tuple(line for line in lines if line.row.target is None),
        mark=Mark.sum(line.mark for line in lines),
    )


def _edges(table: Table, node: Node, overlay: Overlay | None) -> Iterable[Edge]:
    found: dict[tuple[State, Continue | None, Strategy | None, Terminal | None], list[Line]] = {}
    for line in _lines(table, node.states, overlay):
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
