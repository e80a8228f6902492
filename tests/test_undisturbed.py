"""Waiting for work to its end: what comes of the work, and of a cancellation meanwhile."""

import asyncio
from collections.abc import Callable

import pytest

from looplatch.undisturbed import undisturbed
from tests.playing import rounds

FAILURE = OSError("the work's")


def fail(work: "asyncio.Future[int]") -> None:
    work.set_exception(FAILURE)


def cancel(work: "asyncio.Future[int]") -> None:
    work.cancel()


def succeed(work: "asyncio.Future[int]") -> None:
    work.set_result(1)


@pytest.mark.parametrize(("end", "cause"), [(fail, FAILURE), (cancel, None), (succeed, None)])
def test_a_cancellation_is_raised_after_the_work_and_has_its_failure_as_the_cause(
    end: Callable[["asyncio.Future[int]"], None], cause: Exception | None
) -> None:
    async def main() -> None:
        work: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        waiting = asyncio.ensure_future(undisturbed(work))
        for _ in range(2):
            await rounds()
            waiting.cancel("the waiter's")
        await rounds()
        assert not waiting.done()
        end(work)
        with pytest.raises(asyncio.CancelledError) as caught:
            await waiting
        assert caught.value.__cause__ is cause

    asyncio.run(main())


def test_without_a_cancellation_the_work_speaks_for_itself() -> None:
    async def main() -> None:
        work: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        succeed(work)
        assert await undisturbed(work) == 1
        work = asyncio.get_running_loop().create_future()
        fail(work)
        with pytest.raises(OSError, match="the work's"):
            await undisturbed(work)

    asyncio.run(main())
