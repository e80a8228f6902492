"""A drawn run, and what its log must be good for: to be verified, to be made again, and to go on from any prefix."""

import asyncio
import random
from collections import deque
from collections.abc import Sequence
from typing import Any

from attrs import frozen
from hypothesis import strategies as st

import looplatch
from looplatch import Block, Halt, Hooks, Limits, Log, Pass
from looplatch.hooks import StopContext
from looplatch.states.record import seal
from looplatch.testing import Answer, FakeClock, ScriptedAPI, error, scripts
from tests.playing import check, scripted
from tests.resuming import answers_had, cut_after
from tests.test_scripts import LIMITS, MANNERS, VERDICTS, Misbehaving


class Server:
    """A scripted API that outlives the process of a run: it goes on with another list, and knows what it gave out."""

    def __init__(self, script: Sequence[Answer]) -> None:
        self._left = deque(script)
        self.api = ScriptedAPI(self._next)

    def go_on(self, script: Sequence[Answer]) -> None:
        self._left = deque(script)

    def _next(self, body: dict[str, Any]) -> Answer:
        over = error(500, "api_error", "the script is used up", {"x-should-retry": "false"})
        return self._left.popleft() if self._left else over


@frozen(kw_only=True)
class Drawn:
    """A script, the loop that meets it, and after how many records from its first move on its run is cut off."""

    script: list[Answer]
    manners: list[str]
    verdicts: list[str]
    limits: Limits
    cut: int

    def options(self) -> dict[str, Any]:
        """A new loop's: the same clock, salts and tools each time."""
        clock = FakeClock()
        tools = Misbehaving(self.manners, clock).tools()
        hooks = Hooks(stop=[self._stop])
        salts = random.Random(0).randbytes
        return {"clock": clock, "tools": tools, "hooks": hooks, "limits": self.limits, "entropy": salts}

    async def _stop(self, context: StopContext) -> Pass | Block | Halt:
        """Says the same of the same answer, in whatever process it is asked."""
        said = self.verdicts[context.turn % len(self.verdicts)] if self.verdicts else "pass"
        match said:
            case "block":
                return Block("Not yet.")
            case "halt":
                return Halt("Enough.")
            case _:
                return Pass()

    async def played(self, server: Server, before: Log | None = None) -> Log:
        """The log of the run, or of the one that goes on from `before`; both are checked."""
        async with scripted(server.api, **self.options()) as loop:
            run = loop.run("Go.") if before is None else loop.resume(before)
            await run
            check(run, server.api)
        return run.log

    async def played_again(self, log: Log) -> None:
        """Play the log through a loop of its own: whatever it recorded comes again."""
        async with scripted(ScriptedAPI([]), **self.options()) as loop:
            (await loop.replay(log)).check()


DRAWN = st.builds(Drawn, script=scripts(), manners=MANNERS, verdicts=VERDICTS, limits=LIMITS, cut=st.integers(0, 99))


def prove(drawn: Drawn) -> int:
    """Prove one run, and say from how many records it went on; raises AssertionError where anything is wrong."""
    return asyncio.run(_proved(drawn))


async def _proved(drawn: Drawn) -> int:
    server = Server(drawn.script)
    log = await drawn.played(server)
    assert (await drawn.played(Server(drawn.script))).lines == log.lines, "time and salts as before: the same bytes"
    await _made_again(drawn, log)
    first = log.transitions[0].seq + 1
    before = cut_after(log, first + drawn.cut % (len(log) - first))
    server.go_on(drawn.script[answers_had(before) :])
    went_on = await drawn.played(server, before)
    assert went_on.lines[: len(before)] == before.lines, "what was written stays"
    await _made_again(drawn, went_on)
    return len(before)


async def _made_again(drawn: Drawn, log: Log) -> None:
    outcome = looplatch.replay(log)
    assert outcome.ok, str(outcome)
    await drawn.played_again(log)
    assert rebuilt(log) == log.lines


def rebuilt(log: Log) -> tuple[bytes, ...]:
    """Every line once more, from its fields and the line before it."""
    lines: list[bytes] = []
    prev = "0" * 64
    for record in log.records:
        fields = {name: value for name, value in record.data.items() if name not in ("hash", "prev")}
        lines.append(seal(fields | {"prev": prev}))
        prev = record.hash
    return tuple(lines)
