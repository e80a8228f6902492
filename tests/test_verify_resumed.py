"""The verifier on logs of several processes: what a new owner may do, and bad logs for what it may not."""

from collections.abc import Callable
from typing import Any

import pytest

from looplatch.states import events as on
from looplatch.states.limits import Limits
from looplatch.states.table import TABLE
from looplatch.states.verify.log import verify_lines
from tests.forge import CLAIM, Fields, Forge, broken, call, result, text
from tests.forged_runs import finish, respond

TOKENS = {"input_tokens": 10, "output_tokens": 10}


class Owned(Forge):
    """A forge whose records know the process that wrote them."""

    epoch = 0

    def add(self, kind: str, **fields: Any) -> Fields:
        return super().add(kind, **{"epoch": self.epoch, **fields})

    def claim(self, **fields: Any) -> Fields:
        """A new process owns the run."""
        self.epoch += 1
        return self.add("resumed", **{**CLAIM, **fields})


def streaming(limits: Limits | None = None, deadline_ms: int | None = None) -> Owned:
    """A run that is about to ask the model."""
    forge = Owned(limits, TABLE, deadline_ms)
    forge.join("user", text("question"), form="text")
    forge.send(on.RunStarted())
    forge.send(on.ContextReady(tokens=100, window=200_000))
    return forge


def in_flight(access: str = "read") -> Owned:
    """A call had begun while the answer was being written, when the process died."""
    forge = streaming()
    forge.ask()
    forge.tool("a", access=access)
    return forge


def orchestrating(access: str = "read") -> Owned:
    """The next process keeps the cut answer up to its call."""
    forge = in_flight(access)
    forge.claim()
    forge.join("assistant", call("a"))
    forge.send(on.RunResumed(begun=1))
    return forge


def answered(forge: Owned, *, is_error: bool = False) -> Owned:
    """The call has its result, and the run goes on to an answer."""
    forge.join("user", result("a", is_error=is_error))
    forge.send(on.ToolsAnswered(results=1, errors=int(is_error)))
    return forge


def ended(forge: Owned) -> Owned:
    """From stream to the end, without calls."""
    forge.answered(forge.ask(), "end_turn", 10)
    respond(forge, "end_turn")
    forge.send(on.AnswerGiven())
    finish(forge)
    return forge


# --- what a new owner may do


def asks_again() -> Forge:
    forge = streaming()
    forge.ask()
    forge.claim()
    forge.send(on.RunResumed())
    return ended(forge)


def reads_again() -> Forge:
    forge = orchestrating()
    forge.did(forge.tool("a"))
    return answered(forge)


def says_that_the_effect_is_unknown() -> Forge:
    return answered(orchestrating("write"), is_error=True)


def writes_again_what_is_idempotent() -> Forge:
    forge = orchestrating("write")
    forge.did(forge.tool("a", access="write"))
    return answered(forge)


def tells_of_an_answer_that_was_had() -> Forge:
    """The call of the model had ended, and nothing told of it: its tokens are told by the next process."""
    forge = streaming()
    asked = forge.ask()
    forge.did(forge.tool("a"))
    forge.answered(asked, "tool_use", 10)
    forge.claim()
    forge.send(on.RunResumed())
    respond(forge, "tool_use", ("a",), started=1)
    forge.send(on.ToolsRequested(calls=1))
    return answered(forge)


def asks_again_what_had_failed() -> Forge:
    """What a failed call cost may be told, or be lost with the process."""
    forge = streaming()
    forge.answered(forge.ask(), None, 5, {"type": "stream_cut", "status": None, "retry_after_ms": None})
    forge.claim()
    forge.send(on.RunResumed())
    return ended(forge)


def goes_on_with_other_limits() -> Forge:
    limits = Limits(max_turns=1)
    forge = streaming(Limits(max_turns=9))
    forge.claim(changes={"limits": {"was": Limits(max_turns=9).fields(), "now": limits.fields()}})
    forge.context = type(forge.context)(limits=limits)
    forge.send(on.RunResumed())
    asked = forge.ask()
    forge.did(forge.tool("a"))
    forge.answered(asked, "tool_use", 10)
    respond(forge, "tool_use", ("a",), started=1)
    forge.send(on.ToolsRequested(calls=1))
    forge.join("user", result("a"))
    forge.send(on.ToolsAnswered(results=1))
    assert forge.state == "failed"
    forge.seal()
    return forge


def has_more_time() -> Forge:
    forge = streaming(deadline_ms=1_000)
    forge.claim(deadline_ms=900)
    forge.send(on.RunResumed())
    return ended(forge)


def seals_what_had_ended() -> Forge:
    forge = ended(streaming())
    assert isinstance(forge, Owned)
    forge.records.pop()
    forge.claim()
    forge.seal()
    return forge


def puts_the_history_right() -> Forge:
    """A compression was cut: what it took out comes back before the run goes on."""
    forge = Owned(None, TABLE, None)
    forge.join("user", text("question"), form="text")
    forge.join("assistant", text("answer"))
    forge.join("user", text("again"))
    forge.send(on.RunStarted())
    forge.edit((1, 2, []))
    return put_right(forge)


def puts_the_history_of_an_older_library_right() -> Forge:
    """The same where the compression was of the schema before: message by message."""
    forge = Owned(None, TABLE, None)
    forge.join("user", text("question"), form="text")
    forge.join("assistant", text("answer"))
    forge.join("user", text("again"))
    forge.send(on.RunStarted())
    forge.leave(1)
    for record in forge.records:
        record["v"] = 2
    forge.schema = 3
    return put_right(forge)


def put_right(forge: Owned) -> Forge:
    forge.claim()
    forge.edit((1, 1, [{"role": "assistant", "form": "blocks", "blocks": [text("answer")]}]))
    forge.send(on.RunResumed())
    forge.send(on.ContextReady(tokens=100, window=200_000))
    return ended(forge)


GOOD: tuple[Callable[[], Forge], ...] = (
    asks_again, reads_again, says_that_the_effect_is_unknown, writes_again_what_is_idempotent,
    tells_of_an_answer_that_was_had, asks_again_what_had_failed, goes_on_with_other_limits, has_more_time,
    seals_what_had_ended, puts_the_history_right, puts_the_history_of_an_older_library_right,
)  # fmt: skip


@pytest.mark.parametrize("build", GOOD, ids=lambda build: build.__name__)
def test_a_new_owner_may_go_on(build: Callable[[], Forge]) -> None:
    report = verify_lines(build().lines())
    assert report.ok, str(report)


# --- what it may not: each breaks the invariant of its name, and no other


def r3() -> Forge:
    forge = streaming()
    forge.claim(epoch=0)
    forge.epoch = 0
    forge.send(on.RunResumed())
    return forge


def r4() -> Forge:
    """An older owner writes on."""
    forge = streaming()
    forge.claim()
    forge.send(on.RunResumed())
    forge.epoch = 0
    forge.ask()
    return forge


def r2() -> Forge:
    """A call that has ended is carried out again."""
    forge = streaming()
    forge.ask()
    forge.did(forge.tool("a"))
    forge.claim()
    forge.join("assistant", call("a"))
    forge.send(on.RunResumed(begun=1))
    forge.did(forge.tool("a"))
    return answered(forge)


def t7() -> Forge:
    """Nobody knows how the write ended, and its result says that it went well."""
    return answered(orchestrating("write"))


def m13_fewer() -> Forge:
    """A call had begun, and the answer is thrown away as if none had."""
    forge = in_flight()
    forge.claim()
    forge.send(on.RunResumed())
    return forge


def m13_whole() -> Forge:
    """The answer was whole, and is sealed as if it had been cut."""
    forge = streaming()
    asked = forge.ask()
    forge.did(forge.tool("a"))
    forge.answered(asked, "tool_use")
    forge.claim()
    forge.join("assistant", call("a"))
    forge.send(on.RunResumed(begun=1))
    return forge


def c4() -> Forge:
    """Tokens that no call of either process had."""
    forge = streaming()
    forge.answered(forge.ask(), None, 5, {"type": "stream_cut", "status": None, "retry_after_ms": None})
    forge.claim()
    forge.send(on.RunResumed())
    forge.answered(forge.ask(), "end_turn", 7)
    respond(forge, "end_turn")
    return forge


def c6() -> Forge:
    """The time that was left at the claim is over."""
    forge = streaming(deadline_ms=60_000)
    forge.claim(deadline_ms=100)
    forge.send(on.RunResumed())
    forge.wait(500)
    forge.ask()
    return forge


def i6_other() -> Forge:
    forge = streaming()
    forge.claim(changes={"table": {"was": TABLE.fingerprint, "now": "0" * 64}})
    return forge


def i6_was() -> Forge:
    forge = streaming()
    forge.claim(changes={"table": {"was": "0" * 64, "now": TABLE.fingerprint}})
    return forge


def m5() -> Forge:
    """The limits that were accepted are not those that the guards were asked with."""
    forge = streaming(Limits(max_turns=9))
    forge.claim(changes={"limits": {"was": Limits(max_turns=9).fields(), "now": Limits(max_turns=1).fields()}})
    forge.send(on.RunResumed())
    asked = forge.ask()
    forge.did(forge.tool("a"))
    forge.answered(asked, "tool_use", 10)
    respond(forge, "tool_use", ("a",), started=1)
    forge.send(on.ToolsRequested(calls=1))
    return answered(forge)


BAD: tuple[Callable[[], Forge], ...] = (r3, r4, r2, t7, m13_fewer, m13_whole, c4, c6, i6_other, i6_was)


@pytest.mark.parametrize("build", BAD, ids=lambda build: build.__name__)
def test_a_bad_claim_is_rejected_for_its_own_invariant_alone(build: Callable[[], Forge]) -> None:
    report = verify_lines(build().lines())
    assert broken(report) == {build.__name__.split("_")[0].upper()}, str(report)


def test_limits_that_were_accepted_are_those_that_guards_are_asked_with() -> None:
    assert "M5" in broken(verify_lines(m5().lines()))


def test_a_table_that_was_changed_on_demand_may_be_another_at_first() -> None:
    forge = streaming()
    forge.records[0]["table"] = "0" * 64
    assert broken(verify_lines(forge.lines())) == {"I6"}
    forge.claim(changes={"table": {"was": "0" * 64, "now": TABLE.fingerprint}})
    forge.send(on.RunResumed())
    report = verify_lines(forge.lines())
    assert report.ok, str(report)
