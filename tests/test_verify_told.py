"""Bad logs whose records tell of outcomes, edits, verdicts and claims that nothing in the log bears out."""

from collections.abc import Callable

import pytest

from looplatch.states import events as on
from looplatch.states.limits import Limits
from looplatch.states.verify.log import verify_lines
from tests.forge import CLAIM, Fields, Forge, altered, broken, hexed, result
from tests.forged_runs import answered, begun, complete, long_run, one_turn, respond, streaming

INPUT = hexed("another input")


def ended(**fields: object) -> Forge:
    """A turn whose first tool ended as `fields` say, and whose result is marked like it."""
    forge = one_turn()
    altered(forge, forge.find(kind="effect_end", class_="tool"), **fields)
    failed = bool(fields.get("is_error", False))
    forge.join("user", result("a", is_error=failed), result("b"))
    return answered(forge, 2, int(failed))


def edited(**hook: str) -> Forge:
    """A call runs with another input than the model's, after the hook said what it said."""
    forge = streaming()
    asked = forge.ask()
    if hook:
        about = {"call": hook.pop("call")} if "call" in hook else dict[str, str]()
        forge.end(forge.begin("hook", point="before_tool", name="gate", **about), **hook)
    tool = forge.tool("a")
    tool["edited"] = INPUT
    forge.did(tool)
    forge.answered(asked, "tool_use", 10)
    respond(forge, "tool_use", ("a",), started=1)
    forge.send(on.ToolsRequested(calls=1))
    forge.join("user", result("a"))
    return answered(forge, 1)


def asked_to_stop(*said: tuple[str, str]) -> Forge:
    """The model is done, and the stop hooks say what they say."""
    forge = streaming()
    forge.answered(forge.ask(), "end_turn", 10)
    respond(forge, "end_turn")
    forge.send(on.AnswerGiven())
    for name, outcome in said:
        forge.end(forge.begin("hook", point="stop", name=name), outcome)
    return forge


def passed(*said: tuple[str, str]) -> Forge:
    forge = asked_to_stop(*said)
    forge.send(on.StopHooksPassed(new_tokens=10))
    forge.seal()
    return forge


def claimed(**fields: object) -> Forge:
    """A new process owns the run, in prepare."""
    forge = begun()
    forge.add("resumed", **{**CLAIM, **fields})
    place = len(forge.records) - 1
    forge.model = "n" if "model" in forge.records[-1]["changes"] else "m"
    forge.send(on.RunResumed())
    forge.send(on.ContextReady(tokens=100, window=200_000))
    complete(forge)
    for record in forge.records[place:]:
        record["epoch"] = 1
    return forge


def without_taking_up(forge: Forge) -> Forge:
    forge.records.remove(forge.find(event="RunResumed"))
    return forge


# --- what may be


def ran_into_its_time() -> Forge:
    return ended(outcome="timed_out", is_error=True)


def was_interrupted() -> Forge:
    return ended(outcome="interrupted_no_effect", is_error=True)


def was_edited_by_the_hook() -> Forge:
    return edited(outcome="Allow")


def was_edited_by_the_hook_that_says_so() -> Forge:
    return edited(call="a", outcome="Allow", edited=INPUT)


def was_denied_with_a_reason() -> Forge:
    forge = one_turn()
    forge.end(forge.begin("hook", name="gate", call="c"), "Deny", reason=hexed("why"), bytes=5, interrupt=False)
    forge.join("user", result("a"), result("b"))
    return answered(forge, 2)


def was_edited_by_who_approved() -> Forge:
    return approved(INPUT, INPUT)


def passed_every_hook() -> Forge:
    return passed(("one", "Pass"), ("two", "Pass"))


def blocked() -> Forge:
    forge = asked_to_stop(("one", "Pass"), ("two", "Block"))
    forge.send(on.StopHooksBlocked(hook="two"))
    return forge


def was_claimed() -> Forge:
    return claimed()


def was_claimed_with_another_model() -> Forge:
    return claimed(changes={"model": {"was": "m", "now": "n"}})


GOOD: tuple[Callable[[], Forge], ...] = (
    ran_into_its_time, was_interrupted, was_edited_by_the_hook, was_edited_by_who_approved, passed_every_hook, blocked,
    was_claimed, was_claimed_with_another_model, was_edited_by_the_hook_that_says_so, was_denied_with_a_reason,
)  # fmt: skip


@pytest.mark.parametrize("build", GOOD, ids=lambda build: build.__name__)
def test_a_right_log_is_ok(build: Callable[[], Forge]) -> None:
    report = verify_lines(build().lines())
    assert report.ok, str(report)


# --- what may not


def t5_access() -> Forge:
    """A tool that neither reads nor writes."""
    forge = long_run()
    return altered(forge, forge.find(tool_use_id="c"), access="glance")


def t7_denied() -> Forge:
    """A tool that was carried out was denied."""
    return ended(outcome="denied", is_error=True)


def t7_unheard_of() -> Forge:
    return ended(outcome="zzz")


def t7_failed_unmarked() -> Forge:
    return ended(outcome="failed", is_error=False)


def t7_answered_marked() -> Forge:
    return ended(outcome="answered", is_error=True)


def t7_read_of_unknown_effect() -> Forge:
    return ended(outcome="interrupted_effect_unknown", is_error=True)


def t7_write_without_effect() -> Forge:
    """A write that was interrupted cannot be known to have had no effect."""
    forge = one_turn()
    forge.find(kind="effect_begin", class_="tool")["access"] = "write"
    altered(forge, forge.find(kind="effect_end", class_="tool"), outcome="interrupted_no_effect", is_error=True)
    forge.join("user", result("a", is_error=True), result("b"))
    return answered(forge, 2, 1)


def t7_raised() -> Forge:
    """The tool ended by an error that is no tool's own, and its result is none."""
    forge = one_turn()
    end = forge.find(kind="effect_end", class_="tool")
    end["outcome"] = "KeyboardInterrupt"
    del end["is_error"], end["result"]
    forge.join("user", result("a"), result("b"))
    return answered(forge, 2)


def t7_denied_itself() -> Forge:
    """The hook has denied this very call."""
    forge = edited(call="a", outcome="Deny")
    return altered(forge, forge.find(kind="effect_begin", class_="tool"), edited=None)


def t7_asks() -> Forge:
    """Somebody was to decide, and nobody did."""
    forge = edited(call="a", outcome="Ask")
    return altered(forge, forge.find(kind="effect_begin", class_="tool"), edited=None)


def t8_other_edit() -> Forge:
    """The hook put another input there."""
    return edited(call="a", outcome="Allow", edited=hexed("yet another input"))


def t8_allowed_as_it_was() -> Forge:
    """The hook allowed the call as the model made it."""
    return edited(call="a", outcome="Allow")


def i4_edited_denial() -> Forge:
    """A hook that denies a call puts no other input there."""
    forge = one_turn()
    forge.end(forge.begin("hook", name="gate", call="c"), "Deny", edited=INPUT)
    forge.join("user", result("a"), result("b"))
    return answered(forge, 2)


def t8_edited() -> Forge:
    """An edit that nobody made."""
    return edited()


def t8_edited_by_a_denial() -> Forge:
    return edited(outcome="Deny")


def approved(given: str | None, ran: str | None) -> Forge:
    """A call was approved when the run was resumed, with an input or the model's own, and ran with another."""
    forge = streaming()
    forge.answered(forge.ask(), "tool_use", 10)
    respond(forge, "tool_use", ("a",))
    forge.send(on.ToolsRequested(calls=1))
    forge.send(on.ApprovalAwaited(calls=("a",)))
    place = len(forge.records)
    approval = {"call": "a", "allowed": True, "interrupt": False, "message": None, "input": given}
    forge.add("resumed", **{**CLAIM, "approvals": [approval]})
    forge.send(on.RunResumed())
    forge.send(on.ApprovalGiven(calls=("a",), awaited=0))
    tool = forge.tool("a")
    tool["edited"] = ran
    forge.did(tool)
    forge.join("user", result("a"))
    answered(forge, 1)
    for record in forge.records[place:]:
        record["epoch"] = 1
    return forge


def t8_approved_otherwise() -> Forge:
    return approved(INPUT, hexed("a third input"))


def t8_approved_as_it_was() -> Forge:
    return approved(None, INPUT)


def t8_edit_left_out() -> Forge:
    return approved(INPUT, None)


def m13_blocked_and_passed() -> Forge:
    return passed(("one", "Pass"), ("two", "Block"))


def m13_halted_and_passed() -> Forge:
    return passed(("one", "Halt"))


def m13_blocked_by_nobody() -> Forge:
    forge = asked_to_stop(("one", "Pass"))
    forge.send(on.StopHooksBlocked(hook="one"))
    return forge


def m13_blocked_by_another() -> Forge:
    forge = asked_to_stop(("one", "Block"))
    forge.send(on.StopHooksBlocked(hook="two"))
    return forge


def m13_halted_by_a_block() -> Forge:
    forge = asked_to_stop(("one", "Block"))
    forge.send(on.StopHooksHalted(hook="one"))
    forge.seal()
    return forge


def r3_bare() -> Forge:
    """A claim that says nothing."""
    forge = claimed()
    record = forge.find(kind="resumed")
    for name in CLAIM.keys() - {"reads", "secrets", "changed_contents"}:
        del record[name]
    return forge


def r3_not_taken_up() -> Forge:
    """A claim in the middle of a run that goes on as if there was none."""
    return without_taking_up(claimed())


def r3_effect_first() -> Forge:
    forge = streaming()
    place = len(forge.records)
    forge.add("resumed", **CLAIM)
    complete(forge)
    for record in forge.records[place:]:
        record["epoch"] = 1
    return forge


def r3_unclaimed() -> Forge:
    """The run is taken up, and there was no claim."""
    forge = begun()
    forge.send(on.RunResumed())
    forge.send(on.ContextReady(tokens=100, window=200_000))
    return complete(forge)


def i6_was() -> Forge:
    """A claim changes limits that the run never had."""
    was: Fields = Limits(max_turns=9).fields()
    return claimed(changes={"limits": {"was": was, "now": Limits(max_turns=1_000_000_000).fields()}})


def i6_model() -> Forge:
    return claimed(changes={"model": {"was": "another", "now": "n"}})


def i6_no_setting() -> Forge:
    return claimed(changes={"durability": {"was": "none", "now": "group"}})


BAD: tuple[Callable[[], Forge], ...] = (
    t5_access, t7_denied, t7_unheard_of, t7_failed_unmarked, t7_answered_marked, t7_read_of_unknown_effect,
    t7_write_without_effect, t7_raised, t7_denied_itself, t7_asks,
    t8_other_edit, t8_allowed_as_it_was, i4_edited_denial, t8_edited, t8_edited_by_a_denial, t8_approved_otherwise,
    t8_approved_as_it_was, t8_edit_left_out, m13_blocked_and_passed,
    m13_halted_and_passed, m13_blocked_by_nobody, m13_blocked_by_another, m13_halted_by_a_block, r3_bare,
    r3_not_taken_up, r3_effect_first, r3_unclaimed, i6_was, i6_model, i6_no_setting,
        )  # fmt: skip


@pytest.mark.parametrize("build", BAD, ids=lambda build: build.__name__)
def test_a_bad_log_is_rejected_for_its_own_invariant_alone(build: Callable[[], Forge]) -> None:
    report = verify_lines(build().lines())
    assert broken(report) == {build.__name__.split("_")[0].upper()}, str(report)
