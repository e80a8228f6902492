"""Sub-agents that wait for someone's word: their parents wait with them, and go on with them."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from looplatch import Allow, Deny, Log, Rule, ToolUseBlock, UsageError, read, verify
from looplatch.recovery.resume.fold import LoopChanged
from looplatch.states.record import Kind
from looplatch.testing import ScriptedAPI, reply, tool_use
from tests.nesting import SPEND, Agents, ask, linked
from tests.playing import Hanging, check, echo, result, scripted
from tests.suspending import stayed

ASKING = {"tools": [echo("write", read_only=False), echo()], "rules": [Rule("ask", "write")]}


@pytest.mark.parametrize("kept", [False, True], ids=["in memory", "in a file"])
@pytest.mark.parametrize("verdict", [Allow(), Deny("no")], ids=["allowed", "denied"])
def test_one_that_waits_for_approval_suspends_its_parent(tmp_path: Path, verdict: Any, kept: bool) -> None:
    async def main() -> None:
        agents = Agents(
            [reply(ask("t1", "Write."), usage=SPEND), reply("Done.", usage=SPEND)],
            [reply(tool_use("c1", "write", {"n": 1}), usage=SPEND), reply("Wrote.", usage=SPEND)],
            inner_options=ASKING,
        )
        async with agents as loop:
            first = await stayed(loop.run("Go.", log=tmp_path / "run.jsonl" if kept else None), agents.parent)
            assert first.result.pending == (ToolUseBlock(id="c1", name="write", input={"n": 1}),)
            assert verify(linked(first.log, "t1")).status == "suspended"
            with pytest.raises(UsageError, match="Awaited are: c1"):
                loop.resume(first.log, approvals={"t1": Allow()})
            again = await stayed(loop.resume(first.log), agents.parent)
            assert again.pending == ["c1"]
            last = await stayed(loop.resume(again.log, approvals={"c1": verdict}), agents.parent)
            assert last.result.subtype == "success"
            assert last.run.messages[2]["content"] == [result("t1", "Wrote.")]
            child = linked(last.log, "t1")
            assert verify(child).status == "sealed"
            said = child.messages[2]["content"][0]
            assert said["content"] == ('write {"n":1}' if verdict == Allow() else "denied. The call was not run: no")
            assert last.result.usage["input_tokens"] == 400
            assert len(agents.child.requests) == 2

    asyncio.run(main())


def test_approvals_in_part_are_kept_until_the_rest_is_there() -> None:
    """Two children and the parent itself wait, for calls with one and the same id; decisions come one by one."""

    async def main() -> None:
        def inner(body: dict[str, Any]) -> Any:
            return reply("Wrote.") if len(body["messages"]) > 1 else reply(tool_use("w1", "write", {"n": 1}))

        agents = Agents(
            [reply(ask("t1", "A."), ask("t2", "B."), tool_use("w1", "write", {"n": 0})), reply("Done.")],
            inner,
            tools=[echo("write", read_only=False)],
            rules=[Rule("ask", "write")],
            inner_options=ASKING,
        )
        async with agents as loop:
            stay = await stayed(loop.run("Go."), agents.parent)
            assert stay.pending == ["w1", "t1/w1"], "the second one waits behind the first, which writes"
            stay = await stayed(loop.resume(stay.log, approvals={"t1/w1": Allow()}), agents.parent)
            assert stay.pending == ["w1"]
            with pytest.raises(UsageError, match="was allowed already"):
                loop.resume(stay.log, approvals={"t1/w1": Deny("no")})
            stay = await stayed(loop.resume(stay.log, approvals={"w1": Deny("not so")}), agents.parent)
            assert stay.pending == ["w1"], "of the second one now"
            stay = await stayed(loop.resume(stay.log, approvals={"w1": Allow()}), agents.parent)
            assert stay.result.subtype == "success"
            denied = result("w1", "denied. The call was not run: not so", is_error=True)
            assert stay.run.messages[2]["content"] == [result("t1", "Wrote."), result("t2", "Wrote."), denied]

    asyncio.run(main())


def test_a_grandchild_suspends_all_above_it() -> None:
    async def main() -> None:
        deep = ScriptedAPI([reply(tool_use("g1", "write", {"n": 1})), reply("Deep.")])
        middle = ScriptedAPI([reply(ask("c1", "Deeper.", "deep")), reply("Middle.")])
        top = ScriptedAPI([reply(ask("t1", "Look.", "middle")), reply("Top.")])
        async with (
            scripted(deep, **ASKING) as lowest,
            scripted(middle, tools=[lowest.as_tool("deep", "")]) as lower,
            scripted(top, tools=[lower.as_tool("middle", "")]) as loop,
        ):
            stay = await stayed(loop.run("Go."), top)
            assert stay.pending == ["g1"]
            stay = await stayed(loop.resume(stay.log, approvals={"g1": Allow()}), top)
            assert stay.result.result == "Top."
            assert len(deep.requests) == 2

    asyncio.run(main())


CHANGES: list[tuple[str, dict[str, Any]]] = [
    ("model", {"model": "claude-opus-4-5"}),
    ("system", {"system": "Be brief."}),
    ("tools", {"tools": [echo("write", read_only=False)]}),
    ("params", {"params": {"temperature": 0}}),
]


@pytest.mark.parametrize("kept", [False, True], ids=["in memory", "in a file"])
@pytest.mark.parametrize(("name", "options"), CHANGES, ids=[name for name, _ in CHANGES])
def test_one_that_has_changed_is_refused_with_its_parent(
    tmp_path: Path, name: str, options: dict[str, Any], kept: bool
) -> None:
    """Before anything is sent or written; where the change is accepted, the child's own log has it."""

    async def main() -> None:
        script = [reply(ask("t1", "Write.")), reply("Done.")], [reply(tool_use("c1", "write", {})), reply("Wrote.")]
        async with (agents := Agents(*script, inner_options=ASKING)) as loop:
            first = await stayed(loop.run("Go.", log=tmp_path / "run.jsonl" if kept else None), agents.parent)
        log = read(tmp_path / "run.jsonl") if kept else first.log
        async with (agents := Agents([script[0][1]], [script[1][1]], inner_options=ASKING | options)) as loop:
            for given in ({}, {"c1": Allow()}):
                with pytest.raises(LoopChanged, match=f"in the sub-agent helper: {name}") as caught:
                    loop.resume(log, approvals=given)
                [difference] = caught.value.differences
                assert (difference.name, difference.agents) == (name, ("helper",))
            assert agents.child.requests == agents.parent.requests == []
            if kept:
                assert read(tmp_path / "run.jsonl").lines == first.log.lines
            last = await stayed(loop.resume(log, approvals={"c1": Allow()}, accept_changes=True), agents.parent)
            assert last.result.result == "Done."
            assert last.run.messages[2]["content"] == [result("t1", "Wrote.")]
            [claim] = [one for one in linked(last.log, "t1").records if one.kind is Kind.RESUMED]
            assert list(claim["changes"]) == [name]

    asyncio.run(main())


def test_what_has_changed_is_found_two_levels_down() -> None:
    async def main() -> None:
        logs: list[Log] = []
        for options in ({}, {"system": "Be brief."}):
            deep = ScriptedAPI([reply(tool_use("g1", "write", {"n": 1}))])
            middle = ScriptedAPI([reply(ask("c1", "Deeper.", "deep"))])
            top = ScriptedAPI([reply(ask("t1", "Look.", "middle"))])
            async with (
                scripted(deep, **ASKING, **options) as lowest,
                scripted(middle, tools=[lowest.as_tool("deep", "")]) as lower,
                scripted(top, tools=[lower.as_tool("middle", "")]) as loop,
            ):
                if not logs:
                    logs.append((await stayed(loop.run("Go."), top)).log)
                    continue
                with pytest.raises(LoopChanged, match="in the sub-agent middle: in the sub-agent deep: system"):
                    loop.resume(logs[0])

    asyncio.run(main())


def test_a_suspended_one_that_is_aborted_is_said_to_be_interrupted() -> None:
    async def main() -> None:
        agents = Agents(
            [reply(ask("t1", "Write."), tool_use("t2", "hang", {}))],
            [reply(tool_use("c1", "write", {"n": 1}))],
            tools=[Hanging().tool],
            inner_options=ASKING,
        )
        async with agents as loop:
            stay = await stayed(loop.run("Go."), agents.parent)
            run = loop.resume(stay.log)
            async with run:
                pass
            check(run, agents.parent)
            told, other = (block["content"] for block in run.messages[2]["content"])
            assert told.startswith("interrupted, effect unknown")
            assert other.startswith("not started")

    asyncio.run(main())
