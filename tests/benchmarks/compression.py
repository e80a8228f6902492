"""What is measured of compression: each level on a history of 2,000 messages, and `prepare` where nothing is due."""

import asyncio
import gc
import random
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import attrs
from anthropic import AsyncAnthropic

from looplatch import Compression, Loop, Tool, ToolContext
from looplatch.audit import AuditLog, JsonlLog, MemoryLog
from looplatch.compressing.compressor import Compressor, PastCompression
from looplatch.compressing.gauge import Gauge
from looplatch.compressing.summary import Summary
from looplatch.compressing.summary_writer import KnownSummary
from looplatch.journal import Journal
from looplatch.outbox import Outbox
from looplatch.plan import Plan
from looplatch.recovery.compression.collapse import Staged, drain, next_span
from looplatch.recovery.compression.compact import compact
from looplatch.recovery.compression.edits import Edit, apply, saving
from looplatch.recovery.compression.micro import micro
from looplatch.recovery.compression.revising import edit_problems
from looplatch.recovery.compression.snip import snip
from looplatch.recovery.validity import history_problems
from looplatch.recovery.weights import Message, weigh_all
from looplatch.requests.history import History
from looplatch.requests.next_request import NextRequest
from looplatch.states.context import TOTALS, Context
from looplatch.states.events import HistoryCompressed, SummaryDue
from looplatch.states.level import Level
from looplatch.testing import FakeClock, ScriptedAPI
from looplatch.workplace import Workplace

MESSAGES: Final = 2_000
_TIMES: Final = 7
_ROUNDS: Final = 2_000
_SUMMARY: Final = "The files were read, and the change was made as it was asked for. " * 20
_SETTINGS: Final = Compression()
_OFF: Final = Compression(snip_at=None, micro_at=None, stage_at=None, collapse_at=None, compact_at=None)
_ONLY: Final = {
    Level.SNIP: attrs.evolve(_OFF, snip_at=0.5),
    Level.MICRO: attrs.evolve(_OFF, micro_at=0.5),
    Level.COLLAPSE: attrs.evolve(_OFF, collapse_at=0.5),
    Level.COMPACT: attrs.evolve(_OFF, compact_at=0.5),
}
_NO_ANSWER: Final[dict[str, Any]] = dict.fromkeys(("message_id", "model", "stop_reason"))


def levels(server: str) -> dict[str, Any]:
    """The CPU time of each level: of finding and checking its edits, and of all of it, up to what stands in the log."""
    return asyncio.run(_with_client(_levels))


def prepare(server: str) -> dict[str, Any]:
    """The CPU time of `prepare` where nothing is due, for a short history and a long one."""
    return asyncio.run(_with_client(_prepared))


async def _read(given: dict[str, Any], ctx: ToolContext) -> str:
    return "done"


async def _with_client(measured: Callable[[AsyncAnthropic], Any]) -> dict[str, Any]:
    async with ScriptedAPI([]).client() as client:
        figures: dict[str, Any] = await measured(client)
        return figures


def _plan(client: AsyncAnthropic, window: int, compression: Compression = _SETTINGS) -> Plan:
    read = Tool("read", "", {"type": "object"}, _read, True)
    return Loop(
        model="claude-sonnet-4-5",
        client=client,
        tools=[read],
        clock=FakeClock(),
        window=window,
        compression=compression,
    ).plan


async def _levels(client: AsyncAnthropic) -> dict[str, Any]:
    messages = _history(MESSAGES)
    window = weigh_all(messages)
    staged = _staged(messages, window // 5)
    makers: dict[Level, Callable[[], Sequence[Edit]]] = {
        Level.SNIP: lambda: snip(messages, _SETTINGS, is_read=_plan(client, window).toolbox.is_read),
        Level.MICRO: lambda: micro(messages, _SETTINGS, window),
        Level.COLLAPSE: lambda: drain(messages, staged, _SETTINGS),
        Level.COMPACT: lambda: compact(messages, _SUMMARY, _SETTINGS),
    }
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for level, make in makers.items():
            edits = make()
            if saving(messages, edits) <= 0 or list(history_problems(apply(messages, edits))):
                raise AssertionError(f"{level} did not shorten the history")
            figures[f"{level}_ms"] = _cpu_ms(partial(_made_and_checked, messages, make))
            due = _plan(client, int(window / 0.8), _ONLY[level])
            spent = [await _whole_ms(due, Path(folder) / f"{level}{n}.jsonl", level, staged) for n in range(_TIMES)]
            figures[f"{level}_whole_ms"] = min(spent)
    return figures


async def _whole_ms(plan: Plan, file: Path, level: Level, staged: Sequence[Staged]) -> float:
    """The CPU time from the moment that a level is due until all of it is in history and log."""
    log = JsonlLog(file, "bench")
    at = _workplace(plan, _history(MESSAGES), log)
    compressor, context = Compressor(at, Gauge(at), NextRequest(at)), Context()
    summary = KnownSummary(
        level=level, summary=Summary(text=_SUMMARY, spent=dict.fromkeys(TOTALS, 0)), sent=at.history.sent
    )
    compressor.restore(PastCompression(staged=staged, summary=summary))
    gc.collect()
    begun = time.process_time()
    event = await compressor.fit(context)
    if isinstance(event, SummaryDue):
        event = await compressor.write(context)
    spent = time.process_time() - begun
    log.close()
    if not isinstance(event, HistoryCompressed) or event.level is not level:
        raise AssertionError(f"{level} was not used, but {event}")
    return spent * 1e3


def _made_and_checked(messages: Sequence[Message], make: Callable[[], Sequence[Edit]]) -> list[str]:
    edits = make()
    apply(messages, edits)
    return list(edit_problems(messages, edits))


async def _prepared(client: AsyncAnthropic) -> dict[str, Any]:
    plan = _plan(client, 10**9)
    return {f"after_{count}_us": await _prepare_us(plan, count) for count in (20, MESSAGES)}


async def _prepare_us(plan: Plan, count: int) -> float:
    at = _workplace(plan, _history(count), MemoryLog("bench"))
    compressor, context = Compressor(at, Gauge(at), NextRequest(at)), Context()
    spent: list[float] = []
    for _ in range(_TIMES):
        begun = time.process_time()
        for _ in range(_ROUNDS):
            await compressor.fit(context)
        spent.append(time.process_time() - begun)
    return min(spent) * 1e6 / _ROUNDS


def _cpu_ms(work: Callable[[], object], times: int = _TIMES) -> float:
    """The CPU time of it, the best of so many: the others tell of the machine."""
    spent: list[float] = []
    for _ in range(times):
        begun = time.process_time()
        work()
        spent.append(time.process_time() - begun)
    return min(spent) * 1e3


def _history(count: int) -> list[Message]:
    """So many messages with parallel calls, of half a thousand bytes a result, some four times as long."""
    chance = random.Random(1)
    messages: list[Message] = [{"role": "user", "content": [{"type": "text", "text": "Go."}]}]
    for number in range(count // 2):
        own = [f"toolu_{number}_{part}" for part in range(chance.choice([1, 1, 1, 3]))]
        paths = [f"src/module_{chance.randrange(400)}.py" for _ in own]
        calls = [
            {"type": "tool_use", "id": one, "name": "read", "input": {"path": path}}
            for one, path in zip(own, paths, strict=True)
        ]
        sizes = [int(500 * chance.choice([0.2, 1, 1, 4])) for _ in own]
        results = [
            {"type": "tool_result", "tool_use_id": one, "content": "".join(chance.choices("abcdef \n", k=size))}
            for one, size in zip(own, sizes, strict=True)
        ]
        said = {"type": "text", "text": f"Now I look at the next of the files, number {number}. " * 3}
        messages += [{"role": "assistant", "content": [said, *calls]}, {"role": "user", "content": results}]
    return messages


def _staged(messages: Sequence[Message], tokens: int) -> list[Staged]:
    """Summaries of spans, until they would free so many tokens."""
    staged: list[Staged] = []
    while saving(messages, drain(messages, staged, _SETTINGS)) < tokens:
        span = next_span(messages, _SETTINGS, staged)
        if span is None:
            raise AssertionError("there are no more spans")
        staged.append(Staged(span=span, summary=_SUMMARY))
    return staged


def _workplace(plan: Plan, messages: Sequence[Message], log: AuditLog) -> Workplace:
    journal = Journal(log, plan.secrets)
    at = Workplace(plan=plan, journal=journal, history=History(), outbox=Outbox(), partial=False)
    for message in messages:
        more = _NO_ANSWER if message["role"] == "assistant" else {}
        at.join(message["role"], [at.journal.keep(block) for block in message["content"]], **more)
    return at
