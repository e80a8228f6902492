"""Bad logs in which what the hook before tools said of a call does not hold."""

from collections.abc import Callable

import pytest

from looplatch.states import events as on
from looplatch.states.verify.log import verify_lines
from tests.forge import Forge, broken, hexed, result
from tests.forged_runs import answered, respond, streaming

DENIAL = {"reason": hexed("why"), "bytes": 5}


def say(forge: Forge, outcome: str, **fields: object) -> None:
    """The hook is asked about the call, and says so."""
    forge.end(forge.begin("hook", name="gate", call="a"), outcome, **fields)


def requested(*said: tuple[str, dict[str, object]]) -> Forge:
    """The hook has said its word on the one call of the answer, and the results are to come."""
    forge = streaming()
    forge.answered(forge.ask(), "tool_use", 10)
    respond(forge, "tool_use", ("a",))
    forge.send(on.ToolsRequested(calls=1))
    for outcome, fields in said:
        say(forge, outcome, **fields)
    return forge


def denied(*, interrupt: bool) -> Forge:
    forge = requested(("Deny", {**DENIAL, "interrupt": interrupt}))
    forge.join("user", result("a", is_error=True))
    return answered(forge, 1, 1)


def ran(forge: Forge, *after: str) -> Forge:
    forge.did(forge.tool("a"))
    for outcome in after:
        say(forge, outcome, **DENIAL)
    forge.join("user", result("a"))
    return answered(forge, 1)


def asked_again_after_a_failure() -> Forge:
    """The first time it has said nothing."""
    return ran(requested(("TimeoutError", {}), ("Allow", {})))


def denied_alone() -> Forge:
    return denied(interrupt=False)


def t7_denied_with_the_run() -> Forge:
    """The run was to end with the call, and goes on."""
    return denied(interrupt=True)


def t7_asked_twice() -> Forge:
    """It was denied, and asked about until it was allowed."""
    return ran(requested(("Deny", {**DENIAL, "interrupt": False}), ("Allow", {})))


def t7_asked_afterwards() -> Forge:
    """It is denied once it was carried out."""
    return ran(requested(), "Deny")


@pytest.mark.parametrize("build", [asked_again_after_a_failure, denied_alone], ids=lambda build: build.__name__)
def test_a_right_log_is_ok(build: Callable[[], Forge]) -> None:
    report = verify_lines(build().lines())
    assert report.ok, str(report)


@pytest.mark.parametrize(
    "build", [t7_denied_with_the_run, t7_asked_twice, t7_asked_afterwards], ids=lambda build: build.__name__
)
def test_a_verdict_that_does_not_hold_is_told(build: Callable[[], Forge]) -> None:
    report = verify_lines(build().lines())
    assert broken(report) == {"T7"}, str(report)
