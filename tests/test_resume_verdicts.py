"""What the hook before tools has said holds for whoever takes the run up: it is asked about no call twice."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from looplatch import Allow, Ask, Deny, Hooks, Log, Rule
from looplatch.hooks import ToolCallContext
from looplatch.recovery.resume.errors import CannotResume
from looplatch.states.record import Kind, Record
from looplatch.testing import reply, tool_use
from tests.playing import assistant, play, result, use, user
from tests.resuming import Resumed, cut_after, resumed
from tests.suspending import resumed as stays_of
from tests.suspending import suspended
from tests.tales import Ran, noted

CALLS = {"t1": Deny("Not this."), "t2": Allow({"n": 7}), "t3": Allow(), "t4": Allow(), "t5": Deny("Nor this.")}
INTERRUPTS = Deny("No.", interrupt=True)
DENIED = "denied. The call was not run: "
DONE = reply("Done.")
SCRIPT = [reply(*(tool_use(call, "write", {"n": 0}) for call in CALLS)), DONE]
RULES = [Rule("deny", "write", {"n": "^9$"})]


def hooked(asked: list[str], ran: Ran, verdicts: dict[str, Any] = CALLS) -> dict[str, Any]:
    async def before_tool(call: ToolCallContext) -> Any:
        asked.append(call.tool_use_id)
        return verdicts[call.tool_use_id]

    return {"tools": [noted("write", ran)], "hooks": Hooks(before_tool=before_tool), "rules": RULES}


def answered_of(records: Sequence[Record]) -> list[str]:
    """The calls of which the hook has said what it says."""
    begins = {one.seq: one.get("call") for one in records if one.kind is Kind.EFFECT_BEGIN}
    ends = [one for one in records if one.kind is Kind.EFFECT_END and one["class"] == "hook"]
    return [str(begins[one["effect"]]) for one in ends]


def taken_up(log: Log, script: Any, **options: Any) -> Resumed:
    went_on = asyncio.run(resumed(log, script, **options))
    assert went_on.error is None
    return went_on


def test_a_run_that_is_cut_anywhere_asks_of_no_call_twice() -> None:
    asked: list[str] = []
    whole = play(SCRIPT, **hooked(asked, []))
    assert asked == list(CALLS)
    whole_answer = next(n for n, one in enumerate(whole.log.records) if one.event == "ModelResponded")
    results = next(n for n, one in enumerate(whole.log.records) if one.event == "ToolsAnswered")
    known: set[int] = set()
    for count in range(whole_answer + 1, results + 1):
        left, again, ran = cut_after(whole.log, count), list[str](), list[str]()
        said = answered_of(left.records)
        known.add(len(said))
        went_on = taken_up(left, [DONE], **hooked(again, ran))
        assert again == [call for call in CALLS if call not in said]
        told = [block["content"] for block in went_on.run.messages[2]["content"]]
        assert "Not this." in told[0]
        assert "Nor this." in told[4]
        assert told[1].startswith("interrupted") or "'n': 7" in told[1]
        assert "t1" not in ran
        assert "t5" not in ran
    assert known == {1, 2, 3, 4, 5}


def held(verdict: Any) -> Log:
    """A log that ends when the hook has given its verdict on the one call, and nothing has come of it yet."""
    script = [reply(tool_use("t1", "write", {"n": 0})), *([] if verdict == INTERRUPTS else [DONE])]
    log = play(script, **hooked([], [], {"t1": verdict})).log
    return cut_after(log, said_at(log) + 1)


def said_at(log: Log) -> int:
    """The number of the record by which the hook has said its word, the answer is whole, and nothing has begun."""
    [said] = [one.seq for one in log if one.kind is Kind.EFFECT_END and one["class"] == "hook"]
    [responded, *_] = [one.seq for one in log if one.event == "ModelResponded"]
    return max(said, responded)


def test_a_verdict_holds_where_the_hook_is_gone() -> None:
    ran: Ran = []
    went_on = taken_up(held(Deny("No.")), [DONE], tools=[noted("write", ran)])
    assert went_on.run.messages[1:3] == [
        assistant(use("t1", "write", n=0)),
        user(result("t1", f"{DENIED}No.", is_error=True)),
    ]
    assert ran == []


def test_a_denial_that_ends_the_run_ends_it_in_the_next_process() -> None:
    went_on = taken_up(held(INTERRUPTS), [], **hooked([], []))
    assert went_on.result.terminal == "denied"


def test_a_denial_that_ends_the_run_ends_it_wherever_the_process_died() -> None:
    options = hooked([], [], {"t1": INTERRUPTS})
    log = play([reply(tool_use("t1", "write", {"n": 0}))], **options).log
    assert log.records[-1]["terminal"] == "denied"
    for count in range(said_at(log) + 1, len(log)):
        ran: Ran = []
        went_on = taken_up(cut_after(log, count), [], tools=[noted("write", ran)])
        assert (went_on.result.terminal, ran) == ("denied", []), count


def test_a_rule_may_be_stricter_than_what_the_hook_said_then() -> None:
    ran: Ran = []
    options = hooked([], ran) | {"rules": [Rule("deny", "write")]}
    went_on = taken_up(held(Allow()), [DONE], **options)
    assert went_on.run.messages[2] == user(result("t1", f"{DENIED}a rule forbids it", is_error=True))
    assert ran == []


def test_a_call_that_somebody_is_to_be_asked_about_waits_for_them() -> None:
    asked: list[str] = []
    ran: Ran = []
    options = hooked(asked, ran, {"t1": Ask()})
    stays, _ = stays_of([reply(tool_use("t1", "write", {"n": 0})), DONE], **options)
    left = cut_after(stays[0].log, said_at(stays[0].log) + 1)
    went_on = asyncio.run(resumed(left, [DONE], sealed=False, **options))
    assert went_on.result.subtype == "suspended"
    assert suspended(went_on.run.log)
    assert asked == ["t1"]
    assert ran == []


def test_an_input_that_was_redacted_is_given_to_no_tool() -> None:
    with pytest.raises(CannotResume, match="still to be called"):
        taken_up(held(Allow({"password": "open sesame"})), [DONE], **hooked([], []))
