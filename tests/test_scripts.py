"""Drawn scripts through a real loop: whatever a model, a network and a consumer do, what the run leaves is right.

Every run is checked by `playing.check`: the strict API refused nothing, the log verifies and is sealed, the log's
history is the run's, and a user can go on with it.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from attrs import frozen
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from looplatch import Block, Halt, Hooks, Limits, Pass, ResultMessage, Run, Tool, ToolContext, ToolResult, UsageError
from looplatch.hooks import StopContext
from looplatch.messages import Message
from looplatch.states.record import Record
from looplatch.testing import FakeClock, ScriptedAPI, scripts
from tests.playing import check, play, rounds, scripted, tool_named

drawn = settings(
    deadline=None,
    max_examples=50,
    phases=[phase for phase in Phase if phase is not Phase.explain],  # which takes a minute for such scripts
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

LIMITS = st.builds(
    Limits,
    max_turns=st.integers(1, 6),
    max_attempts=st.integers(0, 3),
    max_output_recoveries=st.integers(0, 3),
    max_blocks=st.integers(1, 3),
    max_pauses=st.integers(0, 3),
    output_target=st.none() | st.integers(1, 3_000),
    max_total_tokens=st.none() | st.integers(50, 5_000),
)

NOVEL: list[Any] = ["text", {"a": 1}, None, b"\xff", float("nan"), [], "", [{"type": "text", "text": ""}], {1, 2}]


class Misbehaving:
    """Tools that do, call after call, what was drawn for them."""

    def __init__(self, manners: list[str], clock: FakeClock) -> None:
        self._manners = manners or ["quick"]
        self._clock = clock
        self._calls = 0
        self.running = 0
        self.most_running = 0

    def tools(self) -> list[Tool]:
        return [
            tool_named("read", read_only=True, answer=self._call),
            tool_named("write", read_only=False, answer=self._call),
        ]

    async def _call(self, given: dict[str, Any], ctx: ToolContext) -> Any:
        self._calls += 1
        manner = self._manners[self._calls % len(self._manners)]
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            return await self._behave(manner, ctx)
        finally:
            self.running -= 1

    async def _behave(self, manner: str, ctx: ToolContext) -> Any:
        match manner:
            case "rounds":
                await rounds(self._calls % 7)
            case "sleep":
                await self._clock.sleep(1 + self._calls % 3)
            case "raise":
                raise ValueError("the tool failed")
            case "cancelled":
                raise asyncio.CancelledError
            case "tells":
                for number in range(3):
                    ctx.progress(number)
                    await asyncio.sleep(0)
            case "odd":
                return NOVEL[self._calls % len(NOVEL)]
            case "error":
                return ToolResult({"why": "it failed"}, is_error=True)
            case _:
                pass
        return f"did it {self._calls}"


MANNERS = st.lists(
    st.sampled_from(["quick", "rounds", "sleep", "raise", "cancelled", "tells", "odd", "error"]), max_size=5
)
VERDICTS = st.lists(st.sampled_from(["pass", "block", "halt"]), max_size=4)


def stop_hook(verdicts: list[str]) -> Callable[[StopContext], Any]:
    """A stop hook that says what was drawn, and then passes."""
    left = iter(verdicts)

    async def hook(context: StopContext) -> Pass | Block | Halt:
        await asyncio.sleep(0)
        match next(left, "pass"):
            case "block":
                return Block("Not yet.")
            case "halt":
                return Halt("Enough.")
            case _:
                return Pass()

    return hook


def misused(script: Any, manners: list[str], **options: Any) -> Any:
    clock = FakeClock()
    misbehaving = Misbehaving(manners, clock)
    told = play(script, tools=misbehaving.tools(), clock=clock, **options)
    assert misbehaving.running == 0
    return told


@drawn
@given(scripts(), MANNERS, VERDICTS, LIMITS, st.booleans(), st.sampled_from([0, 0, 1, 5]))
def test_a_run_to_its_end_is_right(
    script: Any, manners: list[str], verdicts: list[str], limits: Limits, partial: bool, pause: int
) -> None:
    async def watch(message: Message, run: Run) -> None:
        await rounds(pause)

    hooks = Hooks(stop=[stop_hook(verdicts)])
    told = misused(script, manners, hooks=hooks, limits=limits, partial=partial, watch=watch)
    assert told.error is None
    assert told.seen[-1] is told.run.result
    assert told.result.terminal not in (None, "internal_error", "closed", "aborted", "deadline")


@drawn
@given(scripts(healthy=True), MANNERS, st.booleans())
def test_a_conversation_goes_on_from_what_a_run_leaves(script: Any, manners: list[str], twice: bool) -> None:
    """The history of one run, and a message more, opens the next."""

    async def main() -> None:
        clock = FakeClock()
        api = ScriptedAPI(script)
        async with scripted(api, clock=clock, tools=Misbehaving(manners, clock).tools()) as loop:
            first = loop.run("Go.")
            await first
            second = loop.run([*first.messages, {"role": "user", "content": "And then?"}])
            await second
            check(second, api)
            assert second.messages[: len(first.messages)] == first.messages

    asyncio.run(main())


@frozen
class Break:
    """What is done to a run once it has handed out `after` messages."""

    how: str
    after: int


BREAKS = st.builds(
    Break,
    st.sampled_from(["abort", "stop", "close", "leave", "cancel", "raise", "close elsewhere"]),
    st.integers(0, 40),
)


class Left(Exception):
    """The consumer has had enough."""


async def consume(run: Run, then: Break, seen: list[Message]) -> None:
    async with run:
        if then.after == 0:
            await broken(run, then)
        async for message in run:
            seen.append(message)
            if len(seen) == then.after:
                if then.how == "leave":
                    return
                await broken(run, then)


async def broken(run: Run, then: Break) -> None:
    match then.how:
        case "abort":
            run.abort()
        case "stop":
            run.stop()
        case "close":
            await run.aclose()
        case "raise":
            raise Left
        case _:
            pass


@drawn
@given(scripts(), MANNERS, BREAKS)
def test_a_run_broken_off_anywhere_is_right(script: Any, manners: list[str], then: Break) -> None:
    async def main() -> None:
        clock = FakeClock()
        api = ScriptedAPI(script)
        misbehaving = Misbehaving(manners, clock)
        async with scripted(api, clock=clock, tools=misbehaving.tools()) as loop:
            run = loop.run("Go.")
            seen: list[Message] = []
            consumer = asyncio.create_task(consume(run, then, seen))
            if then.how == "cancel":
                await rounds(then.after * 5)
                consumer.cancel()
            elif then.how == "close elsewhere":
                await rounds(then.after * 5)
                await run.aclose()
                assert misbehaving.running == 0
            [ended] = await asyncio.gather(consumer, return_exceptions=True)
            if run.result is None and then.how == "close elsewhere" and isinstance(ended, UsageError):
                ended = None  # it was closed before its consumer came, who is told so
            assert ended is None or isinstance(ended, Left | asyncio.CancelledError)
            if isinstance(ended, asyncio.CancelledError):
                assert then.how == "cancel"
            assert misbehaving.running == 0
            assert asyncio.all_tasks() == {asyncio.current_task()}
            if run.result is None:  # closed, or cancelled, before it began
                assert api.requests == []
            else:
                check(run, api)

    asyncio.run(main())


@drawn
@given(scripts(), MANNERS, st.integers(0, 6), st.integers(0, 30))
def test_a_deadline_anywhere_is_right(script: Any, manners: list[str], deadline_s: int, after: int) -> None:
    """Time moves by itself while something sleeps, and is moved past the deadline after some messages."""
    clock = FakeClock()

    def watch(message: Message, run: Run) -> None:
        nonlocal after
        after -= 1
        if after == 0:
            clock.advance(deadline_s)

    misbehaving = Misbehaving(manners, clock)
    told = play(script, tools=misbehaving.tools(), clock=clock, watch=watch, deadline_s=deadline_s)
    assert misbehaving.running == 0
    assert told.error is None
    assert isinstance(told.seen[-1], ResultMessage)


class HookFailed(Exception):
    """A hook's own exception."""


@drawn
@given(scripts(), MANNERS, st.integers(1, 25), st.sampled_from([HookFailed, KeyboardInterrupt, SystemExit]))
def test_a_hook_that_raises_at_any_move_ends_the_run_and_reaches_the_caller(
    script: Any, manners: list[str], at: int, kind: type[BaseException]
) -> None:
    moves = 0

    def on_transition(record: Record) -> None:
        nonlocal moves
        moves += 1
        if moves == at:
            raise kind("at this move")

    async def main() -> None:
        clock = FakeClock()
        api = ScriptedAPI(script)
        hooks = Hooks(on_transition=on_transition)
        async with scripted(api, clock=clock, tools=Misbehaving(manners, clock).tools(), hooks=hooks) as loop:
            run = loop.run("Go.")
            try:
                await run
            except kind:
                assert moves >= at
            else:
                assert moves < at
            assert asyncio.all_tasks() == {asyncio.current_task()}
            if run.result is not None:
                check(run, api)

    asyncio.run(main())
