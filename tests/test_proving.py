"""Some of the drawn runs of `make soak`; and the proof sees what is wrong."""

import random
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given, settings

from looplatch import Limits, Log
from looplatch.playback import RunDiffers
from looplatch.testing import Answer, error, reply, tool_use
from tests.playing import play
from tests.proving import DRAWN, Drawn, prove, rebuilt
from tests.test_scripts import drawn

CALLS = [reply(tool_use("t1", "read", {})), reply("Done.")]
RUN = Drawn(script=[*CALLS], manners=[], verdicts=[], limits=Limits(), cut=3)


@settings(drawn, max_examples=60)
@given(DRAWN)
def test_a_drawn_run_is_verified_made_again_and_taken_up(run: Drawn) -> None:
    prove(run)


def test_a_run_goes_on_from_any_place_after_its_first_move() -> None:
    places = {prove(evolve(RUN, cut=cut)) for cut in range(23)}
    assert places == set(range(3, 23))  # genesis, prompt, first move; and all of its 23 records but the seal


def test_a_wait_that_was_asked_for_ends_with_the_next_request() -> None:
    """A process that dies in a request leaves none of its end; what an earlier one was told is over by then."""
    later = error(408, "timeout_error", "Later.", {"retry-after": "2"})
    script: list[Answer] = [reply(tool_use("t1", "read", {})), later, reply(tool_use("t2", "read", {}))]
    for cut in range(19, 22):  # in the third request: before it, in it, and after its call has begun
        prove(evolve(RUN, script=script, cut=cut))


class Forgetful(Drawn):
    """Its salts are others each time."""

    def options(self) -> dict[str, Any]:
        return super().options() | {"entropy": random.randbytes}


class Moody(Drawn):
    """Its limits are others from the third loop on, which is the one that plays the log again."""

    def options(self) -> dict[str, Any]:
        self.manners.append("quick")
        return super().options() | {"limits": Limits(max_turns=5 if len(self.manners) < 3 else 6)}


def test_other_bytes_are_seen() -> None:
    with pytest.raises(AssertionError, match="the same bytes"):
        prove(Forgetful(script=[*CALLS], manners=[], verdicts=[], limits=Limits(), cut=3))


def test_another_loop_is_seen() -> None:
    with pytest.raises(RunDiffers, match="max_turns"):
        prove(Moody(script=[*CALLS], manners=[], verdicts=[], limits=Limits(), cut=3))


def test_a_line_that_is_spelt_otherwise_is_seen() -> None:
    log = play(CALLS).log
    assert rebuilt(log) == log.lines
    lines = list(log.lines)
    lines[1] = lines[1].replace(b'"seq":1', b'"seq": 1')
    assert rebuilt(Log(lines, log.payloads))[1] != lines[1]
