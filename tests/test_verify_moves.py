"""Bad logs for the invariants of the machine, each rejected for its own alone."""

from collections.abc import Callable

import pytest

from looplatch.states import events as on
from looplatch.states.state import State
from looplatch.states.trouble import TroubleKind
from looplatch.states.verify.log import verify_lines
from tests.forge import Fields, Forge, altered, broken, hexed, text
from tests.forged_runs import (
    API_ERROR,
    aborted,
    begun,
    complete,
    drained,
    finish,
    long_run,
    overflowing,
    respond,
    short_run,
    streaming,
)


def m1() -> Forge:
    """The first move is made in stream."""
    forge = Forge()
    forge.join("user", text("question"))
    forge.state = State.STREAM
    forge.send(on.RunPaused())
    forge.send(on.RunResumed())
    return complete(forge)


def m1_twice() -> Forge:
    forge = begun()
    forge.send(on.RunStarted())
    forge.send(on.ContextReady(tokens=100, window=200_000))
    return complete(forge)


def m2() -> Forge:
    """In prepare, a move out of recover."""
    forge = begun()
    forge.state = State.RECOVER
    return aborted(forge)


def m3() -> Forge:
    """An abort that completes."""
    forge = streaming()
    forge.send(on.RunAborted()).update(target="completed")
    forge.seal(state="completed")
    return forge


def m3_event() -> Forge:
    """Tools are answered in stream."""
    forge = streaming()
    forge.send(on.RunAborted()).update(event="ToolsAnswered")
    forge.seal()
    return forge


def m3_unasked() -> Forge:
    """In recover, the history is summarised without an order: there is such a row, but nothing leads to it here."""
    forge = overflowing()
    forge.send(on.HistorySummarised(tokens_before=300, tokens_after=100))
    forge.send(on.ContextReady(tokens=180, window=200))
    return complete(forge)


def m4_missing() -> Forge:
    forge = short_run()
    return altered(forge, forge.find(event="ContextReady"), guards=[["fits", True], ["budget_spent", False]])


def m4_order() -> Forge:
    forge = short_run()
    guards = [["budget_spent", False], ["fits", True], ["overflow", False]]
    return altered(forge, forge.find(event="ContextReady"), guards=guards)


def m4_number() -> Forge:
    forge = short_run()
    guards = [["fits", 1], ["budget_spent", False], ["overflow", False]]
    return altered(forge, forge.find(event="ContextReady"), guards=guards)


def m4_constant_number() -> Forge:
    forge = short_run()
    return altered(forge, forge.find(event="RunStarted"), guards=[["always", 1]])


def m4_other_row() -> Forge:
    """The guard that holds leads to stream, the move to recover."""
    forge = begun()
    forge.send(on.ContextReady(tokens=100, window=200)).update(target="recover")
    forge.state = State.RECOVER
    return aborted(forge)


def m5() -> Forge:
    """A prompt over the window is said to fit."""
    forge = short_run()
    return altered(forge, forge.find(event="ContextReady"), fields={"tokens": 201, "window": 200})


def m5_fields() -> Forge:
    forge = short_run()
    return altered(forge, forge.find(event="ContextReady"), fields={"tokens": "1", "window": 200})


def m6_two() -> Forge:
    forge = short_run()
    guards = [["fits", True], ["budget_spent", True], ["overflow", False]]
    return altered(forge, forge.find(event="ContextReady"), guards=guards)


def m6_none() -> Forge:
    forge = short_run()
    guards = [["fits", False], ["budget_spent", False], ["overflow", False]]
    return altered(forge, forge.find(event="ContextReady"), guards=guards)


def m7_reason() -> Forge:
    forge = long_run()
    return altered(forge, forge.find(event="ToolsAnswered"), reason=None)


def m7_strategy() -> Forge:
    forge = drained()
    return altered(forge, forge.find(event="TroubleNamed"), strategy="reactive_compact_retry")


def m7_elsewhere() -> Forge:
    """A reason where prepare is not entered."""
    forge = short_run()
    return altered(forge, forge.find(event="AnswerGiven"), reason="next_turn")


def m8_strategy() -> Forge:
    forge = drained()
    return altered(forge, forge.find(event="TroubleNamed"), strategy=None)


def m8_terminal() -> Forge:
    forge = overflowing()
    forge.send(on.TroubleNamed(trouble=TroubleKind.OVERFLOW)).update(terminal=None)
    forge.seal()
    return forge


def m8_entry() -> Forge:
    forge = drained()
    return altered(forge, forge.find(event="ContextReady"), change={"level": 0})


def m8_other_trouble() -> Forge:
    """The prompt does not fit, but a fatal error is named."""
    forge = overflowing()
    forge.send(on.TroubleNamed(trouble=TroubleKind.FATAL))
    forge.seal()
    return forge


def m9_move() -> Forge:
    forge = short_run()
    seal = forge.records.pop()
    forge.state = State.PREPARE
    forge.send(on.RunAborted())
    forge.add(**seal | {"mono_ns": forge.records[-1]["mono_ns"]})
    return forge


def m9_terminal() -> Forge:
    forge = short_run()
    return altered(forge, forge.find(event="StopHooksPassed"), terminal="stopped")


def _rejecting(**fields: object) -> Forge:
    forge = streaming()
    refused: Fields = {
        "source": "stream", "event": "ToolsAnswered", "fields": {"results": 1, "errors": 0, "stop_asked": False},
        "target": "stream", "reason": None, "strategy": None, "terminal": None, "guards": [], "change": {},
    }  # fmt: skip
    forge.add("rejected", **(refused | fields))
    return complete(forge)


def m10_change() -> Forge:
    return _rejecting(change={"turn": 2})


def m10_target() -> Forge:
    return _rejecting(target="orchestrate")


def m10_reason() -> Forge:
    return _rejecting(reason="next_turn")


def m11_missing() -> Forge:
    forge = drained()
    return altered(forge, forge.find(event="TroubleNamed"), change={"drained": 1, "trouble": None})


def m11_more() -> Forge:
    forge = short_run()
    return altered(forge, forge.find(event="ContextReady"), change={"fallback": True})


def m11_type() -> Forge:
    """A flag recorded as a number."""
    forge = streaming()
    forge.tool("a")
    forge.did(forge.records[-1])
    asked = forge.ask()
    forge.records.remove(asked)
    forge.records.insert(-2, asked)
    for record in forge.records:
        record["mono_ns"] = 0
    forge.answered(asked, None, error=API_ERROR)
    forge.join("assistant", {"type": "tool_use", "commitment": hexed("call a"), "bytes": 9, "id": "a", "name": "look"})
    moved = forge.send(on.ModelFailed(trouble=TroubleKind.TRANSIENT, failure="api_error", begun=1))
    moved["change"] = {"trouble": "transient", "sealed": 1}
    told = {"type": "tool_result", "commitment": hexed("result a"), "bytes": 7, "tool_use_id": "a", "is_error": False}
    forge.join("user", told)
    return aborted(forge)


def m12() -> Forge:
    forge = streaming()
    forge.send(on.RunAborted()).update(target="limbo")
    forge.seal(state="limbo")
    return forge


def m13() -> Forge:
    """An answer cut by max_tokens counts as given."""
    forge = streaming()
    forge.answered(forge.ask(), "max_tokens", 10)
    respond(forge, "max_tokens")
    forge.send(on.AnswerGiven())
    return finish(forge)


def m13_skipped() -> Forge:
    """The stop hooks are asked without a look at the stop reason."""
    forge = streaming()
    forge.answered(forge.ask(), "end_turn", 10)
    respond(forge, "end_turn")
    return finish(forge)


def m13_effect() -> Forge:
    """The model call says another stop reason than the event."""
    forge = short_run()
    forge.find(kind="message", role="assistant")["stop_reason"] = "stop_sequence"
    return altered(forge, forge.find(kind="effect_end", class_="model"), stop_reason="stop_sequence")


def m13_calls() -> Forge:
    """Two calls were made, three are asked for."""
    forge = long_run()
    return altered(forge, forge.find(event="ToolsRequested"), fields={"calls": 2})


BAD: tuple[Callable[[], Forge], ...] = (
    m1, m1_twice, m2, m3, m3_event, m3_unasked, m4_missing, m4_order, m4_number, m4_constant_number, m4_other_row,
    m5, m5_fields, m6_two, m6_none, m7_reason, m7_strategy, m7_elsewhere, m8_strategy, m8_terminal, m8_entry,
    m8_other_trouble, m9_move, m9_terminal, m10_change, m10_target, m10_reason, m11_missing, m11_more, m11_type,
    m12, m13, m13_skipped, m13_effect, m13_calls,
)  # fmt: skip


@pytest.mark.parametrize("build", BAD, ids=lambda build: build.__name__)
def test_a_bad_log_is_rejected_for_its_own_invariant_alone(build: Callable[[], Forge]) -> None:
    report = verify_lines(build().lines())
    assert broken(report) == {build.__name__.split("_")[0].upper()}, str(report)
