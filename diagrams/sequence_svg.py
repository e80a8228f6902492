"""A sequence as SVG: a column for each who takes part, a line for each step."""

from collections.abc import Iterator

from looplatch.diagrams.course import Role
from looplatch.diagrams.markup import box, escaped, number, opening
from looplatch.diagrams.palette import FAINT, FLOW, INK, PAPER
from looplatch.diagrams.sequence import CONSUMER, HOOKS, LOOP, MODEL, Sequence, Step, Style, sequence_of
from looplatch.diagrams.sheet import width_of
from looplatch.diagrams.source import Source
from looplatch.diagrams.timeline import COLOURS, FAILED

MARGIN = 24.0
COLUMN = 172.0  # from one column to the next, at least
HEAD = 26.0
STEP = 26.0
SIZE = 10.0
TIP = 7.0
BUSY = 8.0  # the width of what shows that someone is busy


def sequence_svg(log: Source) -> str:
    """The sequence of a log, of a run or of its records; the same run gives the same text.

    Raises UsageError where `log` is none of these.
    """
    return _Page(sequence_of(log)).text()


class _Page:
    def __init__(self, sequence: Sequence) -> None:
        self.sequence = sequence
        parties = sequence.parties or (LOOP,)
        widest = max((width_of(step.text, SIZE) for step in sequence.steps), default=0.0)
        self.column = column = max(COLUMN, *(width_of(party, SIZE + 1) + 36 for party in parties))
        # A note over the outermost column may reach beyond it.
        side = max(column / 2, widest / 2 + 10)
        self.x = {party: MARGIN + side + column * index for index, party in enumerate(parties)}
        self.width = 2 * (MARGIN + side) + column * (len(parties) - 1)
        self.top = MARGIN + HEAD
        self.ys = [self.top + STEP * (index + 1) + 6 for index in range(len(sequence.steps))]
        self.bottom = self.top + STEP * (len(sequence.steps) + 1)

    def text(self) -> str:
        width, height = self.width, self.bottom + MARGIN
        return "\n".join(
            (
                opening(width, height, "sequence diagram of a run"),
                f'<rect class="page" width="{number(width)}" height="{number(height)}" rx="8" fill="{PAPER}"/>',
                *self._columns(),
                *self._busy(),
                *(line for step, y in zip(self.sequence.steps, self.ys, strict=True) for line in self._step(step, y)),
                "</svg>",
                "",
            )
        )

    def _columns(self) -> Iterator[str]:
        for party, x in self.x.items():
            width = width_of(party, SIZE + 1) + 24
            fill, side = _colour(party)
            line = f'd="M{number(x)} {number(self.top)}V{number(self.bottom)}" stroke="{FAINT}" stroke-dasharray="3 4"'
            yield f"<path {line}/>"
            place = box(x - width / 2, MARGIN, width, HEAD)
            yield f'<rect class="state" {place} rx="6" fill="{fill}" stroke="{side}"/>'
            yield _text(party, x - width / 2 + 12, MARGIN + 17, SIZE + 1, INK, bold=True, halo=False)

    def _busy(self) -> Iterator[str]:
        """Beside each column, who is busy from when to when; what runs at the same time stands side by side."""
        begun: dict[int, float] = {}
        taken: dict[str, list[float]] = {}
        for step, y in zip(self.sequence.steps, self.ys, strict=True):
            if step.effect is None or step.effect not in self.sequence.whole:
                continue
            if step.style is Style.CALL:
                begun[step.effect] = y
                continue
            start = begun.get(step.effect, y)
            ends = taken.setdefault(step.source, [])
            beside = next((index for index, end in enumerate(ends) if end <= start), len(ends))
            ends[beside : beside + 1] = [y]
            fill, side = FAILED if step.style is Style.FAILURE else _colour(step.source)
            x = self.x[step.source] - BUSY / 2 + min(beside, 8) * (BUSY - 3)
            yield f'<rect {box(x, start, BUSY, y - start)} fill="{fill}" stroke="{side}" stroke-width="0.8"/>'

    def _step(self, step: Step, y: float) -> Iterator[str]:
        start, end = self.x[step.source], self.x[step.target]
        width = width_of(step.text, SIZE)
        if step.style is Style.NOTE:
            place = box(start - width / 2 - 8, y - 14, width + 16, 18)
            yield f'<rect {place} rx="3" fill="#fef9c3" stroke="#a16207" stroke-width="0.8"/>'
            yield _text(step.text, start - width / 2, y - 1, SIZE, INK, halo=False)
            return
        colour = FAILED[1] if step.style is Style.FAILURE else FLOW
        dashes = "" if step.style is Style.CALL else ' stroke-dasharray="5 3"'
        way = 1 if end > start else -1
        start, end = start + way * BUSY / 2, end - way * BUSY / 2
        yield f'<path class="arrow" d="M{number(start)} {number(y)}H{number(end)}" stroke="{colour}"{dashes}/>'
        back = number(end - way * TIP)
        yield f'<path d="M{number(end)} {number(y)}L{back} {number(y - 3.5)}V{number(y + 3.5)}Z" fill="{colour}"/>'
        # Over the gap beside the loop, so that the texts of one party stand under one another.
        near = self.x[LOOP] if LOOP in (step.source, step.target) else start
        other = step.source if step.target == LOOP else step.target
        middle = (
            (near + self.x[other]) / 2
            if abs(self.x[other] - near) < 1.5 * self.column
            else self.x[other] - self.column / 2
        )
        yield _text(step.text, middle - width / 2, y - 5, SIZE, colour if step.style is Style.FAILURE else INK)


def _colour(party: str) -> tuple[str, str]:
    own = {CONSUMER: ("#f1f5f9", INK), LOOP: ("#f1f5f9", INK), MODEL: COLOURS[Role.MODEL], HOOKS: COLOURS[Role.HOOK]}
    return own.get(party, COLOURS[Role.READ])


def _text(text: str, x: float, y: float, size: float, colour: str, *, bold: bool = False, halo: bool = True) -> str:
    weight = ' font-weight="bold"' if bold else ""
    around = f' stroke="{PAPER}" stroke-width="3" paint-order="stroke"' if halo else ""
    place = f'x="{number(x)}" y="{number(y)}" font-size="{number(size)}"'
    return f'<text {place}{weight} fill="{colour}"{around}>{escaped(text)}</text>'
