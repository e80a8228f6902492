"""Several consumers of one run: each sees every message, and the slowest bounds the others."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from looplatch import Hooks, UsageError
from looplatch.hooks import StopContext
from looplatch.tee import Branch, Tee
from looplatch.testing import ScriptedAPI, reply, tool_use
from tests.playing import Hanging, alone, check, echo, rounds, scripted


async def whole(branch: Branch) -> list[Any]:
    return [message async for message in branch]


class Numbers:
    """A source of numbers that counts how many were pulled."""

    def __init__(self, count: int) -> None:
        self.pulled = 0
        self._count = count

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        await asyncio.sleep(0)
        if self.pulled == self._count:
            raise StopAsyncIteration
        self.pulled += 1
        return self.pulled


def test_every_branch_sees_every_message_in_order() -> None:
    async def main() -> None:
        api = ScriptedAPI([reply(tool_use("t1", "read", {"n": 1})), reply("Done.")])
        async with scripted(api, tools=[echo()]) as loop, loop.run("Go.") as run:
            one, two, three = await asyncio.gather(*(whole(branch) for branch in run.tee(3)))
            assert one == two == three
            assert one[-1] is run.result
            check(run, api)
            assert alone()

    asyncio.run(main())


def test_two_branches_are_the_default() -> None:
    async def main() -> None:
        async with scripted(ScriptedAPI([])) as loop:
            assert len(loop.run("Go.").tee()) == 2

    asyncio.run(main())


@given(bound=st.integers(1, 5), order=st.lists(st.integers(0, 2), max_size=60))
def test_no_branch_is_further_ahead_than_the_bound(bound: int, order: list[int]) -> None:
    async def main() -> None:
        source = Numbers(20)
        branches = Tee(source, 3, bound).branches
        taken: list[list[Any]] = [[], [], []]
        pulling: dict[int, asyncio.Task[Any]] = {}
        for turn in order:
            if turn not in pulling:
                pulling[turn] = asyncio.ensure_future(anext(branches[turn], None))
            await rounds(5)
            for number, task in list(pulling.items()):
                if task.done():
                    taken[number].append(pulling.pop(number).result())
            counts = [len([item for item in got if item is not None]) for got in taken]
            assert max(counts) - min(counts) <= bound + 1
            assert source.pulled - min(counts) <= bound + 1
        for task in pulling.values():
            task.cancel()
        await asyncio.gather(*pulling.values(), return_exceptions=True)
        for got in taken:
            numbers = [item for item in got if item is not None]
            assert numbers == list(range(1, len(numbers) + 1))

    asyncio.run(main())


def test_a_branch_that_is_not_read_holds_the_run_and_one_that_has_left_does_not() -> None:
    async def main() -> None:
        source = Numbers(10)
        fast, slow = Tee(source, 2, 3).branches
        reader = asyncio.create_task(whole(fast))
        await rounds()
        assert source.pulled == 3
        assert not reader.done()
        await slow.aclose()
        assert await reader == list(range(1, 11))
        assert await whole(slow) == []

    asyncio.run(main())


def test_a_branch_that_leaves_while_it_waits_pulls_no_more() -> None:
    async def main() -> None:
        source = Numbers(10)
        fast, slow = Tee(source, 2, 3).branches
        reader = asyncio.create_task(whole(fast))
        await rounds()
        await fast.aclose()
        assert await reader == [1, 2, 3]
        assert source.pulled == 3
        async with slow:
            assert await whole(slow) == list(range(1, 11))

    asyncio.run(main())


@pytest.mark.parametrize(
    "given", [{"n": 0}, {"max_buffer": 0}, {"n": -1}, {"n": 1.5}, {"n": True}, {"max_buffer": "8"}]
)
def test_no_branches_or_no_room_are_refused(given: dict[str, Any]) -> None:
    async def main() -> None:
        async with scripted(ScriptedAPI([])) as loop:
            with pytest.raises(UsageError) as caught:
                loop.run("Go.").tee(**given)
            assert caught.value.what == f"tee({next(iter(given))})"

    asyncio.run(main())


class Broken(Exception):
    """A hook's own exception."""


def test_what_the_run_raises_reaches_every_branch_after_what_came_before() -> None:
    async def hook(context: StopContext) -> Any:
        raise Broken

    async def main() -> None:
        api = ScriptedAPI([reply("Done.")])
        async with scripted(api, hooks=Hooks(stop=[hook])) as loop, loop.run("Go.") as run:
            seen: Counter[Branch] = Counter()

            async def consume(branch: Branch) -> None:
                try:
                    async for _ in branch:
                        seen[branch] += 1
                except Broken:
                    pass
                with pytest.raises(Broken):
                    await anext(branch)

            await asyncio.gather(*(consume(branch) for branch in run.tee(2)))
            one, other = seen.values()
            assert one == other > 3
            check(run, api)

    asyncio.run(main())


def test_a_branch_that_is_cancelled_while_it_pulls_ends_the_run_for_all() -> None:
    async def main() -> None:
        hanging = Hanging("hang")
        api = ScriptedAPI([reply(tool_use("t1", "hang", {"n": 1}))])
        async with scripted(api, tools=[hanging.tool]) as loop, loop.run("Go.") as run:
            first, second = (asyncio.create_task(whole(branch)) for branch in run.tee(2))
            await hanging.began.wait()
            await rounds()
            first.cancel()
            with pytest.raises(asyncio.CancelledError):
                await first
            seen = await second
            assert seen[-1] is run.result
            assert hanging.ended.is_set()
            check(run, api)
            assert alone()

    asyncio.run(main())


def test_a_branch_that_is_cancelled_while_it_waits_leaves_the_run_alone() -> None:
    async def main() -> None:
        hanging = Hanging("hang")
        api = ScriptedAPI([reply(tool_use("t1", "hang", {"n": 1}))])
        async with scripted(api, tools=[hanging.tool]) as loop, loop.run("Go.") as run:
            left, right = run.tee(2)
            first, second = asyncio.create_task(whole(left)), asyncio.create_task(whole(right))
            await hanging.began.wait()
            await rounds()
            second.cancel()
            with pytest.raises(asyncio.CancelledError):
                await second
            assert not hanging.ended.is_set()
            await right.aclose()
            run.abort()
            assert (await first)[-1] is run.result
            check(run, api)

    asyncio.run(main())
