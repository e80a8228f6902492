"""A loop with a sub-agent, each against a script of its own, and what must hold between their logs."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from looplatch import Limits, Log, Loop, Price
from looplatch.testing import FakeClock, ScriptedAPI, reply, tool_use
from tests.playing import scripted, tool_named

PRICE = Price(input=1, output=2)
SPEND = {"input_tokens": 100, "output_tokens": 20}


def ask(id_: str, prompt: str, name: str = "helper") -> Any:
    return tool_use(id_, name, {"prompt": prompt})


class Agents:
    """A parent and its helper, each with a script of its own."""

    def __init__(self, parent: list[Any], inner: Any, *, tools: Any = (), **options: Any) -> None:
        self.parent, self.child = ScriptedAPI(parent), ScriptedAPI(inner)
        self.clock = FakeClock()
        self._tools = tools
        self._child_options = options.pop("inner_options", {})
        self._options = options

    async def __aenter__(self) -> Loop:
        self._inner = scripted(self.child, clock=self.clock, **self._child_options)
        self.helper = await self._inner.__aenter__()
        tools = [self.helper.as_tool("helper", "Helps."), *self._tools]
        self._outer = scripted(self.parent, clock=self.clock, tools=tools, **self._options)
        self.loop = await self._outer.__aenter__()
        return self.loop

    async def __aexit__(self, *exc: object) -> None:
        await self._outer.__aexit__(None, None, None)
        await self._inner.__aexit__(None, None, None)
        assert self.parent.refusals == []
        assert self.child.refusals == []


@asynccontextmanager
async def spending_siblings() -> AsyncGenerator[Agents, None]:
    """Two helpers that are at work at the same time and spend all that their parent may, each less than that."""
    started = [asyncio.Event(), asyncio.Event()]

    async def meet(given: dict[str, Any], ctx: Any) -> str:
        started[int(given["n"])].set()
        await started[1 - int(given["n"])].wait()
        return "met"

    def answer(body: dict[str, Any]) -> Any:
        n = int(body["messages"][0]["content"])
        calls = len(body["messages"]) // 2
        return reply(tool_use(f"c{calls}", "meet", {"n": n}), usage={"input_tokens": 300, "output_tokens": 0})

    agents = Agents(
        [reply(ask("t1", "0"), ask("t2", "1"), usage=SPEND)],
        answer,
        inner_options={"tools": [tool_named("meet", answer=meet)]},
        limits=Limits(max_total_tokens=600),
    )
    async with agents:
        yield agents


def linked(parent: Log, call: str) -> Log:
    """The log of the run inside a call, which must be bound to the parent's, and the parent's to it."""
    child = parent.children[call]
    assert child.genesis is not None
    link: dict[str, Any] = child.genesis["parent"]
    begin = parent.records[int(link["seq"])]
    assert (begin.hash, begin.run, begin["tool_use_id"]) == (link["hash"], link["run"], call)
    ends = [effect.end for effect in parent.effects if effect.begin.get("tool_use_id") == call]
    assert ends[-1] is not None
    told: dict[str, Any] = ends[-1]["child"]
    last = child.records[int(told["seq"])]
    assert (last.run, last.hash) == (told["run"], told["hash"])
    assert told["log"] == (None if child.file is None else child.file.name)
    return child
