"""kill -9 in the middle of a sub-agent, at any record of both logs: the parent's resume takes both up again."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from looplatch import Allow, Log, read, verify
from looplatch.blocks import blocks_of
from looplatch.states.record import Record
from tests.killing import ASKING, Killer, done, nested
from tests.nesting import linked

UNKNOWN = "interrupted, effect unknown"
CALLS = ("r0", "r1", "w1", "w2", "p1")


@pytest.fixture(scope="module")
def killer() -> Iterator[Killer]:
    killer = Killer()
    yield killer
    killer.close()


def sealed(log: Log) -> Log:
    report = verify(log)
    assert report.ok, str(report)
    assert report.status == "sealed"
    return log


def results(log: Log) -> dict[str, str]:
    blocks = [block for message in log.messages for block in blocks_of(message)]
    return {block["tool_use_id"]: block["content"] for block in blocks if block["type"] == "tool_result"}


def ended_in(folder: Path) -> set[str]:
    """The calls of which an end is on record, in whichever log."""
    ended: set[str] = set()
    for file in folder.glob("*.jsonl"):
        if not file.stat().st_size or not file.read_bytes().count(b"\n"):
            continue
        effects = read(file).effects
        ended |= {str(one.begin["tool_use_id"]) for one in effects if _has_ended(one.begin, one.end)}
    return ended


def _has_ended(begin: Record, end: Record | None) -> bool:
    return begin["class"] == "tool" and end is not None and end["outcome"] != "suspended"


def check(folder: Path) -> None:
    """Both runs are over, bound to one another, and every call was carried out once but where that is not known."""
    log = sealed(read(folder / "run.jsonl"))
    child = sealed(linked(log, "t1"))
    assert results(log)["t1"] == "Found."
    counted = done(folder)
    for call, said in (*results(child).items(), *results(log).items()):
        begun = counted.count(f"begin {call}")
        if call in ("w1", "w2"):
            assert begun <= 1
            assert (said == f"did {call[1]}") or said.startswith(UNKNOWN)
        elif call != "t1":
            assert 1 <= begun <= 2


def test_a_sub_agent_survives_kill_9_at_any_record_of_both_logs(tmp_path: Path, killer: Killer) -> None:
    whole = tmp_path / "whole"
    whole.mkdir()
    asyncio.run(nested(whole, resume=False))
    check(whole)
    assert sorted(done(whole)) == sorted(f"{what} {call}" for call in CALLS for what in ("begin", "end"))
    records = len(read(whole / "run.jsonl")) + len(read(whole / "run.t1.jsonl"))
    survived = within = 0
    for count in range(4, records):  # before the third record there is no run to take up
        folder = tmp_path / str(count)
        folder.mkdir()
        assert killer.kill(folder, count, torn=bool(count % 3 == 0), scene="nested")
        before = ended_in(folder)
        if read(folder / "run.jsonl").terminal is not None:
            continue
        within += (folder / "run.t1.jsonl").exists()
        asyncio.run(nested(folder, resume=True))
        check(folder)
        assert [call for call in before if call != "t1" and done(folder).count(f"begin {call}") != 1] == []
        survived += 1
    assert survived > 40
    assert within > 24


def test_approvals_of_a_sub_agent_survive_kill_9_at_any_record(tmp_path: Path, killer: Killer) -> None:
    """Processes die while they wait, while they take the approvals, and while they go on: each call runs once."""
    survived = 0
    for count in range(2, 40):
        folder = tmp_path / str(count)
        folder.mkdir()
        path = folder / "run.jsonl"
        result = asyncio.run(nested(folder, resume=False, rules=ASKING))
        assert [block.id for block in result.pending] == ["w1"]
        killed = killer.kill(folder, count, torn=bool(count % 4 == 0), resume=True, scene="asking", approved=["w1"])
        before = ended_in(folder)
        for _ in range(4):
            if read(path).terminal is not None:
                break
            result = asyncio.run(nested(folder, resume=True, rules=ASKING))
            if result.subtype == "suspended":
                given = {block.id: Allow() for block in result.pending}
                result = asyncio.run(nested(folder, resume=True, rules=ASKING, approvals=given))
        check(folder)
        assert [call for call in before if call != "t1" and done(folder).count(f"begin {call}") != 1] == []
        survived += killed
    assert survived > 15
