"""A run as a timeline: who was busy when, so that one sees tools start while the model is still writing.

One lane for the model, one for each tool call that runs beside others; lanes are used again. A long run goes on in the
next row, so that it stays on one page.
"""

from collections.abc import Iterable, Iterator

import attrs

from looplatch.diagrams.axis import Axis, axis_of
from looplatch.diagrams.bars import Lane, busy, common, lanes_of
from looplatch.diagrams.course import WORK, Course, Moment, Role, Sign, course_of
from looplatch.diagrams.elapsed import spent
from looplatch.diagrams.markup import box, escaped, number, opening
from looplatch.diagrams.outside import shown
from looplatch.diagrams.palette import FLOW, INK, PAPER, REASONS
from looplatch.diagrams.sheet import width_of
from looplatch.diagrams.source import Source
from looplatch.states.counted import counted
from looplatch.states.reasons import Continue
from looplatch.states.state import State

WIDTH = 1_200.0
MARGIN = 24.0
GUTTER = 92.0  # for the names of the lanes
INNER = WIDTH - 2 * MARGIN - GUTTER
LANE = 17.0
BAR = 13.0
TEXT = 10.0
SMALL = 9.0
CALLS = 14  # model calls in a row, about
ROWS = 8  # at most
TICKS = 9  # in a row, about
_SECOND = 1_000_000_000
CLOSE = 3.0  # pixels in which the same sign is drawn once

GROUPS: tuple[tuple[str, tuple[Role, ...]], ...] = (
    ("state", (Role.STATE,)),
    ("model", (Role.MODEL,)),
    ("tools", (Role.READ, Role.WRITE)),
    ("summaries", (Role.SUMMARY,)),
    ("hooks", (Role.HOOK,)),
    ("sizes asked", (Role.SIZE,)),
    ("waits", (Role.SLEEP, Role.APPROVAL)),
)
# Fill and side of each role's bars.
COLOURS = {
    Role.STATE: ("#e2e8f0", "#cbd5e1"),
    Role.MODEL: ("#bfdbfe", "#1d4ed8"),
    Role.READ: ("#bbf7d0", "#15803d"),
    Role.WRITE: ("#fde68a", "#b45309"),
    Role.SUMMARY: ("#e9d5ff", "#7e22ce"),
    Role.HOOK: ("#fbcfe8", "#be185d"),
    Role.SIZE: ("#cffafe", "#0e7490"),
    Role.SLEEP: ("#f1f5f9", "#64748b"),
    Role.APPROVAL: ("#fef9c3", "#a16207"),
}
FAILED = ("#fecaca", "#b91c1c")
# The states that have much to do with one role have its colour.
STATES = {
    State.STREAM: "#dbeafe",
    State.ORCHESTRATE: "#dcfce7",
    State.RECOVER: "#fee2e2",
    State.SUSPENDED: COLOURS[Role.APPROVAL][0],
}
SIGNS = {
    Sign.TURN: REASONS[Continue.NEXT_TURN],
    Sign.RETRY: FAILED[1],
    Sign.SHORTER: COLOURS[Role.SUMMARY][1],
    Sign.TAKEN_OVER: INK,
    Sign.REFUSED: FAILED[1],
    Sign.END: INK,
}
MEANINGS = {
    Role.MODEL: "the model writes",
    Role.READ: "tool that reads",
    Role.WRITE: "tool that writes",
    Role.SUMMARY: "summary",
    Role.HOOK: "hook",
    Role.SIZE: "size asked for",
    Role.SLEEP: "back-off",
    Role.APPROVAL: "approval awaited",
}


def timeline_svg(log: Source) -> str:
    """The timeline of a log, of a run or of its records, as the text of an SVG picture of 1,200 pixels' width.

    The same run gives the same text. Raises UsageError where `log` is none of these.
    """
    return _Page(course_of(log)).text()


@attrs.frozen(kw_only=True)
class _Row:
    """One row of the page: where its lanes stand."""

    index: int
    top: float
    bottom: float
    ys: dict[tuple[str, int], float]


class _Page:
    def __init__(self, course: Course) -> None:
        self.course = course
        rows = max(1, min(ROWS, -(-len(course.of(Role.MODEL)) // CALLS)))
        stretches = [(span.start, span.end) for span in course.of(*WORK)] if course.timed else [(0, course.whole)]
        self.axis: Axis = axis_of(course.whole, stretches, rows, INNER)
        self.lanes: tuple[Lane, ...] = lanes_of(course, GROUPS, self.axis)
        self.rows: list[_Row] = []
        y = MARGIN + 44.0
        for index in range(rows):
            row = self._row(index, y)
            self.rows.append(row)
            y = row.bottom + 18.0
        self.foot = y

    def _row(self, index: int, top: float) -> _Row:
        used = [(lane.group, lane.number) for lane in self.lanes if any(part.row == index for part in lane.parts())]
        y = top + 34.0  # the times, and what befell the run
        ys: dict[tuple[str, int], float] = {}
        for key in used:
            ys[key] = y
            y += LANE
        return _Row(index=index, top=top, bottom=max(y, top + 34.0 + LANE), ys=ys)

    def text(self) -> str:
        legend = list(self._legend())
        height = self.foot + 20.0 + MARGIN
        return "\n".join(
            (
                opening(WIDTH, height, "timeline of a run"),
                f'<rect class="page" width="{number(WIDTH)}" height="{number(height)}" rx="8" fill="{PAPER}"/>',
                *self._head(),
                *(line for row in self.rows for line in self._ground(row)),
                *(line for lane in self.lanes for line in self._bars(lane)),
                *(line for row in self.rows for line in self._moments(row)),
                *legend,
                "</svg>",
                "",
            )
        )

    # --- what stands around

    def _head(self) -> Iterator[str]:
        course = self.course
        tools, model = busy(course.of(Role.READ, Role.WRITE)), busy(course.of(Role.MODEL))
        calls, turns = len(course.of(Role.READ, Role.WRITE)), 1 + sum(m.sign is Sign.TURN for m in course.moments)
        parts = [
            counted(turns, "turn"),
            counted(calls, "tool call"),
        ]
        if course.timed:
            parts.append(spent(course.whole))
        parts.append(f"ended: {course.terminal}" if course.terminal else "not ended")
        yield _text(f"run {course.run}", MARGIN, MARGIN + 10, 12, INK, bold=True)
        yield _text(", ".join(parts), MARGIN, MARGIN + 26, TEXT, FLOW)
        if calls and course.timed:
            together = common(tools, model)
            both = (
                f"tools were busy for {spent(_length(tools))}, {spent(_length(together))} of it while the model wrote"
            )
            yield _text(both, WIDTH - MARGIN, MARGIN + 26, TEXT, FLOW, ends=True)

    def _legend(self) -> Iterator[str]:
        x, y = MARGIN, self.foot + 10.0
        roles = [role for role in MEANINGS if self.course.of(role)]
        chips = [(COLOURS[role], MEANINGS[role]) for role in roles]
        if any(span.failed for span in self.course.spans):
            chips.append((FAILED, "failed, or cut off"))
        for (fill, side), meaning in chips:
            yield f'<rect {box(x, y - 9, 12, 10)} rx="2" fill="{fill}" stroke="{side}"/>'
            yield _text(meaning, x + 17, y, TEXT, FLOW)
            x += 17 + width_of(meaning, TEXT) + 16

    def _ground(self, row: _Row) -> Iterator[str]:
        """What lies under the bars of a row: the model's spans, waits, times and the names of the lanes."""
        left, top = MARGIN + GUTTER, row.top + 34.0
        for lane in self.lanes:
            for part in lane.parts() if lane.group == "model" else ():
                if part.row == row.index:
                    place = box(left + part.left, top, part.right - part.left, row.bottom - top)
                    yield f'<rect {place} fill="#eff6ff"/>'
        labels: list[tuple[float, str]] = []
        for start, end in self.axis.waits:
            for part in self.axis.places(start, end):
                if part.row == row.index:
                    place = box(left + part.left, top, part.right - part.left, row.bottom - top)
                    yield f'<rect {place} fill="#f8fafc"><title>{escaped(_waited(end - start))}</title></rect>'
                    labels.append((part.left, _waited(end - start)))
        for time, step in self.axis.ticks(TICKS) if self.course.timed else ():
            x = self.axis.at(time) - row.index * INNER
            if 0 <= x < INNER or (x == INNER and row is self.rows[-1]):
                yield f'<path d="M{number(left + x)} {number(row.top + 12)}V{number(row.bottom)}" stroke="#e2e8f0"/>'
                labels.append((x, _clock(time, step)))
        yield from _spread(labels, left, row.top + 10, SMALL, FLOW)
        named: set[str] = set()
        for (group, _number), y in row.ys.items():
            if group not in named:
                named.add(group)
                yield _text(group, MARGIN, y + 10, TEXT, FLOW)

    # --- what the run did

    def _bars(self, lane: Lane) -> Iterator[str]:
        for index, bar in enumerate(lane.bars):
            after = lane.bars[index + 1] if index + 1 < len(lane.bars) else None
            fill, side = FAILED if bar.failed else COLOURS[bar.role]
            if bar.role is Role.STATE:
                fill = next((colour for state, colour in STATES.items() if state == bar.name), fill)
            dashes = ' stroke-dasharray="3 2"' if bar.open or bar.role in (Role.SLEEP, Role.APPROVAL) else ""
            written = False
            for part in bar.parts:
                y = self.rows[part.row].ys[lane.group, lane.number]
                x = MARGIN + GUTTER + part.left
                width = part.right - part.left
                title = f"<title>{escaped(bar.hint)}</title>"
                style = f'rx="2" fill="{fill}" stroke="{side}" stroke-width="0.8"{dashes}'
                yield f'<rect class="bar" {box(x, y, width, BAR)} {style}>{title}</rect>'
                if written:
                    continue
                room = INNER - part.right
                if after is not None and after.parts[0].row == part.row:
                    room = after.parts[0].left - part.right
                for name in (bar.name, bar.name.removeprefix("turn ")):
                    needed = width_of(name, SMALL) + 6
                    if needed <= width or (bar.role in (Role.READ, Role.WRITE) and needed <= room):
                        inside = needed <= width
                        yield _text(name, x + 3 + (0 if inside else width), y + 10, SMALL, INK)
                        written = True
                        break

    def _moments(self, row: _Row) -> Iterator[str]:
        y = row.top + 23.0
        drawn: dict[tuple[Sign, int], Moment] = {}
        for moment in self.course.moments:
            x = self.axis.at(moment.at)
            if min(int(x / INNER), self.axis.rows - 1) == row.index:
                drawn.setdefault((moment.sign, int(x / CLOSE)), moment)
        placed = sorted(
            ((self.axis.at(moment.at) - row.index * INNER, moment) for moment in drawn.values()), key=lambda it: it[0]
        )
        left = MARGIN + GUTTER
        done = 0.0
        for index, (x, moment) in enumerate(placed):
            yield from _sign(moment, left + x, y, row.bottom)
            after = placed[index + 1][0] - 8 if index + 1 < len(placed) else INNER + MARGIN - 2
            name = moment.name.removeprefix("turn ")
            width = width_of(name, SMALL)
            if x + 7 + width <= after:
                yield _text(name, left + x + 7, y + 4, SMALL, INK)
                done = x + 7 + width
            elif moment.sign is Sign.END and x - 7 - width >= max(done, placed[index - 1][0] if index else 0.0) + 8:
                yield _text(name, left + x - 7, y + 4, SMALL, INK, ends=True)


def _sign(moment: Moment, x: float, y: float, bottom: float) -> Iterator[str]:
    colour, title = SIGNS[moment.sign], f"<title>{escaped(moment.name)}</title>"
    left, right, top, low = number(x - 4), number(x + 4), number(y - 4), number(y + 4)
    match moment.sign:
        case Sign.TURN:
            shape = f"M{number(x)} {top}V{low}"
        case Sign.RETRY:
            shape = f"M{left} {low}H{right}L{number(x)} {top}Z"
        case Sign.SHORTER:
            shape = f"M{left} {number(y)}L{number(x)} {top}L{right} {number(y)}L{number(x)} {low}Z"
        case Sign.REFUSED:
            shape = f"M{left} {top}L{right} {low}M{left} {low}L{right} {top}"
        case Sign.END:
            shape = f"M{left} {top}H{right}V{low}H{left}Z"
        case Sign.TAKEN_OVER:
            shape = f"M{number(x)} {top}V{number(bottom)}"
            dashed = f'fill="none" stroke="{colour}" stroke-dasharray="4 3"'
            yield f'<path class="sign" d="{shape}" {dashed}>{title}</path>'
            return
    yield f'<path class="sign" d="{shape}" fill="{colour}" stroke="{colour}" stroke-width="1.4">{title}</path>'


def _spread(labels: Iterable[tuple[float, str]], left: float, y: float, size: float, colour: str) -> Iterator[str]:
    """Those of the labels, from the left, that do not lie on one another, nor run over the right side."""
    done = -MARGIN
    for x, text in sorted(labels):
        width = width_of(text, size)
        if x >= done and x + width <= INNER + MARGIN - 2:
            yield _text(text, left + x, y, size, colour)
            done = x + width + 6


def _text(text: str, x: float, y: float, size: float, colour: str, *, bold: bool = False, ends: bool = False) -> str:
    more = (' font-weight="bold"' if bold else "") + (' text-anchor="end"' if ends else "")
    place = f'x="{number(x)}" y="{number(y)}" font-size="{number(size)}"'
    return f'<text {place}{more} fill="{colour}">{escaped(shown(text, 120))}</text>'


def _length(stretches: Iterable[tuple[int, int]]) -> int:
    return sum(end - start for start, end in stretches)


def _waited(ns: int) -> str:
    return f"{spent(ns)} wait"


def _clock(time: int, step: int) -> str:
    if step % _SECOND == 0:
        minutes, seconds = divmod(time // _SECOND, 60)
        return f"{minutes}:{seconds:02} min" if minutes else f"{seconds} s"
    if time >= _SECOND and step >= _SECOND // 100:
        return f"{time / _SECOND:g} s"
    return f"{time / 1_000_000:,.6f}".rstrip("0").rstrip(".") + " ms"
