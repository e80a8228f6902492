"""A log in SQLite: all commands take it, a crash leaves it whole, and what is wrong with its file is said."""

import asyncio
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

import looplatch
from looplatch import AuditError, Log, UsageError
from looplatch.audit import LogDamaged, LogExists, LogFailed, SqliteLog, read, redact
from looplatch.audit.disk import Disk, sync_each
from looplatch.audit.sqlitefile import SqliteFile, stored_lines
from looplatch.cli import main
from looplatch.states.record import Kind
from looplatch.testing import ScriptedAPI, reply, tool_use
from tests.killing import ROOT
from tests.playing import played, saying, scripted

SCRIPT = [reply(tool_use("t1", "look", {"n": 1})), reply("The answer is there.")]


def ran(log: Path) -> None:
    asyncio.run(played(SCRIPT, log=log, tools=[saying("look", "there")]))


@pytest.mark.parametrize("name", ["run.sqlite", "run.sqlite3", "run.db"])
def test_the_suffix_of_the_file_chooses_it(tmp_path: Path, name: str) -> None:
    log = tmp_path / name
    ran(log)
    assert log.read_bytes().startswith(b"SQLite format 3\x00")
    assert [path.name for path in tmp_path.iterdir()] == [name]  # nothing is left beside it
    assert log.stat().st_mode & 0o777 == 0o600
    assert looplatch.verify(log).status == "sealed"
    assert looplatch.replay(log).ok
    assert read(log).messages[-1]["content"][0]["text"] == "The answer is there."
    with pytest.raises(LogExists, match="holds the run"):
        SqliteLog(log, "another")


def test_the_commands_take_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "run.sqlite"
    ran(log)
    assert main(["verify", str(log)]) == 0
    assert main(["replay", str(log)]) == 0
    assert main(["diagram", "--log", str(log)]) == 0
    seq = next(record.seq for record in read(log) if record.get("role") == "assistant")
    assert main(["redact", str(log), "--seq", str(seq)]) == 0
    assert looplatch.verify(log).ok
    assert capsys.readouterr().err == ""


def test_what_is_deleted_is_gone_from_the_file(tmp_path: Path) -> None:
    log = tmp_path / "run.sqlite"
    ran(log)
    assert b"The answer is there." in log.read_bytes()
    redact(log, next(r.seq for r in reversed(read(log).records) if r.get("role") == "assistant"))
    assert b"The answer is there." not in log.read_bytes()
    assert looplatch.verify(log).ok


def test_it_is_read_where_nothing_can_be_written(tmp_path: Path) -> None:
    log = tmp_path / "run.sqlite"
    ran(log)
    folder = tmp_path / "shipped"
    folder.mkdir()
    shutil.copy(log, folder)
    folder.chmod(0o500)
    try:
        assert looplatch.verify(folder / "run.sqlite").ok
    finally:
        folder.chmod(0o700)


def test_a_run_is_read_while_it_runs(tmp_path: Path) -> None:
    log = tmp_path / "run.sqlite"

    async def main() -> None:
        async with scripted(ScriptedAPI(SCRIPT), tools=[saying("look", "there")]) as loop:
            run = loop.run("Go.", log=log)
            async for _ in run:
                assert read(log).lines == run.log.lines
                assert looplatch.verify(log).ok

    asyncio.run(main())


KILLED = """
import os, signal, sys
from looplatch.audit import SqliteLog
from looplatch.states.record import Kind
log = SqliteLog(sys.argv[1], "r", durability=sys.argv[2])
log.append(Kind.GENESIS, {"payloads": "keep"})
for n in range(int(sys.argv[3])):
    print(log.keep(b'"%d"' % n).hex, log.append(Kind.MESSAGE, {"n": n}).hash, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("durability", ["none", "group"])
@pytest.mark.parametrize("count", [0, 1, 40, 2_000])  # the last is beyond what is written ahead at a time
def test_a_killed_writer_leaves_all_that_it_wrote(tmp_path: Path, durability: str, count: int) -> None:
    log = tmp_path / "run.sqlite"
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(log), durability, str(count)], capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    written = [line.split() for line in done.stdout.splitlines()]
    found = read(log)
    assert [record.hash for record in found.records[1:]] == [own for _, own in written]
    assert all(found.payloads.find(kept) for kept, _ in written)
    taken = SqliteLog.reopen(log)
    assert taken.resume(dict)["lost"] == {"records": 0, "payloads": 0}
    taken.close()
    assert len(read(log)) == count + 2


KILLED_EARLY = """
import os, signal, sqlite3, sys
from looplatch.audit import SqliteLog
left = int(sys.argv[2])

class Dying(sqlite3.Connection):
    def execute(self, *given):
        global left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().execute(*given)

connect = sqlite3.connect
sqlite3.connect = lambda *given, **named: connect(*given, factory=Dying, **named)
SqliteLog(sys.argv[1], "r")
"""


def told(argv: list[str], log: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    code = main([*argv, str(log)])
    said = capsys.readouterr()
    return code, (said.out + said.err).replace(str(log), "LOG")


@pytest.mark.parametrize("statements", [0, 1, 4, 7])
def test_a_writer_that_is_killed_before_its_tables_are_there_leaves_an_empty_log(
    tmp_path: Path, statements: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same is said of it as of a file of lines without any, and a run may be written there."""
    log, empty = tmp_path / "run.sqlite", tmp_path / "run.jsonl"
    done = subprocess.run(
        [sys.executable, "-c", KILLED_EARLY, str(log), str(statements)], capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    empty.touch()
    for command in ("verify", "replay", "resume", "explain"):
        assert told([command], log, capsys) == told([command], empty, capsys)
    assert list(read(log).payloads.commitments()) == []
    log_again = SqliteLog(log, "r")
    log_again.append(Kind.GENESIS, {"payloads": "keep"})
    log_again.close()
    assert len(read(log)) == 1


@contextmanager
def no_file_beyond(size: int) -> Generator[None]:
    """The system refuses to make any file longer, as it does on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("room", [40_000, 60_000, 100_000])
def test_a_disk_that_takes_no_more_stops_the_log(tmp_path: Path, room: int) -> None:
    path = tmp_path / "run.sqlite"
    log = SqliteLog(path, "r", durability="none")
    written = [log.append(Kind.GENESIS, {"payloads": "keep"}).hash]

    def fill() -> None:
        while True:
            written.append(log.append(Kind.MESSAGE, {"x": "y" * 500}).hash)

    with no_file_beyond(room), pytest.raises(LogFailed, match="writing failed"):
        fill()
    with pytest.raises(LogFailed):
        log.append(Kind.MESSAGE, {})
    with pytest.raises(LogFailed):
        log.close()
    assert [record.hash for record in read(path)] == written
    taken = SqliteLog.reopen(path)
    taken.resume(dict)
    taken.close()


@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_a_file_that_is_lost_stops_the_log(tmp_path: Path, how: str) -> None:
    path = tmp_path / "run.sqlite"
    log = SqliteLog(path, "r")
    log.append(Kind.GENESIS, {"payloads": "keep"})
    path.rename(tmp_path / "elsewhere")
    if how == "replaced":
        path.touch()
    with pytest.raises(LogFailed, match="fsync failed"):
        asyncio.run(log.sync())
    with pytest.raises(LogFailed):
        log.append(Kind.MESSAGE, {})
    with pytest.raises(LogFailed):
        log.close()


def test_what_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    path.write_bytes(b"not a database, but long enough to be one" * 100)
    for action in (looplatch.verify, read, redact_first, SqliteLog.reopen):
        with pytest.raises((LogDamaged, UsageError)):
            action(path)
    with pytest.raises(UsageError, match="no log"):
        SqliteLog(path, "r")
    with pytest.raises(UsageError, match="No such file"):
        looplatch.verify(tmp_path / "none.db")


def redact_first(path: Path) -> None:
    redact(path, 0)


def test_any_damage_of_the_file_is_found(tmp_path: Path) -> None:
    """A byte of a record, of a payload, or of the database itself."""
    path, whole = tmp_path / "run.sqlite", tmp_path / "whole.sqlite"
    ran(whole)
    data = whole.read_bytes()
    lines = b"".join(read(whole).lines)
    missed = 0
    for place in range(0, len(data), 131):
        path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        try:
            report = looplatch.verify(path)
        except (AuditError, UsageError):
            continue
        # A byte that belongs to nothing: what is read is what was written.
        if report.ok:
            assert b"".join(read(path).lines) == lines
            missed += 1
    assert missed < len(data) // 131


def test_a_log_at_work_is_one_file_and_what_is_written_ahead(tmp_path: Path) -> None:
    log = SqliteLog(tmp_path / "run.db", "r")
    log.append(Kind.GENESIS, {})
    assert sorted(os.listdir(tmp_path)) == ["run.db", "run.db-shm", "run.db-wal"]
    log.close()


def copy_of(log: Path) -> Path:
    """The database's own file, copied without what may lie beside it."""
    copy = log.with_name(f"copy{log.suffix}")
    shutil.copyfile(log, copy)
    return copy


def test_a_log_that_was_taken_up_again_ends_as_one_whole_file(tmp_path: Path) -> None:
    log = tmp_path / "b.sqlite"
    tools, rules = [saying("look", "there")], [looplatch.Rule("ask", "look")]

    async def main() -> Log:
        async with scripted(ScriptedAPI(SCRIPT), tools=tools, rules=rules) as loop:
            first = await loop.run("Go.", log=log)
            assert first.subtype == "suspended"
            assert first.log.messages
            result = await loop.resume(first.log, approvals={"t1": looplatch.Allow()})
            assert result.subtype == "success"
            return first.log

    held = asyncio.run(main())
    assert [path.name for path in tmp_path.iterdir()] == [log.name]
    assert held.messages, "who had it open may read on"
    report = looplatch.verify(copy_of(log))
    assert (report.ok, report.status) == (True, "sealed")


READS = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute("SELECT count(*) FROM records").fetchone()
print("read", flush=True)
sys.stdin.read()
"""


def test_a_reader_elsewhere_does_not_keep_the_end_out_of_the_file(tmp_path: Path) -> None:
    log = tmp_path / "b.sqlite"
    stored = SqliteFile(log)
    stored.write(b"one\n")
    command = [sys.executable, "-Ic", READS, str(log)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as reader:
        assert reader.stdout is not None
        assert reader.stdout.readline() == b"read\n"
        stored.write(b"two\n")
        stored.close()
        assert list(stored_lines(copy_of(log))) == [b"one\n", b"two\n"]


def test_a_redaction_leaves_one_whole_file(tmp_path: Path) -> None:
    log = tmp_path / "b.sqlite"
    ran(log)
    held = read(log)
    assert held.messages
    [first, *_] = [one.seq for one in held.records if one.kind is Kind.MESSAGE]
    redact(log, first)
    assert [path.name for path in tmp_path.iterdir()] == [log.name]
    report = looplatch.verify(copy_of(log))
    assert (report.ok, report.status) == (True, "sealed")


def test_a_sync_in_another_thread_is_not_in_the_way_of_closing(tmp_path: Path) -> None:
    """Nor closing in its way: what was written ahead, which the one syncs, the other puts into one file."""
    closing: list[threading.Thread] = []

    class Meanwhile(Disk):
        def open(self, path: Path, flags: int) -> int:
            if path.name.endswith("-wal") and not closing:
                closing.append(threading.Thread(target=stored.close))
                closing[0].start()
                closing[0].join(0.1)  # it waits for this sync
            return super().open(path, flags)

    disk = Meanwhile()
    stored = SqliteFile(tmp_path / "run.sqlite", disk)
    stored.write(b"a\n")
    sync_each(stored.syncing(), disk)
    closing[0].join()
    assert list(stored_lines(tmp_path / "run.sqlite")) == [b"a\n"]


def test_a_commit_that_comes_after_closing_does_nothing(tmp_path: Path) -> None:
    stored = SqliteFile(tmp_path / "run.sqlite")
    stored.write(b"a\n")
    stored.close()
    assert list(stored.syncing()) == []
    stored.close()
