"""A run as a sequence: who said what to whom, in the order of the records."""

from collections.abc import Iterable, Iterator
from enum import StrEnum

import attrs

from looplatch.diagrams.course import away, text_in
from looplatch.diagrams.elapsed import Elapsed, Fields, spent
from looplatch.diagrams.source import Source, records_of
from looplatch.states.counted import counted
from looplatch.states.record import Kind

MOST = 120  # steps that are drawn; what is in the middle of more is left out
TOOLS = 6  # that have a column each; the others share one

CONSUMER, LOOP, MODEL, HOOKS, OTHERS = "consumer", "loop", "model", "hooks", "other tools"
_CALLS = ("model", "summary", "count", "size")
_ASKED = {"RunAborted": "abort", "RunClosed": "close", "ApprovalGiven": "approval given", "RunResumed": "resume"}


class Style(StrEnum):
    """What a step is."""

    CALL = "call"
    ANSWER = "answer"
    FAILURE = "failure"
    NOTE = "note"  # over the loop alone


@attrs.frozen(kw_only=True)
class Step:
    """One arrow, or a note. `effect`: the number of the effect that it begins (a call) or ends; both ends have it."""

    style: Style
    source: str
    target: str
    text: str
    effect: int | None = None


@attrs.frozen(kw_only=True)
class Sequence:
    """The steps of a run, at most MOST of them, and who takes part, from left to right."""

    parties: tuple[str, ...]
    steps: tuple[Step, ...]

    @property
    def whole(self) -> frozenset[int]:
        """The effects of which both ends are drawn."""
        ends = [step.effect for step in self.steps if step.effect is not None]
        return frozenset(effect for effect in ends if ends.count(effect) == 2)


def sequence_of(source: Source) -> Sequence:
    """The sequence of a log, of a run, or of its records. Raises UsageError where `source` is none of these."""
    reader = _Reader()
    steps = list(reader.read(records_of(source)))
    if len(steps) > MOST:
        half = MOST // 2
        gone = len(steps) - 2 * half
        left_out = Step(style=Style.NOTE, source=LOOP, target=LOOP, text=f"{counted(gone, 'step')} left out")
        steps = [*steps[:half], left_out, *steps[-half:]]
    used = {step.source for step in steps} | {step.target for step in steps}
    parties = (CONSUMER, LOOP, MODEL, HOOKS, *reader.tools, OTHERS)
    return Sequence(parties=tuple(name for name in parties if name in used), steps=tuple(steps))


class _Reader:
    def __init__(self) -> None:
        self.tools: list[str] = []
        self._begun: dict[str, tuple[str, int, int]] = {}
        self._turn = 1
        self._written = ""

    def read(self, records: Iterable[Fields]) -> Iterator[Step]:
        elapsed = Elapsed()
        for number, record in enumerate(records):
            now = elapsed.at(record)
            match record.get("kind"):
                case Kind.GENESIS:
                    yield _step(Style.CALL, CONSUMER, LOOP, "run")
                case None | Kind.TRANSITION:
                    yield from self._move(record)
                case Kind.EFFECT_BEGIN:
                    yield from self._begin(record, number, now)
                case Kind.EFFECT_END if text_in(record, "effect") in self._begun:
                    yield from self._end(record, now, elapsed.timed)
                case Kind.RESUMED:
                    self._begun.clear()
                    yield _note(f"taken over{away(self._written, text_in(record, 'ts'))}")
                case Kind.REJECTED:
                    yield _note(f"{text_in(record, 'event')} was refused")
                case _:
                    pass
            self._written = text_in(record, "ts")

    def _move(self, record: Fields) -> Iterator[Step]:
        event, reason = text_in(record, "event"), text_in(record, "reason")
        if event in _ASKED:
            yield _step(Style.CALL, CONSUMER, LOOP, _ASKED[event])
        if reason == "next_turn":
            self._turn += 1
            yield _note(f"turn {self._turn}")
        elif reason:
            yield _note(text_in(record, "strategy") or reason)
        elif event in ("HistoryCompressed", "HistorySummarised", "ModelFailed"):
            yield _note(event)
        elif event == "ApprovalAwaited":
            yield _step(Style.ANSWER, LOOP, CONSUMER, "approval awaited")
        if record.get("terminal") is not None:
            yield _step(Style.ANSWER, LOOP, CONSUMER, f"{text_in(record, 'target')}, {text_in(record, 'terminal')}")

    def _begin(self, record: Fields, number: int, now: int) -> Iterator[Step]:
        class_ = text_in(record, "class")
        if class_ == "sleep":
            yield _note(f"back-off, {text_in(record, 'delay_ms')} ms")
            return
        if class_ == "tool":
            party, text = self._tool(text_in(record, "name")), text_in(record, "tool_use_id")
        elif class_ in _CALLS:
            party, text = MODEL, f"turn {self._turn}" if class_ == "model" else class_
            sent: object = record.get("sent")
            count: object = sent.get("count") if isinstance(sent, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - JSON
            if isinstance(count, int):
                text += f", {counted(count, 'message')}"
        else:
            party, text = (
                HOOKS,
                " ".join(part for part in (text_in(record, "point"), text_in(record, "name")) if part),
            )
        self._begun[text_in(record, "seq")] = (party, now, number)
        yield _step(Style.CALL, LOOP, party, text or class_, number)

    def _end(self, record: Fields, now: int, timed: bool) -> Iterator[Step]:
        party, since, begin = self._begun.pop(text_in(record, "effect"))
        outcome = text_in(record, "outcome")
        said = text_in(record, "stop_reason") if outcome == "ok" else ""
        text = f"{said or outcome or 'ended'}, {spent(now - since)}" if timed else said or outcome or "ended"
        bad = record.get("is_error") is True or (party == MODEL and outcome != "ok")
        style = Style.FAILURE if bad else Style.ANSWER
        yield _step(style, party, LOOP, text, begin)

    def _tool(self, name: str) -> str:
        column = f"{name or 'unnamed'} (tool)"
        if column not in self.tools:
            if len(self.tools) == TOOLS:
                return OTHERS
            self.tools.append(column)
        return column


def _step(style: Style, source: str, target: str, text: str, effect: int | None = None) -> Step:
    return Step(style=style, source=source, target=target, text=text, effect=effect)


def _note(text: str) -> Step:
    return _step(Style.NOTE, LOOP, LOOP, text)
