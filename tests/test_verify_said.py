"""Who said it, and who only reads: bad logs in which something is passed off as what it is not."""

from collections.abc import Callable

import pytest

from looplatch.states import events as on
from looplatch.states.trouble import TroubleKind
from looplatch.states.verify.log import verify_lines
from tests.forge import Forge, broken, result, text
from tests.forged_runs import answered, complete, finish, long_run, one_turn, respond, streaming


def said(origin: str | None = "send") -> Forge:
    """Between two turns a text joins the results."""
    forge = one_turn()
    forge.join("user", result("a"), result("b"))
    forge.send(on.ToolsAnswered(results=2))
    record = forge.extend("user", text("Be quick."))
    if origin is not None:
        record["origin"] = origin
    forge.send(on.ContextReady(tokens=200, window=200_000))
    return complete(forge)


def known(forge: Forge, *reads: str) -> Forge:
    """The genesis says which tools may read."""
    forge.records[0]["reads"] = list(reads)
    return forge


def relabelled() -> Forge:
    """The write of a run is said to be a read; it ran alone, so nothing else tells."""
    forge = long_run()
    forge.find(tool_use_id="c")["name"] = "put"
    asked = [block for record in forge.records for block in record.get("blocks", ()) if block.get("id") == "c"]
    for block in asked:
        block["name"] = "put"
    return forge


def was_sent() -> Forge:
    return said()


def reads_what_it_may() -> Forge:
    return known(relabelled(), "look")


@pytest.mark.parametrize("build", [was_sent, reads_what_it_may], ids=lambda build: build.__name__)
def test_a_right_log_is_ok(build: Callable[[], Forge]) -> None:
    report = verify_lines(build().lines())
    assert report.ok, str(report)


def e6_forged() -> Forge:
    """A text that nobody is said to have sent."""
    return said(None)


def e6_other() -> Forge:
    return said("hook")


def e6_after_a_hook() -> Forge:
    """What the loop says itself is passed off as the caller's."""
    forge = streaming()
    forge.answered(forge.ask(), "end_turn", 10)
    respond(forge, "end_turn")
    forge.send(on.AnswerGiven())
    forge.end(forge.begin("hook", point="stop", name="guardian"), "Block")
    forge.send(on.StopHooksBlocked(hook="guardian"))
    forge.send(on.TroubleNamed(trouble=TroubleKind.HOOK_BLOCKED))
    forge.join("user", text("More."))["origin"] = "send"
    forge.send(on.ContextReady(tokens=200, window=200_000))
    forge.answered(forge.ask(), "end_turn", 10)
    respond(forge, "end_turn")
    forge.send(on.AnswerGiven())
    return finish(forge)


def e6_in_orchestrate() -> Forge:
    """A text that joins before the results are told of."""
    forge = one_turn()
    forge.join("user", result("a"), result("b"))
    forge.extend("user", text("Be quick."))["origin"] = "send"
    return answered(forge, 2)


def t5_relabelled() -> Forge:
    forge = known(relabelled(), "look")
    forge.find(tool_use_id="c")["access"] = "read"
    return forge


BAD: tuple[Callable[[], Forge], ...] = (e6_forged, e6_other, e6_after_a_hook, e6_in_orchestrate, t5_relabelled)


@pytest.mark.parametrize("build", BAD, ids=lambda build: build.__name__)
def test_a_bad_log_is_rejected_for_its_own_invariant_alone(build: Callable[[], Forge]) -> None:
    report = verify_lines(build().lines())
    assert broken(report) == {build.__name__.split("_")[0].upper()}, str(report)


def test_logs_of_the_first_schema_did_not_tell_who_said_it() -> None:
    forge = said(None)
    for record in forge.records:
        record["v"] = 1
    assert verify_lines(forge.lines()).ok
