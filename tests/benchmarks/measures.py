"""The measures: what is run, which figures are made of it, and what each has to reach."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs

from tests.benchmarks.scenario import Scenario

Raw = Mapping[str, Any]
"""What one child has measured."""

ALL: Final = ("sdk", "floor", "looplatch", "floor-fast", "looplatch-fast")
CORE: Final = ("sdk", "floor", "looplatch")


@attrs.frozen
class Figure:
    """A number made of what a child has measured. `beside` tells that its ratio to the SDK loop's is of interest."""

    name: str
    unit: str
    of: Callable[[Raw], float]
    digits: int = 2
    beside: bool = False


@attrs.frozen(kw_only=True)
class Target:
    """What an entrant's figure (or its ratio to the SDK loop's) has to be."""

    figure: str
    entrant: str = "looplatch"
    at_most: float | None = None
    at_least: float | None = None
    ratio: bool = False

    def is_met(self, value: float) -> bool:
        """Whether `value` reaches it."""
        return (self.at_most is None or value <= self.at_most) and (self.at_least is None or value >= self.at_least)

    @property
    def text(self) -> str:
        """The target in words."""
        bound = f"at most {self.at_most:g}" if self.at_most is not None else f"at least {self.at_least:g}"
        return f"{self.entrant}: {self.figure} {bound}{' of the SDK loop' if self.ratio else ''}"


@attrs.frozen(kw_only=True)
class Measure:
    """One measure. With a `workload` nothing is compared; `reps` bounds how often a slow one is repeated."""

    name: str
    about: str
    figures: tuple[Figure, ...]
    targets: tuple[Target, ...]
    scenario: Scenario = attrs.field(factory=Scenario)
    entrants: tuple[str, ...] = CORE
    workload: str | None = None
    marks: tuple[int, ...] = ()
    reps: int = 9


def _per(name: str, count: int, scale: float) -> Callable[[Raw], float]:
    return lambda raw: raw[name] * scale / count


def _between(first: int, last: int, column: int) -> Callable[[Raw], float]:
    """What was noted at call `last` less what was at call `first`, by the calls between."""
    return lambda raw: (raw["noted"][str(last)][column] - raw["noted"][str(first)][column]) / (last - first)


def _kept(name: str) -> Callable[[Raw], float]:
    return lambda raw: raw[name]


def _late_by_early(raw: Raw) -> float:
    return _between(900, 1_000, 0)(raw) / _between(50, 150, 0)(raw)


_LEVELS: Final = ("snip", "micro", "collapse", "compact")
_TURNS, _DELTAS, _INPUT, _MANY, _THOUSAND = 200, 5_000, 200_000, 20, 2

MEASURES: Final = (
    Measure(
        name="turn",
        about=f"{_TURNS} tool turns with one no-op tool",
        scenario=Scenario(turns=_TURNS),
        entrants=ALL,
        figures=(
            Figure("CPU a turn", "ms", _per("cpu_s", _TURNS, 1e3), beside=True),
            Figure("wall a turn", "ms", _per("wall_s", _TURNS, 1e3)),
        ),
        targets=(Target(figure="CPU a turn", at_most=0.40, ratio=True),),
    ),
    Measure(
        name="parallel",
        about="ten read-only tools of 50 ms in one answer",
        scenario=Scenario(turns=8, calls=10, tool_ms=50),
        figures=(Figure("wall a turn", "ms", _per("wall_s", 8, 1e3), digits=1, beside=True),),
        targets=(Target(figure="wall a turn", at_most=58),),
    ),
    Measure(
        name="start",
        about="a tool whose block is certain at once, in an answer of one second",
        scenario=Scenario(hold_ms=1_000),
        figures=(Figure("start after its block", "ms", _kept("start_ms")),),
        targets=(Target(figure="start after its block", at_most=2),),
    ),
    Measure(
        name="deltas",
        about=f"answers of {_DELTAS:,} text deltas, each handed to the consumer",
        scenario=Scenario(turns=0, final=_DELTAS, repeats=4),
        entrants=ALL,
        figures=(Figure("CPU a delta", "µs", _per("cpu_s", 4 * _DELTAS, 1e6), beside=True),),
        targets=(
            Target(figure="CPU a delta", at_most=0.20, ratio=True),
            Target(figure="CPU a delta", entrant="looplatch-fast", at_most=0.08, ratio=True),
        ),
    ),
    Measure(
        name="input",
        about=f"a nested tool input of {_INPUT // 1_000} KB in deltas of 16 bytes",
        scenario=Scenario(input_bytes=_INPUT, input_piece=16, nested=1),
        figures=(Figure("CPU a delta", "µs", _per("cpu_s", _INPUT // 16, 1e6), beside=True),),
        targets=(Target(figure="CPU a delta", at_most=0.03, ratio=True),),
        reps=2,
    ),
    Measure(
        name="growth",
        about="one run of 1,000 turns",
        scenario=Scenario(turns=1_000),
        marks=(50, 100, 150, 900, 1_000),
        figures=(
            Figure("CPU a turn, 50 to 150", "ms", lambda raw: 1e3 * _between(50, 150, 0)(raw)),
            Figure("CPU a turn, 900 to 1,000", "ms", lambda raw: 1e3 * _between(900, 1_000, 0)(raw)),
            Figure("late by early", "x", _late_by_early),
            Figure("memory a turn", "KB", _between(100, 1_000, 1), digits=1),
        ),
        targets=(Target(figure="late by early", at_most=1.3), Target(figure="memory a turn", at_most=2.5)),
        reps=3,
    ),
    Measure(
        name="many",
        about="200 loops at once in one process",
        scenario=Scenario(turns=_MANY, loops=200),
        entrants=ALL,
        figures=(Figure("turns a second", "/s", lambda raw: 200 * _MANY / raw["wall_s"], digits=0, beside=True),),
        targets=(
            Target(figure="turns a second", at_least=1.6, ratio=True),
            Target(figure="turns a second", entrant="looplatch-fast", at_least=4, ratio=True),
        ),
        reps=3,
    ),
    Measure(
        name="thousand",
        about="1,000 loops at once in one process",
        scenario=Scenario(turns=_THOUSAND, loops=1_000),
        entrants=("looplatch", "looplatch-fast"),
        figures=(
            Figure("turns a second", "/s", lambda raw: 1_000 * _THOUSAND / raw["wall_s"], digits=0),
            Figure("resident", "MB", _per("resident_kb", 1_024, 1), digits=0),
        ),
        targets=(Target(figure="turns a second", at_least=1),),
        reps=2,
    ),
    Measure(
        name="append",
        about="a record appended to the log",
        workload="append",
        figures=(
            Figure("CPU without fsync", "µs", _kept("none_us"), digits=1),
            Figure("CPU with group commit", "µs", _kept("group_us"), digits=1),
        ),
        targets=(Target(figure="CPU without fsync", at_most=12),),
    ),
    Measure(
        name="verify",
        about="verifying the log of 1,000 turns",
        workload="verify",
        figures=(
            Figure("records a second", "/s", _kept("records_a_second"), digits=0),
            Figure("memory beyond a short log's", "KB", _kept("grown_kb"), digits=0),
        ),
        targets=(
            Target(figure="records a second", at_least=100_000),
            Target(figure="memory beyond a short log's", at_most=1_024),
        ),
        reps=3,
    ),
    Measure(
        name="resume",
        about="taking up a run of 1,000 turns from its log",
        workload="resume",
        figures=(Figure("CPU", "s", _kept("resume_s")),),
        targets=(Target(figure="CPU", at_most=1),),
        reps=2,
    ),
    Measure(
        name="import",
        about="`import looplatch` in a fresh interpreter, the best of five",
        workload="import",
        figures=(
            Figure("wall", "ms", _kept("wall_ms"), digits=1),
            Figure("resident", "MB", _kept("resident_mb"), digits=1),
            Figure("heavy modules", "", _kept("heavy_modules"), digits=0),
            Figure("CPU of the first use of Loop", "ms", _kept("first_use_cpu_ms"), digits=0),
        ),
        targets=(
            Target(figure="wall", at_most=80),
            Target(figure="resident", at_most=25),
            Target(figure="heavy modules", at_most=0),
        ),
        reps=3,
    ),
    Measure(
        name="levels",
        about="each level of compression on a history of 2,000 messages, without the model's own writing",
        workload="levels",
        figures=(
            *(Figure(f"CPU of {level}", "ms", _kept(f"{level}_ms"), digits=1) for level in _LEVELS),
            *(
                Figure(f"CPU of {level} with all, into the log", "ms", _kept(f"{level}_whole_ms"), digits=1)
                for level in _LEVELS
            ),
        ),
        targets=tuple(Target(figure=f"CPU of {level} with all, into the log", at_most=20) for level in _LEVELS),
        reps=3,
    ),
    Measure(
        name="prepare",
        about="prepare where nothing is due",
        workload="prepare",
        figures=(
            Figure("CPU after 20 messages", "µs", _kept("after_20_us"), digits=1),
            Figure("CPU after 2,000 messages", "µs", _kept("after_2000_us"), digits=1),
            Figure("long by short", "x", lambda raw: raw["after_2000_us"] / raw["after_20_us"]),
        ),
        targets=(Target(figure="long by short", at_most=1.3),),
        reps=3,
    ),
)
