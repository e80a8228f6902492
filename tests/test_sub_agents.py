"""Sub-agents: a loop as a tool of another, each run with a log of its own that is linked to its parent's."""

import asyncio
import shutil
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from looplatch import (
    AssistantMessage,
    Limits,
    Log,
    StreamEvent,
    TextBlock,
    ToolMessage,
    ToolResult,
    read,
    replay,
    verify,
)
from looplatch.audit.children import child_files
from looplatch.outbox import MAX_OFFERED
from looplatch.testing import ScriptedAPI, reply, text, tool_use
from looplatch.tools import ToolContext
from tests.nesting import PRICE, SPEND, Agents, ask, linked, spending_siblings
from tests.playing import Hanging, alone, check, echo, play, result, rounds, running, scripted, tool_named


@pytest.mark.parametrize("kept", [False, True], ids=["in memory", "in a file"])
def test_a_sub_agent_has_a_log_of_its_own_and_both_chains_bind(tmp_path: Path, kept: bool) -> None:
    path = tmp_path / "run.jsonl" if kept else None

    async def main() -> None:
        script = [reply("I ask.", ask("t1", "Look.")), reply("Done.")]
        inner = [reply(tool_use("c1", "read", {"n": 1})), reply("It is there.")]
        agents = Agents(script, inner, inner_options={"tools": [echo()]})
        async with agents as loop:
            run = loop.run("Go.", log=path)
            seen = [message async for message in run]
            check(run, agents.parent)
            assert run.messages[2]["content"] == [result("t1", "It is there.")]
            assert agents.child.requests[0].messages == [{"role": "user", "content": "Look."}]
            child = linked(run.log, "t1")
            assert (verify(child).ok, verify(child).status) == (True, "sealed")
            forwarded = [message for message in seen if getattr(message, "parent_tool_use_id", None) is not None]
            assert {message.parent_tool_use_id for message in forwarded} == {"t1"}  # type: ignore[union-attr]
            told = [type(m).__name__ for m in forwarded]
            assert told == [
                "SystemMessage", "AssistantMessage", "ToolMessage", "ToolMessage", "UserMessage", "AssistantMessage",
            ]  # fmt: skip
        if path is not None:
            assert read(path).children["t1"].records == child.records

    asyncio.run(main())
    files = {"run.jsonl", "run.payloads", "run.t1.jsonl", "run.t1.payloads"}
    assert {file.name for file in tmp_path.iterdir()} == (files if kept else set())


def test_it_reads_only_iff_all_its_tools_do() -> None:
    async def main() -> None:
        async with scripted(ScriptedAPI([])) as bare:
            assert bare.as_tool("a", "").read_only is True
        search = {"type": "web_search_20250305", "name": "web_search"}
        code = {"type": "code_execution_20250825", "name": "code_execution"}
        for tools, only_reads in (
            ([echo()], True),
            ([echo(), echo("write", read_only=False)], False),
            ([search], True),
            ([echo(), code], False),
        ):
            async with scripted(ScriptedAPI([]), tools=tools) as loop:
                agent = loop.as_tool("a", "")
                assert agent.read_only is only_reads
                async with scripted(ScriptedAPI([]), tools=[agent]) as outer:
                    assert outer.as_tool("b", "").read_only is only_reads

    asyncio.run(main())


def test_it_can_be_called_by_hand_outside_any_run() -> None:
    async def main() -> None:
        async with scripted(ScriptedAPI([reply("Yes.")])) as loop:
            agent = loop.as_tool("helper", "Helps.")
            said = await agent.call({"prompt": "Is it?"}, ToolContext(tool_use_id="t1", run_id="r"))
            assert said == ToolResult("Yes.")

    asyncio.run(main())


def test_several_that_only_read_run_in_parallel_and_are_answered_in_order() -> None:
    async def main() -> None:
        hanging = [Hanging("hang1"), Hanging("hang2")]
        gate = asyncio.Event()

        async def meet(given: dict[str, Any], ctx: Any) -> str:
            hanging[int(given["n"])].began.set()
            await gate.wait()
            return f"met {given['n']}"

        def answer(body: dict[str, Any]) -> Any:
            [first, *rest] = body["messages"]
            return (
                reply(f"Said {first['content']}")
                if rest
                else reply(tool_use("c1", "meet", {"n": int(first["content"])}))
            )

        agents = Agents(
            [reply(ask("t1", "0"), ask("t2", "1")), reply("Done.")],
            answer,
            inner_options={"tools": [tool_named("meet", answer=meet)]},
        )
        async with agents as loop:
            run = loop.run("Go.")
            consumer = running(run)
            for one in hanging:
                await one.began.wait()
            gate.set()
            seen = await consumer
            check(run, agents.parent)
            assert run.messages[2]["content"] == [result("t1", "Said 0"), result("t2", "Said 1")]
            for call in ("t1", "t2"):
                own = [m.tool_use_id for m in seen if isinstance(m, ToolMessage) and m.parent_tool_use_id == call]
                assert own == ["c1", "c1"]
                assert verify(linked(run.log, call)).ok

    asyncio.run(main())


def test_what_it_spends_counts_in_its_parent_and_ends_it() -> None:
    async def main() -> None:
        agents = Agents(
            [reply(ask("t1", "Look."), usage=SPEND), reply("Never said.")],
            [reply(tool_use("c1", "read", {}), usage=SPEND), reply("Found.", usage=SPEND)],
            inner_options={
                "tools": [echo()],
                "limits": Limits(max_total_tokens=1_000, max_cost_usd=1.0),
                "price": PRICE,
            },
            limits=Limits(max_total_tokens=360, max_cost_usd=0.5),
            price=PRICE,
        )
        async with agents as loop:
            run = loop.run("Go.", deadline_s=30)
            ended = await run
            check(run, agents.parent)
            assert ended.terminal == "budget_spent"
            assert (ended.usage["input_tokens"], ended.usage["output_tokens"]) == (300, 60)
            assert ended.total_cost_usd == pytest.approx(300e-6 + 60 * 2e-6)
            assert len(agents.parent.requests) == 1
            child = linked(run.log, "t1")
            assert child.genesis is not None
            limits = child.genesis["limits"]
            # At the time the parent's own call was not told yet: the call began while its answer was being written.
            assert limits["max_total_tokens"] in (240, 360)
            assert child.genesis["deadline_ms"] == 30_000

    asyncio.run(main())


def test_one_that_starts_with_nothing_left_is_not_started() -> None:
    async def main() -> None:
        agents = Agents(
            [reply(ask("t1", "Look."), ask("t2", "More."), usage=SPEND), reply("Never said.")],
            [reply("Found.", usage={"input_tokens": 500, "output_tokens": 1})],
            inner_options={"tools": [echo("write", read_only=False)]},
            limits=Limits(max_total_tokens=400),
        )
        async with agents as loop:
            run = loop.run("Go.")
            assert (await run).terminal == "budget_spent"
            told = "the sub-agent was not started: the budget of the run is spent"
            assert run.messages[2]["content"] == [result("t1", "Found."), result("t2", told, is_error=True)]
            assert list(run.log.children) == ["t1"]

    asyncio.run(main())


def test_siblings_that_spend_all_together_end_by_the_budget() -> None:
    """Each may spend all that is left; once that is gone, each ends before its next request, and says why."""

    async def main() -> None:
        async with spending_siblings() as agents:
            run = agents.loop.run("Go.")
            ended = await run
            check(run, agents.parent)
            assert ended.terminal == "budget_spent"
            children = [linked(run.log, call) for call in ("t1", "t2")]
            for child in children:
                assert child.terminal is not None
                assert child.terminal["terminal"] == "budget_spent"
                assert not any(move["fields"].get("stop_asked") for move in child.transitions)
                assert verify(child).ok
                assert replay(child).ok
                assert (await agents.helper.replay(child, accept_changes=True)).ok
            assert "BudgetWithdrawn" in {child.transitions[-1].event for child in children}
            # A tool starts before its answer is told: the first to be done may not know yet that all is spent.
            assert len(agents.child.requests) in (2, 3)

    asyncio.run(main())


@pytest.mark.parametrize("way", ["abort", "aclose", "cancel", "deadline"])
def test_it_ends_with_its_parent(way: str) -> None:
    async def main() -> None:
        hanging = Hanging(read_only=False)
        agents = Agents(
            [reply(ask("t1", "Look."))], [reply(tool_use("c1", "hang", {}))], inner_options={"tools": [hanging.tool]}
        )
        async with agents as loop:
            run = loop.run("Go.", deadline_s=60)
            consumer = running(run)
            await hanging.began.wait()
            await rounds(5)
            match way:
                case "abort":
                    run.abort()
                case "aclose":
                    await run.aclose()
                case "cancel":
                    consumer.cancel()
                case _:
                    agents.clock.advance(60)
            await asyncio.wait([consumer])
            assert hanging.ended.is_set()
            assert alone()
            check(run, agents.parent)
            [told] = run.messages[2]["content"]
            assert told["content"].startswith("interrupted, effect unknown")
            child = linked(run.log, "t1")
            assert (verify(child).ok, verify(child).status) == (True, "sealed")
            assert child.messages[-1]["content"][0]["content"].startswith("interrupted, effect unknown")

    asyncio.run(main())


def test_a_slow_consumer_holds_a_sub_agent_back_and_loses_nothing() -> None:
    async def main() -> None:
        words = [f"w{n} " for n in range(100)]
        agents = Agents([reply(ask("t1", "Look.")), reply("Done.")], [reply(text("".join(words), 100))])
        async with agents as loop:
            deltas: list[str] = []
            ahead: list[int] = []
            async with loop.run("Go.", include_partial_messages=True) as run:
                async for message in run:
                    await rounds(20)
                    if isinstance(message, StreamEvent) and message.parent_tool_use_id == "t1":
                        ahead.append(agents.child.exchanges[0].events_sent - len(ahead))
                        deltas.append(message.event.get("delta", {}).get("text", ""))
            assert "".join(deltas) == "".join(words)
            assert MAX_OFFERED < max(ahead) < MAX_OFFERED + 10

    asyncio.run(main())


def test_the_messages_of_two_levels_reach_the_consumer() -> None:
    async def main() -> None:
        deep, middle, top = (
            ScriptedAPI([reply("Deep.")]),
            ScriptedAPI([reply(ask("c1", "Deeper.", "deep")), reply("Middle.")]),
            ScriptedAPI([reply(ask("t1", "Look.", "middle")), reply("Top.")]),
        )
        async with (
            scripted(deep) as lowest,
            scripted(middle, tools=[lowest.as_tool("deep", "")]) as lower,
            scripted(top, tools=[lower.as_tool("middle", "")]) as loop,
        ):
            run = loop.run("Go.")
            seen = [message async for message in run]
            said = [
                (block.text, message.parent_tool_use_id)
                for message in seen
                if isinstance(message, AssistantMessage)
                for block in message.content
                if isinstance(block, TextBlock)
            ]
            assert said == [("Deep.", "c1"), ("Middle.", "t1"), ("Top.", None)]
            linked(linked(run.log, "t1"), "c1")

    asyncio.run(main())


def test_one_that_fails_is_a_failed_call() -> None:
    async def main() -> None:
        agents = Agents(
            [reply(ask("t1", "Look.")), reply("Done.")],
            [reply("Half", tool_use("c1", "read", {}))],
            inner_options={"tools": [echo()], "limits": Limits(max_turns=1)},
        )
        async with agents as loop:
            run = loop.run("Go.")
            assert (await run).subtype == "success"
            told = "the sub-agent ended without an answer (max_turns)\nIts last words: Half"
            assert run.messages[2]["content"] == [result("t1", told, is_error=True)]

    asyncio.run(main())


@pytest.mark.parametrize("kept", [False, True], ids=["in memory", "in a file"])
def test_a_link_that_does_not_hold_is_found_where_both_logs_are_at_hand(tmp_path: Path, kept: bool) -> None:
    async def one(name: str) -> Log:
        agents = Agents([reply(ask("t1", "Look.")), reply("Done.")], [reply("Found.")])
        async with agents as loop:
            return (await loop.run("Go.", log=tmp_path / f"{name}.jsonl" if kept else None)).log

    ours, other = asyncio.run(one("ours")), asyncio.run(one("other"))
    assert verify(ours).ok
    if kept:
        shutil.copy(tmp_path / "other.t1.jsonl", tmp_path / "ours.t1.jsonl")
        found = verify(tmp_path / "ours.jsonl")
    else:
        found = verify(Log(ours.lines, ours.payloads, child_logs=other.child_logs))
    assert [violation.invariant for violation in found.violations] == ["P4", "P4"]
    alone = verify(Log(ours.lines, ours.payloads))
    assert alone.ok, "the other log is not at hand"


@pytest.mark.parametrize("suffix", [".jsonl", ".sqlite", ".log"])
def test_a_log_that_is_not_there_to_compare_is_noted(tmp_path: Path, suffix: str) -> None:
    async def one(name: str) -> Log:
        agents = Agents([reply(ask("t1", "Look.")), reply("Done.")], [reply("Found.")])
        async with agents as loop:
            return (await loop.run("Go.", log=tmp_path / f"{name}{suffix}")).log

    run = asyncio.run(one("run"))
    [inner] = [path for path in tmp_path.glob("run*.t1*") if "payloads" not in path.name]
    both = [tmp_path / f"run{suffix}", inner]
    assert [verify(path).notes for path in both] == [(), ()]
    begin = run.effects[1].begin
    asyncio.run(one("run2"))
    both[0].rename(tmp_path / "elsewhere")
    place = f"record {begin.seq} of the log of run {run.run}"
    note = f"the parent's log was not there to compare: this run answers a call that is {place}"
    alone = verify(inner)
    assert (alone.ok, alone.notes) == (True, (note,))
    assert str(alone).splitlines()[1:] == [f"note: {note}"]
    assert str(alone).startswith("ok: sealed, ")
    if suffix == ".jsonl":  # another one, in the parent's place
        both[0].write_bytes(b"".join(run.lines[: begin.seq]))
        told = f"the parent's log does not have the call that this run answers, as {place}"
        assert verify(inner).notes == (told,)
    (tmp_path / "elsewhere").replace(both[0])
    inner.unlink()
    report = verify(both[0])
    assert (report.ok, report.notes) == (True, ("the log of the run inside the call t1 was not there to compare",))


@pytest.mark.parametrize("suffix", [".jsonl", ".sqlite"])
@pytest.mark.parametrize(("letter", "count"), [("r", 206), ("\u00e4", 103)], ids=["ascii", "two bytes"])
def test_a_name_that_would_be_too_long_is_shortened_and_found_again(
    tmp_path: Path, letter: str, count: int, suffix: str
) -> None:
    """The longest of its files, a torn end of its payloads, must fit into 255 bytes, too."""
    file, call = tmp_path / f"{letter * count}{suffix}", "t" * 90

    async def main() -> None:
        inner = [reply("Found."), reply("Found.")]
        agents = Agents([reply(ask(call, "Look."), ask("t" * 89, "Look.")), reply("Done.")], inner)
        async with agents as loop:
            run = loop.run("Go.", log=file)
            await run
            assert run.messages[2]["content"] == [result(call, "Found."), result("t" * 89, "Found.")]

    asyncio.run(main())
    log = read(file)
    assert verify(file).ok
    child, other = linked(log, call), linked(log, "t" * 89)
    assert child.file is not None
    assert other.file is not None
    assert child.file != other.file
    assert child.file.name.startswith(letter * 50)
    assert len(child.file.name.encode()) <= 255 - len(".payloads.2147483647.torn")


def test_every_name_of_a_log_beside_its_parent_fits_and_is_another_one() -> None:
    names = [
        next(islice(child_files(Path(f"{'r' * long}.jsonl"), f"{'t' * 99}{number}"), again, None)).name
        for long in (100, 110, 117, 118, 119, 230, 249)
        for number in range(3)
        for again in range(12)
    ]
    assert max(len(name.encode()) for name in names) <= 224
    assert len(set(names)) == len(names)


def test_the_model_is_told_of_no_file(tmp_path: Path) -> None:
    """The consumer is: what lies at the place of the log of a sub-agent is damaged."""
    play([reply("Hello.")], log=tmp_path / "other.jsonl")
    first, _, *rest = (tmp_path / "other.jsonl").read_bytes().splitlines(keepends=True)
    damaged = tmp_path / "run.t1.jsonl"
    damaged.write_bytes(b"".join([first, *rest]))

    async def main() -> None:
        agents = Agents([reply(ask("t1", "Look.")), reply("Done.")], [reply("Found.")])
        async with agents as loop:
            run = loop.run("Go.", log=tmp_path / "run.jsonl")
            told = [message async for message in run]
            said = "failed: SubAgentFailed: the sub-agent could not do its work: LogDamaged"
            assert run.messages[2]["content"] == [result("t1", said, is_error=True)]
            (progress,) = [one.progress[0] for one in told if isinstance(one, ToolMessage) and one.progress]
            assert str(damaged) in str(progress)

    asyncio.run(main())
