"""What a turn costs, in counts: exact ones, so that no turn grows dearer unnoticed. Nothing here is timed."""

import asyncio
import gc
import os
import sys
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import looplatch.encoding
from looplatch import Allow, Hooks, Log, Rule, StreamEvent
from looplatch.audit.committer import Committer
from looplatch.audit.disk import Disk
from looplatch.audit.linefile import LineFile
from looplatch.audit.segments import numbers_of
from looplatch.hooks import ToolCallContext, ToolOutcomeContext
from looplatch.machine import Machine
from looplatch.states import record
from tests.counting import CountingModel, Tally, counting_loop, sent_messages, tallied

WARM = 2  # turns of a run before the one in which things are counted: imports, caches and the like


def run_of(turns: int, *, counted: Callable[[], Any] = lambda: None, **options: Any) -> tuple[CountingModel, Log]:
    """A whole run of so many tool turns, whose messages a consumer takes. `counted` is called before it begins."""
    shape = {name: options.pop(name) for name in ("calls", "deltas", "at_hand", "waiting") if name in options}
    run_options = {name: options.pop(name) for name in ("log", "include_partial_messages") if name in options}
    waiting = shape.pop("waiting", False)
    model = CountingModel(turns, **shape)

    async def play() -> Log:
        async with counting_loop(model, waiting=waiting, **options).run("Go.", **run_options) as run:
            async for _ in run:
                pass
        assert run.result is not None
        assert run.result.terminal == "answered", run.result.error
        return run.log

    return model, asyncio.run(play())


def tally_of(turns: int, functions: dict[str, Callable[..., Any]], **options: Any) -> Tally:
    with tallied(**functions) as tally:
        run_of(turns, **options)
    return tally


def a_turn(functions: dict[str, Callable[..., Any]], **options: Any) -> dict[str, int]:
    """The calls of each function in one turn, the same in the third turn and in the thirtieth."""
    run_of(WARM, **options)
    calls = {turns: tally_of(turns, functions, **options).calls for turns in (3, 4, 30, 31)}
    early = {name: calls[4][name] - calls[3][name] for name in functions}
    late = {name: calls[31][name] - calls[30][name] for name in functions}
    assert early == late
    return late


# --- the API and the log


def test_a_turn_is_one_request_and_nothing_else_is_asked() -> None:
    model, _ = run_of(20)
    assert len(model.bodies) == 21
    assert model.counted == 0


@pytest.mark.parametrize("calls", [1, 2, 10])
def test_a_turn_writes_ten_records_and_two_more_for_each_further_call(calls: int) -> None:
    """A request and each tool begin and end, two messages join, and the machine moves four times."""
    kinds = [Counter(str(r.kind) for r in run_of(turns, calls=calls)[1].records) for turns in (7, 8)]
    assert kinds[1] - kinds[0] == Counter(
        {"transition": 4, "message": 2, "effect_begin": 1 + calls, "effect_end": 1 + calls}
    )


def test_each_record_and_each_payload_is_one_write(tmp_path: Path) -> None:
    """Ten records; three payloads: what the model said, what it called, what came of that."""
    functions: dict[str, Callable[..., Any]] = {"write": LineFile.write, "syscall": Disk.write}
    files = (tmp_path / f"{number}.jsonl" for number in range(100))
    run_of(WARM, log=next(files))
    early, late = (tally_of(turns, functions, log=next(files)).calls for turns in (30, 31))
    assert {name: late[name] - early[name] for name in functions} == {"write": 13, "syscall": 13}


@pytest.mark.parametrize("durability", ["none", "group"])
def test_the_thread_of_the_event_loop_never_waits_for_the_disk(tmp_path: Path, durability: str) -> None:
    waited: list[int] = []

    def profile(frame: Any, event: str, arg: Any) -> None:
        if event == "c_call" and arg is os.fsync:
            waited.append(1)

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        run_of(30, log=tmp_path / "run.jsonl", durability=durability, read_only=False)
    finally:
        sys.setprofile(before)
    assert waited == []


def test_without_durability_nothing_is_synced(tmp_path: Path) -> None:
    tally = tally_of(5, {"fsync": Disk.fsync}, log=tmp_path / "run.jsonl", durability="none", read_only=False)
    assert tally.calls["fsync"] == 0


# --- encoding


ENCODING: dict[str, Callable[..., Any]] = {
    "encode": looplatch.encoding.encode,
    "seal": record.seal,
    "digest": record.digest,
}


def test_what_a_turn_encodes_does_not_grow_with_the_history() -> None:
    """Twenty turns on, a turn encodes as many bytes as before, though its request is many times as long."""
    run_of(WARM)
    tallies = [tally_of(turns, ENCODING) for turns in (10, 11, 30, 31)]
    ten, eleven, thirty, thirty_one = (tally.returned["encode"] for tally in tallies)
    assert eleven - ten == thirty_one - thirty
    model, _ = run_of(31)
    assert len(model.bodies[31]) > 2.5 * len(model.bodies[10])


def test_a_block_is_encoded_once_and_a_record_once() -> None:
    """Three blocks; what the model began two blocks with, whose size is taken; the request's own fields. A digest for
    each payload, and for each message in the history's."""
    assert a_turn(ENCODING) == {"encode": 3 + 2 + 1, "seal": 10, "digest": 3 + 2}


def test_a_request_begins_with_the_messages_of_the_one_before() -> None:
    """What was sent once is sent again byte for byte: nothing is encoded anew, and the prompt cache holds."""
    model, _ = run_of(20)
    sent = [sent_messages(body) for body in model.bodies]
    assert all(later.startswith(earlier[:-1] + b",") for earlier, later in pairwise(sent))


# --- tasks and moves


@pytest.mark.parametrize("calls", [1, 2, 10])
def test_a_call_is_two_tasks_and_nothing_reads_beside_it(calls: int) -> None:
    """A call has its own task, and its tool one that can be left; both are over by the next event if none waits."""
    functions = {"tasks": asyncio.base_events.BaseEventLoop.create_task}
    assert a_turn(functions, calls=calls) == {"tasks": 2 * calls}


@pytest.mark.parametrize("calls", [1, 10])
def test_what_comes_beside_tools_that_wait_is_read_by_one_task(calls: int) -> None:
    """Two tasks for each call, and one that reads the rest of the answer."""
    functions = {"tasks": asyncio.base_events.BaseEventLoop.create_task}
    assert a_turn(functions, calls=calls, waiting=True) == {"tasks": 2 * calls + 1}


def test_text_is_read_without_any_task() -> None:
    functions = {"tasks": asyncio.base_events.BaseEventLoop.create_task}
    few, many = (tally_of(0, functions, deltas=deltas).calls["tasks"] for deltas in (2, 500))
    assert few == many


def test_a_turn_is_four_moves() -> None:
    assert a_turn({"send": Machine.send}) == {"send": 4}


# --- calls of functions


def a_delta(**options: Any) -> float:
    """The calls of Python functions for one text delta."""
    run_of(WARM)
    few, many = (tally_of(0, {}, deltas=deltas, **options).python for deltas in (1_000, 2_000))
    return (many - few) / 1_000


def test_a_delta_costs_few_calls() -> None:
    """Read alone, and taken by a consumer; and where many come in one piece of the network's.

    Rounded: the log's committer, in its own thread, adds a call or two to a thousand deltas.
    """
    assert round(a_delta()) <= 5
    assert round(a_delta(include_partial_messages=True)) <= 13
    assert round(a_delta(include_partial_messages=True, at_hand=50)) <= 8


def test_a_turn_costs_no_more_calls_than_it_did(tmp_path: Path) -> None:
    """All calls of Python functions of a turn; where this fails, look for what does the same thing twice."""
    files = (tmp_path / f"{number}.jsonl" for number in range(100))
    run_of(WARM, log=next(files))
    early, late = (tally_of(turns, {}, log=next(files), durability="none").python for turns in (30, 60))
    assert (late - early) / 30 <= 1_090


def test_a_turn_keeps_nothing_but_its_messages(tmp_path: Path) -> None:
    """Memory, in blocks of the interpreter's: what each turn leaves behind, with the log on the disk."""
    blocks: list[int] = []

    async def play() -> None:
        model = CountingModel(300)
        async with counting_loop(model).run("Go.", log=tmp_path / "run.jsonl", include_partial_messages=True) as run:
            async for message in run:
                at_end = isinstance(message, StreamEvent) and message.event["type"] == "message_stop"
                if at_end and len(model.bodies) in (100, 300):
                    blocks.append(sys.getallocatedblocks())

    asyncio.run(play())
    early, late = blocks
    assert (late - early) / 200 <= 40


# --- a run's own


DISK: dict[str, Callable[..., Any]] = {
    name: getattr(Disk, name) for name in ("open", "lock", "write", "fsync", "truncate", "close")
}


def a_run(functions: dict[str, Callable[..., Any]], folder: Path, **options: Any) -> dict[str, int]:
    """The calls of each function in a run of one answer, whose log is in `folder`, among others."""
    run_of(0, log_dir=folder, **options)
    return tally_of(0, functions, log_dir=folder, **options).calls


def test_a_run_opens_two_files_and_writes_each_record_and_each_payload_once(tmp_path: Path) -> None:
    """Eleven records: what the run is made of, two messages, a request's begin and end, five moves, the seal. Two
    payloads: what was asked, and what was answered."""
    expected = {"open": 2, "lock": 2, "write": 13, "fsync": 0, "truncate": 0, "close": 2}
    assert a_run(DISK, tmp_path, durability="none") == expected


def test_a_run_is_made_durable_by_three_fsyncs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its two files, and once their folder, which is opened for that. It ends before group commit comes to it."""
    run_of(0, log_dir=tmp_path)
    monkeypatch.setattr("looplatch.audit.committer._shared", Committer(interval_s=600))
    calls = tally_of(0, DISK, log_dir=tmp_path).calls
    assert calls == {"open": 3, "lock": 2, "write": 13, "fsync": 3, "truncate": 0, "close": 3}


def test_a_run_takes_one_task_of_its_own(tmp_path: Path) -> None:
    """It ends in one, whoever is cancelled meanwhile; the other three are those of `asyncio.run`."""
    functions = {"tasks": asyncio.base_events.BaseEventLoop.create_task}
    assert a_run(functions, tmp_path, durability="none") == {"tasks": 4}


def test_a_run_costs_no_more_calls_than_it_did(tmp_path: Path) -> None:
    """All calls of Python functions, its loop's and those of `asyncio.run` among them."""
    run_of(0, log_dir=tmp_path, durability="none")
    assert tally_of(0, {}, log_dir=tmp_path, durability="none").python <= 1_700


def test_a_run_does_not_look_through_the_folder_of_logs(tmp_path: Path) -> None:
    """It would take the longer the more runs have left their logs there; the name of a new one is its own."""
    assert a_run({"listed": numbers_of}, tmp_path) == {"listed": 0}


# --- what is left behind


async def allowing(about: ToolCallContext) -> Allow:
    return Allow()


async def watching(about: ToolOutcomeContext) -> None:
    pass


@pytest.mark.parametrize(
    "options",
    [
        {"turns": 0},
        {"turns": 3},
        {"turns": 3, "calls": 10, "waiting": True},
        {"turns": 3, "read_only": False, "include_partial_messages": True},
        {"turns": 3, "rules": [Rule("allow", "work")]},
        {"turns": 3, "hooks": Hooks(before_tool=allowing, after_tool=watching)},
    ],
)
def test_a_run_leaves_nothing_to_the_garbage_collector(options: dict[str, Any], tmp_path: Path) -> None:
    """What a turn is done with is free at once, and so is a whole run: nothing of it holds itself in a circle."""
    run_of(**options, log=tmp_path / "warm.jsonl")
    gc.collect()
    gc.disable()
    try:
        run_of(**options, log=tmp_path / "run.jsonl")
        assert gc.collect() == 0
    finally:
        gc.enable()
