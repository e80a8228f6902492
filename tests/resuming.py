"""Cuts the log of a run off after any of its records, as a crash would, and takes the run up again from there."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from attrs import frozen

from looplatch import Log, ResultMessage, Run
from looplatch.messages import Message
from looplatch.states.record import Kind, Record
from looplatch.testing import FakeClock, ScriptedAPI
from tests.playing import Watch, check, scripted

Script = Callable[[], tuple[Sequence[Any], Watch | None]]


def cut_after(log: Log, count: int) -> Log:
    """The log as a process leaves it that dies after its first `count` records."""
    return Log(log.lines[:count], log.payloads)


def answers_had(log: Log) -> int:
    """How many answers of the script the run has had: those that came to their end, and one of which a part is kept."""
    had, begun, open_ = 0, False, False
    for record in log.records:
        if record.kind is Kind.EFFECT_BEGIN:
            open_ = open_ or record["class"] == "model"
            begun = begun or (open_ and record["class"] == "tool")
        elif record.kind is Kind.EFFECT_END and record["class"] in ("model", "summary"):
            had += record["outcome"] != "interrupted"
            begun = open_ = False
        elif record.kind is Kind.RESUMED:
            had += begun
            begun = open_ = False
    return had + begun


@frozen(kw_only=True)
class Resumed:
    """How a run went on."""

    run: Run
    api: ScriptedAPI
    seen: list[Message]
    error: BaseException | None

    @property
    def result(self) -> ResultMessage:
        assert self.run.result is not None
        return self.run.result


async def resumed(
    log: Log,
    script: Any,
    *,
    watch: Watch | None = None,
    clock: FakeClock | None = None,
    approvals: Mapping[str, Any] | None = None,
    accept_changes: bool = False,
    sealed: bool = True,
    known: Sequence[Mapping[str, Any]] = (),
    **options: Any,
) -> Resumed:
    """Take up the run of `log` against the rest of its script; checks the run when it is over."""
    api = ScriptedAPI(script, known=known)
    seen: list[Message] = []
    error: BaseException | None = None
    async with scripted(api, clock=clock or FakeClock(), **options) as loop:
        run = loop.resume(log, approvals=approvals, accept_changes=accept_changes)
        try:
            async with run:
                async for message in run:
                    seen.append(message)
                    if watch is not None:
                        told = watch(message, run)
                        if isinstance(told, Awaitable):
                            await told
        except (Exception, KeyboardInterrupt, SystemExit) as raised:
            error = raised
        if error is not None and run.result is None:
            raise error  # it could not begin
        if sealed:
            check(run, api)
    return Resumed(run=run, api=api, seen=seen, error=error)


def begun_and_ended(records: Sequence[Record]) -> tuple[set[str], set[str]]:
    """The calls of which a begin, and those of which an end stands in the records."""
    begins = {
        record.seq: str(record["tool_use_id"])
        for record in records
        if record.kind is Kind.EFFECT_BEGIN and record["class"] == "tool"
    }
    ends = {
        begins[record["effect"]] for record in records if record.kind is Kind.EFFECT_END and record["effect"] in begins
    }
    return set(begins.values()), ends


def started(records: Sequence[Record]) -> bool:
    """Whether the run has begun."""
    return any(record.kind is Kind.TRANSITION for record in records)
