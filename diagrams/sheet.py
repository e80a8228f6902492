"""What is drawn on a page, in pixels: boxes, labels and routes. The layout makes them, the SVG renderer draws them."""

import unicodedata

import attrs

from looplatch.diagrams.graph import Edge, Node

SIZE = 11.0  # of the text on edges
SMALL = 10.0  # of the text inside states
TITLE = 14.0
LEADING = 14.0  # from line to line
CHAR = 0.62  # the widest advance of the usual monospaced fonts, in em


def width_of(text: str, size: float = SIZE) -> float:
    """The most that `text` takes in any of the usual monospaced fonts."""
    cells = sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)
    return cells * CHAR * size


@attrs.frozen
class Point:
    """A place on the page; y grows downwards."""

    x: float
    y: float


@attrs.frozen(kw_only=True)
class Label:
    """A line of text. `x` is where it starts, or ends where `ends` says so; `y` is its baseline."""

    text: str
    x: float
    y: float
    size: float = SIZE
    ends: bool = False
    colour: str
    bold: bool = False
    hint: str = ""

    @property
    def left(self) -> float:
        """Where the text starts, at most."""
        return self.x - width_of(self.text, self.size) if self.ends else self.x

    @property
    def right(self) -> float:
        """Where the text ends, at most."""
        return self.x if self.ends else self.x + width_of(self.text, self.size)


@attrs.frozen(kw_only=True)
class Card:
    """A node's box, with its upper left corner."""

    node: Node
    x: float
    y: float
    width: float
    height: float

    @property
    def middle(self) -> float:
        """The x in the middle of the box."""
        return self.x + self.width / 2

    @property
    def right(self) -> float:
        """The x of the right side."""
        return self.x + self.width

    @property
    def bottom(self) -> float:
        """The y of the lower side."""
        return self.y + self.height


@attrs.frozen(kw_only=True)
class Route:
    """An edge's way from corner to corner; it ends in an arrowhead."""

    edge: Edge
    points: tuple[Point, ...]


@attrs.frozen(kw_only=True)
class Sheet:
    """The whole page. `frame` is the box around the final states; None where there are none."""

    width: float
    height: float
    cards: tuple[Card, ...]
    routes: tuple[Route, ...]
    labels: tuple[Label, ...]
    frame: tuple[Point, Point] | None = None
