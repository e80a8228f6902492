"""Logs of runs that compress, count, take notes and lower their limits: what may be, and what may not."""

from collections.abc import Callable
from typing import Any

import pytest

from looplatch.states import events as on
from looplatch.states.context import TOTALS
from looplatch.states.level import Level
from looplatch.states.trouble import TroubleKind
from looplatch.states.verify.log import verify_lines
from tests.forge import ZEROS, Fields, Forge, altered, broken, hexed, result, text
from tests.forged_runs import begun, complete, one_turn, streaming

NOTED = {**dict.fromkeys(TOTALS, 0), "input_tokens": 30, "output_tokens": 4}
NOTHING_SENT = {"count": 0, "digest": ZEROS}
COMPACTION = {"type": "compaction", "commitment": hexed("compacted"), "bytes": 9}


def turn() -> Forge:
    """A turn with two calls whose results are in the history, in prepare."""
    forge = one_turn()
    forge.join("user", result("a"), result("b"))
    forge.send(on.ToolsAnswered(results=2))
    return forge


def compressed(forge: Forge, level: Level = Level.SNIP) -> Forge:
    forge.send(on.HistoryCompressed(level=level, tokens_before=100, tokens_after=50))
    forge.send(on.ContextReady(tokens=130, window=200_000))
    return complete(forge)


def note(forge: Forge, *calls: str) -> Fields:
    return forge.begin("note", name="notes", calls=list(calls))


def noted(pays: bool = True, ends: bool = True) -> Forge:
    """A note of a turn's tools is taken while the model is asked on."""
    forge = one_turn()
    forge.join("user", result("a"), result("b"))
    taken = note(forge, "a", "b")
    forge.send(on.ToolsAnswered(results=2))
    forge.send(on.ContextReady(tokens=100, window=200_000))
    asked = forge.ask()
    if ends:
        forge.end(taken, usage=NOTED, result=None, bytes=0)
    forge.answered(asked, "end_turn", 10)
    forge.join("assistant", text("answer"), message_id="msg", model="m", stop_reason="end_turn")
    more = 1 if pays else 0
    spent: dict[str, Any] = {"input_tokens": 10 + 30 * more, "output_tokens": 10 + 4 * more}
    forge.send(on.ModelResponded(stop_reason="end_turn", **spent))
    forge.send(on.AnswerGiven())
    forge.end(forge.begin("hook", name="guardian"), "Pass")
    forge.send(on.StopHooksPassed(new_tokens=10))
    if not ends and pays:
        forge.end(taken, "interrupted", usage=dict.fromkeys(NOTED, 0), result=None, bytes=0)
    forge.seal()
    return forge


def retried(lower: int = 4_000, model: str = "m", differs: str | None = "max_tokens") -> Forge:
    """A request with an escalated limit is refused for it, and sent again."""
    forge = streaming(tokens=64_100)
    refused = {"type": "invalid_request_error", "status": 400, "retry_after_ms": 0}
    forge.answered(forge.ask(64_000), None, 0, refused)
    failed = on.ModelFailed(trouble=TroubleKind.TRANSIENT, failure="invalid_request_error", status=400)
    forge.send(failed)
    forge.send(on.TroubleNamed(trouble=TroubleKind.TRANSIENT))
    forge.end(forge.begin("sleep", delay_ms=0))
    forge.send(on.BackoffElapsed())
    complete(forge)
    [_, again] = [one for one in forge.records if one["kind"] == "effect_begin" and one["class"] == "model"]
    return altered(forge, again, max_tokens=lower, model=model, differs=differs)


# --- what may be


def newest_results_were_cut() -> Forge:
    """Other results stand there than the tools brought: the window holds no more."""
    forge = turn()
    forge.leave(2)
    cut = {**result("a"), "commitment": hexed("cut a")}
    forge.join("user", cut, result("b"))
    return compressed(forge)


def all_but_the_latest_was_compacted_by_the_api() -> Forge:
    forge = turn()
    forge.leave(0)
    forge.put(0, "assistant", COMPACTION)
    return compressed(forge, Level.COMPACT)


def three_left_at_once() -> Forge:
    forge = turn()
    forge.leave(0, 3)
    forge.join("user", text("summary"))
    return compressed(forge, Level.COMPACT)


def tokens_were_counted_and_the_window_asked_for() -> Forge:
    forge = begun()
    forge.end(forge.begin("size", model="m"), window=200_000, output=None)
    forge.end(forge.begin("count", model="m", sent=NOTHING_SENT), tokens=100)
    forge.send(on.ContextReady(tokens=180, window=200_000))
    return complete(forge)


def a_note_was_taken_beside_the_run() -> Forge:
    return noted()


def a_note_ended_with_the_run() -> Forge:
    forge = noted(ends=False)
    return unpaid(forge)


def unpaid(forge: Forge) -> Forge:
    """The answer costs only what it costs itself."""
    responded = [one for one in forge.records if one.get("event") == "ModelResponded"][-1]
    responded["fields"] |= {"input_tokens": 10, "output_tokens": 10}
    responded["change"] |= {"input_tokens": 20, "output_tokens": 20}
    forge.find(event="StopHooksPassed")["fields"]["new_tokens"] = 20
    return forge


def the_limit_was_lowered() -> Forge:
    return retried()


GOOD: tuple[Callable[[], Forge], ...] = (
    newest_results_were_cut, all_but_the_latest_was_compacted_by_the_api, three_left_at_once,
    tokens_were_counted_and_the_window_asked_for, a_note_was_taken_beside_the_run, a_note_ended_with_the_run,
    the_limit_was_lowered,
)  # fmt: skip


@pytest.mark.parametrize("build", GOOD, ids=lambda build: build.__name__)
def test_a_right_log_is_ok(build: Callable[[], Forge]) -> None:
    report = verify_lines(build().lines())
    assert report.ok, str(report)


@pytest.mark.parametrize(("gone", "status"), [(1, "open"), (2, "in_doubt")])
def test_a_run_that_died_before_its_seal_may_have_left_a_note_without_an_end(gone: int, status: str) -> None:
    lines = unpaid(noted(ends=False)).lines()
    assert verify_lines(lines).ok
    report = verify_lines(lines[:-gone])
    assert (report.ok, report.status) == (True, status)


# --- what may not


def e2_count() -> Forge:
    """Tokens are counted where nothing is prepared."""
    forge = streaming()
    forge.end(forge.begin("count", model="m", sent=NOTHING_SENT), tokens=20)
    return complete(forge)


def e2_note() -> Forge:
    """A note is begun while the model is asked."""
    forge = streaming()
    forge.end(note(forge), usage=dict.fromkeys(NOTED, 0), result=None, bytes=0)
    return complete(forge)


def e1_note() -> Forge:
    """A note that nobody ended."""
    forge = noted(pays=False, ends=False)
    return unpaid(forge)


def c4_note() -> Forge:
    """A note that nobody paid for."""
    return noted(pays=False)


def e5_higher() -> Forge:
    """A retry that says that its limit is lower, and it is not."""
    return retried(lower=64_001)


def e5_model() -> Forge:
    """It goes to another model, and says something else."""
    return retried(lower=64_000, model="n", differs=None)


def e5_same() -> Forge:
    """It says that it differs, and does not."""
    return retried(lower=64_000)


def e6_leave_none() -> Forge:
    forge = turn()
    forge.leave(2, 0)
    return compressed(forge)


def e6_assistant_first() -> Forge:
    """An answer comes first that is no compaction of the API's."""
    forge = turn()
    forge.leave(0)
    forge.put(0, "assistant", text("answer"))
    return compressed(forge)


BAD: tuple[Callable[[], Forge], ...] = (
    e2_count, e2_note, e1_note, c4_note, e5_higher, e5_model, e5_same, e6_leave_none, e6_assistant_first,
)  # fmt: skip


@pytest.mark.parametrize("build", BAD, ids=lambda build: build.__name__)
def test_a_bad_log_is_rejected_for_its_own_invariant_alone(build: Callable[[], Forge]) -> None:
    report = verify_lines(build().lines())
    assert broken(report) == {build.__name__.split("_")[0].upper()}, str(report)


def test_more_messages_cannot_leave_than_there_are() -> None:
    forge = turn()
    record = forge.leave(1, 2)
    compressed(forge)
    altered(forge, record, count=3)
    report = verify_lines(forge.lines())
    assert "E6" in broken(report)
    assert any("the leave does not fit" in violation.message for violation in report.violations)
