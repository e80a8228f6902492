"""Bad logs in which calls of the model, waits and hooks end otherwise than the moves after them say."""

from collections.abc import Callable

import pytest

from looplatch.states import events as on
from looplatch.states.trouble import TroubleKind
from looplatch.states.verify.log import verify_lines
from tests.forge import Fields, Forge, altered, broken
from tests.forged_runs import aborted, complete, finish, long_run, respond, retry, short_run, streaming


def model_end(forge: Forge, place: int = 0) -> Fields:
    return [one for one in forge.records if one["kind"] == "effect_end" and one["class"] == "model"][place]


def retried(delay_ms: int, *, error: Fields, fallback: bool = False, failed: int = 1) -> Forge:
    """The model call fails, with this error the last time, and is made again after a wait of `delay_ms`."""
    forge = streaming()
    for _ in range(failed - 1):
        retry(forge)
    forge.answered(forge.ask(), None, 0, {"type": "api_error", "status": None, "retry_after_ms": None, **error})
    failure, status = error.get("type", "api_error"), error.get("status")
    forge.send(on.ModelFailed(trouble=TroubleKind.TRANSIENT, failure=failure, status=status))
    forge.send(on.TroubleNamed(trouble=TroubleKind.TRANSIENT, delay_ms=delay_ms, fallback=fallback))
    slept = forge.begin("sleep", delay_ms=delay_ms)
    forge.wait(delay_ms)
    forge.end(slept)
    forge.send(on.BackoffElapsed())
    return complete(forge)


def shown(outcome: str) -> Forge:
    """A hook is shown the answer, and ends so."""
    forge = streaming()
    forge.answered(forge.ask(), "end_turn", 10)
    respond(forge, "end_turn")
    forge.end(forge.begin("hook", point="after_response"), outcome)
    return forge


def slept(outcome: str) -> Forge:
    """A wait ends so, and the run goes on."""
    forge = long_run()
    return altered(forge, forge.find(kind="effect_end", class_="sleep"), outcome=outcome)


# --- what may be


@pytest.mark.parametrize("delay", [250, 500])
def test_the_first_wait_is_half_a_second_of_which_chance_takes_up_to_a_half(delay: int) -> None:
    assert verify_lines(retried(delay, error={}).lines()).ok


@pytest.mark.parametrize("delay", [500, 1_000])
def test_the_second_wait_is_twice_as_long(delay: int) -> None:
    assert verify_lines(retried(delay, error={}, failed=2).lines()).ok


def test_a_failed_hook_ends_the_run() -> None:
    forge = shown("ValueError")
    forge.send(on.DriverFailed(error="ValueError"))
    forge.seal()
    report = verify_lines(forge.lines())
    assert report.ok, str(report)


def test_a_wait_may_be_interrupted_by_the_end() -> None:
    forge = streaming()
    forge.answered(forge.ask(), None, 0, {"type": "api_error", "status": None, "retry_after_ms": None})
    forge.send(on.ModelFailed(trouble=TroubleKind.TRANSIENT, failure="api_error"))
    forge.send(on.TroubleNamed(trouble=TroubleKind.TRANSIENT, delay_ms=500))
    forge.end(forge.begin("sleep", delay_ms=500), "interrupted")
    report = verify_lines(aborted(forge).lines())
    assert report.ok, str(report)


def test_an_error_may_have_any_name() -> None:
    """Also one that is no error's."""
    report = verify_lines(retried(500, error={"type": "ok"}).lines())
    assert report.ok, str(report)


# --- what may not


def m13_other_outcome() -> Forge:
    return altered_end(outcome="api_error")


def altered_end(**fields: object) -> Forge:
    """The call that failed ends otherwise than the move says."""
    forge = long_run()
    return altered(forge, model_end(forge), **fields)


def m13_other_trouble() -> Forge:
    return altered_end(trouble="fatal")


def m13_no_call_fails_so() -> Forge:
    return altered_end(trouble="refused")


def m13_other_error() -> Forge:
    """Two records say so: the move is left alone with what it says."""
    error = {"type": "rate_limit_error", "status": 529, "retry_after_ms": 500, "measured": None}
    return altered_end(outcome="rate_limit_error", error=error)


def m13_other_status() -> Forge:
    return altered_end(error={"type": "overloaded_error", "status": 500, "retry_after_ms": 500, "measured": None})


def m13_outcome_of_an_answer() -> Forge:
    forge = short_run()
    return altered(forge, model_end(forge), outcome="fine")


def m13_trouble_of_an_answer() -> Forge:
    forge = short_run()
    return altered(forge, model_end(forge), trouble="transient")


def m13_answer_of_an_interrupted_call() -> Forge:
    forge = short_run()
    return altered(forge, model_end(forge), outcome="interrupted")


def m13_answer_of_a_failed_call() -> Forge:
    forge = short_run()
    error = {"type": "api_error", "status": None, "retry_after_ms": None, "measured": None}
    return altered(forge, model_end(forge), outcome="api_error", error=error, trouble="transient")


def m13_failure_of_no_call() -> Forge:
    forge = streaming()
    forge.send(on.ModelFailed(trouble=TroubleKind.FATAL, failure="api_error"))
    forge.send(on.TroubleNamed(trouble=TroubleKind.FATAL))
    forge.seal()
    return forge


def m13_answer_of_no_call() -> Forge:
    forge = streaming()
    forge.send(on.ModelResponded(stop_reason="end_turn"))
    forge.send(on.AnswerGiven())
    return finish(forge)


def m13_hook() -> Forge:
    """The hook that was shown the answer failed, and the run went on."""
    forge = shown("ValueError")
    forge.send(on.AnswerGiven())
    return finish(forge)


def c5_interrupted() -> Forge:
    return slept("interrupted")


def c5_unheard_of() -> Forge:
    return slept("okay")


def c5_no_wait() -> Forge:
    forge = long_run()
    begin, end = (forge.find(kind=kind, class_="sleep") for kind in ("effect_begin", "effect_end"))
    forge.records = [one for one in forge.records if one not in (begin, end)]
    return forge


def c5_too_short() -> Forge:
    return retried(249, error={})


def c5_too_long() -> Forge:
    return retried(501, error={})


def c5_sooner_than_asked() -> Forge:
    return retried(700, error={"retry_after_ms": 701})


def c5_later_than_asked() -> Forge:
    return retried(700, error={"retry_after_ms": 699})


def c5_measured() -> Forge:
    """Where only the limit was too high, waiting would mend nothing."""
    return retried(1, error={"measured": {"input_tokens": 20, "max_tokens": 0, "window": 250_000}})


def m8_too_early() -> Forge:
    """Another model is to go on after one failure."""
    return retried(500, error={"type": "overloaded_error", "status": 529}, fallback=True)


def m8_not_overloaded() -> Forge:
    return retried(1_000, error={"status": 500}, fallback=True, failed=2)


BAD: tuple[Callable[[], Forge], ...] = (
    m13_other_outcome, m13_other_trouble, m13_no_call_fails_so, m13_other_error, m13_other_status,
    m13_outcome_of_an_answer, m13_trouble_of_an_answer, m13_answer_of_an_interrupted_call,
    m13_answer_of_a_failed_call, m13_failure_of_no_call, m13_answer_of_no_call, m13_hook, c5_interrupted,
    c5_unheard_of, c5_no_wait, c5_too_short, c5_too_long, c5_sooner_than_asked, c5_later_than_asked, c5_measured,
    m8_too_early, m8_not_overloaded,
)  # fmt: skip


@pytest.mark.parametrize("build", BAD, ids=lambda build: build.__name__)
def test_a_bad_log_is_rejected_for_its_own_invariant_alone(build: Callable[[], Forge]) -> None:
    report = verify_lines(build().lines())
    assert broken(report) == {build.__name__.split("_")[0].upper()}, str(report)
