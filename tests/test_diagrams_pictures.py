"""The drawn pictures: nothing overlaps, nothing lies outside the page, and any table can be drawn."""

import re
import struct
import sys
import xml.etree.ElementTree as ET
from collections import Counter
from itertools import combinations, pairwise
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from looplatch.diagrams import render
from looplatch.diagrams.graph import NodeKind, graph_of
from looplatch.diagrams.overlay import Kind, Overlay
from looplatch.diagrams.walk import walk_of
from looplatch.states.commands import COMMANDS
from looplatch.states.errors import UsageError
from looplatch.states.events import EVENTS
from looplatch.states.reasons import Continue, Strategy, Terminal
from looplatch.states.state import FINAL, State
from looplatch.states.table import TABLE
from looplatch.states.transition import Guard, Table, Transition

SVG = "{http://www.w3.org/2000/svg}"
WIDEST = 0.62  # the advance of the widest usual monospaced font, in em
MERMAID_LINE = re.compile(
    r"    direction TB|    state (final|legend) \{|    \}"
    r'|    (    )?state "[\w ,\u00d7&#;|]+" as \w+'
    r"|    \w+ : [\w ,./\[\]()|\u00d7&#;]+"
    r"|    (\[\*\]|\w+) --> \w+( : [\w ,./\[\]()|\u00d7#;<>]+)?"
    r"|    class(Def)? .*"
)
STATES = tuple(state for state in State if state not in FINAL)


@attrs.frozen
class Box:
    """A rectangle on the page."""

    what: str
    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: "Box") -> bool:
        """Whether the two share more than their sides."""
        return (
            min(self.right, other.right) - max(self.left, other.left) > 0.2
            and min(self.bottom, other.bottom) - max(self.top, other.top) > 0.2
        )

    def holds(self, other: "Box") -> bool:
        """Whether the other lies inside this one."""
        return (
            self.left <= other.left
            and self.top <= other.top
            and self.right >= other.right
            and self.bottom >= other.bottom
        )


@attrs.frozen
class Picture:
    """What can be read out of an SVG."""

    page: Box
    texts: tuple[Box, ...]
    cards: tuple[Box, ...]
    lines: tuple[Box, ...]  # the straight parts of edges, as thin boxes


def read(svg: str) -> Picture:
    root = ET.fromstring(svg)
    texts: list[Box] = []
    for text in root.iter(f"{SVG}text"):
        x, y, size = (float(text.get(name, "")) for name in ("x", "y", "font-size"))
        words = text.text or ""
        width = len(words) * WIDEST * size
        left = x - width if text.get("text-anchor") == "end" else x
        texts.append(Box(words, left, y - 0.8 * size, left + width, y + 0.25 * size))
    cards: list[Box] = []
    for rect in root.iter(f"{SVG}rect"):
        if rect.get("class") in ("state", "frame"):
            x, y, width, height = (float(rect.get(name, "")) for name in ("x", "y", "width", "height"))
            cards.append(Box(rect.get("class", ""), x, y, x + width, y + height))
    lines: list[Box] = []
    for path in root.iter(f"{SVG}path"):
        if path.get("class") == "edge":
            half = float(path.get("stroke-width", "")) / 2
            numbers = [float(number) for number in re.findall(r"-?[\d.]+", path.get("d", ""))]
            points = list(zip(numbers[::2], numbers[1::2], strict=True))
            for (ax, ay), (bx, by) in pairwise(points):
                sideways = (0.0, half) if ay == by else (half, 0.0)
                lines.append(
                    Box(
                        "line",
                        min(ax, bx) - sideways[0],
                        min(ay, by) - sideways[1],
                        max(ax, bx) + sideways[0],
                        max(ay, by) + sideways[1],
                    )
                )
    page = Box("page", 0, 0, float(root.get("width", "")), float(root.get("height", "")))
    return Picture(page, tuple(texts), tuple(cards), tuple(lines))


def check(svg: str) -> None:
    """Assert that the picture can be read: nothing hides anything, nothing is cut off."""
    picture = read(svg)
    states = [card for card in picture.cards if card.what == "state"]
    for box in (*picture.texts, *picture.cards, *picture.lines):
        assert picture.page.holds(box), f"{box} is not on the page"
    for one, other in combinations(picture.texts, 2):
        assert not one.meets(other), f"{one} lies on {other}"
    for one, other in combinations(states, 2):
        assert not one.meets(other), f"{one} lies on {other}"
    for text in picture.texts:
        for card in states:
            assert card.holds(text) or not card.meets(text), f"{text} runs over the side of {card}"
        for line in picture.lines:
            assert not line.meets(text), f"{line} runs through {text}"
    for card in states:
        for line in picture.lines:
            assert not card.meets(line) or min(card.right - line.left, line.right - card.left) < 1.5, (
                f"{line} in {card}"
            )


@pytest.mark.parametrize("fold", [False, True])
def test_nothing_overlaps_in_the_standard_loop(fold: bool) -> None:
    check(render(format="svg", fold=fold))


def test_the_ways_into_prepare_do_not_cross() -> None:
    """The reasons' lines nest; where they join they have the same colour."""
    root = ET.fromstring(render(format="svg"))
    level: list[tuple[str, float, float, float]] = []
    upright: list[tuple[str, float, float, float]] = []
    for path in root.iter(f"{SVG}path"):
        if path.get("class") != "edge" or path.get("stroke-width") != "2":
            continue  # the reasons' lines are the broad ones
        numbers = [float(number) for number in re.findall(r"[\d.]+", path.get("d", ""))]
        colour = path.get("stroke", "")
        for (ax, ay), (bx, by) in pairwise(zip(numbers[::2], numbers[1::2], strict=True)):
            if ay == by:
                level.append((colour, ay, min(ax, bx), max(ax, bx)))
            elif ax == bx:
                upright.append((colour, ax, min(ay, by), max(ay, by)))
    assert len({colour for colour, *_ in upright}) == len(Continue)
    crossings = [
        (colour, other)
        for colour, y, left, right in level
        for other, x, top, bottom in upright
        if colour != other and left < x < right and top < y < bottom
    ]
    assert crossings == []


def test_a_long_last_line_leaves_room_for_the_outcome() -> None:
    """The outcome stands at the end of the last line of its edge, which need not be the longest."""
    rows = tuple(
        Transition(
            sources=(State.STREAM,),
            event=event,
            guard=Guard(name, holds, (), ""),
            target=State.FAILED,
            terminal=Terminal.UNKNOWN_STOP_REASON,
        )
        for event, name in zip(EVENTS, ("a", "b" * 40), strict=False)
    )
    check(render(table=Table(rows=rows, counters=(), initial=State.STREAM), format="svg"))


def test_the_check_finds_a_label_that_lies_on_another() -> None:
    svg = render(format="svg")
    found = re.search(r'<text x="([\d.]+)" y="([\d.]+)"[^>]*>ModelResponded', svg)
    assert found
    moved = svg.replace(found[0], found[0].replace(f'y="{found[2]}"', f'y="{float(found[2]) + 20}"'))
    with pytest.raises(AssertionError, match="ModelResponded"):
        check(moved)


def test_every_row_is_written_in_the_picture() -> None:
    """Once for each source, or once in all where three or more states share it."""
    wanted: Counter[str] = Counter()
    for row in TABLE.rows:
        guard = "" if row.guard.name == "always" else f" [{row.guard.name}]"
        wanted[f"{row.event.__name__}{guard}"] += len(row.sources) if len(row.sources) < 3 else 1
    written = Counter(box.what.split(" / ")[0] for box in read(render(format="svg")).texts)
    assert {name: written[name] for name in wanted} == wanted


def test_the_picture_fits_a_page_and_a_readme() -> None:
    page = read(render(format="svg")).page
    assert page.right <= 1200
    assert page.bottom <= 1.7 * page.right


def test_the_png_is_the_svg_at_twice_its_size() -> None:
    svg, png = render(format="svg"), render(format="png")
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", png[16:24])
    page = read(svg).page
    assert abs(width - 2 * page.right) <= 1
    assert abs(height - 2 * page.bottom) <= 1
    assert png == render(format="png")


def test_letters_are_in_the_png() -> None:
    """Without a font, a picture would come out all the same, but with nothing written in it."""

    def painted(name: str) -> bytes:
        row = attrs.evolve(TABLE.rows[0], guard=Guard(name, holds, (), ""))
        return render(table=Table(rows=(row,), counters=()), format="png")

    assert painted("certain") == painted("certain")
    assert painted("certain") != painted("curtain")


@pytest.mark.parametrize("package", ["resvg_py", "fontpkg_ibm_plex_mono"])
def test_without_the_extra_the_error_names_it(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(UsageError) as caught:
        render(format="png")
    assert str(caught.value) == (
        f"format 'png': the package {package} is not installed. "
        "Install looplatch[diagrams], or take the format 'svg', which needs nothing more"
    )
    assert render(format="svg").startswith("<svg ")


def holds(_context: object, _event: object) -> bool:
    return True


def guards() -> st.SearchStrategy[Guard[Any]]:
    """Names that people give, and names that nobody should: markup, quotes, other scripts, control characters."""
    odd = st.sampled_from(
        ["<lambda>", '"];}', "a --> b", "x:y;#z", "%%{", "]]>&amp;", "\x00\x1b[31m", "\n", "\ud800", "守"]
    )
    names = odd | st.from_regex(r"[a-z_]{1,24}", fullmatch=True) | st.text(max_size=12) | st.just("always")
    return st.builds(Guard, names, st.just(holds), st.just(()), odd | st.just("It holds."))


@st.composite
def tables(draw: st.DrawFn) -> Table:
    """Small tables that obey the law of Continue and leave no final state; other rules do not matter to a picture."""
    states = draw(st.lists(st.sampled_from(STATES), min_size=1, max_size=len(STATES), unique=True))
    rows: list[Transition] = []
    for index in range(draw(st.integers(1, 14))):
        event, guard = draw(st.sampled_from(EVENTS)), draw(guards())
        if any(row.event is event and row.guard.name == guard.name for row in rows):
            guard = attrs.evolve(guard, name=f"{guard.name}{index}")  # a row twice could not be told apart in a log
        target = draw(st.none() | st.sampled_from((*states, *FINAL)))
        continues = target is State.PREPARE
        rows.append(
            Transition(
                sources=tuple(draw(st.lists(st.sampled_from(states), min_size=1, unique=True))),
                event=event,
                guard=guard,
                target=target,
                reason=draw(st.sampled_from(Continue)) if continues else None,
                strategy=draw(st.none() | st.sampled_from(Strategy)) if continues else None,
                terminal=draw(st.sampled_from(Terminal)) if target in FINAL else None,
                commands=tuple(command() for command in draw(st.lists(st.sampled_from(COMMANDS), max_size=2))),
            )
        )
    return Table(rows=tuple(rows), counters=(), initial=draw(st.sampled_from(states)))


def record(row: Transition, source: State) -> dict[str, Any]:
    return {
        "kind": "transition",
        "source": str(source),
        "event": row.event.__name__,
        "target": str(row.target or source),
        "reason": row.reason,
        "terminal": row.terminal,
        "guards": [[row.guard.name, True]],
    }


@given(tables())
@settings(deadline=None, max_examples=15)  # painting takes a while
def test_any_table_can_be_painted(table: Table) -> None:
    assert render(table=table, format="png").startswith(b"\x89PNG")


@given(tables(), st.data())
@settings(deadline=None)
def test_any_table_can_be_drawn_and_read(table: Table, data: st.DataObject) -> None:
    walked = data.draw(st.none() | st.lists(st.sampled_from(table.rows), max_size=8))
    run = None if walked is None else [record(row, data.draw(st.sampled_from(row.sources))) for row in walked]
    fold = data.draw(st.booleans())
    check(render(run, table=table, format="svg", fold=fold))
    mermaid = render(run, table=table, fold=fold)
    for line in mermaid.splitlines()[2:]:
        assert MERMAID_LINE.fullmatch(line), line
    dot = render(run, table=table, format="dot", fold=fold)
    for label in re.findall(r"\[label=<(.*?)>, (?:style|color)=", dot):
        ET.fromstring(f"<label>{label}</label>")  # a label of Graphviz is markup, and must be whole
    text = render(run, table=table, format="text", fold=fold)
    assert all(line.isprintable() for line in text.splitlines())


@given(tables(), st.data())
@settings(deadline=None)
def test_counts_add_up_to_the_length_of_the_run(table: Table, data: st.DataObject) -> None:
    walked = data.draw(st.lists(st.sampled_from(table.rows), min_size=1, max_size=8))
    run = [record(row, data.draw(st.sampled_from(row.sources))) for row in walked]
    walk = walk_of(run, table)
    graph = graph_of(table, Overlay(kind=Kind.RUN, walks=(walk,)))
    lines = [line for node in graph.nodes for line in node.stays] + [
        line for edge in graph.edges for line in edge.lines
    ]
    assert sum(sum(line.mark.counts) for line in lines) == len(run)
    states = [node for node in graph.nodes if node.kind is not NodeKind.SHARED]
    assert sum(sum(node.mark.counts) for node in states) == 1 + sum(row.target is not None for row in walked)
