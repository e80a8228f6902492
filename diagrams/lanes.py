"""Which way each edge goes: straight to the neighbour, or through a lane beside the column of states.

States stand in one column. What leads on, down to trouble or to an end, takes a lane on the right; what leads back up
takes one on the left. Edges that arrive at the same state for the same reason share a lane.
"""

from enum import StrEnum

import attrs

from looplatch.diagrams.graph import Edge, Graph, Node, NodeKind
from looplatch.diagrams.sheet import LEADING
from looplatch.states.reasons import Continue


class Way(StrEnum):
    """How an edge leaves its state."""

    DOWN = "down"
    UP = "up"
    LEFT = "left"
    RIGHT = "right"


@attrs.frozen(kw_only=True)
class Lane:
    """A line beside the column; `reason` where it carries one of the reasons to go on."""

    way: Way
    target: str
    reason: Continue | None


@attrs.frozen(kw_only=True)
class Port:
    """A place on a card's side: where `edge` leaves it, or (None) where the whole lane arrives."""

    lane: Lane
    edge: Edge | None = None

    @property
    def line(self) -> float:
        """How far below the port's top its line runs: its text stands above."""
        rows = len(self.edge.lines) if self.edge is not None else int(self.lane.reason is not None)
        return LEADING * rows + 3 if rows else 7

    @property
    def height(self) -> float:
        """The height that the port takes on its side."""
        below = self.edge is not None and self.edge.outcome and self.lane.way is Way.LEFT
        return self.line + (21 if below else 8)


@attrs.frozen(kw_only=True)
class LanePlan:
    """The column of nodes and the lanes beside it, from the inner to the outer one."""

    column: tuple[Node, ...]
    ways: dict[Edge, Way]
    left: tuple[Lane, ...]
    right: tuple[Lane, ...]
    ports: dict[tuple[str, Way], tuple[Port, ...]]


def plan_of(graph: Graph) -> LanePlan:
    """Choose a way for every edge, and the order of lanes and ports in which the fewest lines cross."""
    column = (*graph.of_kind(NodeKind.STATE), *graph.of_kind(NodeKind.SHARED))
    place = {node.name: index for index, node in enumerate((*column, *graph.of_kind(NodeKind.FINAL)))}
    ways = {edge: _way(edge, place, len(column)) for edge in graph.edges}
    lanes = list(dict.fromkeys(_lane(edge, way) for edge, way in ways.items() if way in (Way.LEFT, Way.RIGHT)))
    first = {lane: min(place[edge.source] for edge, way in ways.items() if _lane(edge, way) == lane) for lane in lanes}
    left = tuple(sorted((n for n in lanes if n.way is Way.LEFT), key=lambda n: (-place[n.target], first[n])))
    right = tuple(sorted((n for n in lanes if n.way is Way.RIGHT), key=lambda n: place[n.target]))

    ports: dict[tuple[str, Way], tuple[Port, ...]] = {}
    for node in column:
        leaving = [edge for edge in graph.edges if edge.source == node.name]
        # Lines on the left run upwards and those on the right downwards: in this order they nest.
        ports[node.name, Way.LEFT] = (
            *(Port(lane=n, edge=e) for n in left for e in leaving if _lane(e, ways[e]) == n),
            *(Port(lane=n) for n in reversed(left) if n.target == node.name),
        )
        ports[node.name, Way.RIGHT] = (
            *(Port(lane=n) for n in right if n.target == node.name),
            *(Port(lane=n, edge=e) for n in reversed(right) for e in leaving if _lane(e, ways[e]) == n),
        )
    return LanePlan(column=column, ways=ways, left=left, right=right, ports=ports)


def _lane(edge: Edge, way: Way) -> Lane:
    return Lane(way=way, target=edge.target, reason=edge.reason)


def _way(edge: Edge, place: dict[str, int], final: int) -> Way:
    source, target = place[edge.source], place[edge.target]
    if target >= final:
        return Way.RIGHT
    if edge.reason is None and edge.terminal is None and abs(target - source) == 1:
        return Way.DOWN if target > source else Way.UP
    return Way.RIGHT if target > source else Way.LEFT
