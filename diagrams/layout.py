"""Where everything stands on the page: the column of states, the lanes beside it, the final states at the foot."""

from looplatch.diagrams.graph import Edge, Graph, Line, Node, NodeKind
from looplatch.diagrams.lanes import Lane, LanePlan, Port, Way, plan_of
from looplatch.diagrams.overlay import Mark, Tone
from looplatch.diagrams.palette import FLOW, PALE, REASONS, colour_of, ink_of
from looplatch.diagrams.sheet import LEADING, SMALL, TITLE, Card, Label, Point, Route, Sheet, width_of

MARGIN = 24.0
PAD = 10.0  # inside cards, and between text and lines
LANE = 10.0  # from lane to lane
GAP = 34.0  # between cards that nothing joins
HEAD = 28.0  # a card's title
START = 30.0  # above the first card, for the mark of the start
FINAL = 112.0  # the width of a final state, at least


def sheet_of(graph: Graph) -> Sheet:
    """The page for `graph`."""
    return _Layout(graph).sheet()


class _Layout:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.plan: LanePlan = plan_of(graph)
        self.labels: list[Label] = []
        self.routes: list[Route] = []
        self.cards: dict[str, Card] = {}
        self.lane_x: dict[Lane, float] = {}
        self.arrival: dict[Lane, Point] = {}

    def sheet(self) -> Sheet:
        right = self._place_lanes()
        bottom = self._place_column()
        frame, bottom = self._place_finals(right, bottom)
        width = max(right, frame[1].x if frame else 0.0)
        for node in self.plan.column:
            self._draw_ports(node)
            self._write_inside(node)
        self._draw_straight()
        width, bottom = self._write_legend(width, bottom, frame)
        return Sheet(
            width=width + MARGIN,
            height=bottom + MARGIN,
            cards=tuple(self.cards.values()),
            routes=tuple(self.routes),
            labels=tuple(self.labels),
            frame=frame,
        )

    # --- where things stand

    def _place_lanes(self) -> float:
        """Choose the x of every lane and of the column; returns the right edge of all that."""
        plan = self.plan
        x = MARGIN
        for lane in reversed(plan.left):
            self.lane_x[lane] = x
            x += LANE
        sides = [(node, way) for node in plan.column for way in (Way.LEFT, Way.RIGHT)]
        zone = {
            way: max(
                (self._port_width(port) for node, w in sides if w is way for port in plan.ports[node.name, w]),
                default=0.0,
            )
            for way in (Way.LEFT, Way.RIGHT)
        }
        straight = {way: self._straight_width(way) for way in (Way.DOWN, Way.UP)}
        self.width = max(160.0, *(self._card_width(node) for node in plan.column), 0.0)
        self.x = max(x + PAD + zone[Way.LEFT], MARGIN + straight[Way.UP] - self.width / 2)
        x = self.x + self.width + zone[Way.RIGHT] + PAD
        for lane in plan.right:
            self.lane_x[lane] = x
            x += LANE
        return max(x, self.x + self.width / 2 + straight[Way.DOWN])

    def _port_width(self, port: Port) -> float:
        edge = port.edge
        if edge is None:
            return width_of(str(port.lane.reason)) + 2 * PAD if port.lane.reason else 2 * PAD
        widths = [width_of(line.trigger) for line in edge.lines]
        if port.lane.way is Way.LEFT:
            return max(*widths, width_of(edge.outcome)) + 2 * PAD
        return max(*widths, widths[-1] + 2 * PAD + width_of(edge.outcome)) + 2 * PAD

    def _straight_width(self, way: Way) -> float:
        edges = (edge for edge, w in self.plan.ways.items() if w is way)
        return max((width_of(line.trigger) + 3 * PAD for edge in edges for line in edge.lines), default=0.0)

    def _card_width(self, node: Node) -> float:
        inside = [width_of(text, SMALL) for text, _tone in self.graph.inside(node)]
        return max(width_of(node.head, TITLE) + width_of(node.does or "", SMALL) + 3 * PAD, *inside, 0.0) + 2 * PAD

    def _place_column(self) -> float:
        y = MARGIN + START
        for index, node in enumerate(self.plan.column):
            inside = HEAD + LEADING * len(self.graph.inside(node)) + (PAD if self.graph.inside(node) else 2)
            sides = [
                sum(port.height for port in self.plan.ports[node.name, way]) + PAD for way in (Way.LEFT, Way.RIGHT)
            ]
            card = Card(node=node, x=self.x, y=y, width=self.width, height=max(inside, *sides))
            self.cards[node.name] = card
            y = card.bottom + self._gap_below(index)
        return max((card.bottom for card in self.cards.values()), default=y)

    def _gap_below(self, index: int) -> float:
        ends = {node.name for node in self.plan.column[index : index + 2]}
        joined = [e for e, w in self.plan.ways.items() if w in (Way.DOWN, Way.UP) and {e.source, e.target} == ends]
        return max([GAP - PAD, *(LEADING * len(edge.lines) + GAP - PAD for edge in joined)]) if joined else GAP - PAD

    def _place_finals(self, right: float, bottom: float) -> tuple[tuple[Point, Point] | None, float]:
        """The final states in a row at the right of the foot, in the order of their lanes."""
        nodes = self.graph.of_kind(NodeKind.FINAL)
        if not nodes:
            return None, bottom
        widths = [max(FINAL, width_of(node.head, TITLE) + 2 * PAD) for node in nodes]
        top = bottom + 2 * GAP + LANE * len(nodes)
        x = max(right - sum(widths) - 2 * PAD * (len(nodes) - 1), MARGIN + PAD)
        corner = Point(x - PAD, top - PAD)
        for index, (node, width) in enumerate(zip(nodes, widths, strict=True)):
            card = Card(node=node, x=x, y=top, width=width, height=HEAD + 6)
            self.cards[node.name] = card
            self._enter_final(card, top - GAP - LANE * (len(nodes) - index))
            self._write_title(card)
            x = card.right + 2 * PAD
        return (corner, Point(x - PAD, top + HEAD + 6 + PAD)), top + HEAD + 6 + PAD

    def _enter_final(self, card: Card, turn: float) -> None:
        for lane in self.plan.right:
            if lane.target == card.node.name:
                self.arrival[lane] = Point(card.middle, turn)

    # --- lines and their labels

    def _draw_ports(self, node: Node) -> None:
        card = self.cards[node.name]
        for way in (Way.LEFT, Way.RIGHT):
            ports = self.plan.ports[node.name, way]
            edge_x = card.x if way is Way.LEFT else card.right
            inner = edge_x - PAD if way is Way.LEFT else edge_x + PAD
            y = card.y + PAD / 2
            for port in ports:
                line = y + port.line
                if port.edge is None:
                    self._write_arrival(port.lane, inner, line - 4)
                else:
                    self._draw_leaving(port.edge, port.lane, Point(edge_x, line))
                    self._write_lines(port.edge.lines, inner, line - 4, ends=way is Way.LEFT)
                    self._write_outcome(port.edge, way, inner, line)
                y += port.height

    def _arrival(self, lane: Lane) -> tuple[Point, ...]:
        """The last corners of a lane: into the side of a card of the column, or down into a final state."""
        x = self.lane_x[lane]
        if lane in self.arrival:
            turn = self.arrival[lane]
            top = self.cards[lane.target].y
            return (Point(x, turn.y), turn, Point(turn.x, top))
        card = self.cards[lane.target]
        y = card.y + PAD / 2
        for port in self.plan.ports[lane.target, lane.way]:
            if port.edge is None and port.lane == lane:
                y += port.line
                break
            y += port.height
        return (Point(x, y), Point(card.x if lane.way is Way.LEFT else card.right, y))

    def _draw_leaving(self, edge: Edge, lane: Lane, start: Point) -> None:
        self.routes.append(Route(edge=edge, points=(start, Point(self.lane_x[lane], start.y), *self._arrival(lane))))

    def _draw_straight(self) -> None:
        for edge, way in self.plan.ways.items():
            if way not in (Way.DOWN, Way.UP):
                continue
            upper, lower = (edge.source, edge.target) if way is Way.DOWN else (edge.target, edge.source)
            x = self.cards[upper].middle + (PAD if way is Way.DOWN else -PAD)
            top, bottom = self.cards[upper].bottom, self.cards[lower].y
            ends = (Point(x, top), Point(x, bottom)) if way is Way.DOWN else (Point(x, bottom), Point(x, top))
            self.routes.append(Route(edge=edge, points=ends))
            last = (top + bottom) / 2 + LEADING * (len(edge.lines) - 1) / 2 + 3
            beside = x + PAD if way is Way.DOWN else x - PAD
            self._write_lines(edge.lines, beside, last, ends=way is Way.UP)

    # --- text

    def _write(
        self, text: str, x: float, y: float, ends: bool, colour: str, *, bold: bool = False, hint: str = ""
    ) -> None:
        self.labels.append(Label(text=text, x=x, y=y, ends=ends, colour=colour, bold=bold, hint=hint))

    def _write_lines(self, lines: tuple[Line, ...], x: float, last: float, *, ends: bool) -> None:
        for index, line in enumerate(lines):
            y = last - LEADING * (len(lines) - 1 - index)
            self._write(line.trigger, x, y, ends, ink_of(line.tone), hint=line.row.guard.doc)

    def _write_outcome(self, edge: Edge, way: Way, inner: float, line: float) -> None:
        if not edge.outcome:
            return
        colour = PALE if edge.tone is Tone.NEVER else colour_of(edge)
        if way is Way.LEFT:
            self._write(edge.outcome, inner, line + 12, True, colour, bold=True)
        else:
            end = min(self.lane_x[lane] for lane in self.plan.right) - PAD
            self._write(edge.outcome, end, line - 4, True, colour, bold=True)

    def _write_arrival(self, lane: Lane, inner: float, y: float) -> None:
        """The reason, where a lane that carries one enters its state."""
        if lane.reason is None:
            return
        edges = [
            e for e, way in self.plan.ways.items() if (way, e.target, e.reason) == (lane.way, lane.target, lane.reason)
        ]
        tone = Mark.sum(line.mark for edge in edges for line in edge.lines).tone
        self._write(str(lane.reason), inner, y, lane.way is Way.LEFT, ink_of(tone, REASONS[lane.reason]), bold=True)

    def _write_title(self, card: Card) -> None:
        node = card.node
        colour = ink_of(node.tone)
        self.labels.append(Label(text=node.head, x=card.x + PAD, y=card.y + 20, size=TITLE, colour=colour, bold=True))

    def _write_inside(self, node: Node) -> None:
        card = self.cards[node.name]
        self._write_title(card)
        if node.does:
            self.labels.append(
                Label(text=node.does, x=card.right - PAD, y=card.y + 19, size=SMALL, ends=True, colour=FLOW)
            )
        for index, (text, tone) in enumerate(self.graph.inside(node)):
            y = card.y + HEAD + LEADING * index + 11
            colour = FLOW if tone is Tone.PLAIN else ink_of(tone)
            self.labels.append(Label(text=text, x=card.x + PAD, y=y, size=SMALL, colour=colour))

    def _write_legend(self, width: float, bottom: float, frame: tuple[Point, Point] | None) -> tuple[float, float]:
        """What the signs mean: beside the final states where there is room, else under them."""
        lines = [("inside a state: moves that stay there", FLOW), ("Event [guard] / Command", FLOW)]
        lines += [(text, ink_of(tone, FLOW)) for text, tone in self.graph.legend]
        widest = max(width_of(line, SMALL) for line, _colour in lines)
        beside = frame is not None and MARGIN + widest + MARGIN < frame[0].x
        last = bottom if beside else bottom + LEADING * len(lines) + PAD
        for index, (line, colour) in enumerate(lines):
            y = last - LEADING * (len(lines) - 1 - index) - 3
            self.labels.append(Label(text=line, x=MARGIN, y=y, size=SMALL, colour=colour))
        return max(width, MARGIN + widest), max(bottom, last)
