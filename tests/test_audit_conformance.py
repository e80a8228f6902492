"""The stores of looplatch conform."""

from pathlib import Path
from typing import Any

from looplatch.audit import AuditLog, JsonlLog, MemoryLog, SegmentedLog, SqliteLog
from looplatch.audit.prefix import prefix_of
from looplatch.testing import AuditLogConformance


class TestMemory(AuditLogConformance):
    """Memory: what a process takes over is what another one hands it."""

    made: MemoryLog

    def create(self, folder: Path, run: str, **settings: Any) -> AuditLog:
        self.made = MemoryLog(run, **settings)
        return self.made

    def reopen(self, folder: Path, **settings: Any) -> AuditLog:
        return MemoryLog.reopen(prefix_of(tuple(self.made.lines())), self.made.payloads, **settings)


class TestJsonl(AuditLogConformance):
    """A file, and one of payloads beside it."""

    def create(self, folder: Path, run: str, **settings: Any) -> AuditLog:
        return JsonlLog(folder / "run.jsonl", run, **settings)

    def reopen(self, folder: Path, **settings: Any) -> AuditLog:
        return JsonlLog.reopen(folder / "run.jsonl", **settings)


class TestSegmented(AuditLogConformance):
    """Files that are closed after so many bytes."""

    def create(self, folder: Path, run: str, **settings: Any) -> AuditLog:
        return SegmentedLog(folder / "run.jsonl", run, max_bytes=100_000, **settings)

    def reopen(self, folder: Path, **settings: Any) -> AuditLog:
        return SegmentedLog.reopen(folder / "run.jsonl", max_bytes=100_000, **settings)


class TestSqlite(AuditLogConformance):
    """A database."""

    def create(self, folder: Path, run: str, **settings: Any) -> AuditLog:
        return SqliteLog(folder / "run.sqlite", run, **settings)

    def reopen(self, folder: Path, **settings: Any) -> AuditLog:
        return SqliteLog.reopen(folder / "run.sqlite", **settings)
