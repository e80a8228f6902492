"""Bad logs whose requests ask for what nothing bears out, and whose sizes are not those that were counted."""

from collections.abc import Callable

import pytest

from looplatch.states import events as on
from looplatch.states.context import TOTALS
from looplatch.states.level import Level
from looplatch.states.trouble import TroubleKind
from looplatch.states.verify.log import verify_lines
from tests.forge import ZEROS, Fields, Forge, altered, broken, result, text
from tests.forged_runs import OVERLOADED, begun, complete, finish, long_run, one_turn, respond, short_run, streaming

TOO_LONG: Fields = {
    "type": "invalid_request_error",
    "status": 400,
    "retry_after_ms": None,
    "measured": {"input_tokens": 300, "max_tokens": 0, "window": 250},
}


def requests(forge: Forge) -> list[Fields]:
    return [one for one in forge.records if one["kind"] == "effect_begin" and one["class"] == "model"]


def ready(forge: Forge) -> list[Fields]:
    return [one for one in forge.records if one.get("event") == "ContextReady"]


def overloaded_twice(fallback: str = "other", again: str = "other", differs: str | None = "fallback_model") -> Forge:
    """The model is overloaded three times; from the second retry on another one is asked."""
    forge = streaming()
    for tried, (model, told) in enumerate((("m", None), ("m", None), (fallback, differs))):
        forge.model = model
        asked = forge.ask()
        asked["differs"] = told
        forge.answered(asked, None, 0, OVERLOADED)
        forge.send(on.ModelFailed(trouble=TroubleKind.TRANSIENT, failure="overloaded_error", status=529))
        forge.send(on.TroubleNamed(trouble=TroubleKind.TRANSIENT, delay_ms=500, fallback=tried > 0))
        slept = forge.begin("sleep", delay_ms=500)
        forge.wait(500)
        forge.end(slept)
        forge.send(on.BackoffElapsed())
    forge.model = again
    return complete(forge)


def escalated(limit: int = 640, tokens: int = 660, output_limit: int = 640) -> Forge:
    """An answer is cut, and asked for again with a higher limit."""
    forge = streaming()
    held = {"prompt": 20, "output": 80}
    altered(forge, forge.answered(forge.ask(), "max_tokens", 10), held=held)
    forge.send(on.ModelResponded(stop_reason="max_tokens", input_tokens=10, output_tokens=10))
    forge.send(on.OutputTruncated())
    forge.send(on.TroubleNamed(trouble=TroubleKind.TRUNCATED, output_limit=output_limit))
    forge.send(on.ContextReady(tokens=tokens, window=200_000))
    forge.answered(forge.ask(limit), "end_turn", 10)
    respond(forge, "end_turn")
    forge.send(on.AnswerGiven())
    return finish(forge)


def measured(window: int = 250, before: int = 300, after: int = 100, lost: int = 0) -> Forge:
    """A prompt is refused as too long, and shortened to what the API has measured."""
    forge = streaming()
    forge.answered(forge.ask(), None, 0, TOO_LONG)["trouble"] = "overflow"
    forge.send(on.ModelFailed(trouble=TroubleKind.OVERFLOW, failure="invalid_request_error", status=400))
    forge.send(on.TroubleNamed(trouble=TroubleKind.OVERFLOW, can_summarise=True, breaker_cooled=True))
    forge.leave(0)
    forge.join("user", text("shorter"))
    forge.send(on.HistorySummarised(tokens_before=before, tokens_after=after, cache_lost=lost))
    forge.send(on.ContextReady(tokens=after + 80, window=window))
    return complete(forge)


def summarised(model: str = "small", again: str = "small") -> Forge:
    """Two summaries are asked for, and neither can be had."""
    forge = begun()
    for asked in (model, again):
        forge.send(on.SummaryDue(level=Level.COMPACT, breaker_cooled=True))
        writing = forge.begin("summary", model=asked, level="compact", by="model", max_tokens=10, span=None)
        forge.end(writing, "api_error", usage=dict.fromkeys(TOTALS, 0), result=None, bytes=0)
        forge.send(on.SummaryFailed(failure="api_error", transient=True))
    forge.send(on.ContextReady(tokens=100, window=200_000))
    return complete(forge)


# --- what may be


def went_to_another_model() -> Forge:
    return overloaded_twice()


def asked_for_more() -> Forge:
    return escalated()


def asked_for_less_than_allowed() -> Forge:
    return escalated(limit=400, tokens=420)


def was_measured() -> Forge:
    return measured()


def summaries_have_a_model_of_their_own() -> Forge:
    return summarised()


GOOD = (
    went_to_another_model, asked_for_more, asked_for_less_than_allowed, was_measured,
    summaries_have_a_model_of_their_own,
)  # fmt: skip


@pytest.mark.parametrize("build", GOOD, ids=lambda build: build.__name__)
def test_a_right_log_is_ok(build: Callable[[], Forge]) -> None:
    report = verify_lines(build().lines())
    assert report.ok, str(report)


# --- what may not


def e5_another_model() -> Forge:
    forge = long_run()
    return altered(forge, requests(forge)[0], model="n")


def e5_another_model_later() -> Forge:
    forge = long_run()
    return altered(forge, requests(forge)[2], model="n")


def e5_another_fallback() -> Forge:
    return overloaded_twice(again="a third one")


def e5_fallback_unsaid() -> Forge:
    return overloaded_twice(differs=None)


def e5_says_that_it_differs() -> Forge:
    """A request that is no retry."""
    forge = long_run()
    return altered(forge, requests(forge)[2], differs="max_tokens")


def e5_summary() -> Forge:
    return summarised(again="another")


def e5_counted_for_another() -> Forge:
    forge = begun()
    forge.end(forge.begin("count", model="n", sent={"count": 0, "digest": ZEROS}), tokens=20)
    forge.send(on.ContextReady(tokens=100, window=200_000))
    return complete(forge)


def e5_more_tokens() -> Forge:
    """A later request asks for more than the first one, and nothing allows it."""
    forge = one_turn()
    forge.join("user", result("a"), result("b"))
    forge.send(on.ToolsAnswered(results=2))
    forge.send(on.ContextReady(tokens=200, window=200_000))
    forge.answered(forge.ask(81), "end_turn", 10)
    respond(forge, "end_turn")
    forge.send(on.AnswerGiven())
    return finish(forge)


def e5_fewer_tokens() -> Forge:
    forge = e5_more_tokens()
    return altered(forge, requests(forge)[1], max_tokens=79)


def e5_more_than_was_allowed() -> Forge:
    return escalated(limit=641, tokens=661)


def c7_larger_than_it_is() -> Forge:
    """The next request is said to be larger than prompt and limit."""
    return escalated(tokens=661)


def c7_smaller_than_it_is() -> Forge:
    return escalated(tokens=659)


def c7_smaller_than_its_limit() -> Forge:
    forge = short_run()
    return altered(forge, requests(forge)[0], max_tokens=101)


def c7_another_window() -> Forge:
    return measured(window=251)


def c7_another_window_later() -> Forge:
    forge = long_run()
    ready(forge)[1]["fields"]["window"] = 200_001
    return forge


def c7_measured_otherwise() -> Forge:
    return measured(before=301)


def c7_more_lost_than_there_was() -> Forge:
    return measured(lost=301)


BAD = (
    e5_another_model, e5_another_model_later, e5_another_fallback, e5_fallback_unsaid, e5_says_that_it_differs,
    e5_summary, e5_counted_for_another, e5_more_tokens, e5_fewer_tokens, e5_more_than_was_allowed,
    c7_larger_than_it_is, c7_smaller_than_it_is, c7_smaller_than_its_limit, c7_another_window,
    c7_another_window_later, c7_measured_otherwise, c7_more_lost_than_there_was,
)  # fmt: skip


@pytest.mark.parametrize("build", BAD, ids=lambda build: build.__name__)
def test_a_bad_log_is_rejected_for_its_own_invariant_alone(build: Callable[[], Forge]) -> None:
    report = verify_lines(build().lines())
    assert broken(report) == {build.__name__.split("_")[0].upper()}, str(report)
