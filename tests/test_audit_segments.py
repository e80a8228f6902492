"""A log in several files is one log: read, verified and resumed as one, and none of them can be lost or exchanged."""

import asyncio
import itertools
import shutil
from pathlib import Path

import pytest

import looplatch
from looplatch import AuditError, Loop, UsageError
from looplatch.audit import LogDamaged, LogExists, LogFailed, LogInUse, SegmentedLog, read, redact
from looplatch.audit.committer import Committer
from looplatch.audit.disk import Disk
from looplatch.cli import main
from looplatch.states.record import Kind
from looplatch.testing import Answer, FakeClock, ScriptedAPI, reply, tool_use
from tests.playing import MODEL, played, saying, scripted

LOOK = saying("look", "there " * 20)
ASKS = [looplatch.Rule("ask", "look", {"n": "5"})]


def script(first: int = 1) -> list[Answer]:
    return [*(reply(tool_use(f"t{n}", "look", {"n": n})) for n in range(first, 8)), reply("It is there.")]


def ran(log: Path) -> list[Path]:
    asyncio.run(played(script(), log=log, tools=[LOOK], segment_bytes=4_000))
    return files(log)


def files(log: Path) -> list[Path]:
    return [log, *itertools.takewhile(Path.exists, (log.with_name(f"{log.name}.{n}") for n in itertools.count(2)))]


def closed_by(path: Path) -> int | None:
    """The number of the segment that the last line of a file closes."""
    import json

    last = json.loads(path.read_bytes().splitlines()[-1])
    return last["segment"] if last["kind"] == "checkpoint" else None


def test_it_is_one_log_in_several_files(tmp_path: Path) -> None:
    log, whole = tmp_path / "run.jsonl", tmp_path / "whole.jsonl"
    paths = ran(log)
    assert len(paths) > 3
    assert [closed_by(path) for path in paths] == [*range(1, len(paths)), None]
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}
    for path in paths:  # whichever is named, it is the whole log
        found = read(path)
        assert b"".join(found.lines) == b"".join(one.read_bytes() for one in paths)
        report = looplatch.verify(path)
        assert report.ok, str(report)
        assert report.status == "sealed"
        assert looplatch.replay(path).ok
    assert main(["verify", str(log)]) == 0
    asyncio.run(played(script(), log=whole, tools=[LOOK]))
    assert read(log).messages == read(whole).messages
    kinds = [record.kind for record in read(log) if record.kind is not Kind.CHECKPOINT]
    assert kinds == [record.kind for record in read(whole)]


def test_a_segment_that_is_missing_is_named(tmp_path: Path) -> None:
    paths = ran(tmp_path / "run.jsonl")
    for number, path in enumerate(paths, 1):
        aside = path.rename(tmp_path / "aside")
        report = looplatch.verify(tmp_path / "run.jsonl")
        assert ("I2", path.name) in {(one.invariant, one.expected) for one in report.violations}, number
        with pytest.raises(LogDamaged, match="missing") as caught:
            read(paths[0])
        assert caught.value.file == path
        aside.rename(path)
    assert looplatch.verify(paths[0]).ok


def test_segments_that_were_exchanged_are_named(tmp_path: Path) -> None:
    paths = ran(tmp_path / "run.jsonl")
    paths[1].rename(tmp_path / "aside")
    paths[2].rename(paths[1])
    (tmp_path / "aside").rename(paths[2])
    report = looplatch.verify(paths[0])
    said = str(report)
    assert not report.ok
    assert "run.jsonl.2 is not closed as the segment 2" in said
    assert "run.jsonl.3 is not closed as the segment 3" in said
    with pytest.raises(LogDamaged):
        read(paths[0])


def test_one_of_another_run_is_found(tmp_path: Path) -> None:
    ours = ran(tmp_path / "run.jsonl")
    theirs = ran(tmp_path / "other.jsonl")
    shutil.copy(theirs[1], ours[1])
    assert "does not follow the one before it" in str(looplatch.verify(ours[0]))


def test_a_suspended_run_goes_on_in_its_last_file(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"

    async def go() -> None:
        async with scripted(ScriptedAPI(script()), tools=[LOOK], rules=ASKS, segment_bytes=4_000) as loop:
            assert (await loop.run("Go.", log=log)).subtype == "suspended"
        before = b"".join(path.read_bytes() for path in files(log))
        async with scripted(ScriptedAPI(script(6)), tools=[LOOK], rules=ASKS, segment_bytes=4_000) as loop:
            result = await loop.resume(log, approvals={"t5": looplatch.Allow()})
        assert result.subtype == "success"
        assert b"".join(path.read_bytes() for path in files(log)).startswith(before)

    asyncio.run(go())
    report = looplatch.verify(log)
    assert report.ok, str(report)
    assert report.status == "sealed"


class Dead(BaseException):
    """The process has died."""


class DyingDisk(Disk):
    """Nothing is written after so many writes; the last one only in part."""

    def __init__(self, writes: int) -> None:
        self.left = writes

    def write(self, fd: int, data: bytes | memoryview) -> int:
        if self.left <= 0:
            raise Dead
        self.left -= 1
        if not self.left:
            super().write(fd, bytes(data)[: len(data) // 2])
            raise Dead
        return super().write(fd, data)


def test_cut_at_any_write_what_is_there_is_gone_on_with(tmp_path: Path) -> None:
    """The records that were whole stay, in whichever file the cut is; and the log goes on after them."""
    writes = 0
    for writes in itertools.count(1):
        folder = tmp_path / str(writes)
        folder.mkdir()
        path, disk = folder / "run.jsonl", DyingDisk(writes)
        log = SegmentedLog(path, "r", max_bytes=1_024, durability="none", disk=disk)
        written: list[str] = []
        try:
            written.append(log.append(Kind.GENESIS, {"payloads": "keep"}).hash)
            for number in range(12):
                log.keep(b'"%d"' % number)
                written.append(log.append(Kind.MESSAGE, {"x": "y" * 100}).hash)
        except Dead:
            dead = True
        else:
            dead = False
        disk.left = 1_000
        log.close()
        if written:
            taken = SegmentedLog.reopen(path, max_bytes=1_024)
            claim = taken.resume(dict)
            for _ in range(5):
                taken.append(Kind.MESSAGE, {"x": "y" * 100})
            taken.close()
            found = read(path)
            assert [one.hash for one in found if one.kind is not Kind.CHECKPOINT][: len(written)] == written
            assert found.records[claim.seq].kind is Kind.RESUMED
            assert [one.seq for one in found] == list(range(len(found)))
            assert SegmentedLog.reopen(path).head[0] == len(found)
        if not dead:
            break
    assert writes > 20


def test_a_next_file_that_cannot_be_had_stops_the_log(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    log = SegmentedLog(path, "r", max_bytes=1_024, durability="none")
    (tmp_path / "run.jsonl.2").write_bytes(b"mine\n")
    log.append(Kind.GENESIS, {"payloads": "keep"})

    def fill() -> None:
        while True:
            log.append(Kind.MESSAGE, {"x": "y" * 100})

    with pytest.raises(LogFailed, match=r"run\.jsonl\.2: opening failed"):
        fill()
    with pytest.raises(LogFailed):
        log.append(Kind.MESSAGE, {})
    with pytest.raises(LogFailed):
        log.close()
    assert (tmp_path / "run.jsonl.2").read_bytes() == b"mine\n"


def test_two_owners_are_refused_and_so_is_a_place_that_holds_something(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    log = SegmentedLog(path, "r", max_bytes=1_024)
    log.append(Kind.GENESIS, {"payloads": "keep"})
    for _ in range(30):
        log.append(Kind.MESSAGE, {"x": "y" * 100})
    asyncio.run(log.sync())
    with pytest.raises(LogInUse):
        SegmentedLog.reopen(path)
    log.close()
    with pytest.raises(LogExists):
        SegmentedLog(path, "other", max_bytes=1_024)
    path.unlink()
    with pytest.raises(LogExists):  # of the log that was there, something is left
        SegmentedLog(path, "other", max_bytes=1_024)


@pytest.mark.parametrize("lost", ["run.jsonl", "run.jsonl.2", "run.payloads", "run.jsonl.2.payloads"])
def test_a_segment_that_is_lost_before_it_is_durable_is_noticed(tmp_path: Path, lost: str) -> None:
    log = SegmentedLog(tmp_path / "run.jsonl", "r", max_bytes=1_024, committer=Committer(interval_s=600))
    log.append(Kind.GENESIS, {"payloads": "keep"})
    while not (tmp_path / "run.jsonl.2").exists():
        log.append(Kind.MESSAGE, {"x": "y" * 100})
    log.keep(b"1")
    (tmp_path / lost).unlink()
    with pytest.raises(LogFailed) as caught:
        asyncio.run(log.sync())
    assert caught.value.file == tmp_path / lost
    with pytest.raises(LogFailed):
        log.close()


def test_contents_are_deleted_in_whichever_file_they_are(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    ran(log)
    seq = [record.seq for record in read(log) if record.get("role") == "assistant"][3]
    (gone,) = redact(log, seq).commitments
    assert read(log).payloads.find(gone) is None
    report = looplatch.verify(log)
    assert report.ok, str(report)


def test_settings_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    for size in (0, True, -1, "5", 700, 1_023):
        with pytest.raises(UsageError, match=r"segment_bytes.*at least 1,024"):
            Loop(model=MODEL, segment_bytes=size)  # type: ignore[arg-type]
    Loop(model=MODEL, segment_bytes=1_024)
    with pytest.raises((AuditError, UsageError), match="segment_bytes"):
        asyncio.run(_tried(tmp_path / "run.sqlite", 5_000))


async def _tried(log: Path, size: int) -> None:
    async with scripted(ScriptedAPI([reply("x")]), clock=FakeClock(), segment_bytes=size) as loop:
        await loop.run("Go.", log=log)


def test_the_files_of_a_segment_are_let_go_of(tmp_path: Path) -> None:
    """However many there are, few are open."""
    import os

    log = SegmentedLog(tmp_path / "run.jsonl", "r", max_bytes=1_024)
    log.append(Kind.GENESIS, {"payloads": "keep"})
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(40):
        for _ in range(4):
            log.append(Kind.MESSAGE, {"x": "y" * 100})
        asyncio.run(log.sync())
    assert len(files(tmp_path / "run.jsonl")) > 20
    assert len(os.listdir("/proc/self/fd")) <= before + 4
    log.close()
