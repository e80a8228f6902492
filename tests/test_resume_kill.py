"""kill -9 at every record of a run, in a process of its own, and the run taken up again from what is on the disk."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from looplatch import Log, UsageError, read
from looplatch.blocks import blocks_of
from looplatch.recovery.resume.errors import CannotResume
from looplatch.states.record import Kind
from looplatch.states.verify.log import verify_lines
from tests.killing import SCRIPT, Killer, done, played
from tests.resuming import answers_had, begun_and_ended, started

UNKNOWN = "interrupted, effect unknown"
WRITES = {"w1", "w2"}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Log:
    """The run that nothing happens to."""
    folder = tmp_path_factory.mktemp("whole")
    asyncio.run(played(folder, SCRIPT, resume=False))
    log = read(folder / "run.jsonl")
    assert done(folder) == [f"{what} {call}" for call in ("r1", "w1", "r2", "w2", "p1") for what in ("begin", "end")]
    return log


@pytest.fixture(scope="module")
def killer() -> Iterator[Killer]:
    killer = Killer()
    yield killer
    killer.close()


def check(folder: Path, before: Log, whole: Log) -> None:
    """The run on the disk is over, and as it should be; `before` is what its killed process left."""
    after = read(folder / "run.jsonl")
    report = verify_lines(after.lines, payloads=after.payloads.find)
    assert report.ok, str(report)
    assert report.status == "sealed"
    assert after.lines[: len(before.lines)] == before.lines
    counted = done(folder)
    for call in WRITES:
        assert counted.count(f"begin {call}") <= 1
    assert read_results(after).keys() <= read_results(whole).keys() | {"r1", "w1"}
    for call, said in read_results(after).items():
        unknown = said.startswith(UNKNOWN)
        assert unknown or said == read_results(whole)[call]
        assert not unknown or (call in WRITES and counted.count(f"begin {call}") <= 1)


def read_results(log: Log) -> dict[str, str]:
    blocks = [block for message in log.messages for block in blocks_of(message)]
    return {block["tool_use_id"]: block["content"] for block in blocks if block["type"] == "tool_result"}


def in_doubt(log: Log) -> bool:
    """Whether the process died in an answer of which a call had begun, or in a write."""
    begun, ended = begun_and_ended(log.records)
    model = [effect for effect in log.effects if effect.kind == "model"]
    midway = bool(model) and model[-1].end is None and any(e.begin.seq > model[-1].begin.seq for e in log.effects)
    return midway or bool((begun - ended) & WRITES)


@pytest.mark.parametrize("torn", [False, True], ids=["whole", "torn"])
def test_a_run_survives_kill_9_at_every_record(tmp_path: Path, whole: Log, killer: Killer, torn: bool) -> None:
    survived = same = 0
    for records in range(1, len(whole) + 1, 5 if torn else 1):
        folder = tmp_path / str(records)
        folder.mkdir()
        assert killer.kill(folder, records, torn=torn)
        before = read(folder / "run.jsonl")
        assert (len(before), bool(before.torn)) == (records - torn, torn)
        if not started(before.records):
            with pytest.raises(CannotResume, match=r"before it began") if before.records else pytest.raises(UsageError):
                asyncio.run(played(folder, SCRIPT, resume=True))
            continue
        if before.terminal is not None:
            with pytest.raises(CannotResume, match="has ended"):
                asyncio.run(played(folder, [], resume=True))
            continue
        asyncio.run(played(folder, SCRIPT[answers_had(before) :], resume=True))
        check(folder, before, whole)
        _, ended = begun_and_ended(before.records)
        assert [call for call in ended if done(folder).count(f"begin {call}") != 1] == []
        survived += 1
        if not in_doubt(before):
            assert read(folder / "run.jsonl").messages == whole.messages
            same += 1
    assert survived > 10
    assert same > survived // 2


@pytest.mark.parametrize("first", [8, 25, 40])
def test_a_run_survives_one_death_after_the_other(tmp_path: Path, whole: Log, killer: Killer, first: int) -> None:
    """Each process dies a few records after it took the run over."""
    assert killer.kill(tmp_path, first, torn=True)
    path = tmp_path / "run.jsonl"
    epochs = 0
    while (before := read(path)).terminal is None:
        killer.kill(tmp_path, 7, torn=bool(epochs % 2), had=answers_had(before), resume=True)
        epochs += 1
        assert epochs < 40
    check(tmp_path, before, whole)
    claims = [record["epoch"] for record in read(path).records if record.kind is Kind.RESUMED]
    assert claims == list(range(1, epochs + 1))
