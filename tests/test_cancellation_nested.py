"""Cancellation at every await of a run with a sub-agent in it: both runs end, and both say what is true."""

from typing import Any

import attrs
import pytest

from looplatch import Log, Loop, Tool, ToolContext, verify
from looplatch.blocks import blocks_of
from looplatch.testing import FakeClock, ScriptedAPI, reply, tool_use
from tests.cutting import (
    DEADLINE,
    WAYS,
    Cut,
    Ran,
    Scene,
    SteppingLoop,
    finished,
    recorded,
    stepping,
    untrue,
)
from tests.nesting import ask
from tests.playing import rounds, running, scripted

UNKNOWN = "interrupted, effect unknown"


class Nest:
    """A run that asks a sub-agent, which reads and writes, and that then writes itself; what became of it."""

    def __init__(self) -> None:
        self.scene, self.clock = Scene(), FakeClock()
        self.cut: Cut | None = None
        self.where = ""
        self.inner = ScriptedAPI(
            [
                reply("I look.", tool_use("c1", "read", {"n": 1}), tool_use("c2", "write", {"n": 2})),
                reply("Found."),
            ]
        )
        self.outer = ScriptedAPI(
            [
                reply("I ask.", ask("t1", "Look."), tool_use("t2", "write", {"n": 3})),
                reply("Done."),
            ]
        )

    def agent(self, helper: Loop) -> Tool:
        """The sub-agent as a tool, which keeps in the scene how far it came."""
        tool, calls = helper.as_tool("helper", ""), self.scene.calls

        async def call(given: dict[str, Any], ctx: ToolContext) -> object:
            calls["t1"] = Ran(began=True, read_only=False)
            said = await tool.call(given, ctx)
            calls["t1"] = Ran(began=True, returned=True, read_only=False)
            return said

        return attrs.evolve(tool, call=call)

    def tools(self) -> list[Any]:
        async def body() -> None:
            await rounds(2)

        return [recorded(self.scene, name, body, read_only=name == "read") for name in ("read", "write")]

    def going_on(self) -> str:
        """How far the sub-agent is, as the world outside sees it."""
        calls = self.scene.calls
        if not self.inner.exchanges:
            return "before its first request"
        if any(not calls[id_].returned for id_ in ("c1", "c2") if id_ in calls):
            return "its write runs" if "c2" in calls else "its read runs"
        if len(self.inner.exchanges) == 1:
            return "its tools are done" if "c2" in calls else "its model answers"
        return "its second answer" if len(self.outer.exchanges) == 1 else "it is over"


WHERE = {
    "before its first request",
    "its model answers",
    "its read runs",
    "its write runs",
    "its tools are done",
    "its second answer",
    "it is over",
}


def cut_at(step: int, way: str) -> Nest:
    """The whole work, cut off before one step of the event loop."""

    async def main(loop: SteppingLoop) -> Nest:
        nest = Nest()
        tools = nest.tools()
        async with (
            scripted(nest.inner, tools=tools, clock=nest.clock) as helper,
            scripted(nest.outer, tools=[nest.agent(helper), tools[1]], clock=nest.clock) as agent,
        ):
            run = agent.run("Go.", deadline_s=DEADLINE)
            cut = nest.cut = Cut(run=run, way=way, clock=nest.clock)

            def make() -> None:
                nest.where = nest.going_on()
                cut()

            loop.count(step, make)
            cut.consumer = running(run)
            await finished(cut, nest.outer, nest.scene)
            loop.count()
            assert nest.inner.refusals == []
            assert all(exchange.ended.is_set() for exchange in nest.inner.exchanges)
            if run.result is not None:
                whole(run.log, nest)
            return nest

    made: Nest = stepping(main)
    return made


def whole(log: Log, nest: Nest) -> None:
    """The log of the parent verifies with its child's, which is sealed, and the call says how the child ended."""
    report = verify(log)
    assert (report.ok, report.status) == (True, "sealed"), str(report)
    [*told] = [block["content"] for message in log.messages for block in blocks_of(message) if _answers(block)]
    child = log.children.get("t1")
    if child is None:
        assert nest.inner.requests == []
        assert [said for said in told if not said.startswith(("not started", UNKNOWN))] == []
        return
    assert verify(child).status == "sealed"
    assert child.terminal is not None
    assert untrue(child.messages, nest.scene) == []
    ended = [effect.end for effect in log.effects if effect.begin.get("tool_use_id") == "t1"]
    assert ended[-1] is not None
    assert ended[-1]["child"]["seq"] == child.records[-1].seq
    if told == ["Found."]:
        assert child.terminal["terminal"] == "answered"
    else:
        assert len(told) == 1
        assert told[0].startswith(UNKNOWN)


def _answers(block: dict[str, Any]) -> bool:
    return bool(block["type"] == "tool_result" and block["tool_use_id"] == "t1")


@pytest.mark.parametrize("way", WAYS)
def test_a_run_with_a_sub_agent_may_be_cut_off_at_every_await(way: str) -> None:
    where: set[str] = set()
    points = 0
    while True:
        nest = cut_at(points + 1, way)
        assert nest.cut is not None
        if not nest.cut.made:
            break
        points += 1
        where.add(nest.where)
    print(f"{way}: cut off at {points} points")
    assert where == WHERE
    assert points > 60
