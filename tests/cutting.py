"""A run that is cut off at any point: an event loop that counts its steps, and a run that does everything there is."""

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import Context
from typing import Any, TypeVar, TypeVarTuple

from attrs import define, field, frozen

from looplatch import Allow, Ask, Block, Compression, Hooks, Pass, Price, Run, Tool
from looplatch.blocks import blocks_of
from looplatch.hooks import StopContext, ToolCallContext
from looplatch.testing import FakeClock, ScriptedAPI, error, reply, stalled, text, thinking, tool_use
from tests.playing import alone, check, rounds, tool_named
from tests.suspending import suspended

Args = TypeVarTuple("Args")
T = TypeVar("T")

WAYS = ("abort", "aclose", "cancel", "deadline")
ENDS = {"abort": "aborted", "aclose": "closed", "cancel": "closed", "deadline": "deadline"}
DEADLINE = 1_000.0


class SteppingLoop(asyncio.SelectorEventLoop):
    """Calls `cut` before the step number `at` (from 1) of what was begun by `count`."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: int | None = None
        self._at = 0
        self._cut: Callable[[], None] | None = None

    def count(self, at: int = 0, cut: Callable[[], None] | None = None) -> None:
        self.steps, self._at, self._cut = 0, at, cut

    def call_soon(
        self, callback: "Callable[[*Args], object]", *args: *Args, context: Context | None = None
    ) -> asyncio.Handle:
        if self.steps is not None:
            self.steps += 1
            if self.steps == self._at and self._cut is not None:
                super().call_soon(self._cut)
        return super().call_soon(callback, *args, context=context)

    def run_in_executor(self, executor: Any, func: "Callable[[*Args], T]", *args: *Args) -> "asyncio.Future[T]":
        """At once: the SDK asks a thread for the platform, and how many steps that takes is chance."""
        done: asyncio.Future[T] = self.create_future()
        done.set_result(func(*args))
        return done


def stepping(main: Callable[[SteppingLoop], Any]) -> Any:
    """Run `main` in a stepping loop of its own."""
    loop = SteppingLoop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        return runner.run(main(loop))


@frozen
class Ran:
    """How far one call of a tool came."""

    began: bool = False
    returned: bool = False
    read_only: bool = True


@define
class Scene:
    """What goes on at a moment, as the world outside the run sees it."""

    calls: dict[str, Ran] = field(factory=dict[str, Ran])
    hooks: list[str] = field(factory=list[str])  # those that are being asked
    gates: list[str] = field(factory=list[str])  # where the server waits
    asking: bool = False  # someone's approval is awaited


class Work:
    """A run with reads in parallel, writes that wait, hooks, a summary, a back-off and an approval."""

    def __init__(self) -> None:
        self.scene = Scene()
        self.clock = FakeClock()
        self._held_at: list[list[tuple[str, asyncio.Event]]] = []  # by request
        self._blocks = iter([Block("Go on.")])
        self.api = ScriptedAPI([*self._script()])
        self.options: dict[str, Any] = {
            "tools": [self._tool("read", read_only=True), self._tool("write", read_only=False)],
            "hooks": Hooks(
                before_tool=self._before_tool,
                after_tool=self._hook("after_tool"),
                after_response=self._hook("after_response"),
                stop=[self._stop],
            ),
            "compression": Compression(snip_at=None, micro_at=None, collapse_at=None, compact_at=0.5),
            "window": 100_000,
            "clock": self.clock,
            "price": Price(input=1, output=1),
        }

    # --- the script

    def _script(self) -> list[Any]:
        big = {"input_tokens": 60_000, "output_tokens": 10}
        first = reply(
            thinking("Let me see.", pieces=2),
            text("I look at both.", 3),
            tool_use("t1", "read", '{"n": 1}', ['{"n"', ": 1}"]),
            tool_use("t2", "read", {"n": 2}),
            tool_use("t3", "write", {"n": 3}),
            tool_use("t4", "write", {"n": 4}),
            "And then.",
        )
        gates = {"connecting": 0, "mid-thinking": 3, "mid-text": 8, "mid-tool-JSON": 13, "mid-stream": 25}
        return [
            self._held(first, **gates),
            self._held(error(529, "overloaded_error")),
            self._held(reply(tool_use("t5", "read", {"n": 5}), usage=big)),
            self._held(reply(text("A summary.", 2)), summary=3),
            self._held(reply("Done?")),
            self._held(
                reply("Half.", tool_use("t6", "read", {"n": 6}), tool_use("t7", "write", {"n": 7, "ask": True}))
            ),
            self._held(reply("All done."), last=0),
        ]

    def _held(self, answer: Any, **gates: int) -> Any:
        """The answer, held at each of the gates for a few steps."""
        held: list[tuple[str, asyncio.Event]] = []
        for name, after in reversed(gates.items()):
            gate = asyncio.Event()
            answer = stalled(answer, after=after, gate=gate)
            held.append((name, gate))
        self._held_at.append(held[::-1])
        return answer

    async def open_gates(self) -> None:
        """Open each gate once the server has waited at it for a few steps."""
        for number, held in enumerate(self._held_at, 1):
            exchange = await self.api.arrival(number)
            for name, gate in held:
                await exchange.stalled.wait()
                self.scene.gates.append(name)
                await rounds(2)
                self.scene.gates.remove(name)
                exchange.stalled.clear()
                gate.set()

    # --- tools and hooks

    def _tool(self, name: str, *, read_only: bool) -> Tool:
        async def call(given: dict[str, Any], ctx: Any) -> str:
            calls = self.scene.calls
            assert ctx.tool_use_id not in calls, "nothing runs twice"
            calls[ctx.tool_use_id] = Ran(began=True, read_only=read_only)
            await rounds(20 if given["n"] in (1, 6) else 2)  # long enough for what comes next to begin beside it
            ctx.progress("half")
            await rounds(2)
            calls[ctx.tool_use_id] = Ran(began=True, returned=True, read_only=read_only)
            return f"{name} {given['n']}"

        return tool_named(name, read_only=read_only, answer=call)

    async def _before_tool(self, call: ToolCallContext) -> Allow | Ask:
        await self._asked("before_tool")
        self.scene.asking = bool(call.input.get("ask"))
        return Ask() if self.scene.asking else Allow()

    def _hook(self, point: str) -> Callable[[Any], Awaitable[None]]:
        async def hook(about: Any) -> None:
            await self._asked(point)

        return hook

    async def _stop(self, about: StopContext) -> Block | Pass:
        await self._asked("stop")
        return next(self._blocks, Pass())

    async def _asked(self, point: str) -> None:
        self.scene.hooks.append(point)
        try:
            await rounds(2)
        finally:
            self.scene.hooks.remove(point)

    # --- what goes on

    def going_on(self, run: Run) -> set[str]:
        """The names of what goes on now."""
        scene, first = self.scene, self.api.exchanges[:1]
        running = [id_ for id_, call in scene.calls.items() if not call.returned]
        named = {*scene.gates, *(f"hook {point}" for point in scene.hooks)}
        if not first:
            named.add("before the first request")
        if running:
            named.add("a tool runs")
        if len(running) > 1:
            named.add("tools run in parallel")
        if running and first[0].events_sent > 21 and "t3" not in scene.calls:
            named.add("a write waits for its turn")
        if run.state == "recover" and self.clock.slept:
            named.add("back-off")
        if scene.asking and run.state in ("stream", "orchestrate"):
            named.add("an approval is pending")
        return named


def results_of(messages: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """The results in a history, by call."""
    found: dict[str, list[Any]] = {}
    for message in messages:
        for block in blocks_of(message):
            if block["type"] == "tool_use":
                found.setdefault(block["id"], [])
            if block["type"] == "tool_result":
                found[block["tool_use_id"]].append(block)
    return found


def untrue(messages: list[dict[str, Any]], scene: Scene) -> list[str]:
    """What the history says of calls that is not so."""
    wrong: list[str] = []
    for id_, given in results_of(messages).items():
        if len(given) != 1:
            wrong.append(f"{id_} has {len(given)} results")
            continue
        ran = scene.calls.get(id_, Ran())
        said = str(given[0]["content"])
        expected: tuple[str, ...]
        if ran.returned:
            expected = ("read ", "write ", "Found.")
        elif ran.began:
            expected = ("interrupted, no effect" if ran.read_only else "interrupted, effect unknown",)
        else:
            expected = ("not started",)
        if not said.startswith(expected):
            wrong.append(f"{id_} {ran}: {said[:60]}")
    return wrong


def recorded(scene: Scene, name: str, body: Callable[[], Any], *, read_only: bool) -> Tool:
    """A tool that keeps in the scene how far it came."""

    async def call(given: dict[str, Any], ctx: Any) -> str:
        scene.calls[ctx.tool_use_id] = Ran(began=True, read_only=read_only)
        await body()
        scene.calls[ctx.tool_use_id] = Ran(began=True, returned=True, read_only=read_only)
        return "read it"

    return tool_named(name, read_only=read_only, answer=call)


# --- cutting it off


@define
class Cut:
    """One run that was cut off by one way."""

    run: Run
    way: str
    clock: FakeClock
    consumer: "asyncio.Task[Any] | None" = None
    closer: "asyncio.Task[None] | None" = None
    where: set[str] = field(factory=set[str])
    made: bool = False

    def __call__(self) -> None:
        self.made = True
        match self.way:
            case "abort":
                self.run.abort()
            case "aclose":
                self.closer = asyncio.ensure_future(self._close())
            case "cancel":
                assert self.consumer is not None
                self.consumer.cancel()
            case _:
                self.clock.advance(DEADLINE)

    async def _close(self) -> None:
        await self.run.aclose()
        assert at_work() == [], "all tools have ended before control returns"


def at_work() -> list[str]:
    """The tasks of tools and hooks."""
    names = [task.get_name() for task in asyncio.all_tasks()]
    return [name for name in names if name.startswith(("tool ", "call ", "permit ", "hook "))]


async def finished(cut: Cut, api: ScriptedAPI, scene: Scene, *others: "asyncio.Task[Any]") -> None:
    """Wait for the end of a run that was, or was not, cut off; check all that must hold then."""
    consumer, run = cut.consumer, cut.run
    assert consumer is not None
    await asyncio.wait([consumer])
    assert at_work() == [], "all tools have ended before control returns"
    if cut.closer is not None:
        await cut.closer
    for other in others:
        other.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    assert alone()
    assert all(exchange.ended.is_set() for exchange in api.exchanges), "the server sees its connections close"
    if cut.way == "cancel" and cut.made:
        assert consumer.cancelled() or run.result is not None, "a cancellation from outside is raised again"
    if not consumer.cancelled():
        consumer.result()
    if run.result is None:
        assert (api.exchanges, run.messages) == ([], [{"role": "user", "content": "Go."}])
        return
    lines = run.log.lines
    if run.result.subtype == "suspended":
        assert suspended(run.log)
        assert run.result.pending
    else:
        if run.result.terminal != "answered":  # it was over before
            assert run.result.terminal == ENDS[cut.way]
            assert consumer.cancelled() is (cut.way == "cancel")
        check(run, api)
        assert (wrong := untrue(run.messages, scene)) == [], wrong
    await rounds(5)
    assert run.log.lines == lines, "nothing is written after the end"
