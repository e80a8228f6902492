"""Toolsets of the API: actions by their own names, ours and the SDK's, and what a run makes of them."""

import asyncio
import threading
from collections.abc import Mapping
from typing import Any

import pytest
from anthropic.lib.tools import BetaAsyncRunnableToolset, BetaRunnableToolset, ToolError

from looplatch import UsageError
from looplatch.testing import block, reply
from looplatch.tools import AbortSignal, Call, Cause, Outcome, Tool, Toolbox, ToolContext, Toolset
from looplatch.tools.execution import execute
from looplatch.tools.offered import offered
from tests.playing import play, result, user

BROWSER: dict[str, Any] = {"type": "browser_toolset_20260801"}
STATE: dict[str, Any] = {
    "type": "browser_state",
    "tabs": [{"tab_id": "t", "title": "", "url": "about:", "active": True}],
}


async def act(name: str, given: dict[str, Any], ctx: ToolContext) -> object:
    if given.get("fails"):
        raise ValueError("no such button")
    return f"{name} {given}"


SET = Toolset(BROWSER, act)


async def plain(given: dict[str, Any], ctx: ToolContext) -> str:
    return "plain"


def call_in(box: Toolbox, name: str, given: dict[str, Any] | None, toolset: str | None = "browser") -> Call:
    return box.call(tool_use_id="toolu_1", name=name, given=given, index=0, toolset=toolset)


def done(call: Call) -> Outcome:
    return asyncio.run(execute(call, run_id="run_1", abort=AbortSignal()))


def test_a_toolset_is_named_by_its_family() -> None:
    assert (SET.name, Toolset({"type": "computer_toolset_20260801"}, act).name) == ("browser", "computer")


@pytest.mark.parametrize("kind", [None, 3, "browser", "browser_toolset", "browser_toolset_2026", "_toolset_20260801"])
def test_what_is_no_toolset_is_refused(kind: Any) -> None:
    with pytest.raises(UsageError, match="its type is"):
        Toolset({"type": kind}, act)


def test_a_bad_timeout_is_found_at_once() -> None:
    with pytest.raises(UsageError, match="timeout_s"):
        Toolset(BROWSER, act, timeout_s=-1)


def test_an_action_is_called_by_its_name_and_its_result_names_the_toolset() -> None:
    outcome = done(call_in(Toolbox([SET]), "left_click", {"x": 1}))
    assert outcome.block() == {
        "type": "tool_result",
        "tool_use_id": "toolu_1",
        "toolset_name": "browser",
        "content": "left_click {'x': 1}",
    }


def test_an_action_and_a_tool_of_one_name_are_told_apart() -> None:
    box = Toolbox([SET, Tool("left_click", "", {"type": "object"}, plain)])
    assert done(call_in(box, "left_click", {})).content == "left_click {}"
    assert done(call_in(box, "left_click", {}, toolset=None)).content == "plain"


def test_the_definition_is_sent_as_it_is_and_in_order() -> None:
    box = Toolbox([Tool("a", "", {"type": "object"}, plain), SET])
    assert box.definitions() == [{"name": "a", "input_schema": {"type": "object"}}, BROWSER]
    assert list(box) == ["a"]


@pytest.mark.parametrize(
    ("name", "given", "toolset", "cause", "text"),
    [
        ("left_click", {}, "computer", Cause.UNKNOWN_TOOL, "of the toolset 'computer'. The toolsets are: browser."),
        ("no action!", {}, "browser", Cause.UNKNOWN_TOOL, "unknown action: 'no action!' of the toolset 'browser'"),
        ("left_click", None, "browser", Cause.INVALID_INPUT, "invalid input"),
        ("browser", {}, None, Cause.UNKNOWN_TOOL, "'browser' is a toolset; nothing of it was done"),
    ],
)  # fmt: skip
def test_what_cannot_run_says_why(name: str, given: Any, toolset: str | None, cause: Cause, text: str) -> None:
    call = call_in(Toolbox([SET]), name, given, toolset)
    assert call.problem is not None
    assert call.problem.cause is cause
    assert text in call.problem.text
    assert (call.problem.fails or call.toolset) == (toolset or "browser")


def test_two_toolsets_of_one_family_or_a_tool_of_its_name_are_refused() -> None:
    with pytest.raises(UsageError, match="two tools have this name"):
        Toolbox([SET, Toolset(BROWSER, act)])
    with pytest.raises(UsageError, match="two tools have the name 'browser'"):
        offered([SET, Tool("browser", "", {"type": "object"}, plain)])


class Driver(BetaAsyncRunnableToolset):
    toolset_name = "browser"

    def to_dict(self) -> Any:
        return {"type": "browser_toolset_20260801", "configs": {"zoom": {"enabled": True}}}

    async def call(self, context: Any, name: str, input: Mapping[str, object]) -> Any:  # noqa: A002 -- the SDK's own name
        if name == "screenshot":
            raise ToolError("the screen is off")
        return [{"type": "text", "text": f"{context.tool_use.id} {name} {dict(input)}"}, STATE]


class SyncDriver(BetaRunnableToolset):
    toolset_name = "computer"

    def to_dict(self) -> Any:
        return {"type": "computer_toolset_20260801"}

    def call(self, context: Any, name: str, input: Mapping[str, object]) -> Any:  # noqa: A002 -- the SDK's own name
        return threading.current_thread().name


def test_the_sdks_toolsets_are_taken_as_they_are() -> None:
    offer = offered([Driver(), SyncDriver()])
    assert offer.definitions == (Driver().to_dict(), {"type": "computer_toolset_20260801"})
    box = Toolbox(offer.own)
    assert done(call_in(box, "wait", {"s": 1})).content == [{"type": "text", "text": "toolu_1 wait {'s': 1}"}, STATE]
    off = done(call_in(box, "screenshot", {}))
    assert (off.content, off.is_error) == ("the screen is off", True)
    assert done(call_in(box, "wait", {}, "computer")).content == "computer wait"


def test_a_toolset_of_the_sdk_that_contradicts_itself_is_refused() -> None:
    class Twofold(SyncDriver):
        def to_dict(self) -> Any:
            return BROWSER

    with pytest.raises(UsageError, match="'computer' is sent as 'browser'"):
        offered([Twofold()])


def action(call_id: str, name: str, given: dict[str, Any]) -> Any:
    return block({"type": "tool_use", "id": call_id, "name": name, "input": given, "toolset_name": "browser"})


def test_in_a_run_the_actions_after_a_failure_are_not_run_and_each_result_names_the_toolset() -> None:
    clicked: list[str] = []

    async def click(name: str, given: dict[str, Any], ctx: ToolContext) -> object:
        clicked.append(ctx.tool_use_id)
        return await act(name, given, ctx)

    script = [
        reply(
            action("toolu_1", "left_click", {"x": 1}),
            action("toolu_2", "left_click", {"fails": True}),
            action("toolu_3", "type", {"text": "hi"}),
            stop="tool_use",
        ),
        reply("Sorry."),
    ]
    went = play(script, tools=[Toolset(BROWSER, click)], params={"betas": ["browser-2026"]})
    assert clicked == ["toolu_1", "toolu_2"]
    named = {"toolset_name": "browser"}
    assert went.sent[1][2] == user(
        result("toolu_1", "left_click {'x': 1}") | named,
        result("toolu_2", "failed: ValueError: no such button", is_error=True) | named,
        result("toolu_3", "Not executed: an earlier action in this turn failed.", is_error=True) | named,
    )
    assert went.api.requests[0].body["tools"] == [BROWSER]
