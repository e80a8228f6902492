"""Who waits for whom: a slow consumer stops the server, a slow tool stops nobody; and when tools start."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anthropic
import attrs
import httpx2
import pytest

from looplatch import AssistantMessage, Loop, Run, StreamEvent, Tool, ToolContext, ToolMessage, ToolUseBlock
from looplatch.messages import Message, ToolPhase
from looplatch.ports import ModelRequest
from looplatch.recovery.failure import Failure, ModelCallFailed
from looplatch.recovery.windows import ModelSize
from looplatch.testing import Exchange, FakeClock, ScriptedAPI, reply, stalled, text, tool_use
from tests.playing import MODEL, check, rounds, scripted, tool_named

MEGABYTE = 1024 * 1024
BLOCKS = 24
HEADROOM = 12 * MEGABYTE  # what the buffers of both sockets may grow to


@asynccontextmanager
async def over_http(api: ScriptedAPI, **options: Any) -> AsyncGenerator[Loop]:
    async with (
        api.serve() as url,
        httpx2.AsyncClient(verify=False) as http,
        anthropic.AsyncAnthropic(api_key="k", base_url=url, http_client=http) as client,
    ):
        yield Loop(model=MODEL, client=client, clock=FakeClock(), **options)


def running(run: Run) -> "asyncio.Task[list[Message]]":
    async def consume() -> list[Message]:
        return [message async for message in run]

    return asyncio.create_task(consume())


async def until(run: Run, wanted: type[Message]) -> None:
    async for message in run:
        if isinstance(message, wanted):
            return


async def held_up(exchange: Exchange) -> None:
    """Until the server can write no more, though its answer goes on: half of it at most is under way by then.

    How many bytes the sockets hold is the kernel's matter, and when it moves them from one to the other, too.
    """
    written = -1
    while written != exchange.bytes_sent or not exchange.blocked.is_set():
        written = exchange.bytes_sent
        assert written < HEADROOM
        await rounds(200)


# --- the consumer


@pytest.mark.parametrize("kind", [StreamEvent, AssistantMessage])
def test_a_consumer_that_stops_pulling_stops_the_server(kind: type[Message]) -> None:
    """Many blocks of a megabyte each: what the server has written stays within the sockets' buffers."""

    async def main() -> None:
        api = ScriptedAPI([reply(*(text("x" * MEGABYTE, 16) for _ in range(BLOCKS)))])
        async with over_http(api) as loop, loop.run("Go.", include_partial_messages=kind is StreamEvent) as run:
            await until(run, kind)
            exchange = api.exchanges[0]
            await held_up(exchange)
            assert not exchange.ended.is_set()
            async for _ in run:
                pass
            assert exchange.finished
            assert exchange.bytes_sent > BLOCKS * MEGABYTE
            check(run, api)

    asyncio.run(main())


def test_a_consumer_that_stops_pulling_while_a_tool_runs_stops_the_server_too() -> None:
    async def main() -> None:
        gate = asyncio.Event()

        async def call(given: dict[str, Any], ctx: ToolContext) -> str:
            await gate.wait()
            return "read"

        blocks = [tool_use("t1", "read", {"n": 1}), *(text("x" * MEGABYTE, 16) for _ in range(BLOCKS))]
        api = ScriptedAPI([reply(*blocks), reply("Done.")])
        async with over_http(api, tools=[tool_named("read", answer=call)]) as loop, loop.run("Go.") as run:
            await until(run, ToolMessage)
            exchange = api.exchanges[0]
            await held_up(exchange)
            assert not exchange.ended.is_set()
            gate.set()
            async for _ in run:
                pass
            check(run, api)

    asyncio.run(main())


def test_a_tool_that_tells_more_than_is_pulled_is_bounded_and_counts_what_was_missed() -> None:
    async def main() -> None:
        def call(given: dict[str, Any], ctx: ToolContext) -> str:
            for number in range(10_000):
                ctx.progress(number)
            return "told"

        api = ScriptedAPI([reply(tool_use("t1", "tell", {"n": 1})), reply("Done.")])
        async with scripted(api, tools=[tool_named("tell", answer=call)]) as loop:
            run = loop.run("Go.")
            told = [
                message
                async for message in run
                if isinstance(message, ToolMessage) and message.phase is ToolPhase.PROGRESS
            ]
            assert len(told) < 200
            assert sum(1 + message.skipped for message in told) == 10_000
            assert told[-1].progress == (9_999,)
            check(run, api)

    asyncio.run(main())


# --- the tools


class Crowd:
    """Tools that say who runs, and go on when the gate is open."""

    def __init__(self) -> None:
        self.inside: list[str] = []
        self.most = 0
        self.log: list[str] = []
        self.gate = asyncio.Event()
        self.changed = asyncio.Condition()

    def tool(self, name: str, *, read_only: bool) -> Tool:
        return tool_named(name, read_only=read_only, answer=self._call)

    async def _call(self, given: dict[str, Any], ctx: ToolContext) -> str:
        self.inside.append(ctx.tool_use_id)
        self.log.append(f"+{ctx.tool_use_id}")
        self.most = max(self.most, len(self.inside))
        async with self.changed:
            self.changed.notify_all()
        await self.gate.wait()
        self.inside.remove(ctx.tool_use_id)
        self.log.append(f"-{ctx.tool_use_id}")
        return "done"

    async def reaches(self, condition: Callable[[], bool]) -> None:
        async with self.changed:
            await self.changed.wait_for(condition)


def test_ten_reads_run_side_by_side_and_not_eleven() -> None:
    async def main() -> None:
        crowd = Crowd()
        script = [reply(*(tool_use(f"t{number}", "read", {"n": number}) for number in range(12))), reply("Done.")]
        api = ScriptedAPI(script)
        async with scripted(api, tools=[crowd.tool("read", read_only=True)]) as loop:
            run = loop.run("Go.")
            consumer = running(run)
            await crowd.reaches(lambda: len(crowd.inside) == 10)
            await rounds()
            assert len(crowd.inside) == 10
            crowd.gate.set()
            await consumer
            assert crowd.most == 10
            assert len(crowd.log) == 24
            check(run, api)

    asyncio.run(main())


def test_a_write_runs_alone_and_in_its_place() -> None:
    async def main() -> None:
        crowd = Crowd()
        crowd.gate.set()
        calls = ["r1", "r2", "w1", "w2", "r3", "r4", "w3"]
        blocks = [tool_use(name, "read" if name[0] == "r" else "write", {"n": 1}) for name in calls]
        api = ScriptedAPI([reply(*blocks), reply("Done.")])
        tools = [crowd.tool("read", read_only=True), crowd.tool("write", read_only=False)]
        async with scripted(api, tools=tools) as loop:
            run = loop.run("Go.")
            await run
            check(run, api)
        order = [entry for entry in crowd.log if entry[1] == "w"]
        assert order == ["+w1", "-w1", "+w2", "-w2", "+w3", "-w3"]
        for write in ("w1", "w2", "w3"):
            place = crowd.log.index(f"+{write}")
            assert crowd.log[place + 1] == f"-{write}", "nothing begins or ends beside a write"
            before, behind = calls[: calls.index(write)], calls[calls.index(write) + 1 :]
            assert all(crowd.log.index(f"-{name}") < place for name in before)
            assert all(crowd.log.index(f"+{name}") > place for name in behind)

    asyncio.run(main())


def test_a_read_does_not_overtake_a_write_that_waits() -> None:
    async def main() -> None:
        crowd = Crowd()
        blocks = [
            tool_use("r1", "read", {"n": 1}),
            tool_use("w1", "write", {"n": 1}),
            tool_use("r2", "read", {"n": 1}),
        ]
        api = ScriptedAPI([reply(*blocks), reply("Done.")])
        tools = [crowd.tool("read", read_only=True), crowd.tool("write", read_only=False)]
        async with scripted(api, tools=tools) as loop:
            run = loop.run("Go.")
            consumer = running(run)
            while run.state != "orchestrate":
                await rounds(1)
            await rounds()
            assert crowd.inside == ["r1"]
            crowd.gate.set()
            await consumer
            assert crowd.log == ["+r1", "-r1", "+w1", "-w1", "+r2", "-r2"]

    asyncio.run(main())


@pytest.mark.parametrize("wired", [scripted, over_http])
def test_a_read_starts_while_the_stream_stalls_behind_its_block(wired: Any) -> None:
    """The stream goes on when the tool has begun: it would never, if the tool waited for the stream."""

    async def main() -> None:
        gate = asyncio.Event()

        def call(given: dict[str, Any], ctx: ToolContext) -> str:
            gate.set()
            return "read"

        whole = reply(tool_use("t1", "read", {"n": 1}), "And so on.")
        api = ScriptedAPI([stalled(whole, after=4, gate=gate), reply("Done.")])
        async with wired(api, tools=[tool_named("read", answer=call)]) as loop, asyncio.timeout(30):
            run = loop.run("Go.")
            assert (await run).terminal == "answered"
            check(run, api)

    asyncio.run(main())


def test_a_write_starts_when_the_next_block_begins_and_not_before() -> None:
    async def main() -> None:
        begun = asyncio.Event()
        first, second = asyncio.Event(), asyncio.Event()

        def call(given: dict[str, Any], ctx: ToolContext) -> str:
            begun.set()
            return "written"

        whole = reply(tool_use("t1", "write", {"n": 1}), "And so on.")
        # message_start and the three events of the call; then the start of the next block
        api = ScriptedAPI([stalled(stalled(whole, after=5, gate=second), after=4, gate=first), reply("Done.")])
        async with scripted(api, tools=[tool_named("write", read_only=False, answer=call)]) as loop:
            run = loop.run("Go.")
            consumer = running(run)
            exchange = await api.arrival(1)
            await exchange.stalled.wait()
            await rounds()
            assert not begun.is_set()
            first.set()
            async with asyncio.timeout(30):
                await begun.wait()
            assert not second.is_set()
            second.set()
            await consumer
            check(run, api)

    asyncio.run(main())


def test_reading_does_not_wait_for_a_tool() -> None:
    """Whatever the model says is handed out while the first tool still runs."""

    async def main() -> None:
        crowd = Crowd()
        script = [reply(tool_use("t1", "read", {"n": 1}), "One.", tool_use("t2", "read", {"n": 2}), "Two.")]
        api = ScriptedAPI([*script, reply("Done.")])
        async with scripted(api, tools=[crowd.tool("read", read_only=True)]) as loop:
            run = loop.run("Go.")
            said: list[str] = []
            async for message in run:
                if isinstance(message, AssistantMessage):
                    [block] = message.content
                    said.append(block.id if isinstance(block, ToolUseBlock) else getattr(block, "text", ""))
                if len(said) == 4 and not crowd.gate.is_set():
                    assert crowd.inside == ["t1", "t2"]
                    crowd.gate.set()
            assert said == ["t1", "One.", "t2", "Two.", "Done."]
            check(run, api)

    asyncio.run(main())


# --- reading beside tools


class Breaking:
    """A model whose first answer calls a tool and then breaks off, in the very step in which the tool may end."""

    def __init__(self, begun: asyncio.Event, gate: asyncio.Event) -> None:
        self.begun = begun
        self.gate = gate
        self.opened = 0

    async def open(self, request: ModelRequest) -> "Breaking":
        self.opened += 1
        call: dict[str, Any] = {"type": "tool_use", "id": "t1", "name": "read", "input": {}}
        blocks: list[dict[str, Any]] = [call, {"type": "text", "text": ""}] if self.opened == 1 else []
        done = {"type": "text", "text": "Done."}
        self.events: list[dict[str, Any]] = [
            {"type": "message_start", "message": {"id": "m", "content": [] if blocks else [done], "usage": {}}},
        ]
        for index, block in enumerate(blocks):
            self.events.append({"type": "content_block_start", "index": index, "content_block": block})
            self.events.append({"type": "content_block_stop", "index": index})
        if not blocks:
            self.events += [{"type": "message_delta", "delta": {"stop_reason": "end_turn"}}, {"type": "message_stop"}]
        return self

    @property
    def request_id(self) -> str | None:
        return None

    async def read(self) -> list[dict[str, Any]]:
        if self.events or self.gate.is_set():  # what has failed is closed
            return [self.events.pop(0)] if self.events else []
        await self.begun.wait()
        self.gate.set()
        raise ModelCallFailed(Failure(type="overloaded_error", status=529, message="too much"))

    async def close(self) -> None:
        self.events.clear()

    async def count(self, request: ModelRequest) -> int:
        return 10

    async def size(self, model: str) -> ModelSize:
        return ModelSize(window=200_000, output=64_000)


@pytest.mark.parametrize("steps", range(6))
def test_a_failure_beside_a_tool_is_told_as_what_it_is(steps: int) -> None:
    """The tool ends so many steps of the event loop after the stream has failed."""

    async def main() -> None:
        begun, gate = asyncio.Event(), asyncio.Event()

        async def call(given: dict[str, Any], ctx: ToolContext) -> str:
            begun.set()
            await gate.wait()
            await rounds(steps)
            return "read"

        loop = Loop(model=MODEL, tools=[tool_named("read", answer=call)], clock=FakeClock())
        model = Breaking(begun, gate)
        loop.plan = attrs.evolve(loop.plan, connect=lambda: model)
        run = loop.run("Go.")
        await run
        ends = [r for r in run.log.records if r.kind == "effect_end" and r["class"] == "model"]
        assert [end["outcome"] for end in ends] == ["overloaded_error", "ok"]

    asyncio.run(main())
