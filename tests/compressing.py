"""Runs that between them walk every row of compression, in `prepare` and in `recover`."""

from collections.abc import Callable
from typing import Any

from looplatch import Compression, Limits, Run
from looplatch.testing import FakeClock, error, reply
from tests.playing import Play, transition
from tests.recovering import Model, files, meet, reads

DONE = reply("Done.")
NO = error(400, "invalid_request_error", "no")
TOO_LONG = error(400, "invalid_request_error", "prompt is too long")
OVERLOADED = error(529, "overloaded_error", "Overloaded")
USELESS = "word " * 20_000
SETTINGS: dict[str, Any] = {"snip_at": None, "micro_at": None, "stage_at": None, "collapse_at": None}


def compressed() -> list[Play]:
    """The runs, each against a model of its own."""
    small: dict[str, Any] = {"tools": [files(3_000)], "limits": Limits(max_turns=100)}
    known: dict[str, Any] = {**small, "window": 20_000}
    early = Compression(**SETTINGS, compact_at=0.5)
    staged: dict[str, Any] = {**SETTINGS, "stage_at": 0.3, "collapse_at": 1.0}
    staging = Compression(**staged, compact_at=1.0)
    wide: dict[str, Any] = {**known, "window": 40_000}
    trial = FakeClock()
    return [
        meet(Model([*reads(30), DONE]), **known),
        meet(Model([*reads(5), DONE]), compression=early, **known),
        meet(Model([*reads(8), TOO_LONG, DONE]), compression=staging, **wide),
        meet(Model([*reads(9), DONE], [NO]), compression=early, clock=trial, watch=after_withheld(trial), **known),
        meet(Model([*reads(3), TOO_LONG, DONE], [OVERLOADED, "It was done."]), **small),
        meet(Model([*reads(3), TOO_LONG], [NO]), **small),
        meet(Model([*reads(3), TOO_LONG], [USELESS]), **small),
        *(
            meet(
                Model([*reads(7), TOO_LONG], [NO, NO, NO, trial_of_it]),
                compression=early,
                clock=clock,
                watch=after_withheld(clock, only_in_recover=True),
                **known,
            )
            for trial_of_it, clock in ((USELESS, FakeClock()), (NO, FakeClock()))
        ),
    ]


def after_withheld(clock: FakeClock, *, only_in_recover: bool = False) -> Callable[[Any, Run], None]:
    """Lets the breaker cool down: when it has withheld a summary, or else when the run is in trouble."""

    def watch(message: Any, run: Run) -> None:
        move = transition(message)
        if move is None:
            return
        troubled = move.target == "recover" and move.source != "recover"
        if troubled if only_in_recover else ["summary_withheld", True] in move["guards"]:
            clock.advance(60)

    return watch
