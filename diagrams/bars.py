"""The bars of a timeline: spans in lanes, each lane used again as soon as it is free."""

from collections.abc import Iterable, Iterator, Sequence

import attrs

from looplatch.diagrams.axis import Axis, Place
from looplatch.diagrams.course import Course, Role, Span

LANES = 12  # of one group, at most; more share the last one
LEAST = 2.0  # pixels of a bar
BARS = 3_000  # on the page, about, at most


@attrs.frozen(kw_only=True)
class Bar:
    """One span, or several that are too short to be told apart."""

    role: Role
    name: str
    hint: str
    failed: bool
    open: bool
    parts: tuple[Place, ...]


@attrs.frozen(kw_only=True)
class Lane:
    """A line of bars that do not overlap, one of those of its group."""

    group: str
    number: int
    bars: tuple[Bar, ...]

    def parts(self) -> Iterator[Place]:
        """Where all of its bars lie."""
        for bar in self.bars:
            yield from bar.parts


def lanes_of(course: Course, groups: Iterable[tuple[str, tuple[Role, ...]]], axis: Axis) -> tuple[Lane, ...]:
    """The lanes of each group, in order. Where there are too many bars, short neighbours become one."""
    drawn = [
        (group, number, lane)
        for group, roles in groups
        for number, lane in enumerate(_assigned(_Drawn.of(span, axis) for span in course.of(*roles)))
    ]
    gap = 0.5
    while True:
        joined = [(group, number, list(_joined(lane, gap))) for group, number, lane in drawn]
        if sum(len(bars) for _group, _number, bars in joined) <= BARS:
            break
        gap *= 2
    return tuple(
        Lane(group=group, number=number, bars=tuple(_bar(spans, axis) for spans in bars))
        for group, number, bars in joined
    )


def busy(spans: Iterable[Span]) -> list[tuple[int, int]]:
    """The stretches in which any of the spans lasted."""
    found: list[tuple[int, int]] = []
    for start, end in sorted((span.start, span.end) for span in spans):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found


def common(one: Sequence[tuple[int, int]], other: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The stretches that lie in both; each is sorted and does not overlap itself."""
    found: list[tuple[int, int]] = []
    i = j = 0
    while i < len(one) and j < len(other):
        start, end = max(one[i][0], other[j][0]), min(one[i][1], other[j][1])
        if start < end:
            found.append((start, end))
        if one[i][1] < other[j][1]:
            i += 1
        else:
            j += 1
    return found


@attrs.frozen(kw_only=True)
class _Drawn:
    """A span, with its sides in pixels along all rows."""

    span: Span
    left: float
    right: float

    @classmethod
    def of(cls, span: Span, axis: Axis) -> "_Drawn":
        left = axis.at(span.start)
        return cls(span=span, left=left, right=max(axis.at(span.end), left))


def _assigned(spans: Iterable[_Drawn]) -> list[list[_Drawn]]:
    """Each span in the first lane that is free."""
    lanes: list[list[_Drawn]] = []
    ends: list[int] = []
    for drawn in spans:
        at = next((index for index, end in enumerate(ends) if end <= drawn.span.start), None)
        if at is None and len(lanes) < LANES:
            at = len(lanes)
            lanes.append([])
            ends.append(0)
        at = len(lanes) - 1 if at is None else at
        lanes[at].append(drawn)
        ends[at] = max(ends[at], drawn.span.end)
    return lanes


def _joined(lane: Iterable[_Drawn], gap: float) -> Iterator[list[Span]]:
    """The spans of each bar: neighbours of one role share a bar where they are shorter and nearer than `gap` pixels."""
    run: list[Span] = []
    last: _Drawn | None = None
    right = 0.0  # of the bar
    for drawn in lane:
        if last is not None and _joins(last, right, drawn, gap):
            run.append(drawn.span)
        else:
            if run:
                yield run
            run = [drawn.span]
            right = drawn.left
        last, right = drawn, max(right, drawn.right)
    if run:
        yield run


def _joins(last: _Drawn, right: float, drawn: _Drawn, gap: float) -> bool:
    if drawn.left < right - 0.001:
        return True  # the last lane of too many
    reach = gap + LEAST
    short = last.right - last.left <= reach and drawn.right - drawn.left <= reach
    same = last.span.role is drawn.span.role and last.span.failed is drawn.span.failed
    return drawn.left - right <= reach and short and same


def _bar(spans: list[Span], axis: Axis) -> Bar:
    first = spans[0]
    alone = len(spans) == 1
    return Bar(
        role=first.role,
        name=first.name if alone else f"{len(spans)}x",
        hint=first.hint if alone else f"{len(spans)} of {first.role}, from {first.hint}",
        failed=any(span.failed for span in spans),
        open=any(span.open for span in spans),
        parts=tuple(axis.places(first.start, max(span.end for span in spans), LEAST)),
    )
