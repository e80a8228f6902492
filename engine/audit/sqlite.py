"""A log in one SQLite file, the payloads in it: for those who would rather keep one file, or ask it questions."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

from looplatch.audit.disk import DISK, Disk, Syncing
from looplatch.audit.durable import DurableLog
from looplatch.audit.errors import LogExists, LogInUse
from looplatch.audit.prefix import Prefix, prefix_of
from looplatch.audit.reader import parsed_run
from looplatch.audit.sqlitefile import SqliteFile, SqlitePayloads, stored_lines


class SqliteLog(DurableLog):
    """An AuditLog in the SQLite database `path` (WAL, mode 0600), which holds records and payloads.

    The lines are those that a file of JSON Lines would have. Raises as `JsonlLog` does: LogInUse, LogExists,
    UsageError. disk: opens, locks and fsyncs; SQLite itself writes. kept: see `reopen`. settings: durability, payloads,
    clock, entropy, mirror and committer, as for `JsonlLog`.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        run: str,
        *,
        disk: Disk = DISK,
        kept: Prefix | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(Path(path), run, disk=disk, kept=kept, **settings)
        self._stored = _open(self._path, disk, kept)
        self._write_line = self._stored.write

    @classmethod
    def reopen(cls, path: str | os.PathLike[str], kept: Prefix | None = None, **settings: Any) -> Self:
        """The log of a run that goes on: locked, as it stands, waiting for `resume`; see `JsonlLog.reopen`."""
        file = Path(path)
        kept = kept or prefix_of(tuple(stored_lines(file)), file=file)
        return cls(path, kept.run, payloads=kept.genesis["payloads"], kept=kept, **settings)

    @property
    def payloads(self) -> SqlitePayloads:
        """The payloads kept so far."""
        return SqlitePayloads(self._path)

    def lines(self) -> Iterator[bytes]:
        """The lines of the records written so far, each with its newline, in order."""
        return stored_lines(self._path, self.head[0])

    def _is_synced(self) -> bool:
        return self._stored.is_synced

    def _syncing_files(self) -> Syncing:
        yield from self._stored.syncing()

    def _check_places(self) -> None:
        self._stored.check_place()

    def _close_files(self) -> None:
        self._stored.close()

    def _write_payloads(self, kept: Sequence[tuple[str, bytes, bytes]]) -> None:
        self._stored.store(kept)

    def _erase_payloads(self, commitments: Sequence[str]) -> None:
        self._stored.erase(commitments)

    def _clear_tail(self, epoch: int) -> dict[str, int]:
        return {"records": 0, "payloads": 0}  # a transaction is whole, or is not there


def _open(path: Path, disk: Disk, kept: Prefix | None) -> SqliteFile:
    stored = SqliteFile(path, disk)
    try:
        if kept is not None and tuple(stored_lines(path)) != kept.lines:
            raise LogInUse(path)  # somebody wrote to it since it was read
        if kept is None and stored.found:
            raise LogExists(path, parsed_run(next(stored_lines(path, 1), b""), path))
    except BaseException:
        stored.discard()
        raise
    return stored
