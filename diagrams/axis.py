"""From times to places: long waits are drawn short, and a long run goes on in the next row."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator

import attrs

WAIT = 0.04  # of the busy time: what a stretch without work takes at most
_SECOND = 1_000_000_000
STEPS = tuple(
    [digit * 10**power for power in range(9) for digit in (1, 2, 5)]
    + [seconds * _SECOND for seconds in (1, 2, 5, 10, 30, 60, 120, 300, 600, 1_800, 3_600, 7_200, 21_600, 86_400)]
)


@attrs.frozen(kw_only=True)
class Place:
    """A part of one row, in pixels."""

    row: int
    left: float
    right: float


@attrs.frozen(kw_only=True)
class Axis:
    """Times of a run laid out in `rows` of `width` pixels. `waits` are the stretches that are drawn shorter.

    starts, offsets: where each piece begins, in time and in length drawn; in between it is as the crow flies.
    """

    rows: int
    width: float
    starts: tuple[int, ...]
    offsets: tuple[float, ...]
    waits: tuple[tuple[int, int], ...]

    @property
    def scale(self) -> float:
        """Pixels of one nanosecond that is not drawn shorter."""
        return self.rows * self.width / self.offsets[-1]

    def at(self, time: int) -> float:
        """How far along all rows `time` is, in pixels."""
        index = min(bisect_right(self.starts, time), len(self.starts) - 1) - 1
        start, end = self.starts[index], self.starts[index + 1]
        first, last = self.offsets[index], self.offsets[index + 1]
        inside = (min(max(time, start), end) - start) / (end - start)
        return (first + inside * (last - first)) * self.scale

    def places(self, start: int, end: int, least: float = 0.0) -> Iterator[Place]:
        """Where a span lies, row by row; at least `least` pixels wide."""
        left, right = self.at(start), self.at(end)
        right = max(right, left + least)
        first = min(int(left / self.width), self.rows - 1)
        last = min(int(right / self.width), self.rows - 1)
        for row in range(first, last + 1):
            begins, ends = max(left - row * self.width, 0.0), min(right - row * self.width, self.width)
            begins = min(begins, self.width - least)
            if ends - begins > 0 or row == first:
                yield Place(row=row, left=begins, right=max(ends, begins + least))

    def ticks(self, wanted: int) -> Iterator[tuple[int, int]]:
        """Round times, about `wanted` in a row, each with the step between them; none within a wait."""
        busy = self.offsets[-1]
        step = next((s for s in STEPS if s * wanted * self.rows >= busy), int(busy) // wanted)
        index = 0
        while (time := index * step) <= self.starts[-1]:
            wait = next((w for w in self.waits if w[0] < time < w[1]), None)
            if wait is None:
                yield time, step
                index += 1
            else:
                index = -(-wait[1] // step)


def axis_of(whole: int, busy: Iterable[tuple[int, int]], rows: int, width: float) -> Axis:
    """An axis for a run of `whole` nanoseconds that worked in the stretches `busy`."""
    whole = max(whole, 1)
    waits = list(_waits(whole, busy))
    work = max(whole - sum(end - start for start, end in waits), 1)
    most = max(work * WAIT, 1.0)
    long = [(start, end) for start, end in waits if end - start > most]
    starts, offsets = [0], [0.0]
    for start, end in (*long, (whole, whole)):
        if start > starts[-1]:
            offsets.append(offsets[-1] + start - starts[-1])
            starts.append(start)
        if end > start:
            offsets.append(offsets[-1] + most)
            starts.append(end)
    return Axis(rows=rows, width=width, starts=tuple(starts), offsets=tuple(offsets), waits=tuple(long))


def _waits(whole: int, busy: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    done = 0
    for start, end in sorted(busy):
        if start > done:
            yield done, start
        done = max(done, end)
    if done < whole:
        yield done, whole
