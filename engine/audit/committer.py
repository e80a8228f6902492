"""Group commit: the threads of the process in which files are made durable, so that no run waits for a disk."""

import asyncio
import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from queue import Empty, Queue
from typing import Final, Protocol

from looplatch.audit.disk import DISK, Disk, Syncing
from looplatch.audit.kernelsync import KernelSync

INTERVAL_S: Final = 0.040  # of the 50 ms that are promised: the rest is the disk's
_WORKERS: Final = 8


class Committable(Protocol):
    """What has files to make durable."""

    @property
    def disk(self) -> Disk:
        """What syncs them."""
        ...

    def committing(self) -> Syncing:
        """What is to be synced so that all that was written before is durable.

        Keeps its failure to itself: nobody here could mend it.
        """
        ...


class _Commit:
    """A log that is being committed. file: the number of the one that is to be synced next."""

    __slots__ = ("disk", "file", "files", "outcome")

    def __init__(self, log: Committable) -> None:
        self.disk = log.disk
        self.files = log.committing()
        self.file = -1
        self.outcome: BaseException | None = None  # what the last sync failed by

    def goes_on(self) -> bool:
        """Whether there is another file to be synced, which is in `file` then."""
        outcome, self.outcome = self.outcome, None
        try:
            self.file = next(self.files) if outcome is None else self.files.throw(outcome)
        except StopIteration:
            return False
        return True

    def sync(self) -> None:
        """Sync the file by the log's own disk."""
        try:
            self.disk.fsync(self.file)
        except BaseException as error:  # in another thread, nobody would see it
            self.outcome = error


class Committer:
    """Commits what was marked, a little later, in a daemon thread of its own; many marks of one log are one commit."""

    def __init__(self, interval_s: float = INTERVAL_S) -> None:
        self._interval_s = interval_s
        self._marked: set[Committable] = set()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._workers: ThreadPoolExecutor | None = None
        self._kernel: KernelSync | None = None
        self._asked_for_kernel = False

    def mark(self, log: Committable) -> None:
        """Have `log` committed within the interval, and the time that its disk takes.

        Raises RuntimeError where the system has no thread left for that; the next mark tries again.
        """
        with self._changed:
            self._marked.add(log)
            if self._thread is None:
                self._start()
            self._changed.notify()

    async def perform(self, job: Callable[[], None]) -> None:
        """Run `job` in a worker thread, not in the event loop's own: those may all be held by slow tools."""
        await asyncio.get_running_loop().run_in_executor(self._pool(), job)

    def _pool(self) -> ThreadPoolExecutor:
        with self._changed:
            if self._workers is None:
                self._workers = ThreadPoolExecutor(_WORKERS, thread_name_prefix="looplatch-sync")
            return self._workers

    def _start(self) -> None:
        thread = threading.Thread(target=self._work, name="looplatch-committer", daemon=True)
        thread.start()
        self._thread = thread  # only now: where the system has no thread left, the next mark tries again

    def _work(self) -> None:
        try:
            while True:
                with self._changed:
                    while not self._marked:
                        self._changed.wait()
                time.sleep(self._interval_s)  # what is written meanwhile shares the commit
                with self._changed:
                    batch, self._marked = self._marked, set()
                self._commit_all(batch)
        finally:  # a commit raised, against its promise: what is marked from now on is committed all the same
            with self._changed:
                self._thread = None
                if self._marked:
                    self._start()

    def _commit_all(self, batch: set[Committable]) -> None:
        """Commit all logs in step: the first file of each is synced, then the second, in parallel.

        File systems join such syncs into one.
        """
        going = [_Commit(log) for log in batch]
        try:
            while going := [commit for commit in going if commit.goes_on()]:
                self._sync_all(going)
        finally:  # one raised, against its promise: the others let go of what they hold
            for commit in going:
                commit.files.close()

    def _sync_all(self, commits: Sequence[_Commit]) -> None:
        left = list(commits)
        if len(left) > 1 and (kernel := self._find_kernel()) is not None:
            together = [commit for commit in left if commit.disk is DISK]  # another one is a test's, and sees each call
            for commit, outcome in zip(together, kernel.sync([commit.file for commit in together]), strict=True):
                commit.outcome = outcome
            left = [commit for commit in left if commit.disk is not DISK]
        self._sync_in_threads(left)

    def _find_kernel(self) -> KernelSync | None:
        """Looked for only once there is more than one log to commit: a single one has nothing of it."""
        if not self._asked_for_kernel:
            self._asked_for_kernel = True
            self._kernel = KernelSync.found()
        return self._kernel

    def _sync_in_threads(self, commits: Sequence[_Commit]) -> None:
        """This thread takes its share.

        A helper that has not begun by then is let go: the workers may all be held by slow syncs, and nothing is left.
        """
        left: Queue[_Commit] = Queue()
        for commit in commits:
            left.put(commit)
        helping: list[Future[None]] = []
        with suppress(RuntimeError):  # the interpreter is ending, or the system has no thread left
            helping += (self._pool().submit(_sync_some, left) for _ in range(min(_WORKERS, len(commits)) - 1))
        _sync_some(left)
        for one in helping:
            one.cancel()
        left.join()  # not the helpers: one may be at work although no thread could be started for it


def _sync_some(left: Queue[_Commit]) -> None:
    """Sync what is left: one job for many files, as each change of threads holds the event loop up."""
    while True:
        try:
            commit = left.get_nowait()
        except Empty:
            return
        commit.sync()
        left.task_done()


_shared: Committer | None = None
_sharing: Final = threading.Lock()


def shared_committer() -> Committer:
    """The committer of this process."""
    global _shared
    with _sharing:
        if _shared is None:
            _shared = Committer()
        return _shared


def _forget() -> None:
    """After a fork: the child has none of the parent's threads."""
    global _shared
    _shared = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_sharing.acquire, after_in_parent=_sharing.release, after_in_child=_sharing.release)
    os.register_at_fork(after_in_child=_forget)
