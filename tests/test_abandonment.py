"""Runs that are abandoned, cancelled or completed leave no task, no handle and no object behind."""

import asyncio
import gc
import os
import warnings
from collections import Counter
from pathlib import Path
from typing import Any, cast

import pytest

from looplatch import AssistantMessage, Loop, Rule, Run, verify
from looplatch.testing import FakeClock, ScriptedAPI, reply, tool_use
from tests.playing import alone, echo, rounds, running, scripted, tool_named

ROUNDS = 100  # of ten runs each


class Many:
    """One loop and one server for any number of runs, one for each way to leave a run."""

    def __init__(self, loop: Loop, log_dir: Path) -> None:
        self._loop = loop
        self._dir = log_dir
        self._number = 0

    def _run(self, prompt: str, **options: Any) -> Run:
        self._number += 1
        return self._loop.run(prompt, log=self._dir / f"{self._number}.jsonl", **options)

    async def one_of_each(self) -> None:
        await self._completed()
        await self._completed_in_memory()
        await self._suspended()
        await self._broken_out_of()
        await self._left_without_a_word("Tools.")
        await self._left_without_a_word("Hang.")
        await self._cancelled()
        await self._aborted()
        await self._timed_out()
        self._never_begun()
        for file in self._dir.iterdir():
            file.unlink()

    async def _completed(self) -> None:
        assert (await self._run("Tools.", deadline_s=60)).subtype == "success"

    async def _completed_in_memory(self) -> None:
        assert (await self._loop.run("Tools.")).subtype == "success"

    async def _suspended(self) -> None:
        assert (await self._run("Ask.")).subtype == "suspended"

    async def _broken_out_of(self) -> None:
        async with self._run("Tools.") as run:
            async for _ in run:
                if run.state == "stream":
                    break

    async def _left_without_a_word(self, prompt: str) -> None:
        async for message in self._run(prompt):
            if isinstance(message, AssistantMessage):
                break
        await rounds()

    async def _cancelled(self) -> None:
        consumer = running(self._run("Hang."))
        await rounds()
        consumer.cancel()
        await asyncio.wait([consumer])

    async def _aborted(self) -> None:
        run = self._run("Hang.")
        consumer = running(run)
        await rounds()
        run.abort()
        await consumer

    async def _timed_out(self) -> None:
        run = self._run("Hang.", deadline_s=0)
        await run

    def _never_begun(self) -> None:
        self._run("Tools.")


def answer(body: dict[str, Any]) -> Any:
    prompt, *_ = body["messages"]
    if len(body["messages"]) > 1:
        return reply("Done.")
    name = {"Tools.": "read", "Ask.": "ask", "Hang.": "hang"}[prompt["content"]]
    return reply("I look.", tool_use("t1", name, {"n": 1}), tool_use("t2", "write", {"n": 2}))


async def hang(given: dict[str, Any], ctx: Any) -> None:
    await asyncio.Event().wait()


def ours() -> Counter[str]:
    """The living objects, by type, of ours, of the event loop and of the language's own machinery."""
    gc.collect()
    counted: Counter[str] = Counter()
    for thing in gc.get_objects():
        kind = cast("type[object]", type(thing))
        module: object = kind.__module__  # of a class that is being made, a descriptor
        if str(module).startswith(("looplatch", "_asyncio", "asyncio", "tests")) or kind.__name__ in (
            *("coroutine", "async_generator", "frame", "traceback", "generator", "TextIOWrapper", "FileIO"),
        ):
            counted[f"{kind.__module__}.{kind.__name__}"] += 1
    return counted


def handles() -> set[str]:
    return {os.readlink(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd") if _is_open(name)}


def _is_open(name: str) -> bool:
    return os.path.islink(f"/proc/self/fd/{name}")


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="the open handles cannot be seen here")
def test_a_thousand_runs_leave_nothing_behind(tmp_path: Path) -> None:
    async def main() -> None:
        api, clock = ScriptedAPI(answer), FakeClock()
        tools = [echo(), echo("ask"), echo("write", read_only=False), tool_named("hang", answer=hang)]
        options: dict[str, Any] = {"rules": [Rule("ask", "ask")], "clock": clock, "durability": "none"}
        async with scripted(api, tools=tools, **options) as loop:
            many = Many(loop, tmp_path)
            for _ in range(3):  # what is made once is made by now
                await many.one_of_each()
            clock.advance(100)  # which lets go of the timers that were taken back
            api.exchanges.clear()
            before, open_before = ours(), handles()
            for _ in range(ROUNDS):
                await many.one_of_each()
                assert alone()
            assert api.refusals == []
            assert len(api.exchanges) > 7 * ROUNDS
            clock.advance(100)
            api.exchanges.clear()
            assert handles() == open_before
            grown = ours() - before
            assert sum(grown.values()) < ROUNDS // 10, grown.most_common(10)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # this is what a run says that is left without a word
        asyncio.run(main())


def test_a_run_that_is_left_without_a_word_says_so_and_ends_all_the_same(tmp_path: Path) -> None:
    async def main() -> None:
        api = ScriptedAPI(answer)
        tools = [echo(), tool_named("hang", answer=hang)]
        async with scripted(api, tools=tools, durability="none") as loop:

            async def leave() -> None:
                async for message in loop.run("Hang.", log=tmp_path / "run.jsonl"):
                    if isinstance(message, AssistantMessage):
                        break
                await rounds()

            with pytest.warns(ResourceWarning, match="without being closed"):
                await leave()
            assert alone()
            [exchange] = api.exchanges
            assert exchange.ended.is_set()

    asyncio.run(main())
    report = verify(tmp_path / "run.jsonl")
    assert (report.ok, report.status) == (True, "sealed")
