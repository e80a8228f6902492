"""What logs on a disk share: failures are remembered, and what was written is made durable by the committer."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from looplatch.audit.chained import ChainedLog
from looplatch.audit.committer import Committer, shared_committer
from looplatch.audit.disk import DISK, Disk, Syncing, sync_each
from looplatch.audit.errors import LogFailed


class DurableLog(ChainedLog):
    """An AuditLog on a disk, but for its files. Once one of them has failed, nothing more is taken.

    disk, committer: what writes, and what makes durable; tests give their own. settings: as `ChainedLog` takes them.
    """

    def __init__(
        self,
        path: Path,
        run: str,
        *,
        disk: Disk = DISK,
        committer: Committer | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(run, **settings)
        self._write_line: Callable[[bytes], None]  # of whatever holds the records; raises LogFailed
        self._path = path.absolute()  # a run outlives a change of the working directory
        self._disk = disk
        self._committer = committer or shared_committer()
        self._is_durable = self.durability != "none"
        self._marked = False  # whether the committer knows of something to commit

    @property
    def file(self) -> Path:
        """The file of the records, as it was given."""
        return self._path

    @abstractmethod
    def _is_synced(self) -> bool:
        """Whether all that was written is on the disk itself."""

    @abstractmethod
    def _syncing_files(self) -> Syncing:
        """What is to be synced so that what was written before is durable, payloads first. Raises LogFailed."""

    @abstractmethod
    def _check_places(self) -> None:
        """Raise LogFailed where a file was removed or replaced: what is synced is of no use then."""

    @abstractmethod
    def _close_files(self) -> None:
        """Close all files, whatever happens. Raises LogFailed."""

    @abstractmethod
    def _write_payloads(self, kept: Sequence[tuple[str, bytes, bytes]]) -> None:
        """Write payloads at once: of each its commitment, its salt and itself. Raises LogFailed."""

    @abstractmethod
    def _erase_payloads(self, commitments: Sequence[str]) -> None:
        """Overwrite payloads where they stand, durably. Raises LogFailed."""

    async def sync(self) -> None:
        """Return when all that was written so far is durable, payloads first; at once with durability "none"."""
        self._check()
        if self._is_durable:
            if not self._is_synced():
                await self._committer.perform(self._commit)
            self._note_lost()
            self._check()

    @property
    def disk(self) -> Disk:
        """What makes its files durable."""
        return self._disk

    def committing(self) -> Syncing:
        """See `Committable`. A failure is raised by the next call to the log."""
        self._marked = False  # before the fsync: what is written during it needs another
        if self._failure is not None:  # an fsync that failed once may seem to work the next time, and has lost data
            return
        try:
            yield from self._syncing_files()
        except LogFailed as failure:
            self._failure = failure
        except Exception as error:  # in a thread there is nobody else to tell
            self._failure = LogFailed(self._path, "fsync", error)

    def _commit(self) -> None:
        sync_each(self.committing(), self._disk)

    def _note_lost(self) -> None:
        """Note it as a failure where a file is no longer in its place.

        Not in the committer's thread, which would have to wait for the interpreter's lock after each look.
        """
        try:
            self._check_places()
        except LogFailed as failure:
            self._failure = self._failure or failure

    def _write(self, line: bytes) -> None:
        try:
            self._write_line(line)
        except LogFailed as failure:
            self._failure = failure
            raise
        if self._is_durable and not self._marked:
            self._mark()

    def _store(self, kept: Sequence[tuple[str, bytes, bytes]]) -> None:
        try:
            self._write_payloads(kept)
        except LogFailed as failure:
            self._failure = failure
            raise
        if self._is_durable and not self._marked:
            self._mark()

    def _mark(self) -> None:
        self._note_lost()
        self._check()
        self._marked = True
        try:
            self._committer.mark(self)
        except RuntimeError as error:
            self._failure = LogFailed(self._path, "starting a thread", error)
            raise self._failure from error

    def _harden(self) -> None:
        self._commit()
        self._note_lost()
        self._check()

    def _erase(self, commitments: Sequence[str]) -> None:
        try:
            self._erase_payloads(commitments)
        except LogFailed as failure:
            self._failure = failure
            raise

    def _release(self) -> None:
        if self._is_durable:
            self._commit()
            self._note_lost()
        try:
            self._close_files()
        except LogFailed as failure:
            self._failure = self._failure or failure
        self._check()
