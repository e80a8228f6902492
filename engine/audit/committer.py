"""Group commit: the threads of the process in which files are made durable, so that no run waits for a disk."""

import asyncio
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import Final, Protocol

INTERVAL_S: Final = 0.040  # of the 50 ms that are promised: the rest is the disk's
_WORKERS: Final = 8


class Committable(Protocol):
    """What has files to make durable."""

    def commit(self) -> None:
        """Make all that was written before the call durable. Keeps its failure to itself: nobody here could mend it."""
        ...


class Committer:
    """Commits what was marked, a little later, in a daemon thread of its own; many marks of one log are one commit."""

    def __init__(self, interval_s: float = INTERVAL_S) -> None:
        self._interval_s = interval_s
        self._marked: set[Committable] = set()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._workers: ThreadPoolExecutor | None = None

    def mark(self, log: Committable) -> None:
        """Have `log` committed within the interval, and the time that its disk takes."""
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
        self._thread = threading.Thread(target=self._work, name="looplatch-committer", daemon=True)
        self._thread.start()

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
        """Commit in parallel, since file systems join such fsyncs into one; this thread takes its share.

        A helper that has not begun by then is let go: the workers may all be held by slow syncs, and nothing is left.
        """
        helping: list[Future[None]] = []
        with suppress(RuntimeError):  # the interpreter is ending and takes no more jobs: this thread does them all
            helping += (self._pool().submit(_commit, batch) for _ in range(min(_WORKERS, len(batch)) - 1))
        _commit(batch)
        began = [one for one in helping if not one.cancel()]
        wait(began)
        for one in began:
            one.result()


def _commit(batch: set[Committable]) -> None:
    """Commit what is left of `batch`: one job for many logs, as each change of threads holds the event loop up."""
    while batch:
        try:
            log = batch.pop()
        except KeyError:  # another thread took the last one
            return
        log.commit()


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
