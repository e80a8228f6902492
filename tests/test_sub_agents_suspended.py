"""Sub-agents that wait for someone's word: their parents wait with them, and go on with them."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from looplatch import Allow, Deny, Log, Rule, ToolUseBlock, UsageError, read, verify
from looplatch.audit import LogDamaged
from looplatch.recovery.resume.errors import LoopChanged
from looplatch.states.record import Kind
from looplatch.testing import ScriptedAPI, reply, tool_use
from tests.nesting import SPEND, Agents, ask, linked
from tests.playing import Hanging, check, echo, result, scripted, tool_named
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
                [difference] = caught.value.changes
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


def lines_of(file: Path) -> list[bytes]:
    return file.read_bytes().splitlines(keepends=True)


def files_in(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def cut(count: int) -> Callable[[Path], object]:
    def harm(file: Path) -> None:
        file.write_bytes(b"".join(lines_of(file)[:count]))

    return harm


def moved(file: Path) -> None:
    file.rename(file.with_name("x.jsonl"))


def other(file: Path) -> None:
    file.write_bytes(file.read_bytes().replace(b'"max_tokens":8000', b'"max_tokens":8001', 1))


def tampered_at_its_end(file: Path) -> None:
    *before, last = lines_of(file)
    file.write_bytes(b"".join(before) + last.replace(b'"mono_ns":', b'"mono_ns":1', 1))


HARMS: list[Any] = [
    pytest.param(Path.unlink, "no log of the sub-agent is there", id="deleted"),
    pytest.param(moved, "no log of the sub-agent is there", id="moved"),
    pytest.param(cut(0), "no log of the sub-agent is there", id="empty"),
    pytest.param(cut(2), "no log of the sub-agent is there", id="not begun"),
    pytest.param(cut(5), "ends with record 4", id="cut"),
    pytest.param(cut(-1), "ends with record 18", id="one record short"),
    pytest.param(other, "its hash is not that of its content", id="another record"),
    pytest.param(tampered_at_its_end, "ends with record 18", id="another last record"),
]


class Written:
    """A helper that reads, then asks before it writes; `ran` says what its tools did."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.agents = Agents(
            [reply(ask("t1", "Write.")), reply("Done."), reply("Done.")],
            [reply(tool_use("c0", "free", {})), reply(tool_use("c1", "write", {})), reply("Wrote.")],
            inner_options={"tools": [self._tool("free"), self._tool("write")], "rules": [Rule("ask", "write")]},
        )

    def _tool(self, name: str) -> Any:
        def answer(*_: object) -> str:
            self.ran.append(name)
            return "ok"

        return tool_named(name, read_only=False, answer=answer)


def test_one_whose_log_goes_on_after_what_its_parent_says_is_taken_up_from_there(tmp_path: Path) -> None:
    """The process died before the parent knew: its own log ends where the helper had asked."""

    async def main() -> None:
        written, file = Written(), tmp_path / "run.jsonl"
        async with written.agents as loop:
            first = await stayed(loop.run("Go.", log=file), written.agents.parent)
            asked = file.read_bytes()
            await stayed(loop.resume(first.log, approvals={"c1": Allow()}), written.agents.parent)
            file.write_bytes(asked)
            assert (await loop.resume(file, approvals={"c1": Allow()})).result == "Done."
            assert written.ran == ["free", "write"]

    asyncio.run(main())


@pytest.mark.parametrize(("harm", "told"), HARMS)
@pytest.mark.parametrize("begun_again", [False, True], ids=["at rest", "begun again"])
def test_one_whose_log_is_behind_what_its_parent_says_is_refused(
    tmp_path: Path, harm: Callable[[Path], object], told: str, begun_again: bool
) -> None:
    """It would do again what it has done. Nothing is written, sent or run: neither to go on nor to wait."""

    async def main() -> None:
        written, file, inner = Written(), tmp_path / "run.jsonl", tmp_path / "run.t1.jsonl"
        async with written.agents as loop:
            first = await stayed(loop.run("Go.", log=file), written.agents.parent)
            child = inner.read_bytes()
            decided: dict[str, Allow] = {"c1": Allow()}
            if begun_again:  # and the process died at once
                last = await stayed(loop.resume(first.log, approvals=decided), written.agents.parent)
                begins = [r.seq for r in last.log.records if r.kind is Kind.EFFECT_BEGIN and r["class"] == "tool"]
                file.write_bytes(b"".join(lines_of(file)[: begins[-1] + 1]))
                inner.write_bytes(child)
                decided = {}
            harm(inner)
            known, ran = files_in(tmp_path), list(written.ran)
            asked = len(written.agents.parent.requests), len(written.agents.child.requests)
            for approvals in ({}, decided):
                with pytest.raises(LogDamaged) as refused:
                    await loop.resume(file, approvals=approvals)
                assert refused.value.file == inner
                said = str(refused.value)
                assert told in said
                assert f"the log of its parent, {file}, says that it has, for the call t1, record 19" in said
            assert files_in(tmp_path) == known
            assert written.ran == ran
            assert (len(written.agents.parent.requests), len(written.agents.child.requests)) == asked

    asyncio.run(main())


def test_the_log_of_a_grandchild_must_reach_as_far(tmp_path: Path) -> None:
    async def main() -> None:
        deep = ScriptedAPI([reply(tool_use("g1", "write", {"n": 1})), reply("Deep.")])
        middle = ScriptedAPI([reply(ask("c1", "Deeper.", "deep")), reply("Middle.")])
        top = ScriptedAPI([reply(ask("t1", "Look.", "middle")), reply("Top.")])
        async with (
            scripted(deep, **ASKING) as lowest,
            scripted(middle, tools=[lowest.as_tool("deep", "")]) as lower,
            scripted(top, tools=[lower.as_tool("middle", "")]) as loop,
        ):
            await stayed(loop.run("Go.", log=tmp_path / "run.jsonl"), top)
            (tmp_path / "run.t1.c1.jsonl").unlink()
            with pytest.raises(LogDamaged, match=r"run\.t1\.c1\.jsonl.*its parent, .*run\.t1\.jsonl"):
                loop.resume(tmp_path / "run.jsonl", approvals={"g1": Allow()})

    asyncio.run(main())


def test_one_in_memory_must_be_at_hand() -> None:
    async def main() -> None:
        written = Written()
        async with written.agents as loop:
            first = await stayed(loop.run("Go."), written.agents.parent)
            alone = Log(first.log.lines, first.log.payloads)
            with pytest.raises(LogDamaged, match="no log of the sub-agent is there; the log of its parent says"):
                loop.resume(alone, approvals={"c1": Allow()})

    asyncio.run(main())
