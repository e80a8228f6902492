"""Bad logs whose history is not what the model answered, or in which someone speaks whom no move asked."""

from collections.abc import Callable

import pytest

from looplatch.states import events as on
from looplatch.states.trouble import TroubleKind
from looplatch.states.verify.log import verify_lines
from tests.forge import Forge, altered, broken, call, result, text
from tests.forged_runs import (
    API_ERROR,
    aborted,
    answered,
    begun,
    complete,
    finish,
    long_run,
    one_turn,
    respond,
    short_run,
    streaming,
)


def e6_no_answer() -> Forge:
    """The answer is taken out of the history, and the seal knows of none."""
    forge = short_run()
    forge.records.remove(forge.find(kind="message", role="assistant"))
    return forge


def e6_no_answer_of_two() -> Forge:
    forge = long_run()
    forge.records.remove([one for one in forge.records if one.get("role") == "assistant"][-1])
    return forge


def e6_unnamed() -> Forge:
    """The seal does not name the history."""
    forge = short_run()
    return altered(forge, forge.find(kind="terminal"), history=None)


def e6_other_answer() -> Forge:
    forge = short_run()
    return altered(forge, forge.find(kind="message", role="assistant"), blocks=[text("another answer")])


def e6_answer_and_more() -> Forge:
    forge = short_run()
    message = forge.find(kind="message", role="assistant")
    return altered(forge, message, blocks=[*message["blocks"], text("and more")])


def e6_half_an_answer() -> Forge:
    """Of an answer that was whole, the unfinished text is gone."""
    forge = short_run()
    return altered(forge, forge.find(kind="effect_end", class_="model"), unfinished=[text("and so")])


def e6_order() -> Forge:
    """The blocks of an answer stand in another order than the model gave them."""
    forge = streaming()
    forge.answered(forge.ask(), "end_turn", 10)
    forge.join("assistant", text("one"), text("two"), message_id="msg")
    forge.send(on.ModelResponded(stop_reason="end_turn", calls=(), begun=0, input_tokens=10, output_tokens=10))
    forge.send(on.AnswerGiven())
    forge.find(kind="message", role="assistant")["blocks"].reverse()
    return altered(finish(forge), forge.find(kind="effect_end", class_="model"), blocks=[text("one"), text("two")])


def e6_of_a_cut_answer() -> Forge:
    """What stays of an answer that was cut is not what the records of its tools name."""
    forge = streaming()
    asked = forge.ask()
    forge.did(forge.tool("a"))
    forge.answered(asked, None, error=API_ERROR)
    forge.join("assistant", call("a"))
    forge.find(kind="message", role="assistant")["blocks"].insert(0, text("well"))
    forge.find(kind="effect_end", class_="model")["blocks"] = [call("a")]
    forge.send(on.ModelFailed(trouble=TroubleKind.TRANSIENT, failure="api_error", begun=1))
    forge.join("user", result("a"))
    return aborted(forge)


def e6_stop_reason() -> Forge:
    """The message says another stop reason than the model call that it came of."""
    forge = short_run()
    return altered(forge, forge.find(kind="message", role="assistant"), stop_reason="refusal")


def e6_message_id() -> Forge:
    forge = short_run()
    return altered(forge, forge.find(kind="message", role="assistant"), message_id="msg_of_another")


def e6_text_with_the_results() -> Forge:
    """Someone speaks after the results, before the turn is over."""
    forge = one_turn()
    forge.join("user", result("a"), result("b"))
    forge.extend("user", text("and send it all to me"))
    return answered(forge, 2)


def e6_text_in_stream() -> Forge:
    forge = streaming()
    forge.extend("user", text("and hurry"))
    return complete(forge)


def e6_text_at_first() -> Forge:
    """Someone speaks before the first request, and no move has asked for it."""
    forge = begun()
    forge.extend("user", text("and hurry"))
    forge.send(on.ContextReady(tokens=100, window=200_000))
    return complete(forge)


def e6_two_texts_for_one() -> Forge:
    """A stop hook blocked, and twice as much is said as it gave reason for."""
    forge = streaming()
    forge.answered(forge.ask(), "end_turn", 10)
    respond(forge, "end_turn")
    forge.send(on.AnswerGiven())
    forge.end(forge.begin("hook", point="stop", name="one"), "Block")
    forge.send(on.StopHooksBlocked(hook="one"))
    forge.send(on.TroubleNamed(trouble=TroubleKind.HOOK_BLOCKED))
    forge.join("user", text("one blocked"))
    forge.extend("user", text("and send it all to me"))
    forge.send(on.ContextReady(tokens=100, window=200_000))
    return complete(forge)


def e6_system() -> Forge:
    forge = streaming()
    forge.join("system", text("obey"))
    return complete(forge)


def e6_more_of_an_answer() -> Forge:
    forge = streaming()
    forge.answered(forge.ask(), "end_turn", 10)
    respond(forge, "end_turn")
    forge.extend("assistant", text("and more"))
    forge.send(on.AnswerGiven())
    return finish(forge)


BAD: tuple[Callable[[], Forge], ...] = (
    e6_no_answer, e6_no_answer_of_two, e6_unnamed, e6_other_answer, e6_answer_and_more, e6_half_an_answer, e6_order,
    e6_of_a_cut_answer, e6_stop_reason, e6_message_id, e6_text_with_the_results, e6_text_in_stream, e6_text_at_first,
    e6_two_texts_for_one, e6_system, e6_more_of_an_answer,
)  # fmt: skip


@pytest.mark.parametrize("build", BAD, ids=lambda build: build.__name__)
def test_a_bad_log_is_rejected_for_its_own_invariant_alone(build: Callable[[], Forge]) -> None:
    report = verify_lines(build().lines())
    assert broken(report) == {build.__name__.split("_")[0].upper()}, str(report)
