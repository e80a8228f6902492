"""A disk that fails at any write of SQLite's own: what holds of a log in JSON Lines holds of one in a database, too."""

import asyncio
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import looplatch
from looplatch import Loop, UsageError
from looplatch.audit import LogDamaged, LogFailed, read, redact
from looplatch.testing import FakeClock, ScriptedAPI
from tests.killing import BRIEF, Killer, tools
from tests.playing import MODEL, alone
from tests.resuming import answers_had
from tests.sqlite_faults import Faults, can_fail, failing_writes
from tests.test_disk_faults import begun, went_on

pytestmark = pytest.mark.skipif(not can_fail(), reason="the system calls of this Python's SQLite cannot be replaced")
FAR = 1_000_000
FULL = pytest.mark.parametrize("short", [False, True])


def folders(tmp_path: Path, step: int = 1) -> Iterator[tuple[int, Path]]:
    """A new folder for each number, from 1."""
    for at in range(1, FAR, step):
        folder = tmp_path / str(at)
        folder.mkdir()
        yield at, folder


async def ran_into(folder: Path, at: int, *, short: bool, resumes: bool = False) -> Faults:
    """A run on a disk that fails at a write: it stops there, before anything else is begun. Its faults."""
    log = folder / "run.sqlite"
    api = ScriptedAPI(BRIEF[answers_had(read(log)) :] if resumes else BRIEF)
    seen: list[tuple[int, list[str]]] = []
    faults = Faults(at, short=short, due=lambda: seen.append(begun(folder, api)))
    async with api.client() as client:
        loop = Loop(model=MODEL, client=client, clock=FakeClock(), jitter=lambda: 0.0, tools=tools(folder))
        failure: LogFailed | UsageError | None = None
        with failing_writes(faults):
            try:
                await (loop.resume(log) if resumes else loop.run("Go.", log=log))
            except (LogFailed, UsageError) as error:  # reading needs a place for locks, which no disk is full for
                failure = error
        if failure is None:  # nothing failed, or only what puts all into one file at the end
            assert looplatch.verify(log).status == "sealed"
        else:
            assert isinstance(failure, LogFailed) or (resumes and "disk I/O error" in str(failure))
            assert seen == [begun(folder, api)]
        assert alone()
    return faults


def is_open(log: Path) -> bool:
    """Whether a log, which must be right, has no seal."""
    report = looplatch.verify(log)
    assert report.ok, str(report)
    return report.status != "sealed"


def test_every_write_of_a_run_is_seen(tmp_path: Path) -> None:
    """So that the tests below end where the run does, not before."""
    faults = asyncio.run(ran_into(tmp_path, FAR, short=False))
    log = read(tmp_path / "run.sqlite")
    # Each record and each payload is at least one page that is written ahead, and the frame around it.
    assert FAR - faults.left > 2 * (len(log) + len(list(log.payloads.commitments())))


@FULL
def test_a_disk_that_fails_at_any_write_stops_the_run_and_it_goes_on_later(tmp_path: Path, short: bool) -> None:
    stopped, step = 0, 3 if short else 1
    for at, folder in folders(tmp_path, step):
        faults = asyncio.run(ran_into(folder, at, short=short))
        if not faults.failed:
            break
        log = folder / "run.sqlite"
        if log.exists() and len(read(log)):
            stopped += is_open(log)
            if at % 4 == 0:  # the others would take long, and tell nothing new
                went_on(log, BRIEF)
    assert stopped > 80 // step


@FULL
def test_it_may_fail_again_while_the_run_is_resumed(tmp_path: Path, short: bool) -> None:
    before = tmp_path / "before"
    before.mkdir()
    asyncio.run(ran_into(before, 100, short=False))
    assert read(before / "run.sqlite").terminal is None
    stopped, step = 0, 3 if short else 1
    for at, folder in folders(tmp_path, step):
        shutil.copytree(before, folder, dirs_exist_ok=True)
        faults = asyncio.run(ran_into(folder, at, short=short, resumes=True))
        if not faults.failed:
            break
        stopped += is_open(folder / "run.sqlite")
        if at % 4 == 0:
            went_on(folder / "run.sqlite", BRIEF)
    assert stopped > 40 // step


@FULL
def test_a_run_survives_kill_9_at_any_write(tmp_path: Path, short: bool) -> None:
    killer, survived = Killer(), 0
    try:
        for at, folder in folders(tmp_path, 3):
            log = folder / "run.sqlite"
            if not killer.kill(folder, at, torn=short, scene="database"):
                break
            if not log.exists() or is_empty(log):
                continue
            survived += is_open(log)
            if at % 4 == 0:
                went_on(log, BRIEF)
    finally:
        killer.close()
    assert survived > 80 // 3


def is_empty(log: Path) -> bool:
    """Whether a log has no record, or its process was killed before it made a log of the database."""
    try:
        return not len(read(log))
    except LogDamaged as error:
        return "no such table" in str(error)


def test_what_is_deleted_is_gone_once_the_disk_is_mended(tmp_path: Path) -> None:
    whole = tmp_path / "whole.sqlite"
    asyncio.run(ran_into(tmp_path, FAR, short=False))
    (tmp_path / "run.sqlite").rename(whole)
    assert b'"Go."' in whole.read_bytes()
    seq = next(record.seq for record in read(whole) if record.kind == "message")
    failures = 0
    for at, folder in folders(tmp_path):
        log = folder / "run.sqlite"
        shutil.copy(whole, log)
        faults = Faults(at, short=False)
        with failing_writes(faults):
            try:
                redact(log, seq)
            except LogFailed:
                failures += 1
        report = looplatch.verify(log)  # a tombstone whose content is still there says that it is to be deleted
        assert {one.invariant for one in report.violations} <= {"P3"}
        if not faults.failed:
            break
        with suppress(UsageError):  # it was, but for what stood there before
            redact(log, seq)
        assert looplatch.verify(log).ok, str(looplatch.verify(log))
        assert [path.name for path in folder.iterdir() if b'"Go."' in path.read_bytes()] == []
    assert failures > 5
