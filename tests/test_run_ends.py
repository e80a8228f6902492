"""A run that is ended from outside: abort, stop, deadline, close, cancel; and from inside: by a tool, by a hook."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from looplatch import (
    Hooks,
    Pass,
    Run,
    ToolContext,
    ToolMessage,
    UsageError,
)
from looplatch.hooks import StopContext
from looplatch.testing import FakeClock, ScriptedAPI, error, reply, stalled, tool_use
from tests.playing import (
    Hanging,
    alone,
    assistant,
    check,
    play,
    result,
    rounds,
    running,
    scripted,
    tool_named,
    user,
)

GO = user("Go.")


def a_call(name: str = "hang", **given: Any) -> Any:
    return reply(tool_use("t1", name, given or {"n": 1}))


# --- ending it from outside


def test_an_abort_ends_a_run_that_waits_for_the_model_and_leaves_its_consumer_alone() -> None:
    async def main() -> None:
        api = ScriptedAPI([stalled(reply("Half", " and half"), after=3, gate=asyncio.Event())])
        async with scripted(api) as loop:
            run = loop.run("Go.")
            consumer = running(run)
            await (await api.arrival(1)).stalled.wait()
            run.abort()
            seen = await consumer
            assert consumer.cancelling() == 0
            assert seen[-1] is run.result
            assert run.result is not None
            assert run.result.terminal == "aborted"
            assert run.messages == [GO, assistant("Half")]
            assert api.exchanges[0].ended.is_set()
            assert alone()
            check(run, api)

    asyncio.run(main())


def test_an_abort_may_come_from_another_thread() -> None:
    async def main() -> None:
        hanging = Hanging()
        api = ScriptedAPI([reply(tool_use("t1", "hang", {}))])
        async with scripted(api, tools=[hanging.tool]) as loop:
            run = loop.run("Go.")
            consumer = running(run)
            await hanging.began.wait()
            await asyncio.to_thread(run.abort)
            await consumer
            assert run.result is not None
            assert run.result.terminal == "aborted"
            check(run, api)
            await asyncio.to_thread(run.abort)  # it is over: nothing happens

    asyncio.run(main())


def test_an_abort_before_the_first_pull_sends_nothing() -> None:
    async def main() -> None:
        api = ScriptedAPI([])
        async with scripted(api) as loop:
            run = loop.run("Go.")
            run.abort()
            assert (await run).terminal == "aborted"
            assert api.requests == []
            assert run.log.path == ("prepare", "aborted")
            check(run, api)

    asyncio.run(main())


def test_an_abort_after_the_end_changes_nothing() -> None:
    async def main() -> None:
        api = ScriptedAPI([reply("Done.")])
        async with scripted(api) as loop:
            run = loop.run("Go.")
            told = await run
            run.abort()
            run.stop()
            await run.aclose()
            assert await run is told
            check(run, api)

    asyncio.run(main())


def test_an_abort_stops_the_tools_at_once_though_nobody_pulls() -> None:
    async def main() -> None:
        hanging = Hanging()
        api = ScriptedAPI([a_call()])
        async with scripted(api, tools=[hanging.tool]) as loop:
            async with loop.run("Go.") as run:
                async for message in run:
                    if isinstance(message, ToolMessage):
                        break
                await hanging.began.wait()
                run.abort()
                await hanging.ended.wait()
                assert run.result is None, "the move is made at the next pull"
                seen = [message async for message in run]
                assert seen[-1] is run.result
            assert run.result is not None
            assert run.result.terminal == "aborted"
            check(run, api)

    asyncio.run(main())


def test_a_stop_lets_the_tools_of_the_turn_finish() -> None:
    async def main() -> None:
        gate = asyncio.Event()

        async def call(given: dict[str, Any], ctx: ToolContext) -> str:
            await gate.wait()
            return "finished"

        api = ScriptedAPI([a_call("wait")])
        async with scripted(api, tools=[tool_named("wait", answer=call)]) as loop:
            run = loop.run("Go.")
            consumer = running(run)
            await api.arrival(1)
            run.stop()
            gate.set()
            await consumer
            assert run.result is not None
            assert run.result.terminal == "stopped"
            assert run.messages[-1] == user(result("t1", "finished"))
            check(run, api)

    asyncio.run(main())


def test_a_stop_before_an_answer_without_calls_lets_it_be_the_answer() -> None:
    async def main() -> None:
        api = ScriptedAPI([reply("Done.")])
        async with scripted(api) as loop:
            run = loop.run("Go.")
            run.stop()
            assert (await run).terminal == "answered"

    asyncio.run(main())


def test_a_deadline_ends_a_run_that_waits() -> None:
    async def main() -> None:
        clock = FakeClock(autoadvance=False)
        api = ScriptedAPI([stalled(reply("Half"), after=0, gate=asyncio.Event())])
        async with scripted(api, clock=clock) as loop:
            run = loop.run("Go.", deadline_s=5)
            consumer = running(run)
            await (await api.arrival(1)).stalled.wait()
            clock.advance(4.9)
            await rounds()
            assert not consumer.done()
            clock.advance(0.1)
            await consumer
            assert run.result is not None
            assert run.result.terminal == "deadline"
            assert run.messages == [GO]
            assert alone()
            check(run, api)

    asyncio.run(main())


def test_a_deadline_ends_the_wait_before_a_retry() -> None:
    played = play([error(429, "rate_limit_error", "", {"retry-after": "60"})], deadline_s=30)
    assert played.result.terminal == "deadline"
    [sleep] = [effect for effect in played.log.effects if effect.kind == "sleep"]
    assert sleep.end is not None
    assert sleep.end["outcome"] == "interrupted"


def test_a_deadline_that_did_not_come_is_forgotten() -> None:
    clock = FakeClock()
    played = play([reply("Done.")], clock=clock, deadline_s=5)
    clock.advance(10)
    assert played.result.terminal == "answered"


@pytest.mark.parametrize("times", [1, 5])
def test_closes_from_several_tasks_all_return_when_it_is_over(times: int) -> None:
    async def main() -> None:
        hanging = Hanging(read_only=False)
        api = ScriptedAPI([a_call()])
        async with scripted(api, tools=[hanging.tool]) as loop:
            run = loop.run("Go.")
            consumer = running(run)
            await hanging.began.wait()

            async def close() -> None:
                await run.aclose()
                assert hanging.ended.is_set()
                assert run.result is not None

            await asyncio.gather(*(close() for _ in range(times)))
            await consumer
            assert run.result is not None
            assert run.result.terminal == "closed"
            check(run, api)

    asyncio.run(main())


def test_a_close_that_is_cancelled_closes_all_the_same() -> None:
    async def main() -> None:
        hanging = Hanging()
        api = ScriptedAPI([a_call()])
        async with scripted(api, tools=[hanging.tool]) as loop:
            run = loop.run("Go.")
            async for message in run:
                if isinstance(message, ToolMessage):
                    break
            await hanging.began.wait()
            closing = asyncio.create_task(run.aclose())
            await rounds(1)
            closing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await closing
            assert hanging.ended.is_set()
            assert run.result is not None
            check(run, api)

    asyncio.run(main())


def test_an_exception_in_the_body_closes_the_run_and_passes() -> None:
    async def main() -> None:
        api = ScriptedAPI([a_call()])
        hanging = Hanging()
        async with scripted(api, tools=[hanging.tool]) as loop:
            run = loop.run("Go.")

            async def consume() -> None:
                async with run:
                    async for message in run:
                        if isinstance(message, ToolMessage):
                            raise ZeroDivisionError

            with pytest.raises(ZeroDivisionError):
                await consume()
            assert alone()
            assert run.result is not None
            assert run.result.terminal == "closed"
            check(run, api)

    asyncio.run(main())


def test_a_timeout_around_a_pull_ends_the_run_and_is_a_timeout() -> None:
    async def main() -> None:
        api = ScriptedAPI([stalled(reply("Half"), after=0, gate=asyncio.Event())])
        async with scripted(api) as loop:
            run = loop.run("Go.")
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await run
            assert run.result is not None
            assert run.result.terminal == "closed"
            assert alone()
            check(run, api)

    asyncio.run(main())


def test_a_cancel_and_an_abort_at_once_lose_neither() -> None:
    async def main() -> None:
        hanging = Hanging()
        api = ScriptedAPI([a_call()])
        async with scripted(api, tools=[hanging.tool]) as loop:
            run = loop.run("Go.")
            consumer = running(run)
            await hanging.began.wait()
            run.abort()
            consumer.cancel()
            with pytest.raises(asyncio.CancelledError):
                await consumer
            assert hanging.ended.is_set()
            assert run.result is not None
            check(run, api)

    asyncio.run(main())


def test_a_run_that_is_left_open_says_so_and_ends() -> None:
    async def main() -> None:
        hanging = Hanging()
        api = ScriptedAPI([a_call()])
        async with scripted(api, tools=[hanging.tool]) as loop:

            async def leave() -> None:
                run = loop.run("Go.")
                async for message in run:
                    if isinstance(message, ToolMessage):
                        break
                await hanging.began.wait()

            with pytest.warns(ResourceWarning, match="async with"):
                await leave()
            await hanging.ended.wait()
            await rounds()
            assert alone()

    asyncio.run(main())


# --- ending it from inside


Inside = Callable[[Run], Awaitable[None]]


async def abort(run: Run) -> None:
    run.abort()


async def close(run: Run) -> None:
    await run.aclose()


@pytest.mark.parametrize("end", [abort, close])
@pytest.mark.parametrize("read_only", [True, False])
def test_a_tool_may_end_its_own_run(end: Inside, read_only: bool) -> None:
    async def main() -> None:
        async def call(given: dict[str, Any], ctx: ToolContext) -> str:
            await end(run)
            return "ended it"

        api = ScriptedAPI([a_call("end")])
        async with scripted(api, tools=[tool_named("end", read_only=read_only, answer=call)]) as loop:
            run = loop.run("Go.")
            told = await run
            assert told.terminal in ("aborted", "closed")
            assert alone()
            check(run, api)

    asyncio.run(main())


@pytest.mark.parametrize("end", [abort, close])
def test_a_stop_hook_may_end_its_own_run(end: Inside) -> None:
    async def main() -> None:
        async def hook(context: StopContext) -> Pass:
            await end(run)
            return Pass()

        api = ScriptedAPI([reply("Done.")])
        async with scripted(api, hooks=Hooks(stop=[hook])) as loop:
            run = loop.run("Go.")
            told = await run
            assert told.terminal in ("aborted", "closed", "answered")
            check(run, api)

    asyncio.run(main())


def test_a_hook_that_pulls_from_its_own_run_is_refused() -> None:
    async def main() -> None:
        async def hook(context: StopContext) -> Pass:
            with pytest.raises(UsageError, match="consumed already"):
                await anext(run)
            return Pass()

        api = ScriptedAPI([reply("Done.")])
        async with scripted(api, hooks=Hooks(stop=[hook])) as loop:
            run = loop.run("Go.")
            assert (await run).terminal == "answered"

    asyncio.run(main())
