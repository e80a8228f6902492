"""A log of JSON Lines that goes on in another file once one is large enough."""

import itertools
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Self

from looplatch.audit.disk import Syncing
from looplatch.audit.errors import LogExists, LogFailed, LogInUse, SigningFailed
from looplatch.audit.jsonl import JsonlLog, open_both
from looplatch.audit.linefile import LineFile
from looplatch.audit.payloads import payloads_of
from looplatch.audit.prefix import Prefix, prefix_of
from looplatch.audit.reader import run_of, split
from looplatch.audit.segments import SMALLEST, SegmentPayloads, lines_of, numbers_of, segment, segments_of
from looplatch.states.given import check_count
from looplatch.states.record import Kind, Record

_NEVER_LAST: Final = (Kind.TERMINAL, Kind.TOMBSTONE)  # nothing is to follow a seal


class SegmentedLog(JsonlLog):
    """An AuditLog in `run.jsonl`, `run.jsonl.2` and so on, each with its payloads beside it.

    A segment is closed by a checkpoint once it and its payloads have reached `max_bytes` bytes, at least 1,024; None:
    never, which is how a log is reopened that has segments already. The next file is there before that. All files but
    the first and the current one are let go of as soon as they are durable; the first stays locked. settings: as for
    `JsonlLog`, which says what is raised, too.
    """

    def __init__(
        self, path: str | os.PathLike[str], run: str, *, max_bytes: int | None = None, **settings: Any
    ) -> None:
        if max_bytes is not None:
            check_count("max_bytes", max_bytes, SMALLEST, ", or None")
        self._max_bytes = max_bytes
        self._number = 1
        self._older: list[LineFile] = []  # closed segments that may not be durable yet
        self._first: LineFile | None = None  # where it is not the current one
        self._changing = threading.Lock()
        super().__init__(path, run, **settings)

    @classmethod
    def reopen(cls, path: str | os.PathLike[str], kept: Prefix | None = None, **settings: Any) -> Self:
        """The log of a run that goes on; see `JsonlLog.reopen`."""
        if kept is None:
            data = b"".join(lines_of(Path(path)))
            kept = prefix_of(*split(data), Path(path))
        return super().reopen(path, kept, **settings)

    @property
    def payloads(self) -> SegmentPayloads:
        """The payloads kept so far."""
        return SegmentPayloads(self._path)

    def lines(self) -> Iterator[bytes]:
        """The lines of the records written so far, each with its newline, in order."""
        return itertools.islice(lines_of(self._path), self.head[0])

    def append(self, kind: Kind, fields: dict[str, Any]) -> Record:
        """Write a record, and close the segment if it is large enough by then; see AuditLog."""
        record = super().append(kind, fields)
        if self._max_bytes is not None and kind not in _NEVER_LAST:
            size = self._records.written + (0 if self._contents is None else self._contents.written)
            if size >= self._max_bytes:
                self._rotate()
        return record

    def _rotate(self) -> None:
        after = segment(self._path, self._number + 1)
        try:
            records, contents = open_both(after, self._disk, self.keeps_payloads)
        except Exception as error:
            self._failure = LogFailed(after, "opening", error)
            raise self._failure from error
        try:
            count, root = self._merkle.count, self._merkle.root()
            super().append(Kind.CHECKPOINT, {"count": count, "root": root, "segment": self._number})
        except BaseException as error:
            for file in (contents, records):
                if file is not None:
                    file.discard()
            if isinstance(error, SigningFailed):
                self._failure = LogFailed(self._records.path, "signing", error)
                raise self._failure from error
            raise
        with self._changing:
            if self._first is None:
                self._first = self._records
            self._older += [file for file in (self._contents, self._records) if file is not None]
            self._use(records, contents)
            self._number += 1

    def _is_synced(self) -> bool:
        with self._changing:
            return all(file.is_synced for file in self._older) and super()._is_synced()

    def _syncing_files(self) -> Syncing:
        with self._changing:
            older, current = tuple(self._older), (self._records, self._contents)
        for file in current:
            if file is not None:
                yield from file.syncing_name()  # before it is durable that the one before it is closed
        for file in (*older, *reversed(current)):
            if file is not None:
                yield from file.syncing()
        for file in older:
            file.check_place()  # for the last time
            if file is not self._first:
                file.close()
        with self._changing:
            self._older = [file for file in self._older if file not in older]

    def _close_files(self) -> None:
        failures: list[LogFailed] = []
        for file in (*self._older, self._contents, self._records, self._first):
            try:
                if file is not None:
                    file.close()
            except LogFailed as failure:
                failures.append(failure)
        if failures:
            raise failures[0]

    def _open(self, kept: Prefix | None) -> tuple[LineFile, LineFile | None]:
        there = numbers_of(self._path)
        if kept is None:
            if there != (1,):
                raise LogExists(segment(self._path, there[-1]), run_of(segment(self._path, there[-1])))
            return super()._open(None)
        first = LineFile(self._path, self._disk)  # the lock of all
        try:
            if b"".join(lines_of(self._path)) != kept.data + kept.torn:
                raise LogInUse(self._path)  # somebody wrote to it since it was read
            self._number = _current(there, segments_of(self._path), kept)
            before = sum(segment(self._path, number).stat().st_size for number in range(1, self._number))
            self._good = len(kept.data) - before
            if self._number == 1:
                contents = LineFile(payloads_of(self._path), self._disk) if self.keeps_payloads else None
                return first, contents
            self._first = first
            return open_both(segment(self._path, self._number), self._disk, self.keeps_payloads, new=False)
        except BaseException:
            first.discard()
            raise


def _current(there: tuple[int, ...], paths: tuple[Path, ...], kept: Prefix) -> int:
    """The segment that is gone on with: the last one, or the one before it where it was not closed yet."""
    last = kept.records[-1]
    is_closed = last.kind is Kind.CHECKPOINT and last.get("segment") == there[-1] - 1
    if there[-1] > 1 and not paths[-1].stat().st_size and not is_closed:
        return there[-2]
    return there[-1]
