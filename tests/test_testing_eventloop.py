"""The deterministic event loop, by what it does to tasks and timers, and what runs do in it whatever the order."""

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from looplatch import ToolContext
from looplatch.testing import ScriptError, error, reply, run, tool_use
from tests.playing import played, tool_named

DAY = 86_400


def test_sleeps_take_no_time_and_end_in_their_order() -> None:
    ended: list[tuple[int, float]] = []

    async def sleeper(days: int) -> None:
        await asyncio.sleep(days * DAY)
        ended.append((days, asyncio.get_running_loop().time()))

    async def main() -> str:
        await asyncio.gather(*map(sleeper, (3, 1, 2)))
        return "done"

    assert run(main()) == "done"
    assert ended == [(1, DAY), (2, 2 * DAY), (3, 3 * DAY)]


def test_a_timeout_falls_due_in_the_loops_own_time() -> None:
    async def main() -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(90):
                await asyncio.sleep(100)
        return asyncio.get_running_loop().time()

    assert run(main()) == 90


def order(seed: int | None) -> str:
    told: list[str] = []

    async def teller(name: str) -> None:
        for _ in range(3):
            told.append(name)
            await asyncio.sleep(0)

    async def main() -> None:
        await asyncio.gather(*map(teller, "abc"))

    run(main(), seed=seed)
    return "".join(told)


def test_a_seed_is_an_order_and_each_task_has_its_step_in_every_round() -> None:
    assert order(None) == "abcabcabc"
    orders = [order(seed) for seed in range(30)]
    assert orders == [order(seed) for seed in range(30)]
    assert {one[:3] for one in orders} == {"abc", "acb", "bac", "bca", "cab", "cba"}
    assert all(sorted(one[place : place + 3]) == ["a", "b", "c"] for one in orders for place in (0, 3, 6))


def test_callbacks_keep_their_order() -> None:
    async def main() -> list[int]:
        told: list[int] = []
        loop = asyncio.get_running_loop()
        for number in range(20):
            loop.call_soon(told.append, number)
        loop.call_soon(told.append, 99).cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return told

    assert all(run(main(), seed=seed) == list(range(20)) for seed in range(5))


def test_what_can_never_go_on_is_told() -> None:
    async def main() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.set_name("the one that waits")
        await asyncio.Event().wait()

    with pytest.raises(ScriptError, match=r"nothing can happen any more.*These tasks wait: the one that waits"):
        run(main())


def test_what_a_thread_would_do_is_done_at_once() -> None:
    async def main() -> int:
        with pytest.raises(ZeroDivisionError):
            await asyncio.to_thread(lambda: 1 // 0)
        return await asyncio.to_thread(lambda: 7)

    assert run(main()) == 7


# --- runs


SCRIPT = [
    error(529, "overloaded_error", "Overloaded"),
    reply("I look.", *(tool_use(f"toolu_{place}", "read", {"n": place}) for place in range(4))),
    reply(
        *(
            tool_use(f"toolu_{4 + place}", name, {"n": 4 + place})
            for place, name in enumerate(["read", "write", "read"])
        )
    ),
    reply("Done."),
]


def run_of(seed: int | None, pauses: list[int]) -> tuple[Any, list[int]]:
    """A run of SCRIPT whose tools give way so many times; and the order in which the calls ended."""
    begun: list[int] = []
    ended: list[int] = []
    together = asyncio.Event()

    async def answer(given: dict[str, Any], ctx: ToolContext) -> str:
        number = int(given["n"])
        if number < 4:  # these begin as the answer comes in, one by one: they go on when all are there
            begun.append(number)
            if len(begun) == 4:
                together.set()
            await together.wait()
        for _ in range(pauses[number]):
            await asyncio.sleep(0)
        ended.append(number)
        return f"result {number}"

    tools = [tool_named("read", answer=answer), tool_named("write", read_only=False, answer=answer)]
    return run(played(SCRIPT, tools=tools), seed=seed), ended


RESULTS = [[(f"toolu_{n}", f"result {n}") for n in range(4)], [(f"toolu_{n}", f"result {n}") for n in range(4, 7)]]


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32), st.lists(st.integers(0, 9), min_size=7, max_size=7))
def test_the_history_is_the_same_whatever_the_order(seed: int, pauses: list[int]) -> None:
    told, ended = run_of(seed, pauses)
    messages = told.run.messages
    assert [
        [(block["tool_use_id"], block["content"]) for block in messages[place]["content"]] for place in (2, 4)
    ] == RESULTS
    assert messages[5]["content"] == [{"type": "text", "text": "Done."}]
    assert (sorted(ended[:4]), ended[4:]) == ([0, 1, 2, 3], [4, 5, 6])


def test_seeds_make_parallel_calls_end_in_many_orders_and_each_again() -> None:
    ends = [run_of(seed, [1] * 7)[1] for seed in range(12)]
    assert len({tuple(one) for one in ends}) > 3
    assert ends == [run_of(seed, [1] * 7)[1] for seed in range(12)]
