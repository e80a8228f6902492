"""A disk that is full, slow, broken or gone: the log stops with a named error and holds whole records up to there."""

import asyncio
import errno
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from looplatch.audit import JsonlLog, LogClosed, LogFailed, read
from looplatch.audit.committer import Committer
from looplatch.audit.disk import Disk
from looplatch.audit.linefile import make_folder
from looplatch.states.reasons import Terminal
from looplatch.states.record import Kind
from looplatch.states.state import State


class FillingDisk(Disk):
    """A disk with room for so many more bytes; beyond them, the real error of a full device."""

    def __init__(self, room: int) -> None:
        self.room = room
        self._full = os.open("/dev/full", os.O_WRONLY)

    def write(self, fd: int, data: bytes | memoryview) -> int:
        if not self.room:
            return super().write(self._full, data)
        taken = super().write(fd, data[: self.room])
        self.room -= taken
        return taken

    def throw_away(self) -> None:
        os.close(self._full)


class SlowDisk(Disk):
    """A disk that takes a few bytes at a time."""

    def __init__(self, bite: int) -> None:
        self.bite = bite

    def write(self, fd: int, data: bytes | memoryview) -> int:
        return super().write(fd, data[: self.bite])


class UnsyncableDisk(Disk):
    """A disk whose fsync fails while `broken`: it is sent to a pipe, which has none."""

    def __init__(self) -> None:
        self.broken = True
        self.asked = 0
        self.pipe = os.pipe()

    def fsync(self, fd: int) -> None:
        self.asked += 1
        super().fsync(self.pipe[0] if self.broken else fd)

    def throw_away(self) -> None:
        for end in self.pipe:
            os.close(end)


class InterruptedDisk(Disk):
    """A disk during whose second write the user presses Ctrl-C."""

    def __init__(self) -> None:
        self.writes = 0

    def write(self, fd: int, data: bytes | memoryview) -> int:
        done = super().write(fd, data)
        self.writes += 1
        if self.writes == 2:
            signal.raise_signal(signal.SIGINT)
        return done


@pytest.fixture
def unsyncable() -> Iterator[UnsyncableDisk]:
    disk = UnsyncableDisk()
    yield disk
    disk.throw_away()


@given(room=st.integers(0, 1200))
def test_a_full_disk_stops_the_log_at_a_whole_record(tmp_path_factory: pytest.TempPathFactory, room: int) -> None:
    path = tmp_path_factory.mktemp("full") / "run.jsonl"
    disk = FillingDisk(room)
    log = JsonlLog(path, "r", durability="none", payloads="digest", disk=disk)
    written: list[str] = []

    def fill() -> None:
        while True:
            record = log.append(Kind.MESSAGE, {})
            written.append(record.hash)

    with pytest.raises(LogFailed, match=r"writing failed:.*No space left on device") as caught:
        fill()
    assert (caught.value.file, caught.value.action) == (path, "writing")
    assert isinstance(caught.value.cause, OSError)
    assert caught.value.cause.errno == errno.ENOSPC

    disk.room = 10_000  # there is room again, but what was broken off is not gone on with
    with pytest.raises(LogFailed, match="No space left"):
        log.append(Kind.MESSAGE, {})
    with pytest.raises(LogFailed, match="No space left"):
        log.keep(b"1")
    with pytest.raises(LogFailed, match="No space left"):
        log.finish(State.FAILED, Terminal.INTERNAL_ERROR)
    with pytest.raises(LogFailed, match="No space left"):
        asyncio.run(log.sync())
    with pytest.raises(LogFailed, match="No space left"):
        log.close()
    log.close()  # it is closed all the same
    disk.throw_away()

    found = read(path)
    assert [record.hash for record in found] == written
    assert path.stat().st_size == room
    assert b"".join(found.lines) + found.torn == path.read_bytes()


def test_a_full_disk_for_payloads_stops_the_log_too(tmp_path: Path) -> None:
    disk = FillingDisk(50)
    log = JsonlLog(tmp_path / "run.jsonl", "r", durability="none", disk=disk)
    with pytest.raises(LogFailed, match="No space left") as caught:
        log.keep(b'"more than fits"')
    assert caught.value.file == tmp_path / "run.payloads"
    disk.room = 10_000
    with pytest.raises(LogFailed, match="No space left"):
        log.append(Kind.MESSAGE, {})
    with pytest.raises(LogFailed):
        log.close()
    disk.throw_away()
    assert (tmp_path / "run.jsonl").read_bytes() == b""


LIMITED = """
import resource, sys
from looplatch.audit import JsonlLog, LogFailed
from looplatch.states.record import Kind
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
log = JsonlLog(sys.argv[1], "r")
for n in range(100):
    try:
        log.append(Kind.MESSAGE, {"n": n})
    except LogFailed as error:
        print(n, error.action, error.cause.strerror)
        break
"""


def test_a_file_that_may_not_grow_stops_the_log(tmp_path: Path) -> None:
    """The limit of a real process; the kernel takes the part of the line that fits, then refuses."""
    path = tmp_path / "run.jsonl"
    done = subprocess.run([sys.executable, "-I", "-c", LIMITED, path], capture_output=True, text=True, check=True)
    count, action, problem = done.stdout.split(maxsplit=2)
    found = read(path)
    assert (action, problem.strip()) == ("writing", "File too large")
    assert len(found) == int(count)
    assert path.stat().st_size == 4096
    assert found.torn


@given(bite=st.integers(1, 400))
def test_short_writes_are_gone_on_with(tmp_path_factory: pytest.TempPathFactory, bite: int) -> None:
    path = tmp_path_factory.mktemp("slow") / "run.jsonl"
    log = JsonlLog(path, "r", durability="none", disk=SlowDisk(bite))
    payload = b'"' + b"x" * 500 + b'"'
    kept = log.keep(payload)
    made = [log.append(Kind.MESSAGE, {"n": n}) for n in range(3)]
    log.close()
    found = read(path)
    assert (list(found), found.torn) == (made, b"")
    stored = found.payloads.find(kept.hex)
    assert stored is not None
    assert stored[1] == payload


@pytest.mark.parametrize("payloads", ["keep", "digest"])
def test_a_failed_fsync_is_final(tmp_path: Path, unsyncable: UnsyncableDisk, payloads: str) -> None:
    """A second fsync may succeed although the pages of the first are lost: it is never asked for."""
    log = JsonlLog(tmp_path / "run.jsonl", "r", payloads=payloads, disk=unsyncable)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - parametrized
    log.keep(b"1")
    log.append(Kind.EFFECT_BEGIN, {})
    with pytest.raises(LogFailed, match="fsync failed") as caught:
        asyncio.run(log.sync())
    assert caught.value.file == tmp_path / ("run.payloads" if payloads == "keep" else "run.jsonl")
    assert caught.value.action == "fsync"
    asked = unsyncable.asked
    assert asked == 1
    unsyncable.broken = False
    with pytest.raises(LogFailed, match="fsync failed"):
        log.append(Kind.EFFECT_END, {})
    with pytest.raises(LogFailed, match="fsync failed"):
        asyncio.run(log.sync())
    with pytest.raises(LogFailed, match="fsync failed"):
        log.close()
    assert unsyncable.asked == asked
    assert len(read(tmp_path / "run.jsonl")) == 1


def test_a_failed_fsync_at_the_end_is_told_and_the_files_are_closed(tmp_path: Path, unsyncable: UnsyncableDisk) -> None:
    path = tmp_path / "run.jsonl"
    log = JsonlLog(path, "r", disk=unsyncable)
    log.finish(State.COMPLETED, Terminal.ANSWERED)
    with pytest.raises(LogFailed, match="fsync failed"):
        log.close()
    log.close()
    path.unlink()
    JsonlLog(path, "r", durability="none").close()  # no lock is left


def test_without_durability_nothing_is_synced(tmp_path: Path, unsyncable: UnsyncableDisk) -> None:
    log = JsonlLog(tmp_path / "run.jsonl", "r", durability="none", disk=unsyncable)
    log.keep(b"1")
    log.append(Kind.EFFECT_BEGIN, {})
    asyncio.run(log.sync())
    log.close()
    assert unsyncable.asked == 0


Step = Callable[[JsonlLog], object]


def keep(log: JsonlLog) -> None:
    log.keep(b"1")


def sync(log: JsonlLog) -> None:
    asyncio.run(log.sync())


@pytest.mark.parametrize("lost", ["run.jsonl", "run.payloads"])
@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.parametrize(
    ("before", "noticing"),
    [
        ((), keep),  # the first write that has to be made durable
        ((keep,), sync),
        ((keep, sync), sync),
        ((keep,), JsonlLog.close),
        ((keep, sync), JsonlLog.close),
    ],
)
def test_a_lost_file_is_noticed(
    tmp_path: Path, lost: str, replaced: bool, before: Sequence[Step], noticing: Step
) -> None:
    log = JsonlLog(tmp_path / "run.jsonl", "r", committer=Committer(interval_s=600))
    for step in before:
        step(log)
    (tmp_path / lost).rename(tmp_path / "elsewhere")
    if replaced:
        (tmp_path / lost).touch()
    with pytest.raises(LogFailed) as caught:
        noticing(log)
    assert caught.value.file == tmp_path / lost
    assert isinstance(caught.value.cause, FileNotFoundError)
    with pytest.raises(LogFailed):
        log.append(Kind.EFFECT_END, {})
    if noticing is not JsonlLog.close:
        with pytest.raises(LogFailed):
            log.close()


def test_an_interrupt_amid_a_record_does_not_break_the_chain(tmp_path: Path) -> None:
    """The line may be in the file already: writing the same seq once more would look like tampering."""
    path = tmp_path / "run.jsonl"
    log = JsonlLog(path, "r", durability="none", payloads="digest", disk=InterruptedDisk())
    log.append(Kind.GENESIS, {})
    with pytest.raises(KeyboardInterrupt):
        log.append(Kind.MESSAGE, {})
    with pytest.raises(LogClosed, match="broken off in the middle of a record"):
        log.append(Kind.MESSAGE, {})
    log.close()
    assert [record.seq for record in read(path)] == [0, 1]


def test_the_errors_name_file_cause_and_way_out() -> None:
    error = LogFailed(Path("/logs/run.jsonl"), "fsync", OSError(5, "Input/output error"))
    assert str(error) == (
        "/logs/run.jsonl: fsync failed: [Errno 5] Input/output error. The log is complete up to its last whole line; "
        "mend the disk and go on from there, or start a new run"
    )


class FolderDisk(Disk):
    """Notes each folder that is made or synced; syncing one fails with `fails`, if that is an error's number."""

    def __init__(self, fails: int = 0) -> None:
        self.did: list[tuple[str, Path]] = []
        self.fails = fails
        self._paths: dict[int, Path] = {}

    def mkdir(self, path: Path, mode: int) -> None:
        super().mkdir(path, mode)
        self.did.append(("made", path))

    def open(self, path: Path, flags: int) -> int:
        fd = super().open(path, flags)
        self._paths[fd] = path
        return fd

    def fsync(self, fd: int) -> None:
        self.did.append(("synced", self._paths[fd]))
        if self.fails:
            raise OSError(self.fails, os.strerror(self.fails))
        super().fsync(fd)


@pytest.mark.parametrize("fails", [0, errno.EINVAL, errno.EACCES])
def test_each_folder_that_is_made_is_made_durable_where_that_can_be(tmp_path: Path, fails: int) -> None:
    disk = FolderDisk(fails)
    logs, runs = tmp_path / "logs", tmp_path / "logs" / "runs"
    make_folder(runs, disk)
    assert disk.did == [("made", logs), ("synced", tmp_path), ("made", runs), ("synced", logs)]
    (tmp_path / "usual").mkdir()
    assert stat.S_IMODE(logs.stat().st_mode) == stat.S_IMODE((tmp_path / "usual").stat().st_mode)
    assert stat.S_IMODE(runs.stat().st_mode) == 0o700
    make_folder(runs, disk)
    assert len(disk.did) == 4, "what was there is left as it is"


def test_folders_of_logs_that_are_not_to_be_durable_wait_for_no_disk(tmp_path: Path) -> None:
    disk = FolderDisk(errno.EIO)
    make_folder(tmp_path / "logs" / "runs", disk, durable=False)
    assert disk.did == [("made", tmp_path / "logs"), ("made", tmp_path / "logs" / "runs")]


def test_a_folder_whose_name_cannot_be_made_durable_is_told(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        make_folder(tmp_path / "logs", FolderDisk(errno.EIO))


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs /proc")
def test_a_folder_that_cannot_be_made_in_one_that_is_there_is_told() -> None:
    with pytest.raises(OSError, match="/proc/self/logs"):
        make_folder(Path("/proc/self/logs/runs"), Disk())
