"""Hooks around tools, and others, that fail or hang: the run ends, and what is said stays true."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import pytest

from looplatch import (
    Allow,
    Ask,
    AssistantMessage,
    Deny,
    Hooks,
    Rule,
    Run,
    ToolMessage,
    ToolResultBlock,
    UsageError,
    UserMessage,
)
from looplatch.hooks import ToolCallContext, ToolOutcomeContext
from looplatch.messages import Message
from looplatch.states.errors import HookCancelled, HookMisbehaved
from looplatch.testing import FakeClock, ScriptedAPI, failing, reply, stalled, tool_use
from tests.playing import (
    Play,
    alone,
    assistant,
    check,
    echo,
    play,
    result,
    rounds,
    running,
    scripted,
    tool_named,
    user,
)

GO = user("Go.")
Verdict = Allow | Deny | Ask
READ, WRITE = echo("read"), echo("write", read_only=False)


def deciding(verdict: Allow | Deny) -> Hooks:
    """Hooks that let everything run but reads, on which `verdict` decides."""

    async def before_tool(call: ToolCallContext) -> Allow | Deny:
        return verdict if call.read_only else Allow()

    return Hooks(before_tool=before_tool)


def when_asked(name: str, event: asyncio.Event) -> Callable[[Message, Run], None]:
    """What sets the event when the model has asked for the tool of that name."""

    def watch(message: Message, run: Run) -> None:
        if isinstance(message, AssistantMessage) and any(getattr(b, "name", None) == name for b in message.content):
            event.set()

    return watch


def outcomes(play: Play) -> list[str]:
    return [effect.end["outcome"] for effect in play.log.effects if effect.kind == "hook" and effect.end is not None]


BOTH = (reply(tool_use("t1", "read", {"n": 1}), tool_use("t2", "write", {"n": 2})), reply("Done."))

# --- hooks that fail


class Broken(Exception):
    """A hook's own exception."""


@pytest.mark.parametrize("raised", [Broken, KeyboardInterrupt, SystemExit])
def test_a_hook_that_raises_ends_the_run_and_nothing_more_starts(raised: type[BaseException]) -> None:
    async def before_tool(call: ToolCallContext) -> Allow:
        if call.name == "write":
            raise raised
        return Allow()

    script = [reply(tool_use("t1", "read", {"n": 1}), tool_use("t2", "write", {}), tool_use("t3", "read", {}))]
    told = play(script, tools=[READ, WRITE], hooks=Hooks(before_tool=before_tool))
    assert isinstance(told.error, raised)
    assert told.result.terminal == "internal_error"
    first, *rest = told.last["content"]
    assert first == result("t1", 'read {"n":1}')
    assert all(block["content"].startswith("not started") for block in rest)
    assert outcomes(told) == ["Allow", raised.__name__]


POINTS = ("before_tool", "after_tool", "after_response", "stop")


@pytest.mark.parametrize("point", [*POINTS, "on_transition"])
def test_a_hook_that_cancels_itself_is_a_failure_and_no_cancellation(point: str) -> None:
    """Nor is one that waits for what was cancelled elsewhere, which raises the same."""

    async def hook(about: Any) -> Any:
        raise asyncio.CancelledError

    def shown(record: Any) -> None:
        raise asyncio.CancelledError

    given: Any = shown if point == "on_transition" else hook
    hooks: dict[str, Any] = {point: [given] if point == "stop" else given}
    told = play(BOTH, tools=[READ, WRITE], hooks=Hooks(**hooks))
    assert isinstance(told.error, HookCancelled)
    assert "was cancelled from inside" in str(told.error)
    assert point == "before_tool" or told.error.hook == given.__name__
    assert told.result.terminal == "internal_error"


@pytest.mark.parametrize("point", POINTS)
def test_a_cancellation_from_outside_is_one_while_a_hook_is_asked(point: str) -> None:
    async def main() -> None:
        stuck, api = Stuck(deaf=False), ScriptedAPI(BOTH)

        async def hook(about: Any) -> Any:
            await stuck.wait()

        hooks: dict[str, Any] = {point: [hook] if point == "stop" else hook}
        async with scripted(api, tools=[READ, WRITE], hooks=Hooks(**hooks)) as loop:
            run = loop.run("Go.")
            consumer = running(run)
            await stuck.asked.wait()
            consumer.cancel()
            with pytest.raises(asyncio.CancelledError):
                await consumer
            assert run.result is not None
            assert run.result.terminal == "closed"
            check(run, api)
            assert alone()

    asyncio.run(main())


@pytest.mark.parametrize("said", [None, True, "allow", Allow])
def test_a_verdict_that_is_none_is_a_failure(said: Any) -> None:
    async def before_tool(call: ToolCallContext) -> Any:
        return said

    told = play(BOTH[:1], tools=[READ, WRITE], hooks=Hooks(before_tool=before_tool))
    assert isinstance(told.error, HookMisbehaved)
    assert (told.error.hook, told.error.returned, told.error.allowed) == ("before_tool", said, "Allow, Deny or Ask")


@pytest.mark.parametrize("point", POINTS)
def test_a_hook_that_is_no_async_function_is_a_failure_that_says_so(point: str) -> None:
    def plain(about: Any) -> Any:
        return Allow()

    given: Any = {point: [plain] if point == "stop" else plain}
    script = [reply(tool_use("t1", "read", {"n": 1})), reply("Done.")]
    told = play(script, tools=[READ], hooks=Hooks(**given))
    assert isinstance(told.error, HookMisbehaved)
    assert (told.error.hook, told.error.returned) == ("plain", Allow())
    assert told.error.allowed == "an awaitable: make it an async function"
    assert told.result.terminal == "internal_error"


def test_a_transition_hook_that_wants_to_be_awaited_is_refused_or_fails() -> None:
    async def on_transition(record: Any) -> None: ...

    class Called:
        async def __call__(self, record: Any) -> None: ...

    for given in (on_transition, partial(on_transition), Called()):
        with pytest.raises(UsageError, match="is async, and nobody would await it"):
            Hooks(on_transition=cast("Any", given))

    def hidden(record: Any) -> Any:
        return on_transition(record)

    told = play([reply("Done.")], hooks=Hooks(on_transition=hidden))
    assert isinstance(told.error, HookMisbehaved)
    assert told.error.allowed == "at once: it is no async function"
    assert told.result.terminal == "internal_error"


@pytest.mark.parametrize("given", [{"n": float("nan")}, {"n": object()}, ["n"]])
def test_an_edited_input_that_json_cannot_say_is_a_failure_of_the_hook(given: Any) -> None:
    async def before_tool(call: ToolCallContext) -> Allow:
        return Allow(given)

    told = play(BOTH[:1], tools=[READ, WRITE], hooks=Hooks(before_tool=before_tool))
    assert isinstance(told.error, UsageError)
    assert told.error.what == "Allow.updated_input"
    assert told.result.terminal == "internal_error"


@pytest.mark.parametrize("raised", [Broken, KeyboardInterrupt])
def test_the_outcome_of_a_call_stands_when_the_hook_after_it_raises(raised: type[BaseException]) -> None:
    both = asyncio.Event()

    async def after_tool(call: ToolOutcomeContext) -> None:
        await both.wait()
        raise raised

    told = play(BOTH[:1], tools=[READ, WRITE], hooks=Hooks(after_tool=after_tool), watch=when_asked("write", both))
    assert isinstance(told.error, raised)
    assert told.result.terminal == "internal_error"
    read, write = told.last["content"]
    assert read == result("t1", 'read {"n":1}')
    assert write["content"].startswith("not started")
    assert [effect.end["outcome"] for effect in told.log.effects if effect.kind == "tool" and effect.end] == [
        "answered"
    ]
    [answered] = [message for message in asyncio.run(left(told.run)) if isinstance(message, UserMessage)]
    assert answered.content[0] == ToolResultBlock(tool_use_id="t1", content='read {"n":1}')


async def left(run: Run) -> list[Message]:
    """What a run that raised has still to hand out."""
    return [message async for message in run]


def test_the_hook_after_a_tool_sees_what_the_model_is_told() -> None:
    shown: list[ToolOutcomeContext] = []

    async def after_tool(call: ToolOutcomeContext) -> None:
        shown.append(call)

    def broken(given: dict[str, Any], ctx: Any) -> str:
        raise Broken("of the tool")

    script = [reply(tool_use("t1", "read", {"n": 1}), tool_use("t2", "broken", {}), tool_use("t3", "write", {}))]
    told = play(
        [*script, reply("Done.")],
        tools=[READ, WRITE, tool_named("broken", read_only=False, answer=broken)],
        hooks=Hooks(after_tool=after_tool),
        rules=[Rule("deny", "write")],
    )
    assert [(call.tool_use_id, call.cause, call.is_error) for call in shown] == [
        ("t1", "answered", False),
        ("t2", "failed", True),
    ], "what was denied has not run"
    assert [call.content for call in shown] == [block["content"] for block in told.sent[1][-1]["content"][:2]]


# --- hooks that hang


class Stuck:
    """A hook that says when it is asked and does not end by itself; a deaf one not even when it is asked to."""

    def __init__(self, *, deaf: bool) -> None:
        self._deaf = deaf
        self.asked = asyncio.Event()
        self.released = asyncio.Event()

    async def wait(self) -> None:
        self.asked.set()
        for _ in range(2 if self._deaf else 0):  # as often as it is asked to end before it is abandoned
            try:
                await self.released.wait()
            except asyncio.CancelledError:
                continue
            return
        await self.released.wait()


async def let_go(stuck: Stuck, clock: FakeClock, *, deaf: bool) -> None:
    """Let the grace of a hook pass, which is what a deaf one takes."""
    for _ in range(2 if deaf else 0):
        await rounds()
        clock.advance(1.0)


@pytest.mark.parametrize("deaf", [False, True])
@pytest.mark.parametrize("point", POINTS)
def test_an_abort_does_not_wait_for_a_hook_that_hangs(point: str, deaf: bool) -> None:
    async def main() -> None:
        stuck, clock = Stuck(deaf=deaf), FakeClock()

        async def hook(about: Any) -> Any:
            await stuck.wait()

        named: dict[str, Any] = {point: [hook] if point == "stop" else hook}
        hooks = Hooks(**named)
        script = [reply("Done.")] if point == "stop" else [reply(tool_use("t1", "read", {"n": 1}))]
        api = ScriptedAPI(script)
        async with scripted(api, tools=[READ], hooks=hooks, clock=clock) as loop:
            run = loop.run("Go.")
            consumer = running(run)
            await stuck.asked.wait()
            run.abort()
            await let_go(stuck, clock, deaf=deaf)
            await consumer
            assert run.result is not None
            assert run.result.terminal == "aborted"
            check(run, api)
            if point == "after_tool":
                assert run.messages[-1]["content"] == [result("t1", 'read {"n":1}')]
            lines = run.log.lines
            assert alone() is not deaf, "only what cannot be ended is left"
            stuck.released.set()
            await rounds()
            assert alone()
            assert run.log.lines == lines

    asyncio.run(main())


@pytest.mark.parametrize("deaf", [False, True])
def test_a_permission_asked_for_a_call_that_is_cut_is_called_off_before_the_run_goes_on(deaf: bool) -> None:
    async def main() -> None:
        stuck, clock, gate = Stuck(deaf=deaf), FakeClock(), asyncio.Event()

        async def before_tool(call: ToolCallContext) -> Allow:
            await stuck.wait()
            return Allow({"n": 2})

        broken = failing(reply(tool_use("t1", "read", {"n": 1}), "More"), after=6)
        api = ScriptedAPI([stalled(broken, after=4, gate=gate), reply("Done.")])
        async with scripted(api, tools=[READ], hooks=Hooks(before_tool=before_tool), clock=clock) as loop:
            run = loop.run("Go.")
            consumer = running(run)
            await stuck.asked.wait()
            gate.set()
            await let_go(stuck, clock, deaf=deaf)
            await consumer
            check(run, api)
            assert run.messages == [GO, assistant("Done.")]
            stuck.released.set()
            await rounds()
            assert alone()

    asyncio.run(main())


def test_an_abort_while_permission_is_asked_for_leaves_the_call_not_started() -> None:
    async def main() -> None:
        stuck = Stuck(deaf=False)

        async def before_tool(call: ToolCallContext) -> Allow:
            await stuck.wait()
            return Allow()

        api = ScriptedAPI(BOTH)
        async with scripted(api, tools=[READ, WRITE], hooks=Hooks(before_tool=before_tool)) as loop:
            run = loop.run("Go.")
            consumer = running(run)
            await stuck.asked.wait()
            while run.state != "orchestrate":
                await rounds(1)
            run.abort()
            await consumer
            check(run, api)
            assert alone()
            assert all(block["content"].startswith("not started") for block in run.messages[-1]["content"])

    asyncio.run(main())


def test_a_consumer_that_aborts_when_it_is_told_of_a_denial_gets_one_result_per_call() -> None:
    both = asyncio.Event()
    asked = when_asked("write", both)

    async def before_tool(call: ToolCallContext) -> Deny:
        await both.wait()
        return Deny("no")

    def watch(message: Message, run: Run) -> None:
        asked(message, run)
        if isinstance(message, ToolMessage) and message.cause == "denied":
            run.abort()

    told = play(BOTH[:1], tools=[READ, WRITE], hooks=Hooks(before_tool=before_tool), watch=watch)
    assert told.result.terminal == "aborted"
    first, second = told.last["content"]
    assert first["content"].startswith("denied")
    assert second["content"].startswith("not started")
