"""Histories that are compressed, sealed or left without payloads, as the verifier sees them."""

from collections.abc import Callable

from looplatch.states import events as on
from looplatch.states.level import Level
from looplatch.states.record import commitment
from looplatch.states.trouble import TroubleKind
from looplatch.states.verify.log import verify_lines
from tests.forge import Forge, broken, call, result, text
from tests.forged_runs import (
    API_ERROR,
    aborted,
    complete,
    one_turn,
    streaming,
)


def compressed(change: Callable[[Forge], object]) -> Forge:
    """A run of two turns whose history is changed before the second request."""
    forge = one_turn()
    forge.join("user", result("a"), result("b"))
    forge.send(on.ToolsAnswered(results=2))
    change(forge)
    forge.send(on.HistoryCompressed(level=Level.COMPACT, tokens_before=200, tokens_after=100))
    forge.send(on.ContextReady(tokens=180, window=200_000))
    return complete(forge)


def test_a_compression_may_replace_what_was_said() -> None:
    def summarise(forge: Forge) -> None:
        for _ in range(3):
            forge.leave(0)
        forge.join("user", text("what happened so far"))

    def clear(forge: Forge) -> None:
        forge.leave(2)
        forge.join("user", result("a"), result("b"))

    for change in (summarise, clear):
        report = verify_lines(compressed(change).lines())
        assert report.ok, str(report)


def test_a_compression_must_not_part_a_call_from_its_result() -> None:
    report = verify_lines(compressed(lambda forge: forge.leave(2)).lines())
    assert broken(report) == {"T2"}, str(report)


def test_a_compression_must_not_part_a_result_from_its_call() -> None:
    report = verify_lines(compressed(lambda forge: forge.leave(1)).lines())
    assert broken(report) == {"T3"}, str(report)


def test_a_sealed_turn_keeps_the_call_that_began() -> None:
    """A call began, the stream was cut: the prefix and its result are history, and the next turn follows."""
    forge = streaming()
    asked = forge.ask()
    forge.did(forge.tool("a"))
    forge.answered(asked, None, error=API_ERROR)
    forge.join("assistant", text("let me look"), call("a"), message_id="msg", model="m", stop_reason=None)
    forge.send(on.ModelFailed(trouble=TroubleKind.TRANSIENT, failure="api_error", begun=1))
    forge.join("user", result("a"))
    forge.send(on.ToolsAnswered(results=1))
    forge.send(on.TroubleNamed(trouble=TroubleKind.TRANSIENT, delay_ms=500))
    slept = forge.begin("sleep", delay_ms=500)
    forge.wait(500)
    forge.end(slept)
    forge.send(on.BackoffElapsed())
    forge.send(on.ContextReady(tokens=100, window=200_000))
    report = verify_lines(complete(forge).lines())
    assert report.ok, str(report)


def test_a_begun_call_must_not_be_left_out_of_the_event() -> None:
    """Otherwise the answer would be discarded, and the call carried out again by the retry."""
    forge = streaming()
    asked = forge.ask()
    forge.did(forge.tool("a"))
    forge.answered(asked, None, error=API_ERROR)
    forge.send(on.ModelFailed(trouble=TroubleKind.TRANSIENT, failure="api_error", begun=0))
    assert broken(verify_lines(aborted(forge).lines())) == {"M13", "T9"}


def test_kept_payloads_are_compared_with_their_commitments() -> None:
    salt, payload = b"salt", b'{"type":"text","text":"question"}'
    kept = {"type": "text", "commitment": commitment(salt, payload), "bytes": len(payload)}
    forge = Forge()
    forge.join("user", kept)
    forge.send(on.RunStarted())
    lines = aborted(forge).lines()
    assert verify_lines(lines, payloads=lambda _: (salt, payload)).ok
    assert verify_lines(lines, payloads=lambda _: None).ok
    assert broken(verify_lines(lines, payloads=lambda _: (salt, payload + b" "))) == {"P2"}
    assert broken(verify_lines(lines, payloads=lambda _: (b"pepper", payload))) == {"P2"}
