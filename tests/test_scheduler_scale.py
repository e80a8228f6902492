"""Thousands of calls in one answer cost no more for each of them than a few: counted in steps, not in seconds."""

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import looplatch.tools.scheduler
from looplatch.tools import AbortSignal, Call, Cause, Outcome, Tool, ToolContext
from looplatch.tools.calls import Asked, Problem
from looplatch.tools.scheduler import Scheduler

ROOM = str(Path(looplatch.tools.scheduler.__file__).parent)


async def never(given: dict[str, Any], ctx: ToolContext) -> object:
    raise AssertionError("the tool of a call that only the scheduler sees was run")


TOOL = Tool("tool", "", {"type": "object"}, never)
PROBLEM = Problem(cause=Cause.INVALID_INPUT, text="wrong")

KINDS: dict[str, dict[str, Any]] = {
    "reads": {"read_only": True},
    "reads that may be cut": {"read_only": True, "undecided": True},
    "writes": {},
    "actions": {"toolset": "browser"},
    "actions that fail": {"toolset": "browser", "problem": PROBLEM},
    "calls that may be cut and cannot run": {"problem": PROBLEM, "undecided": True},
}


async def start(call: Call, abort: AbortSignal) -> Outcome:
    return Outcome(call=call, cause=Cause.ANSWERED, content="ok", is_error=False)


def steps(job: Callable[[], object]) -> int:
    """How many lines of the tools' room `job` runs, each turn of a loop counted."""
    lines = 0

    def trace(frame: FrameType, event: str, arg: object) -> Any:
        nonlocal lines
        if not frame.f_code.co_filename.startswith(ROOM):
            return None
        lines += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        job()
    finally:
        sys.settrace(before)
    return lines


async def played(facts: dict[str, Any], count: int, *, at_once: bool) -> None:
    scheduler = Scheduler(start)
    for index in range(count):
        scheduler.add(Call(id=str(index), name="tool", input={}, index=index, tool=TOOL, **facts))
        if not at_once:
            scheduler.moved_on(index)
    scheduler.moved_on(count)
    ended = 0
    while await scheduler.next_finished() is not None:
        ended += 1
    assert ended == count


@pytest.mark.parametrize("at_once", [False, True], ids=["as they come", "at once"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_steps_grow_with_the_calls_and_not_faster(kind: str, at_once: bool) -> None:
    few, many = (
        steps(lambda: asyncio.run(played(KINDS[kind], count, at_once=at_once)))  # noqa: B023 -- run at once
        for count in (50, 200)
    )
    assert many < few * 5


async def approved(count: int) -> None:
    async def permit(call: Call) -> Asked:
        return Asked()

    changed = asyncio.Event()
    scheduler = Scheduler(start, permit=permit, changed=changed)
    for index in range(count):
        scheduler.add(Call(id=str(index), name="tool", input={}, index=index, tool=TOOL))
    scheduler.moved_on(count)
    while not scheduler.held or len(scheduler.awaited) < count:
        changed.clear()
        await changed.wait()
    asked, scheduler = scheduler.calls, Scheduler(start)
    for call in asked:
        scheduler.restore(call, None, permitted=True, awaited=False)
    scheduler.moved_on(count)
    while await scheduler.next_finished() is not None:
        pass


def test_the_steps_of_approvals_grow_with_the_calls_and_not_faster() -> None:
    few, many = (steps(lambda: asyncio.run(approved(count))) for count in (50, 200))  # noqa: B023 -- run at once
    assert many < few * 5
