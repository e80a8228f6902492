"""A log in a file: JSON Lines, with the payloads in a second file beside it."""

import os
from collections.abc import Iterator, Sequence
from itertools import starmap
from pathlib import Path
from typing import Any, Self

from looplatch.audit.committer import Committer
from looplatch.audit.disk import DISK, Disk, Syncing
from looplatch.audit.durable import DurableLog
from looplatch.audit.errors import LogExists, LogFailed, LogInUse
from looplatch.audit.linefile import LineFile, end_of_lines
from looplatch.audit.mirror import Mirror
from looplatch.audit.payloads import FilePayloads, payload_line, payloads_of
from looplatch.audit.prefix import Prefix, read_prefix
from looplatch.audit.protocol import Durability, Entropy, Payloads
from looplatch.audit.reader import first_lines, read_bytes, run_of
from looplatch.audit.segments import SegmentPayloads
from looplatch.audit.signing import Signer
from looplatch.audit.stamps import SYSTEM_TIME, TimeSource
from looplatch.states.errors import UsageError


class JsonlLog(DurableLog):
    """An AuditLog in the file `path`; the payloads go to `run.payloads` beside `run.jsonl`.

    Both files are made by this (mode 0600) and locked until `close`. Raises before anything is written: LogInUse where
    another run has the log open, LogExists where the file holds anything, UsageError where it cannot be written or a
    setting does not exist.

    durability: see `Durability`. disk, committer: what writes, and what makes durable; tests give their own. kept: the
    records of a run that goes on; see `reopen`.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        run: str,
        *,
        durability: Durability = "group",
        payloads: Payloads = "keep",
        clock: TimeSource = SYSTEM_TIME,
        entropy: Entropy = os.urandom,
        mirror: Mirror | None = None,
        signer: Signer | None = None,
        disk: Disk = DISK,
        committer: Committer | None = None,
        kept: Prefix | None = None,
    ) -> None:
        super().__init__(
            Path(path),
            run,
            disk=disk,
            committer=committer,
            durability=durability,
            payloads=payloads,
            clock=clock,
            entropy=entropy,
            mirror=mirror,
            signer=signer,
            kept=kept,
        )
        self._good = 0 if kept is None else len(kept.data)  # bytes of the file that are whole records
        self._use(*self._open(kept))

    @classmethod
    def reopen(cls, path: str | os.PathLike[str], kept: Prefix | None = None, **settings: Any) -> Self:
        """The log of a run that goes on: locked, as it stands, waiting for `resume`.

        kept: what `read_prefix` made of the file, None to read it now. settings: as for a new log, but for `payloads`.
        Raises LogInUse where another run has it open or wrote to it since `kept` was read, LogDamaged where good
        records follow a damage, UsageError where there is no log.
        """
        kept = kept or read_prefix(Path(path))
        return cls(path, kept.run, payloads=kept.genesis["payloads"], kept=kept, **settings)

    @property
    def payloads(self) -> FilePayloads | SegmentPayloads:
        """The payloads kept so far."""
        return FilePayloads(payloads_of(self._path))

    def lines(self) -> Iterator[bytes]:
        """The lines of the records written so far, each with its newline, in order."""
        return first_lines(self._path, self.head[0])

    def _open(self, kept: Prefix | None) -> tuple[LineFile, LineFile | None]:
        records, contents = open_both(self._path, self._disk, self.keeps_payloads, new=kept is None)
        if kept is not None and read_bytes(self._path) != kept.data + kept.torn:
            for file in (contents, records):
                if file is not None:
                    file.discard()
            raise LogInUse(self._path)  # somebody wrote to it since it was read
        return records, contents

    def _use(self, records: LineFile, contents: LineFile | None) -> None:
        """Write to these files from now on."""
        self._records, self._contents = records, contents
        self._write_line = records.write

    def _is_synced(self) -> bool:
        return self._records.is_synced and (self._contents is None or self._contents.is_synced)

    def _syncing_files(self) -> Syncing:
        if self._contents is not None:
            yield from self._contents.syncing()
        yield from self._records.syncing()

    def _check_places(self) -> None:
        if self._contents is not None:
            self._contents.check_place()
        self._records.check_place()

    def _close_files(self) -> None:
        try:
            if self._contents is not None:
                self._contents.close()
        finally:
            self._records.close()

    def _write_payloads(self, kept: Sequence[tuple[str, bytes, bytes]]) -> None:
        if self._contents is not None:
            self._contents.write(b"".join(starmap(payload_line, kept)))

    def _erase_payloads(self, commitments: Sequence[str]) -> None:
        payloads = self.payloads
        for one in commitments:
            try:
                payloads.blank(one, self._disk)
            except OSError as error:
                raise LogFailed(payloads.path, "deleting", error) from error

    def _clear_tail(self, epoch: int) -> dict[str, int]:
        lost = {"records": self._set_aside(self._records, self._good, epoch), "payloads": 0}
        if self._contents is not None:
            good = end_of_lines(self._contents.path)
            lost["payloads"] = self._set_aside(self._contents, good, epoch)
        return lost

    def _set_aside(self, file: LineFile, good: int, epoch: int) -> int:
        """Move the torn end of a file aside; how long it is, also where a claim that was cut had moved it before."""
        place = file.path.with_name(f"{file.path.name}.{epoch}.torn")
        try:
            moved = file.set_aside(good, place)
        except LogFailed as failure:
            self._failure = failure
            raise
        if not moved and place.exists():
            return place.stat().st_size
        return moved


def open_both(path: Path, disk: Disk, keeps: bool, *, new: bool = True) -> tuple[LineFile, LineFile | None]:
    """The files of a new log, or those of one that is there. Leaves none behind if it cannot be had."""
    records = LineFile(path, disk)
    contents = None
    try:
        if new and records.found:
            raise LogExists(path, run_of(path))
        if keeps:
            contents = LineFile(payloads_of(path), disk, records.folder)
            if new and contents.found:
                problem = f"{contents.path} holds the payloads of an earlier run"
                raise UsageError("log", problem, "Give another path, or move it away")
    except BaseException:
        for file in (contents, records):
            if file is not None:
                file.discard()
        raise
    return records, contents
