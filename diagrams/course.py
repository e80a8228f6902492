"""The course of a run: what it did, from when to when, and what befell it."""

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum

import attrs

from looplatch.diagrams.elapsed import Elapsed, Fields, spent
from looplatch.diagrams.outside import shown
from looplatch.diagrams.source import Source, records_of
from looplatch.states.record import Kind
from looplatch.states.state import State

NAME = 60  # characters of a name from outside
UNTIMED = 1_000_000  # nanoseconds from record to record, where the records tell no time


class Role(StrEnum):
    """Who or what was busy."""

    STATE = "state"
    MODEL = "model"
    READ = "read"  # a tool call that only reads
    WRITE = "write"
    HOOK = "hook"
    SUMMARY = "summary"
    SIZE = "size"  # the API was asked how large something is
    SLEEP = "sleep"
    APPROVAL = "approval"


ROLES = {
    "model": Role.MODEL,
    "tool": Role.WRITE,
    "hook": Role.HOOK,
    "note": Role.HOOK,
    "summary": Role.SUMMARY,
    "count": Role.SIZE,
    "size": Role.SIZE,
    "sleep": Role.SLEEP,
}
WORK = (Role.MODEL, Role.READ, Role.WRITE, Role.HOOK, Role.SUMMARY, Role.SIZE)
GOOD = frozenset(("ok", "answered", "Allow", "Ask", "Deny", "Pass", "Block", "Halt"))


@attrs.frozen(kw_only=True)
class Span:
    """Something that lasted, in nanoseconds of the run. `hint` tells the rest; `open`: its end was never recorded."""

    role: Role
    name: str
    start: int
    end: int
    hint: str
    failed: bool = False
    open: bool = False


class Sign(StrEnum):
    """What befell a run at one moment."""

    TURN = "turn"
    RETRY = "retry"
    SHORTER = "shorter"  # the history was compressed
    TAKEN_OVER = "taken over"
    REFUSED = "refused"  # an event was
    END = "end"


@attrs.frozen(kw_only=True)
class Moment:
    """What befell a run, and when."""

    sign: Sign
    at: int
    name: str


@attrs.frozen(kw_only=True)
class Course:
    """All that a run did. `whole`: its length in nanoseconds; `timed`: whether that is real time."""

    run: str
    spans: tuple[Span, ...]
    moments: tuple[Moment, ...]
    whole: int
    timed: bool
    terminal: str | None

    def of(self, *roles: Role) -> tuple[Span, ...]:
        """The spans of some roles, in the order in which they began."""
        return tuple(span for span in self.spans if span.role in roles)


def course_of(source: Source) -> Course:
    """The course of a log, of a run, or of its records. Raises UsageError where `source` is none of these."""
    records = list(records_of(source))
    return _Reader(records).course()


def text_in(record: Fields, name: str) -> str:
    """The field `name` as text that can be shown; empty where there is none."""
    value: object = record.get(name)
    return shown(str(value), NAME) if isinstance(value, str | int) else ""


class _Reader:
    def __init__(self, records: list[Fields]) -> None:
        self._records = records
        self._spans: list[Span] = []
        self._moments: list[Moment] = []
        self._begun: dict[str, tuple[Fields, int, int]] = {}
        self._turn = 1
        self._state, self._since = str(State.PREPARE), 0
        self._terminal: str | None = None
        self._written = ""
        self._timed = False

    def course(self) -> Course:
        elapsed = Elapsed()
        times = [elapsed.at(record) for record in self._records]
        self._timed = elapsed.timed
        if not elapsed.timed:
            times = [index * UNTIMED for index in range(len(times))]
        whole = times[-1] if times else 0
        for record, now in zip(self._records, times, strict=True):
            self._read(record, now)
        for begin, since, turn in self._begun.values():
            self._end(begin, None, since, whole, turn)
        self._enter("", whole)
        return Course(
            run=next((text_in(record, "run") for record in self._records), ""),
            spans=tuple(sorted(self._spans, key=lambda span: (span.start, span.end))),
            moments=tuple(self._moments),
            whole=whole,
            timed=elapsed.timed,
            terminal=self._terminal,
        )

    def _read(self, record: Fields, now: int) -> None:
        match record.get("kind"):
            case None | Kind.TRANSITION:
                self._move(record, now)
            case Kind.EFFECT_BEGIN:
                self._begun[text_in(record, "seq")] = (record, now, self._turn)
            case Kind.EFFECT_END if text_in(record, "effect") in self._begun:
                begin, since, turn = self._begun.pop(text_in(record, "effect"))
                self._end(begin, record, since, now, turn)
            case Kind.RESUMED:
                self._sign(Sign.TAKEN_OVER, now, f"taken over{away(self._written, text_in(record, 'ts'))}")
                for begin, since, turn in self._begun.values():
                    self._end(begin, None, since, now, turn)
                self._begun.clear()
            case Kind.REJECTED:
                self._sign(Sign.REFUSED, now, f"{text_in(record, 'event')} was refused")
            case _:
                pass
        self._written = text_in(record, "ts")

    def _move(self, record: Fields, now: int) -> None:
        event, reason = text_in(record, "event"), text_in(record, "reason")
        why = text_in(record, "strategy") or reason or text_in(record, "terminal")
        if reason == "next_turn":
            self._turn += 1
            self._sign(Sign.TURN, now, f"turn {self._turn}")
        elif reason:
            self._sign(Sign.RETRY, now, why)
        elif event == "BackoffElapsed":
            self._sign(Sign.RETRY, now, "retry")
        elif event in ("HistoryCompressed", "HistorySummarised"):
            self._sign(Sign.SHORTER, now, event)
        if record.get("target") != record.get("source"):
            self._enter(text_in(record, "target"), now)
        if record.get("terminal") is not None:
            self._terminal = text_in(record, "terminal")
            self._sign(Sign.END, now, self._terminal)

    def _enter(self, state: str, now: int) -> None:
        if self._terminal is None:
            self._add(Span(role=Role.STATE, name=self._state, start=self._since, end=now, hint=self._state))
            if self._state == State.SUSPENDED:
                hint = "waiting for approval"
                self._add(Span(role=Role.APPROVAL, name="approval", start=self._since, end=now, hint=hint))
        self._state, self._since = state, now

    def _end(self, begin: Fields, end: Fields | None, start: int, now: int, turn: int) -> None:
        self._add(_span(begin, end, start, now, turn))

    def _add(self, span: Span) -> None:
        if self._timed:
            span = attrs.evolve(span, hint=f"{span.hint}, {spent(span.end - span.start)}")
        self._spans.append(span)

    def _sign(self, sign: Sign, now: int, name: str) -> None:
        self._moments.append(Moment(sign=sign, at=now, name=name))


def _span(begin: Fields, end: Fields | None, start: int, now: int, turn: int) -> Span:
    role = ROLES.get(text_in(begin, "class"), Role.HOOK)
    if role is Role.WRITE and text_in(begin, "access") == "read":
        role = Role.READ
    outcome = "its end was not recorded" if end is None else text_in(end, "outcome")
    match role:
        case Role.MODEL:
            name = f"turn {turn}"
            parts = [
                name,
                text_in(begin, "model"),
                text_in(end, "stop_reason") if end is not None else "",
                outcome,
            ]
            parts += list(_usage(end)) if end is not None else []
        case Role.READ | Role.WRITE:
            name = text_in(begin, "name")
            parts = [name, text_in(begin, "tool_use_id"), text_in(begin, "access"), outcome]
        case Role.SLEEP:
            name = "back-off"
            parts = [name, f"{text_in(begin, 'delay_ms')} ms", outcome]
        case Role.SUMMARY:
            name = "summary"
            parts = [name, text_in(begin, "level"), text_in(begin, "model"), outcome]
        case _:
            name = text_in(begin, "name") or text_in(begin, "class")
            parts = [text_in(begin, "class"), text_in(begin, "point"), text_in(begin, "name"), outcome]
    return Span(
        role=role,
        name=name,
        start=start,
        end=now,
        hint=", ".join(part for part in parts if part),
        failed=end is None or (outcome not in GOOD and role is not Role.SLEEP),
        open=end is None,
    )


def _usage(end: Fields) -> Iterable[str]:
    usage: object = end.get("usage")
    if isinstance(usage, dict):
        for name in ("input_tokens", "output_tokens"):
            tokens: object = usage.get(name)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - JSON
            if isinstance(tokens, int):
                yield f"{tokens:,} {name.replace('_', ' ')}"


def away(before: str, after: str) -> str:
    """How long nobody owned the run, between two times of day, with a word before it; empty where they tell nothing."""
    try:
        gone = datetime.fromisoformat(after) - datetime.fromisoformat(before)
        return f" after {spent(int(max(gone.total_seconds(), 0) * 1e9))}"
    except (ValueError, TypeError):
        return ""
