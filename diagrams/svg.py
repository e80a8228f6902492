"""A graph as SVG, laid out by looplatch itself: no other program or package takes part."""

from collections.abc import Iterable
from xml.sax.saxutils import quoteattr

from looplatch.diagrams.graph import Graph, NodeKind
from looplatch.diagrams.layout import sheet_of
from looplatch.diagrams.markup import box, escaped, number, opening
from looplatch.diagrams.overlay import Tone
from looplatch.diagrams.palette import FAINT, FLOW, INK, PAPER, colour_of, ink_of
from looplatch.diagrams.sheet import Card, Label, Point, Route, Sheet

CORNER = 7.0  # radius of a route's corners
HEAD = 7.0  # length of an arrowhead
_LOW = (Tone.NEVER, Tone.MISSED)


def svg(graph: Graph) -> str:
    """The picture's text; the same graph gives the same text."""
    return _page(sheet_of(graph))


def _page(sheet: Sheet) -> str:
    width, height = number(sheet.width), number(sheet.height)
    # What a run never walked lies under what it walked, and a reason's lines over those without.
    routes = sorted(sheet.routes, key=lambda route: (route.edge.tone not in _LOW, route.edge.reason is not None))
    return "\n".join(
        (
            opening(sheet.width, sheet.height, "state diagram"),
            f'<rect class="page" width="{width}" height="{height}" rx="8" fill="{PAPER}"/>',
            *_frame(sheet),
            *_start(sheet),
            *(_line(route) for route in routes),
            *(bridge for route in routes if route.edge.tone is not Tone.NEVER for bridge in _bridges(route)),
            *(_head(route) for route in routes),
            *(_card(card) for card in sheet.cards),
            *(_label(label) for label in sheet.labels),
            "</svg>",
            "",
        )
    )


def _frame(sheet: Sheet) -> Iterable[str]:
    if sheet.frame is not None:
        corner, end = sheet.frame
        yield (
            f'<rect class="frame" {box(corner.x, corner.y, end.x - corner.x, end.y - corner.y)} rx="10" fill="none" '
            f'stroke="{FLOW}" stroke-dasharray="2 4"/>'
        )


def _start(sheet: Sheet) -> Iterable[str]:
    """The mark of the start: a dot with an arrow, above the first card; elsewhere a dot on the card's corner."""
    for index, card in enumerate(sheet.cards):
        if not card.node.initial:
            continue
        if index:
            yield f'<circle cx="{number(card.x)}" cy="{number(card.y)}" r="5" fill="{INK}"/>'
        else:
            x, y = number(card.middle), card.y
            yield f'<circle cx="{x}" cy="{number(y - 24)}" r="6" fill="{INK}"/>'
            yield f'<path d="M{x} {number(y - 18)}V{number(y - HEAD)}" stroke="{INK}" stroke-width="1.5"/>'
            yield f'<path d="{_triangle(Point(card.middle, y - 18), Point(card.middle, y))}" fill="{INK}"/>'


def _stroke(route: Route) -> str:
    tone = route.edge.tone
    strong = tone not in _LOW and (route.edge.reason is not None or tone is not Tone.PLAIN)
    dashes = ' stroke-dasharray="4 3"' if tone is Tone.MISSED else ""
    return f'fill="none" stroke="{colour_of(route.edge)}" stroke-width="{"2" if strong else "1.3"}"{dashes}'


def _line(route: Route) -> str:
    *before, last = route.points
    tip = _short_of(before[-1], last, HEAD - 1)
    hint = "\n".join(line.row.name for line in route.edge.lines)
    return f'<path class="edge" d="{_rounded((*before, tip))}" {_stroke(route)}><title>{escaped(hint)}</title></path>'


def _bridges(route: Route) -> Iterable[str]:
    """The level parts once more, on a gap in the lines that they cross."""
    for start, end in zip(route.points, route.points[1:], strict=False):
        if start.y != end.y or abs(end.x - start.x) < 3 * CORNER:
            continue
        first = start if start is route.points[0] else _short_of(end, start, CORNER)
        last = _short_of(start, end, HEAD - 1 if end is route.points[-1] else CORNER)
        d = f'd="M{number(first.x)} {number(first.y)}H{number(last.x)}"'
        yield f'<path {d} stroke="{PAPER}" stroke-width="6"/><path {d} {_stroke(route)}/>'


def _head(route: Route) -> str:
    return f'<path d="{_triangle(route.points[-2], route.points[-1])}" fill="{colour_of(route.edge)}"/>'


def _triangle(start: Point, tip: Point) -> str:
    base = _short_of(start, tip, HEAD)
    across_x, across_y = (tip.y - base.y) / 2, (base.x - tip.x) / 2
    corners = (tip, Point(base.x + across_x, base.y + across_y), Point(base.x - across_x, base.y - across_y))
    return "M" + "L".join(f"{number(corner.x)} {number(corner.y)}" for corner in corners) + "Z"


def _rounded(points: tuple[Point, ...]) -> str:
    """A line through `points` with round corners."""
    parts = [f"M{number(points[0].x)} {number(points[0].y)}"]
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        start, end = _short_of(before, corner, CORNER), _short_of(after, corner, CORNER)
        parts.append(f"L{number(start.x)} {number(start.y)}")
        parts.append(f"Q{number(corner.x)} {number(corner.y)} {number(end.x)} {number(end.y)}")
    parts.append(f"L{number(points[-1].x)} {number(points[-1].y)}")
    return "".join(parts)


def _short_of(start: Point, end: Point, length: float) -> Point:
    """The point on the way from `start`, `length` before `end`, but not before the middle."""
    across, down = end.x - start.x, end.y - start.y
    whole = abs(across) + abs(down)  # all lines are level or upright
    if whole == 0:
        return end
    share = min(length / whole, 0.5)
    return Point(end.x - across * share, end.y - down * share)


def _card(card: Card) -> str:
    node = card.node
    dashes = ' stroke-dasharray="5 4"' if node.kind is NodeKind.SHARED else ""
    fill = {NodeKind.STATE: "#f1f5f9", NodeKind.FINAL: "#f8fafc", NodeKind.SHARED: PAPER}[node.kind]
    if node.last:
        fill = "#fef08a"
    colour = FAINT if node.tone is Tone.NEVER else ink_of(node.tone)
    width = "2.4" if node.kind is NodeKind.FINAL else "1.4"
    place = f"data-state={quoteattr(node.name)} {box(card.x, card.y, card.width, card.height)}"
    return f'<rect class="state" {place} rx="8" fill="{fill}" stroke="{colour}" stroke-width="{width}"{dashes}/>' + (
        f'<rect class="share" {box(card.x + 8, card.bottom - 6, max(node.share * (card.width - 16), 1.0), 4)} rx="2" '
        'fill="#93c5fd"/>'
        if node.share >= 0.001
        else ""
    )


def _label(label: Label) -> str:
    anchor = ' text-anchor="end"' if label.ends else ""
    weight = ' font-weight="bold"' if label.bold else ""
    hint = f"<title>{escaped(label.hint)}</title>" if label.hint else ""
    return (
        f'<text x="{number(label.x)}" y="{number(label.y)}" font-size="{number(label.size)}"'
        f"{anchor}{weight} fill={quoteattr(label.colour)}>{escaped(label.text)}{hint}</text>"
    )
