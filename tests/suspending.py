"""Runs that are suspended, looked at and taken up again."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from attrs import field, frozen

from looplatch import Allow, Deny, Log, ResultMessage, Run
from looplatch.messages import Message
from looplatch.states.verify.log import verify_lines
from looplatch.testing import FakeClock, ScriptedAPI
from tests.playing import alone, check, moves_of, scripted


@frozen(kw_only=True)
class Stay:
    """One process's part of a run: its result, its moves and its log as they were in the end."""

    run: Run
    result: ResultMessage
    seen: list[Message] = field(repr=False)
    log: Log

    @property
    def moves(self) -> list[str]:
        return moves_of(self.log)

    @property
    def pending(self) -> list[str]:
        return [call.id for call in self.result.pending]


def suspended(log: Log) -> bool:
    """Whether a log verifies, and is that of a suspended run."""
    report = verify_lines(log.lines, payloads=log.payloads.find)
    assert report.ok, str(report)
    return report.status == "suspended"


async def stayed(run: Run, api: ScriptedAPI) -> Stay:
    """Consume a run up to its end, and check what it left."""
    seen = [message async for message in run]
    result = run.result
    assert result is not None
    assert seen[-1] is result
    assert alone()
    if result.subtype == "suspended":
        assert api.refusals == []
        assert (result.is_error, result.terminal, result.error) == (False, None, None)
        assert suspended(run.log)
    else:
        check(run, api)
    return Stay(run=run, result=result, seen=seen, log=run.log)


def resumed(
    script: Sequence[Any],
    *approvals: Mapping[str, Allow | Deny],
    log: Any = None,
    clock: FakeClock | None = None,
    pause_before: Iterable[str] = (),
    pause_after: Iterable[str] = (),
    **options: Any,
) -> tuple[list[Stay], ScriptedAPI]:
    """Run `script`, and resume it once for each of `approvals`."""

    async def main() -> tuple[list[Stay], ScriptedAPI]:
        api = ScriptedAPI(script)
        async with scripted(api, clock=clock or FakeClock(), **options) as loop:
            run = loop.run("Go.", log=log, pause_before=pause_before, pause_after=pause_after)
            stays = [await stayed(run, api)]
            for given in approvals:
                stays.append(await stayed(loop.resume(stays[-1].log, approvals=given), api))
        return stays, api

    return asyncio.run(main())
