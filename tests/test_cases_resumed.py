"""Cases from the field that end a run between an approval and what follows it."""

import asyncio
from typing import Any

import pytest

from looplatch import Allow, Log, Rule, ToolMessage, UsageError
from looplatch.messages import Message, ToolPhase
from looplatch.states.record import Kind
from looplatch.testing import FakeClock, ScriptedAPI, reply, tool_use
from tests.playing import check, result, scripted, tool_named
from tests.resuming import cut_after
from tests.suspending import stayed

SCRIPT = [reply(tool_use("t1", "write", {"n": 1})), reply("Done.")]


class Once:
    """A write that counts how often it ran."""

    def __init__(self) -> None:
        self.ran = 0
        self.tool = tool_named("write", read_only=False, answer=self._call)

    def _call(self, given: dict[str, Any], ctx: Any) -> str:
        self.ran += 1
        return "written"


def end_of_the_write(log: Log) -> int:
    """How many records there are up to the end of the tool, that one included."""
    ends = [record for record in log.records if record.kind is Kind.EFFECT_END and record["class"] == "tool"]
    return ends[-1].seq + 1


@pytest.mark.parametrize("way", ["cancel", "abort", "crash"])
def test_case_5_an_approved_call_that_has_finished_is_not_run_again_when_the_run_is_cut_just_after(way: str) -> None:
    async def main() -> None:
        once, api = Once(), ScriptedAPI([*SCRIPT, SCRIPT[-1]])
        async with scripted(api, clock=FakeClock(), tools=[once.tool], rules=[Rule("ask", "write")]) as loop:
            first = await stayed(loop.run("Go."), api)
            run = loop.resume(first.log, approvals={"t1": Allow()})

            async def consume() -> None:
                async for message in run:
                    if _is_the_end(message) and way != "crash":
                        if way == "abort":
                            run.abort()
                        else:
                            raise asyncio.CancelledError

            if way == "cancel":
                with pytest.raises(asyncio.CancelledError):
                    async with run:
                        await consume()
            else:
                async with run:
                    await consume()
            check(run, api)
            assert once.ran == 1
            assert run.messages[2]["content"] == [result("t1", "written")]
            if way == "crash":
                cut = cut_after(run.log, end_of_the_write(run.log))
                assert (await loop.resume(cut)).messages[2]["content"] == [result("t1", "written")]
            else:
                with pytest.raises(UsageError, match="has ended"):
                    loop.resume(run.log, approvals={"t1": Allow()})
            assert once.ran == 1

    asyncio.run(main())


def _is_the_end(message: Message) -> bool:
    return isinstance(message, ToolMessage) and message.phase is ToolPhase.END


def test_case_44_one_of_five_calls_waits_while_reads_finish_and_each_call_runs_once() -> None:
    async def main() -> None:
        ran: list[str] = []

        def call(given: dict[str, Any], ctx: Any) -> str:
            ran.append(ctx.tool_use_id)
            return f"ran {ctx.tool_use_id}"

        tools = [tool_named("read", read_only=True, answer=call), tool_named("write", read_only=False, answer=call)]
        asked = [("r1", "read"), ("r2", "read"), ("w1", "write"), ("w2", "write"), ("r3", "read")]
        api = ScriptedAPI([reply(*(tool_use(id_, name, {"n": id_}) for id_, name in asked)), SCRIPT[-1]])
        rules = [Rule("ask", "write", {"n": "w1"})]
        async with scripted(api, clock=FakeClock(), tools=tools, rules=rules) as loop:
            first = await stayed(loop.run("Go."), api)
            assert first.pending == ["w1"]
            assert ran == ["r1", "r2"], "what comes behind the write waits for its turn"
            assert first.run.messages[-1]["role"] == "assistant", "nothing is said to a call that did not run"
            last = await stayed(loop.resume(first.log, approvals={"w1": Allow()}), api)
            assert ran == ["r1", "r2", "w1", "w2", "r3"]
            assert last.run.messages[2]["content"] == [result(id_, f"ran {id_}") for id_, _ in asked]

    asyncio.run(main())
