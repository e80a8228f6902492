"""One hostile run, drawn from a seed: left in every way, killed at any record, taken up by this loop or another."""

import asyncio
import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import looplatch
from looplatch import Allow, Deny, Log, Run, UsageError
from looplatch.audit import Secrets, read
from looplatch.messages import Message
from looplatch.states.record import Kind
from looplatch.states.secrets import marker
from looplatch.testing import FakeClock, ScriptedAPI
from tests.playing import alone, rounds, scripted
from tests.resuming import cut_after
from tests.soak.hostile_model import HostileModel
from tests.soak.hostile_options import NAMES, HostileOptions
from tests.soak.hostile_temper import Boom, Temper, key

SHORT: Final = 3  # records: genesis, prompt, first move; a shorter log is no run yet
STATES: Final = ("prepare", "stream", "decide", "orchestrate", "recover")
STORES: Final = {"memory": None, "lines": "run.jsonl", "segments": "run.jsonl", "database": "run.sqlite"}
SEGMENT: Final = 4_000  # bytes


class Life:
    """A run from its prompt to its last end.

    `story` says what befell it, `ends` why each of its parts ended, `log` is what it left so far.
    """

    def __init__(self, seed: int, folder: Path) -> None:
        self.log: Log | None = None
        self.story: list[str] = []
        self.ends: list[str] = []
        self._rnd = random.Random(seed)
        self._temper = Temper.drawn(self._rnd)
        self._clock = FakeClock()
        self._options = HostileOptions(self._rnd, self._temper, self._clock)
        self._api = ScriptedAPI(HostileModel(self._rnd, self._temper, NAMES), models={})
        self._secrets = self._options.secrets()
        self._store = self._rnd.choice([*STORES, "memory", "memory"])
        name = STORES[self._store]
        self._file = None if name is None else folder / name
        self._own = self._first()

    async def lived(self) -> int:
        """Live it; the value is how many records it left. Raises AssertionError where anything does not hold."""
        await self._begin()
        for _ in range(self._rnd.choice([0, 1, 1, 2, 3])):
            if self.log is None or len(self.log) <= SHORT or not await self._go_on(self.log):
                break
        if self.log is None:
            return 0
        outcome = looplatch.replay(self.log)
        assert outcome.ok, f"replay: {outcome}"
        assert str(looplatch.explain(self.log))
        return len(self.log)

    def _is(self, chance: float) -> bool:
        return self._rnd.random() < chance

    def _tell(self, what: str) -> None:
        self.story.append(what)

    def _first(self) -> dict[str, Any]:
        """The settings of its first loop; secrets of its own are given up where they hit what that is made of."""
        options = self._options.drawn()
        if not self._fits(options):
            self._secrets = Secrets()
        return options | {"secrets": self._secrets, "segment_bytes": SEGMENT if self._store == "segments" else None}

    def _other(self) -> dict[str, Any]:
        """The settings of a loop that takes it up: the same, or others."""
        if self._is(0.7):
            return self._own
        options = {"tools": self._own["tools"]} if "tools" in self._own else {}
        options |= self._options.drawn()
        if not self._fits(options):
            return self._own
        self._tell("is taken up by another loop")
        return options | {name: self._own[name] for name in ("secrets", "segment_bytes")}

    def _fits(self, options: dict[str, Any]) -> bool:
        try:
            looplatch.Loop(**options, secrets=self._secrets)
        except UsageError as refused:
            if "secret" not in str(refused):
                raise
            self._tell(f"has no such loop: {refused}")
            return False
        return True

    async def _begin(self) -> None:
        before, after = ([state for state in STATES if self._is(0.05)] for _ in range(2))
        async with scripted(self._api, **self._own) as loop:
            run = loop.run(
                "Go.",
                log=self._file,
                deadline_s=self._rnd.choice([None, None, 5.0, 1_000.0]),
                pause_before=before,
                pause_after=after,
                include_partial_messages=self._is(0.2),
            )
            try:
                await self._consumed(run)
            except UsageError:
                if run.result is not None:
                    raise
                self._tell("is closed before it begins")
        if run.result is not None:
            self._judge(run, ())

    async def _go_on(self, left: Log) -> bool:
        """Take the run up from what a crash leaves of it, or from where it rests; whether that could begin."""
        ended = left.records[-1].kind is Kind.TERMINAL
        where: Log | Path = left
        if self._file is not None and self._file.exists() and left.file is not None:
            where = self._file
        if ended or self._is(0.8):
            count = self._rnd.randrange(2, len(left) + (not ended))
            self._tell(f"dies after {count} of {len(left)} records")
            where, left = self._cut(left, count)
        report = looplatch.verify(where, secrets=self._secrets)
        assert report.ok, f"prefix of {len(left)} records: {report}"
        async with scripted(self._api, **self._other()) as loop:
            try:
                run = loop.resume(
                    where,
                    accept_changes=self._is(0.95),
                    deadline_s=self._rnd.choice([None, None, 3.0]),
                    approvals=self._approvals(left),
                )
                await self._consumed(run)
            except UsageError as refused:
                if "is not valid" in str(refused):
                    raise
                self._tell(f"is refused: {refused}")
                return False
        if run.result is not None:
            self._judge(run, left.lines)
        return run.result is not None

    def _cut(self, left: Log, count: int) -> tuple[Log | Path, Log]:
        """What a process leaves that dies after its first `count` records: a file, where the log is one that tears."""
        before = cut_after(left, count)
        if self._store != "lines" or left.file is None or self._file is None:
            return before, before  # it goes on in memory
        torn = left.lines[count][: self._rnd.randrange(40)] if count < len(left) and self._is(0.3) else b""
        self._file.write_bytes(b"".join(before.lines) + torn)
        return self._file, read(self._file)

    def _approvals(self, left: Log) -> dict[str, Allow | Deny]:
        awaited = [move.data["fields"]["calls"] for move in left.transitions if move.event == "ApprovalAwaited"]
        if not awaited or self._is(0.2):
            return {}
        verdicts: list[Allow | Deny] = [Allow(), Deny("d"), Allow({"n": 3}), Deny("d", interrupt=True)]
        return {id_: self._rnd.choice(verdicts) for id_ in awaited[-1] if self._is(0.8)}

    async def _consumed(self, run: Run) -> None:
        """Consume it to its end, or to where its consumer leaves; raises UsageError where it could not begin."""
        reading = asyncio.create_task(self._consume(run))
        left = closed = False
        if self._is(0.2):
            await rounds(self._rnd.randrange(300))
            if left := self._is(0.5):
                reading.cancel()
                self._tell("has its consumer cancelled")
            else:
                closed = True
                self._tell("is closed by another task")
        try:
            if closed:
                await run.aclose()
            await reading
        except Boom as raised:
            self._tell(f"raises Boom: {raised}")
        except asyncio.CancelledError:
            assert left, "it is cancelled, and nobody asked for that"
        await rounds()
        assert alone(), f"a task is left: {asyncio.all_tasks()}"

    async def _consume(self, run: Run) -> None:
        async with run:
            async for message in run:
                if self._leave(run, message):
                    break
                if self._is(0.1):
                    await rounds(self._rnd.randrange(30))

    def _leave(self, run: Run, message: Message) -> bool:
        """What its consumer does at a message; whether it leaves."""
        drawn = self._rnd.random()
        if drawn < self._temper.leaves:
            ways: list[Callable[[], object]] = [run.abort, run.stop, lambda: self._clock.advance(1_000)]
            match self._rnd.randrange(5):
                case 3:
                    self._tell(f"is left at {type(message).__name__}")
                    return True
                case 4:
                    raise Boom("its consumer")
                case way:
                    self._tell(f"hears at {type(message).__name__}: {('abort', 'stop', 'much time')[way]}")
                    ways[way]()
        elif drawn < self._temper.leaves + self._temper.sends:
            with suppress(UsageError):  # which a run says that has ended
                run.send("also this " + key("G"))
        return False

    def _judge(self, run: Run, before: tuple[bytes, ...]) -> None:
        """What holds of every run, however it went."""
        self.log = log = run.log
        assert run.result is not None
        self.ends.append(str(run.result.terminal))
        self._tell(f"ends as {run.result.terminal} with {len(log)} records")
        if run.result.terminal == "internal_error":
            assert log.transitions[-1]["fields"]["error"] in (Boom.__name__, marker("own"))
        assert log.lines[: len(before)] == before, "what was written has changed"
        assert self._api.refusals == [], self._api.refusals[:2]
        assert self._api.faults == [], self._api.faults[:2]
        report = looplatch.verify(log, secrets=self._secrets)
        assert report.ok, str(report)
        if log.file is not None:
            self.log = kept = read(log.file)
            assert kept.lines == log.lines, "the file has other records"
            report = looplatch.verify(log.file, secrets=self._secrets)
            assert report.ok, f"the file: {report}"
