"""Cancellation at every await, by each way: nothing is left, nothing is lost, and what is said is true."""

import asyncio
import threading
from collections.abc import Callable, Iterable

import pytest

from looplatch import Allow, Run, Tool, tool
from looplatch.blocks import blocks_of
from looplatch.testing import FakeClock, ScriptedAPI, reply, tool_use
from tests.cutting import DEADLINE, ENDS, WAYS, Cut, Ran, Scene, SteppingLoop, Work, finished, recorded, stepping
from tests.playing import Hanging, alone, check, play, rounds, running, scripted

WHERE = {
    "before the first request",
    "connecting",
    "mid-thinking",
    "mid-text",
    "mid-tool-JSON",
    "mid-stream",
    "a tool runs",
    "tools run in parallel",
    "a write waits for its turn",
    "hook before_tool",
    "hook after_tool",
    "hook after_response",
    "hook stop",
    "back-off",
    "summary",
    "an approval is pending",
}


def cut_at(step: int, way: str) -> tuple[Cut, int]:
    """The whole work, cut off before one step of the event loop."""

    async def main(loop: SteppingLoop) -> tuple[Cut, int]:
        work = Work()
        async with scripted(work.api, **work.options) as agent:
            run = agent.run("Go.", deadline_s=DEADLINE)
            cut = Cut(run=run, way=way, clock=work.clock)

            def make() -> None:
                cut.where = work.going_on(run)
                cut()

            opener = asyncio.create_task(work.open_gates())
            await rounds(1)
            loop.count(step, make)
            cut.consumer = running(run)
            await asyncio.wait([cut.consumer])
            steps = loop.steps or 0
            loop.count()
            await finished(cut, work.api, work.scene, opener)
            return cut, steps

    made: tuple[Cut, int] = stepping(main)
    return made


@pytest.mark.parametrize("way", WAYS)
def test_a_run_may_be_cut_off_at_every_await(way: str) -> None:
    where: set[str] = set()
    told: set[frozenset[str]] = set()
    points, step = 0, 0
    while True:
        step += 1
        cut, _ = cut_at(step, way)
        if not cut.made:
            break
        points += 1
        where |= cut.where
        if cut.run.result is not None and cut.run.result.terminal is not None and frozenset(cut.where) not in told:
            told.add(frozenset(cut.where))
            goes_on(cut.run)
    print(f"{way}: cut off at {points} points")
    assert where >= WHERE
    assert points > 200


def resumed_and_cut_at(step: int, way: str) -> Cut:
    """The whole work up to its suspension; what goes on after the approval is cut off before one step."""

    async def main(loop: SteppingLoop) -> Cut:
        work = Work()
        async with scripted(work.api, **work.options) as agent:
            opener = asyncio.create_task(work.open_gates())
            first = agent.run("Go.")
            await first
            run = agent.resume(first.log, approvals={"t7": Allow()}, deadline_s=DEADLINE)
            cut = Cut(run=run, way=way, clock=work.clock)
            loop.count(step, cut)
            cut.consumer = running(run)
            await asyncio.wait([cut.consumer])
            loop.count()
            if run.result is None:
                assert run.messages == first.messages
                assert "t7" not in work.scene.calls
                opener.cancel()
            else:
                await finished(cut, work.api, work.scene, opener)
            return cut

    made: Cut = stepping(main)
    return made


@pytest.mark.parametrize("way", WAYS)
def test_a_resumed_run_may_be_cut_off_at_every_await(way: str) -> None:
    points, step = 0, 2  # before the first step there is no deadline
    ends: set[str | None] = set()
    while (cut := resumed_and_cut_at(step, way)).made:
        ends.add(None if cut.run.result is None else cut.run.result.terminal)
        step += 1
        points += 1
    assert ENDS[way] in ends
    print(f"{way}: a resumed run, cut off at {points} points")
    assert points > 10


def goes_on(run: Run) -> None:
    """A new run goes on from what this one left."""
    left = run.messages
    known = [block for message in left for block in blocks_of(message)]
    told = play([reply("On.")], prompt=[*left, {"role": "user", "content": "Go on."}], known=known)
    assert told.result.terminal == "answered"


# --- tools that make it hard


def small(
    way: str,
    tools: Callable[[Scene, "Callable[[], None]"], Iterable[Tool]],
    *,
    step: int = 0,
    grace: bool = False,
) -> Cut:
    """One answer with a read and a write of the given tools, cut off before a step, or once `until` is set."""

    async def main(loop: SteppingLoop) -> Cut:
        scene, clock = Scene(), FakeClock()
        holder: list[Cut] = []
        api = ScriptedAPI([reply(tool_use("t1", "first", {"n": 1}), tool_use("t2", "second", {"n": 2}), "More.")])
        made = tools(scene, lambda: holder[0]())
        async with scripted(api, tools=made, clock=clock) as agent:
            run = agent.run("Go.", deadline_s=DEADLINE)
            cut = Cut(run=run, way=way, clock=clock)
            holder.append(cut)
            loop.count(step, cut)
            cut.consumer = running(run)
            while not cut.consumer.done():
                await rounds(1)
                if grace and cut.made:
                    await rounds(10)
                    clock.advance(1.0)
            loop.count()
            await finished(cut, api, scene)
            return cut

    cut: Cut = stepping(main)
    return cut


@pytest.mark.parametrize("first_reads", [True, False])
@pytest.mark.parametrize("way", WAYS)
def test_a_tool_that_finishes_in_the_same_tick_keeps_its_result(way: str, first_reads: bool) -> None:
    def tools(scene: Scene, cut: Callable[[], None]) -> list[Tool]:
        async def body() -> None:
            await rounds(12)  # until the second call has come
            cut()

        async def none() -> None:
            return None

        return [
            recorded(scene, "first", body, read_only=first_reads),
            recorded(scene, "second", none, read_only=False),
        ]

    cut = small(way, tools)
    first, second = cut.run.messages[-1]["content"]
    assert first["content"] == "read it"
    assert second["content"].startswith("not started")


@pytest.mark.parametrize("way", WAYS)
def test_a_tool_that_ignores_its_cancellation_is_left_after_its_grace(way: str) -> None:
    """It is cancelled twice, and abandoned; it ends by itself later, and its end changes nothing."""

    def tools(scene: Scene, cut: Callable[[], None]) -> list[Tool]:
        async def deaf() -> None:
            for _ in range(2):
                try:
                    await rounds(400)
                except asyncio.CancelledError:
                    continue
                else:
                    return

        async def none() -> None:
            return None

        return [recorded(scene, "first", deaf, read_only=True), recorded(scene, "second", none, read_only=False)]

    points = 0
    for step in range(2, 60):  # before the first one there is no deadline
        points += small(way, tools, step=step, grace=True).made
    print(f"{way}: a deaf tool, cut off at {points} points")
    assert points > 50


@pytest.mark.parametrize("way", WAYS)
def test_a_tool_that_blocks_its_thread_is_abandoned_on_record(way: str) -> None:
    released = threading.Event()

    async def main(loop: SteppingLoop) -> None:
        began = asyncio.Event()

        @tool(read_only=True)
        def first(n: int) -> str:
            """Block."""
            loop.call_soon_threadsafe(began.set)
            released.wait()
            return "late"

        clock = FakeClock()
        api = ScriptedAPI([reply(tool_use("t1", "first", {"n": 1}), "More.")])
        async with scripted(api, tools=[first], clock=clock) as agent:
            run = agent.run("Go.", deadline_s=DEADLINE)
            cut = Cut(run=run, way=way, clock=clock, consumer=running(run))
            await began.wait()
            cut()
            scene = Scene(calls={"t1": Ran(began=True)})
            await finished(cut, api, scene)
            [end] = [effect.end for effect in run.log.effects if effect.kind == "tool"]
            assert end is not None
            assert (end["outcome"], end["abandoned"]) == ("interrupted_no_effect", True)
            released.set()
            await rounds()

    try:
        stepping(main)
    finally:
        released.set()


class Failed(Exception):
    """What the sibling of a run raises."""


def test_a_run_in_a_task_group_ends_with_its_siblings() -> None:
    async def main() -> None:
        hanging = Hanging("hang")
        api = ScriptedAPI([reply(tool_use("t1", "hang", {"n": 1}), "More.")])
        async with scripted(api, tools=[hanging.tool]) as agent:
            run = agent.run("Go.")

            async def consume() -> None:
                await run

            async def fail() -> None:
                await hanging.began.wait()
                raise Failed

            async def group() -> None:
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(consume())
                    tasks.create_task(fail())

            with pytest.raises(ExceptionGroup) as caught:
                await group()
            assert [type(error) for error in caught.value.exceptions] == [Failed]
            assert hanging.ended.is_set()
            assert alone()
            assert run.result is not None
            assert run.result.terminal == "closed"
            check(run, api)

    asyncio.run(main())
