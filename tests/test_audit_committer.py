"""Group commit: when files are made durable, in which order, and in whose thread."""

import asyncio
import errno
import os
import queue
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from looplatch.audit import JsonlLog
from looplatch.audit.committer import Committer, shared_committer
from looplatch.audit.disk import DISK, Disk, Syncing, sync_each
from looplatch.audit.errors import LogFailed
from looplatch.audit.kernelsync import KernelSync
from looplatch.audit.linefile import LineFile
from looplatch.audit.protocol import Durability
from looplatch.states.record import Kind
from tests.counting import tallied

LONG_S = 20.0  # nothing takes this long but a test that fails
NO_FILE = 1_000_000


class WatchedDisk(Disk):
    """Notes the name of each file and folder that is synced, and by which thread."""

    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self.synced: list[str] = []
        self.threads: set[str] = set()
        self.happened = threading.Condition()

    def open(self, path: Path, flags: int) -> int:
        fd = super().open(path, flags)
        self.names[fd] = path.name
        return fd

    def fsync(self, fd: int) -> None:
        super().fsync(fd)
        with self.happened:
            self.synced.append(self.names[fd])
            self.threads.add(threading.current_thread().name)
            self.happened.notify_all()

    def wait_for(self, name: str, times: int) -> bool:
        with self.happened:
            return self.happened.wait_for(lambda: self.synced.count(name) >= times, LONG_S)


class Gated(Disk):
    """Something to commit, on a disk of its own that waits for its gate."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.begun = threading.Event()
        self.ended = threading.Semaphore(0)
        self.commits = 0
        self.let_through = False

    @property
    def disk(self) -> Disk:
        return self

    def committing(self) -> Syncing:
        self.commits += 1
        yield 0

    def fsync(self, fd: int) -> None:
        self.begun.set()
        self.let_through = self.gate.wait(LONG_S)
        self.ended.release()


@pytest.mark.parametrize("durability", ["group", "barrier"])
def test_records_become_durable_by_themselves(tmp_path: Path, durability: Durability) -> None:
    disk = WatchedDisk()
    alone = Committer()  # in the one that all share, logs of other tests may be due, too, and helpers take some of them
    log = JsonlLog(tmp_path / "run.jsonl", "r", durability=durability, disk=disk, committer=alone)
    log.append(Kind.GENESIS, {})
    assert disk.wait_for("run.jsonl", 1)
    log.append(Kind.MESSAGE, {})
    assert disk.wait_for("run.jsonl", 2)
    assert disk.threads == {"looplatch-committer"}
    log.close()


def test_payloads_are_synced_before_the_records_that_name_them_and_names_once(tmp_path: Path) -> None:
    disk = WatchedDisk()
    log = JsonlLog(tmp_path / "run.jsonl", "r", disk=disk, committer=Committer(interval_s=LONG_S))
    log.keep(b"1")
    log.append(Kind.MESSAGE, {})
    asyncio.run(log.sync())
    folder = tmp_path.name
    assert disk.synced == ["run.payloads", folder, "run.jsonl"]
    log.append(Kind.MESSAGE, {})
    asyncio.run(log.sync())
    assert disk.synced[3:] == ["run.jsonl"]
    assert not any(name in disk.threads for name in ("MainThread", "looplatch-committer"))
    log.close()


def test_what_is_durable_is_not_synced_again(tmp_path: Path) -> None:
    disk = WatchedDisk()
    log = JsonlLog(tmp_path / "run.jsonl", "r", disk=disk, committer=Committer(interval_s=LONG_S))
    log.append(Kind.GENESIS, {})
    asyncio.run(log.sync())
    before = list(disk.synced)
    asyncio.run(log.sync())
    log.close()
    assert disk.synced == before


@pytest.mark.parametrize(("durability", "synced"), [("none", 0), ("group", 1), ("barrier", 1)])
def test_close_leaves_the_log_durable(tmp_path: Path, durability: Durability, synced: int) -> None:
    disk = WatchedDisk()
    log = JsonlLog(
        tmp_path / "run.jsonl", "r", durability=durability, disk=disk, committer=Committer(interval_s=LONG_S)
    )
    log.append(Kind.GENESIS, {})
    log.close()
    assert disk.synced.count("run.jsonl") == synced


def test_the_event_loop_runs_on_while_a_log_is_synced(tmp_path: Path) -> None:
    """The fsync ends only after the event loop has opened its gate."""
    gate = threading.Event()

    class SlowDisk(Disk):
        def fsync(self, fd: int) -> None:
            assert gate.wait(LONG_S)
            super().fsync(fd)

    async def main() -> None:
        log = JsonlLog(tmp_path / "run.jsonl", "r", disk=SlowDisk(), committer=Committer(interval_s=LONG_S))
        log.append(Kind.EFFECT_BEGIN, {})
        syncing = asyncio.create_task(log.sync())
        await asyncio.sleep(0)
        assert not syncing.done()
        log.append(Kind.MESSAGE, {})  # and so does the log
        gate.set()
        await syncing
        log.close()

    asyncio.run(main())


def test_a_sync_that_is_given_up_leaves_the_log_usable(tmp_path: Path) -> None:
    gate, begun = threading.Event(), threading.Event()

    class SlowDisk(Disk):
        def fsync(self, fd: int) -> None:
            begun.set()
            assert gate.wait(LONG_S)
            super().fsync(fd)

    async def main() -> None:
        log = JsonlLog(tmp_path / "run.jsonl", "r", disk=SlowDisk(), committer=Committer(interval_s=LONG_S))
        log.append(Kind.EFFECT_BEGIN, {})
        syncing = asyncio.create_task(log.sync())
        await asyncio.to_thread(begun.wait, LONG_S)
        syncing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await syncing
        log.append(Kind.MESSAGE, {})
        gate.set()
        log.close()  # waits for the fsync in flight: the file must not be closed under it
        assert len(list(log.lines())) == 2

    asyncio.run(main())


def test_a_file_is_not_closed_under_its_fsync(tmp_path: Path) -> None:
    """Its number could be given to another file, and that one be synced instead."""

    class ClosingDisk(Disk):
        closed = threading.Event()
        closed_amid = False

        def fsync(self, fd: int) -> None:
            closer.start()
            self.closed_amid = self.closed.wait(0.05)

        def close(self, fd: int) -> None:
            super().close(fd)
            self.closed.set()

    (tmp_path / "lines").touch()  # so that its folder needs no fsync of its own
    disk = ClosingDisk()
    file = LineFile(tmp_path / "lines", disk)
    closer = threading.Thread(target=file.close)
    file.write(b"1\n")
    sync_each(file.syncing(), disk)
    closer.join(LONG_S)
    assert (disk.closed_amid, disk.closed.is_set()) == (False, True)


def test_marks_made_during_a_commit_are_one_commit_afterwards() -> None:
    committer = Committer(interval_s=0)
    first, second, third = Gated(), Gated(), Gated()
    second.gate.set()
    third.gate.set()
    committer.mark(first)
    assert first.begun.wait(LONG_S)
    for _ in range(5):
        committer.mark(second)
    first.gate.set()
    assert second.ended.acquire(timeout=LONG_S)
    committer.mark(third)
    assert third.ended.acquire(timeout=LONG_S)
    assert (first.commits, second.commits, third.commits) == (1, 1, 1)


def due_together(committer: Committer, *logs: Gated) -> None:
    """Mark logs while another one is being committed."""
    blocker = Gated()
    committer.mark(blocker)
    assert blocker.begun.wait(LONG_S)
    for log in logs:
        committer.mark(log)
    blocker.gate.set()


def test_logs_that_are_due_together_are_committed_in_parallel() -> None:
    """Each waits until the other has begun: one after the other they would not be let through."""
    one, other = Gated(), Gated()
    one.gate, other.gate = other.begun, one.begun
    due_together(Committer(interval_s=0), one, other)
    assert one.ended.acquire(timeout=2 * LONG_S)
    assert other.ended.acquire(timeout=2 * LONG_S)
    assert (one.let_through, other.let_through) == (True, True)


def test_a_commit_does_not_wait_for_helpers_that_never_began() -> None:
    """All workers are held by slow syncs: what is marked next is committed all the same."""

    async def main() -> None:
        committer = Committer(interval_s=0)
        slow = [Gated() for _ in range(8)]
        syncing = [asyncio.ensure_future(committer.perform(partial(sync.fsync, 0))) for sync in slow]
        await asyncio.sleep(0)
        assert all(sync.begun.wait(LONG_S) for sync in slow)
        blocker, one, other, later = Gated(), Gated(), Gated(), Gated()
        committer.mark(blocker)
        assert blocker.begun.wait(LONG_S)
        for log in (one, other):
            committer.mark(log)
        for log in (blocker, one, other, later):
            log.gate.set()
        assert one.ended.acquire(timeout=LONG_S)
        assert other.ended.acquire(timeout=LONG_S)
        committer.mark(later)
        assert later.ended.acquire(timeout=LONG_S / 2)  # the slow ones are still there then
        for sync in slow:
            sync.gate.set()
        await asyncio.gather(*syncing)
        assert all(sync.let_through for sync in slow)

    asyncio.run(main())


def test_what_a_sync_raises_in_a_helper_is_told_to_its_log() -> None:
    told: queue.Queue[tuple[bool, OSError]] = queue.Queue()

    class Failing(Gated):
        raised = False

        def committing(self) -> Syncing:
            try:
                yield from super().committing()
            except OSError as error:
                told.put((self.raised, error))

        def fsync(self, fd: int) -> None:
            super().fsync(fd)
            if threading.current_thread().name != "looplatch-committer":
                self.raised = True
                raise OSError(errno.EIO, "a helper's")

    committer, later = Committer(interval_s=0), Gated()
    one, other = Failing(), Failing()
    one.gate, other.gate = other.begun, one.begun
    due_together(committer, one, other)
    raised, error = told.get(timeout=LONG_S)
    assert (raised, str(error)) == (True, "[Errno 5] a helper's")
    later.gate.set()
    committer.mark(later)
    assert later.ended.acquire(timeout=LONG_S)
    assert told.empty()


def test_a_log_that_raises_is_told_and_later_logs_are_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is against its promise. The others that were due let go of what they hold."""
    told: queue.Queue[tuple[str, bool]] = queue.Queue()

    def tell(args: threading.ExceptHookArgs) -> None:
        told.put((str(args.exc_value), one.let_go and other.let_go))

    monkeypatch.setattr(threading, "excepthook", tell)

    class Failing(Gated):
        let_go = False

        def committing(self) -> Syncing:
            try:
                yield from super().committing()
                if self is one:
                    raise RuntimeError("a log's")
                yield 0
            finally:
                self.let_go = True

    committer, later = Committer(interval_s=0), Gated()
    one, other = Failing(), Failing()
    for log in (one, other, later):
        log.gate.set()
    due_together(committer, one, other)
    assert told.get(timeout=LONG_S) == ("a log's", True)
    committer.mark(later)
    assert later.ended.acquire(timeout=LONG_S)


class Scarce:
    """Threads can be started only while there are any left."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left = True
        start = threading.Thread.start

        def start_if_any(thread: threading.Thread) -> None:
            if not self.left:
                raise RuntimeError("can't start new thread")
            start(thread)

        monkeypatch.setattr(threading.Thread, "start", start_if_any)


def test_where_no_thread_can_be_started_the_log_has_failed_and_the_next_one_is_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads, committer, later = Scarce(monkeypatch), Committer(interval_s=0), Gated()
    log = JsonlLog(tmp_path / "run.jsonl", "r", committer=committer)
    threads.left = False
    for _ in range(2):
        with pytest.raises(LogFailed, match="starting a thread failed: can't start new thread"):
            log.append(Kind.GENESIS, {})
    threads.left = True
    later.gate.set()
    committer.mark(later)
    assert later.ended.acquire(timeout=LONG_S)
    with pytest.raises(LogFailed):
        log.close()


def test_a_job_is_waited_for_also_where_no_thread_could_be_started_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is in the queue by then, and a worker that is free again takes it."""

    class Noting(Gated):
        def __init__(self) -> None:
            super().__init__()
            self.went_on = threading.Event()
            self.went_on_amid = False

        def committing(self) -> Syncing:
            yield 0
            self.went_on.set()

        def fsync(self, fd: int) -> None:
            self.begun.set()
            if threading.current_thread().name != "looplatch-committer":
                self.went_on_amid = self.went_on.wait(0.05)
            else:
                held.gate.set()
                self.gate.wait(LONG_S)
            self.ended.release()

    threads, committer, held = Scarce(monkeypatch), Committer(interval_s=0), Gated()
    one, other = Noting(), Noting()
    one.gate, other.gate = other.begun, one.begun

    async def main() -> None:
        syncing = asyncio.ensure_future(committer.perform(partial(held.fsync, 0)))
        await asyncio.sleep(0)
        assert held.begun.wait(LONG_S)
        blocker = Gated()
        committer.mark(blocker)
        assert blocker.begun.wait(LONG_S)
        threads.left = False
        for log in (one, other):
            committer.mark(log)
        blocker.gate.set()
        await syncing

    asyncio.run(main())
    assert one.went_on.wait(LONG_S)
    assert other.went_on.wait(LONG_S)
    assert (one.went_on_amid, other.went_on_amid) == (False, False)


def test_many_logs_that_are_due_together_are_few_jobs() -> None:
    """Each job is a change of threads, which holds the event loop up."""
    many = [Gated() for _ in range(100)]
    for log in many:
        log.gate.set()
    with tallied(jobs=ThreadPoolExecutor.submit) as tally:
        committer, blocker = Committer(interval_s=0), Gated()
        committer.mark(blocker)
        assert blocker.begun.wait(LONG_S)
        for log in many:
            committer.mark(log)
        blocker.gate.set()
        assert all(log.ended.acquire(timeout=LONG_S) for log in many)
    assert [log.commits for log in many] == [1] * 100
    assert 1 <= tally.calls["jobs"] <= 7


class Unopened:
    """Something to commit whose file has a number that no file has."""

    disk = DISK
    failure: Exception | None = None

    def committing(self) -> Syncing:
        try:
            yield NO_FILE
        except OSError as error:
            self.failure = error


@pytest.mark.parametrize("in_kernel", [True, False])
def test_many_real_logs_that_are_due_together_are_synced_in_step(
    tmp_path: Path, in_kernel: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The payloads of all, then the names of all, then the records of all; one that fails is alone with that."""
    if not in_kernel:
        monkeypatch.setattr(KernelSync, "found", lambda: None)
    elif KernelSync.found() is None:
        pytest.skip("the kernel cannot be asked here")
    committer, blocker, later, odd = Committer(interval_s=0), Gated(), Gated(), Unopened()
    later.gate.set()
    with tallied(together=KernelSync.sync, jobs=ThreadPoolExecutor.submit, alone=Disk.fsync) as tally:
        committer.mark(blocker)
        assert blocker.begun.wait(LONG_S)
        committer.mark(odd)
        logs = [JsonlLog(tmp_path / f"{n}.jsonl", str(n), committer=committer) for n in range(100)]
        for log in logs:
            log.keep(b"1")
            log.append(Kind.GENESIS, {})
        blocker.gate.set()
        committer.mark(later)
        assert later.ended.acquire(timeout=LONG_S)
        later = Gated()
        later.gate.set()
        committer.mark(later)
        assert later.ended.acquire(timeout=LONG_S)  # so all that was due before it is done
    assert isinstance(odd.failure, OSError)
    assert odd.failure.errno == errno.EBADF
    if in_kernel:
        assert (tally.calls["together"], tally.calls["jobs"], tally.calls["alone"]) == (3, 0, 0)
    else:
        assert tally.calls["alone"] == 301
        assert 3 <= tally.calls["jobs"] <= 21
    with tallied(together=KernelSync.sync, alone=Disk.fsync) as tally:
        for log in logs:
            log.close()
    assert tally.calls["alone"] == 0, "they were durable"


def test_all_logs_of_a_process_share_one_committer() -> None:
    assert shared_committer() is shared_committer()


FORKING = """
import os, sys, threading
from looplatch.audit import JsonlLog
from looplatch.audit.disk import Disk
from looplatch.states.record import Kind

class WatchedDisk(Disk):
    def __init__(self):
        self.synced = threading.Event()
    def fsync(self, fd):
        super().fsync(fd)
        self.synced.set()

def durable(name):
    disk = WatchedDisk()
    log = JsonlLog(os.path.join(sys.argv[1], name), name, disk=disk)
    log.append(Kind.GENESIS, {})
    return disk.synced.wait(20)

assert durable("parent.jsonl")
child = os.fork()
if child == 0:
    os._exit(0 if durable("child.jsonl") else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_has_a_committer_of_its_own(tmp_path: Path) -> None:
    command = [sys.executable, "-I", "-W", "ignore", "-c", FORKING, str(tmp_path)]
    assert subprocess.run(command, timeout=3 * LONG_S).returncode == 0


LEAVING = """
import sys
from looplatch.audit import JsonlLog
from looplatch.states.record import Kind
for n in range(20):
    JsonlLog(f"{sys.argv[1]}/{n}.jsonl", str(n)).append(Kind.GENESIS, {})
"""


def test_a_process_that_ends_with_open_logs_ends_quietly(tmp_path: Path) -> None:
    command = [sys.executable, "-I", "-c", LEAVING, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, timeout=LONG_S)
    assert (done.returncode, done.stderr) == (0, b"")
    assert all((tmp_path / f"{n}.jsonl").stat().st_size for n in range(20))
