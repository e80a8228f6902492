"""A disk that fails at any moment of a run: the run stops with a named error before anything else is done."""

import asyncio
import errno
import os
from collections.abc import Sequence
from pathlib import Path

import attrs
import orjson
import pytest

import looplatch
from looplatch import Loop, ResultMessage
from looplatch.audit import LogFailed, read
from looplatch.audit.disk import Disk
from looplatch.testing import Answer, FakeClock, ScriptedAPI
from tests.killing import SCRIPT, done, tools
from tests.playing import MODEL, alone
from tests.resuming import answers_had, started


class FailingDisk(Disk):
    """Fails at its call number `at` of one kind, and at every later one; a write that fails may be done in part.

    seen: what had begun when it failed, as requests and begins of tools. durable: how many bytes of the log an fsync
    that did not fail was called for.
    """

    def __init__(self, folder: Path, api: ScriptedAPI, kind: str, at: int, *, short: bool) -> None:
        self.folder, self.api, self.kind = folder, api, kind
        self.left, self.short = at, short
        self.seen: tuple[int, list[str]] | None = None
        self.durable = 0

    def write(self, fd: int, data: bytes | memoryview) -> int:
        if self._is_due("write"):
            if self.short and len(data) > 1:
                self.short = False
                return super().write(fd, bytes(data)[: len(data) // 2])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().write(fd, data)

    def fsync(self, fd: int) -> None:
        if self._is_due("fsync"):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        file, log = os.fstat(fd), self.folder / "run.jsonl"
        super().fsync(fd)
        if log.exists() and os.path.samestat(file, log.stat()):
            self.durable = max(self.durable, file.st_size)

    def _is_due(self, kind: str) -> bool:
        if kind != self.kind:
            return False
        self.left -= 1
        if self.left <= 0 and self.seen is None:
            self.seen = begun(self.folder, self.api)
        return self.left <= 0


def begun(folder: Path, api: ScriptedAPI) -> tuple[int, list[str]]:
    """How many requests were sent, and which tools have begun."""
    return len(api.requests), [line for line in done(folder) if line.startswith("begin")]


async def ran_into(folder: Path, kind: str, at: int, *, short: bool) -> bool:
    """Whether the disk failed before the run came to its end."""
    api = ScriptedAPI(SCRIPT)
    disk = FailingDisk(folder, api, kind, at, short=short)
    async with api.client() as client:
        loop = Loop(model=MODEL, client=client, clock=FakeClock(), jitter=lambda: 0.0, tools=tools(folder))
        loop.plan = attrs.evolve(loop.plan, disk=disk)
        run = loop.run("Go.", log=folder / "run.jsonl")
        failure: LogFailed | None = None
        try:
            await run
        except LogFailed as error:
            failure = error
        if failure is None:
            assert disk.seen is None
            return False
        assert failure.action == ("writing" if kind == "write" else "fsync")
        assert failure.file.parent == folder
        assert disk.seen is not None
        if kind == "write":
            assert begun(folder, api) == disk.seen
        else:  # that one is noticed a little later, but before a write begins of which it was to keep the record
            kept = (folder / "run.jsonl").read_bytes()[: disk.durable]
            assert [line for line in begun(folder, api)[1] if " r" not in line and not told(line, kept)] == []
        assert alone()
    return True


def told(begin: str, log: bytes) -> bool:
    """Whether a log has the record of a call's begin."""
    records = map(orjson.loads, log.splitlines())
    return any(
        record["kind"] == "effect_begin" and record.get("tool_use_id") == begin.removeprefix("begin ")
        for record in records
    )


def went_on(log: Path, script: Sequence[Answer] = SCRIPT) -> None:
    """Mend the disk, and resume what can be."""
    folder = log.parent
    if not log.exists() or not started(read(log).records) or read(log).terminal is not None:
        return  # it never began, or all that failed was to make its seal durable

    async def main() -> ResultMessage:
        async with ScriptedAPI(script[answers_had(read(log)) :]).client() as client:
            loop = Loop(model=MODEL, client=client, clock=FakeClock(), jitter=lambda: 0.0, tools=tools(folder))
            return await loop.resume(log)

    assert asyncio.run(main()).subtype == "success"
    report = looplatch.verify(log)
    assert report.ok, str(report)
    assert report.status == "sealed"
    for write in ("w1", "w2"):
        assert done(folder).count(f"begin {write}") <= 1


@pytest.mark.parametrize(("kind", "short"), [("write", False), ("write", True), ("fsync", False)])
def test_a_disk_that_fails_at_any_call_stops_the_run_and_it_goes_on_later(
    tmp_path: Path, kind: str, short: bool
) -> None:
    at = 0
    while True:
        at += 1
        folder = tmp_path / str(at)
        folder.mkdir()
        if not asyncio.run(ran_into(folder, kind, at, short=short)):
            break
        if at % 3 == 0 or kind == "fsync":  # the others would take long, and tell nothing new
            went_on(folder / "run.jsonl")
    assert at > (40 if kind == "write" else 2)


@pytest.mark.parametrize("name", ["run.jsonl", "run.payloads"])
@pytest.mark.parametrize("replaced", [False, True])
def test_a_file_that_is_lost_midway_stops_the_run_before_its_next_write(
    tmp_path: Path, name: str, replaced: bool
) -> None:
    async def main() -> None:
        api = ScriptedAPI(SCRIPT)
        async with api.client() as client:
            loop = Loop(model=MODEL, client=client, clock=FakeClock(), jitter=lambda: 0.0, tools=tools(tmp_path))
            run = loop.run("Go.", log=tmp_path / "run.jsonl")
            await anext(run)
            (tmp_path / name).rename(tmp_path / "elsewhere")
            if replaced:
                (tmp_path / name).touch()
            with pytest.raises(LogFailed, match="fsync failed") as caught:
                await run
            assert caught.value.file == tmp_path / name
            assert [line for line in done(tmp_path) if line.startswith("begin w")] == []

    asyncio.run(main())
