"""What must not happen to a run and does: hooks and tools that raise, a disk that is full."""

import asyncio
import resource
from pathlib import Path
from typing import Any

import pytest

from looplatch import (
    Hooks,
    Pass,
    ToolContext,
)
from looplatch.audit.errors import LogFailed
from looplatch.hooks import StopContext
from looplatch.recovery.failure import Failure
from looplatch.states.errors import HookMisbehaved
from looplatch.states.record import Record
from looplatch.testing import ScriptedAPI, error, reply, tool_use
from tests.playing import (
    Hanging,
    alone,
    check,
    echo,
    play,
    rounds,
    running,
    scripted,
    tool_named,
    user,
)

GO = user("Go.")


def a_call(name: str = "hang", **given: Any) -> Any:
    return reply(tool_use("t1", name, given or {"n": 1}))


class Broken(Exception):
    """An exception of the caller's own."""


@pytest.mark.parametrize("raised", [Broken, KeyboardInterrupt, SystemExit])
def test_a_stop_hook_that_raises_ends_the_run_and_is_raised(raised: type[BaseException]) -> None:
    async def main() -> None:
        async def hook(context: StopContext) -> Pass:
            raise raised("of the hook")

        api = ScriptedAPI([reply("Done.")])
        async with scripted(api, hooks=Hooks(stop=[hook])) as loop:
            run = loop.run("Go.")
            with pytest.raises(raised, match="of the hook"):
                await run
            assert run.result is not None
            assert run.result.terminal == "internal_error"
            [effect] = [effect for effect in run.log.effects if effect.kind == "hook"]
            assert effect.end is not None
            assert effect.end["outcome"] == raised.__name__
            check(run, api)

    asyncio.run(main())


def test_a_predicate_that_raises_ends_the_run_and_is_raised() -> None:
    def is_overflow(failure: Failure) -> bool:
        raise Broken

    told = play([error(529, "overloaded_error")], is_overflow=is_overflow)
    assert isinstance(told.error, Broken)
    assert told.result.terminal == "internal_error"
    assert [record["outcome"] for record in told.log if record.kind == "effect_end"] == ["interrupted"]


def test_a_stop_hook_that_answers_with_nothing_we_know_is_a_failure() -> None:
    async def hook(context: StopContext) -> Any:
        return True

    played = play([reply("Done.")], hooks=Hooks(stop=[hook]))
    assert isinstance(played.error, HookMisbehaved)
    told = (played.error.hook, played.error.returned, played.error.allowed)
    assert told == ("hook", True, "Pass, Block or Halt")
    assert played.result.terminal == "internal_error"


@pytest.mark.parametrize("event", ["RunStarted", "ContextReady", "ModelResponded", "StopHooksPassed"])
def test_a_transition_hook_that_raises_is_raised_whatever_the_move(event: str, tmp_path: Path) -> None:
    def on_transition(record: Record) -> None:
        if record.event == event:
            raise Broken(event)

    async def main() -> None:
        log = tmp_path / "run.jsonl"
        api = ScriptedAPI([reply("Done.")])
        async with scripted(api, hooks=Hooks(on_transition=on_transition)) as loop:
            run = loop.run("Go.", log=log)
            with pytest.raises(Broken, match=event):
                await run
            assert run.result is not None
            assert [message async for message in run][-1:] == [run.result]
            check(run, api)
            assert alone()
            ended = "answered" if event == "StopHooksPassed" else "internal_error"
            assert run.result.terminal == ended
            if ended == "internal_error":
                assert run.log.transitions[-1]["fields"] == {"error": "Broken"}

    asyncio.run(main())


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize("raised", [KeyboardInterrupt, SystemExit])
def test_an_exit_out_of_a_tool_ends_the_run_and_is_raised(read_only: bool, raised: type[BaseException]) -> None:
    async def main() -> None:
        def call(given: dict[str, Any], ctx: ToolContext) -> str:
            raise raised

        hanging = Hanging()
        script = [reply(tool_use("t1", "hang", {"n": 1}), tool_use("t2", "exit", {"n": 2}), tool_use("t3", "hang", {}))]
        api = ScriptedAPI(script)
        tools = [hanging.tool, tool_named("exit", answer=call)]
        async with scripted(api, tools=tools) as loop:
            run = loop.run("Go.")
            with pytest.raises(raised):
                await run
            assert run.result is not None
            assert run.result.terminal == "internal_error"
            assert alone()
            check(run, api)

    asyncio.run(main())


def test_a_cancel_out_of_a_tool_is_its_own_failure() -> None:
    def call(given: dict[str, Any], ctx: ToolContext) -> str:
        raise asyncio.CancelledError

    played = play([a_call("cancel"), reply("Done.")], tools=[tool_named("cancel", answer=call)])
    assert played.error is None
    assert played.sent[1][2]["content"][0]["is_error"] is True
    assert played.sent[1][2]["content"][0]["content"].startswith("failed")


# --- a log that fails


def test_a_log_that_fails_midway_ends_the_run_before_anything_else_is_sent(tmp_path: Path) -> None:
    """The file may not grow any more from the moment when the tool runs."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    async def main() -> None:
        log = tmp_path / "run.jsonl"

        def fill(given: dict[str, Any], ctx: ToolContext) -> str:
            resource.setrlimit(resource.RLIMIT_FSIZE, (log.stat().st_size + 10, hard))
            return "full"

        api = ScriptedAPI([a_call("fill"), reply("Done.")])
        async with scripted(api, tools=[tool_named("fill", answer=fill)], durability="none") as loop:
            run = loop.run("Go.", log=log)
            try:
                with pytest.raises(LogFailed) as caught:
                    await run
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
            assert caught.value.file == log
            assert len(api.requests) == 1
            assert run.result is not None
            assert run.result.is_error
            assert run.result.terminal is None
            assert alone()
            assert [message["role"] for message in run.messages][:1] == ["user"]
            await run.aclose()

    asyncio.run(main())


def test_a_log_that_fails_at_its_seal_is_raised_and_the_result_is_there_all_the_same(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    log = tmp_path / "run.jsonl"

    def full_at_the_end(record: Record) -> None:
        if record.target == "completed":
            resource.setrlimit(resource.RLIMIT_FSIZE, (log.stat().st_size + 10, hard))

    async def main() -> None:
        api = ScriptedAPI([reply("Done.")])
        hooks = Hooks(on_transition=full_at_the_end)
        async with scripted(api, durability="none", hooks=hooks) as loop:
            run = loop.run("Go.", log=log)
            try:
                with pytest.raises(LogFailed):
                    await run
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
            assert run.result is not None
            assert run.result.result == "Done."
            assert alone()

    asyncio.run(main())


def test_entropy_that_fails_midway_ends_the_run_as_an_internal_error() -> None:
    drawn = 0

    def entropy(count: int) -> bytes:
        nonlocal drawn
        drawn += 1
        if drawn == 4:
            raise Broken("no more")
        return bytes(count)

    played = play([reply("One", tool_use("t1", "read", {})), reply("Done.")], tools=[echo()], entropy=entropy)
    assert isinstance(played.error, Broken)
    assert played.result.terminal == "internal_error"


# --- two things at once


class Lingering:
    """A tool that never ends by itself, and when it is ended takes its time until `gate` is set."""

    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.ending = asyncio.Event()
        self.gate = asyncio.Event()
        self.tool = tool_named("linger", answer=self._call)

    async def _call(self, given: dict[str, Any], ctx: ToolContext) -> str:
        self.began.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.ending.set()
            await self.gate.wait()
        return "never"


@pytest.mark.parametrize("end", ["abort", "close", "stop"])
def test_an_end_from_outside_while_a_failure_ends_the_run_does_not_hide_the_failure(end: str) -> None:
    def on_transition(record: Record) -> None:
        if record.event == "ToolsRequested":
            raise Broken("of the hook")

    async def main() -> None:
        lingering = Lingering()
        api = ScriptedAPI([reply(tool_use("t1", "linger", {"n": 1}))])
        async with scripted(api, tools=[lingering.tool], hooks=Hooks(on_transition=on_transition)) as loop:
            run = loop.run("Go.")
            consumer = running(run)
            await lingering.ending.wait()
            closing: asyncio.Task[None] | None = None
            match end:
                case "abort":
                    run.abort()
                case "stop":
                    run.stop()
                case _:
                    closing = asyncio.create_task(run.aclose())
            await rounds()
            lingering.gate.set()
            with pytest.raises(Broken, match="of the hook"):
                await consumer
            assert consumer.cancelling() == 0
            if closing is not None:
                await closing
            assert run.result is not None
            assert run.result.terminal == "internal_error"
            assert alone()
            check(run, api)

    asyncio.run(main())


def test_a_cancel_after_an_abort_counts_once() -> None:
    async def main() -> None:
        lingering = Lingering()
        lingering.gate.set()
        api = ScriptedAPI([reply(tool_use("t1", "linger", {"n": 1}))])
        async with scripted(api, tools=[lingering.tool]) as loop:
            run = loop.run("Go.")
            counted: list[int] = []

            async def consume() -> None:
                task = asyncio.current_task()
                assert task is not None
                try:
                    await run
                finally:
                    counted.append(task.cancelling())

            consumer = asyncio.create_task(consume())
            await lingering.began.wait()
            run.abort()
            consumer.cancel()
            with pytest.raises(asyncio.CancelledError):
                await consumer
            assert counted == [1]
            check(run, api)

    asyncio.run(main())
