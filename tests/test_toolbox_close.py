"""What tools hold for a run is ended with it: all of it, in bounded time, whatever happens meanwhile."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from looplatch.tools import Close, Tool, Toolbox, ToolContext


async def work(given: dict[str, Any], ctx: ToolContext) -> object:
    return given


def holding(name: str, close: Close) -> Tool:
    return Tool(name, "", {"type": "object"}, work, close=close)


class InstantTimer:
    """A timer whose time is always up at the next turn of the event loop."""

    def __call__(self, seconds: float, callback: Callable[[], None]) -> asyncio.Handle:
        return asyncio.get_running_loop().call_soon(callback)


def test_each_tool_that_holds_something_is_told_of_the_run() -> None:
    told: list[tuple[str, str]] = []

    def closing(name: str) -> Tool:
        async def close(run_id: str) -> None:
            told.append((name, run_id))

        return holding(name, close)

    box = Toolbox([closing("a"), Tool("b", "", {"type": "object"}, work), closing("c")])
    assert asyncio.run(box.close("run_1")) == ()
    assert told == [("a", "run_1"), ("c", "run_1")]


def test_one_that_fails_keeps_no_other_from_being_closed() -> None:
    closed: list[str] = []

    async def fail(run_id: str) -> None:
        raise OSError("stuck")

    async def leave(run_id: str) -> None:
        raise asyncio.CancelledError

    async def close(run_id: str) -> None:
        closed.append(run_id)

    box = Toolbox([holding("a", fail), holding("b", leave), holding("c", close)])
    errors = asyncio.run(box.close("run_1"))
    assert [str(error) for error in errors] == ["stuck", "closing the tool 'b' was cancelled from inside"]
    assert closed == ["run_1"]


def test_one_that_does_not_end_is_left_behind() -> None:
    async def hang(run_id: str) -> None:
        await asyncio.Event().wait()

    box = Toolbox([holding("a", hang)])
    [error] = asyncio.run(box.close("run_1", grace_s=3, timer=InstantTimer()))
    assert isinstance(error, TimeoutError)
    assert str(error) == "closing the tool 'a' took longer than 3 s"


def test_a_cancel_meanwhile_is_raised_when_all_is_closed() -> None:
    closed: list[str] = []
    began, end = asyncio.Event(), asyncio.Event()

    async def close(run_id: str) -> None:
        began.set()
        await end.wait()
        closed.append(run_id)

    async def scenario() -> None:
        closing = asyncio.create_task(Toolbox([holding("a", close)]).close("run_1"))
        await began.wait()
        for _ in range(2):
            closing.cancel()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        assert not closing.done()
        end.set()
        with pytest.raises(asyncio.CancelledError):
            await closing
        assert closed == ["run_1"]
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(scenario())
