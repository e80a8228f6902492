"""A run in a process of its own, which a disk kills with SIGKILL in the middle of a write.

What its tools did is counted in a file beside the log, since nothing else outlives the process.
"""

import asyncio
import gc
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import attrs

from looplatch import Allow, Loop, ResultMessage, Rule, Tool, ToolContext
from looplatch.audit.disk import Disk
from looplatch.testing import Answer, FakeClock, ScriptedAPI, error, reply, text, tool_use
from tests.playing import ANYTHING, MODEL
from tests.sqlite_faults import Faults, failing_writes

ASKING = [Rule("ask", "write"), Rule("ask", "put")]
# A killed process takes nothing along that the operating system has: no record has to wait for the disk.
SETTINGS: dict[str, Any] = {"clock": FakeClock(), "jitter": lambda: 0.0, "durability": "none"}
ROOT = Path(__file__).resolve().parent.parent

# A read that starts midway and a write after it; an overload; an answer that is cut by max_tokens after a read has
# begun, so that its turn is sealed; one that is cut before any call; two writes in one answer, one of them idempotent.
SCRIPT: Sequence[Answer] = (
    reply("I look.", tool_use("r1", "read", {"n": 1}), tool_use("w1", "write", {"n": 1})),
    error(529, "overloaded_error"),
    reply("I read.", tool_use("r2", "read", {"n": 2}), tool_use("x1", "write", '{"n": '), stop="max_tokens"),
    reply("It is", stop="max_tokens"),
    reply("It is a", text(" long", closed=False), stop="max_tokens"),
    reply(tool_use("w2", "write", {"n": 2}), tool_use("p1", "put", {"n": 3})),
    reply("Done."),
)

BRIEF: Sequence[Answer] = (SCRIPT[0], reply(tool_use("w2", "write", {"n": 2})), reply("Done."))


class DyingDisk(Disk):
    """Kills its process once so many records were written; the last one only in part where `torn`."""

    def __init__(self, records: int, *, torn: bool) -> None:
        self._left = records
        self._torn = torn

    def write(self, fd: int, data: bytes | memoryview) -> int:
        if bytes(data).startswith(b'{"commitment"'):
            return super().write(fd, data)  # a payload
        self._left -= 1
        if self._left == 0 and self._torn:
            super().write(fd, bytes(data)[: len(data) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        written = super().write(fd, data)
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return written


class DyingWrites(Faults):
    """Kills its process at a write of SQLite's own; where `short`, once that one was done in part."""

    def cut(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


def tools(folder: Path) -> list[Tool]:
    """Tools that note each begin and each end of theirs in a file."""

    def note(line: str) -> None:
        with (folder / "done").open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")

    async def call(given: dict[str, Any], ctx: ToolContext) -> str:
        note(f"begin {ctx.idempotency_key}")
        await asyncio.sleep(0)
        note(f"end {ctx.idempotency_key}")
        return f"did {given['n']}"

    return [
        Tool("read", "", ANYTHING, call, read_only=True),
        Tool("write", "", ANYTHING, call),
        Tool("put", "", ANYTHING, call, idempotent=True),
    ]


def done(folder: Path) -> list[str]:
    """What tools did, over all processes: `begin` and `end` with the call."""
    path = folder / "done"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [f"{line.split()[0]} {line.rpartition(':')[2]}" for line in lines]


async def played(
    folder: Path, script: Sequence[Answer], *, resume: bool, disk: Disk | None = None, name: str = "run.jsonl"
) -> ResultMessage:
    """Run, or resume, the log in `folder` to its end."""
    async with ScriptedAPI(script).client() as client:
        loop = Loop(model=MODEL, client=client, tools=tools(folder), **SETTINGS)
        if disk is not None:
            loop.plan = attrs.evolve(loop.plan, disk=disk)
        path = folder / name
        return await (loop.resume(path) if resume else loop.run("Go.", log=path))


# A sub-agent reads and writes, then writes twice, once with a key; the parent waits for it, reads, and is done.
def answer_of_child(body: dict[str, Any]) -> Answer:
    match len(body["messages"]):
        case 1:
            return reply("I look.", tool_use("r1", "read", {"n": 1}), tool_use("w1", "write", {"n": 1}))
        case 3:
            return reply(tool_use("w2", "write", {"n": 2}), tool_use("p1", "put", {"n": 3}))
        case _:
            return reply("Found.")


def answer_of_parent(body: dict[str, Any]) -> Answer:
    if len(body["messages"]) > 1:
        return reply("Done.")
    return reply("I ask.", tool_use("t1", "helper", {"prompt": "Look."}), tool_use("r0", "read", {"n": 0}))


async def nested(folder: Path, *, resume: bool, approvals: Any = None, disk: Disk | None = None, **options: Any) -> Any:
    """Run, or resume, the log in `folder`, with a sub-agent; both write to the disk. `options` are the sub-agent's."""
    given: dict[str, Any] = {"model": MODEL, **SETTINGS}
    async with ScriptedAPI(answer_of_child).client() as inner, ScriptedAPI(answer_of_parent).client() as outer:
        helper = Loop(client=inner, tools=tools(folder), **given, **options)
        if disk is not None:
            helper.plan = attrs.evolve(helper.plan, disk=disk)
        loop = Loop(client=outer, tools=[helper.as_tool("helper", ""), tools(folder)[0]], **given)
        if disk is not None:
            loop.plan = attrs.evolve(loop.plan, disk=disk)
        path = folder / "run.jsonl"
        return await (loop.resume(path, approvals=approvals) if resume else loop.run("Go.", log=path))


class Killer:
    """A process that does nothing but to fork: each child is a process that runs, or resumes, and dies on the way."""

    def __init__(self) -> None:
        code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from tests.killing import serve; serve()"
        self._server = subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
        )

    def kill(
        self,
        folder: Path,
        records: int,
        *,
        torn: bool,
        had: int = 0,
        resume: bool = False,
        scene: str = "alone",
        approved: Sequence[str] = (),
    ) -> bool:
        """Whether a process was killed at its record number `records`; False when it came to its end before.

        The scene "database" counts the writes of SQLite instead.
        """
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps([str(folder), had, records, torn, resume, scene, list(approved)]) + "\n")
        self._server.stdin.flush()
        code = int(self._server.stdout.readline())
        assert code in (0, -signal.SIGKILL)
        return code != 0

    def close(self) -> None:
        """End it."""
        assert self._server.stdin is not None
        self._server.stdin.close()
        self._server.wait()
        assert self._server.stdout is not None
        self._server.stdout.close()


def serve() -> None:
    """Fork for each line of the input, and say how each child ended."""
    with TemporaryDirectory() as folder:  # what the first run loads and builds, no child has to
        asyncio.run(played(Path(folder), SCRIPT, resume=False))
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        child = os.fork()
        if not child:
            work(*json.loads(line))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def work(folder: str, had: int, records: int, torn: bool, resume: bool, scene: str, approved: Sequence[str]) -> None:
    """What the process does that is to die."""
    disk, place = DyingDisk(records, torn=torn), Path(folder)
    match scene:
        case "alone":
            asyncio.run(played(place, SCRIPT[had:], resume=resume, disk=disk))
        case "nested":
            asyncio.run(nested(place, resume=resume, disk=disk))
        case "database":
            with failing_writes(DyingWrites(records, short=torn)):
                asyncio.run(played(place, BRIEF[had:], resume=resume, name="run.sqlite"))
        case _:
            given = {call: Allow() for call in approved}
            asyncio.run(nested(place, resume=resume, approvals=given, disk=disk, rules=ASKING))
