"""Plays a script through a loop, and checks what must hold of every run, however it went."""

import asyncio
import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import orjson
from attrs import field, frozen

from looplatch import Log, Loop, ResultMessage, Run, Tool, ToolContext, TransitionMessage
from looplatch.messages import Message
from looplatch.opening import checked_messages
from looplatch.states.record import Record
from looplatch.states.table import TABLE
from looplatch.states.transition import Transition
from looplatch.states.verify.log import verify_lines
from looplatch.testing import Answer, FakeClock, ScriptedAPI

MODEL = "claude-sonnet-4-5"
ANYTHING: dict[str, Any] = {"type": "object"}

Watch = Callable[[Message, Run], Awaitable[None] | None]


@frozen(kw_only=True)
class Play:
    """How a run went: its result, or the exception that came out of it, and everything seen of it."""

    run: Run
    api: ScriptedAPI
    clock: FakeClock
    seen: list[Message] = field(repr=False)
    error: BaseException | None

    @property
    def result(self) -> ResultMessage:
        """The result; a run that was begun always has one."""
        assert self.run.result is not None
        return self.run.result

    @property
    def log(self) -> Log:
        return self.run.log

    @property
    def sent(self) -> list[list[dict[str, Any]]]:
        """The messages of each request."""
        return [request.messages for request in self.api.requests]

    @property
    def moves(self) -> list[str]:
        return moves_of(self.log)

    @property
    def last(self) -> dict[str, Any]:
        """The last message of the history."""
        return self.run.messages[-1]


def moves_of(log: Log) -> list[str]:
    """Each move as `Event`, `Event > target`, and behind that its reason (and strategy), or why the run ended."""
    return [_told(record) for record in log.transitions]


def _told(move: Record) -> str:
    told = str(move.event)
    if move.target != move.source:
        told += f" > {move.target}"
    if move.reason is not None:
        told += f": {move.reason}"
    if move.strategy is not None:
        told += f" ({move.strategy})"
    if move.terminal is not None:
        told += f": {move.terminal}"
    return told


def rows_of(log: Log) -> set[tuple[str, str]]:
    """The rows that a run walked, each as the state it left and the row's name."""
    return {(str(move.source), _row(move).name) for move in log.transitions}


def _row(move: Record) -> Transition:
    held = [name for name, verdict in move["guards"] if verdict]
    [row] = [
        row
        for row in TABLE
        if move.source in row.sources and row.event.__name__ == move.event and [row.guard.name] == held
    ]
    return row


@asynccontextmanager
async def scripted(api: ScriptedAPI, **options: Any) -> AsyncGenerator[Loop]:
    """A loop that is wired to `api` in process, with a clock of its own time."""
    async with api.client() as client:
        given: dict[str, Any] = {"model": MODEL, "client": client, "clock": FakeClock(), "jitter": lambda: 0.0}
        yield Loop(**(given | options))


async def played(
    script: Sequence[Any] | Callable[[dict[str, Any]], Answer],
    *,
    prompt: str | Iterable[Mapping[str, Any]] = "Go.",
    watch: Watch | None = None,
    clock: FakeClock | None = None,
    log: Any = None,
    deadline_s: float | None = None,
    partial: bool = False,
    known: Iterable[Mapping[str, Any]] = (),
    **options: Any,
) -> Play:
    """Run `prompt` against `script`, in process; `watch` is called with each message. Checks what the run left."""
    api = ScriptedAPI(script, known=known)
    clock = clock or FakeClock()
    seen: list[Message] = []
    error: BaseException | None = None
    async with scripted(api, clock=clock, **options) as loop:
        run = loop.run(prompt, log=log, include_partial_messages=partial, deadline_s=deadline_s)
        try:
            async with run:
                async for message in run:
                    seen.append(message)
                    if watch is not None and (waiting := watch(message, run)) is not None:
                        await waiting
        except (Exception, KeyboardInterrupt, SystemExit) as raised:
            error = raised
        check(run, api)
    return Play(run=run, api=api, clock=clock, seen=seen, error=error)


def play(script: Sequence[Any] | Callable[[dict[str, Any]], Answer], **options: Any) -> Play:
    """`played`, in an event loop of its own."""
    return asyncio.run(played(script, **options))


def check(run: Run, api: ScriptedAPI) -> None:
    """What holds of every run: no refusal, one seal, a log that verifies, a history that can go on."""
    assert api.refusals == []
    assert run.result is not None
    check_log(run)
    assert run.messages == run.result.messages
    genesis = run.log.genesis
    redacted = any("redacted" in record.data for record in run.log)
    if genesis is not None and genesis["payloads"] == "keep" and not redacted:
        assert run.log.messages == run.messages
    check_history(api, run.messages)


def check_log(run: Run) -> None:
    report = verify_lines(run.log.lines, payloads=run.log.payloads.find)
    assert report.ok, str(report)
    assert report.status == "sealed"


def check_history(api: ScriptedAPI, messages: list[dict[str, Any]]) -> None:
    """The API takes `messages` with what a user says after them, and alone where they ask for an answer."""
    offered = [checked_messages([*messages, {"role": "user", "content": "And then?"}])]
    if messages[-1]["role"] == "user":
        offered.append(messages)
    for talk in offered:
        headers = {"x-api-key": "k", "anthropic-version": "2023-06-01"}
        content = orjson.dumps({"model": MODEL, "messages": talk})
        exchange = api.handle("POST", "/v1/messages/count_tokens", headers, content)
        assert exchange.wire.status == 200, exchange.wire.steps


def alone() -> bool:
    """Whether no task is left but the current one."""
    return asyncio.all_tasks() == {asyncio.current_task()}


async def rounds(count: int = 50) -> None:
    """Let everything that is ready go on, for so many rounds of the event loop."""
    for _ in range(count):
        await asyncio.sleep(0)


def tool_named(name: str, *, read_only: bool = True, answer: Callable[[dict[str, Any], ToolContext], Any]) -> Tool:
    """A tool that takes anything; `answer` may be a coroutine function."""

    async def call(given: dict[str, Any], ctx: ToolContext) -> Any:
        answered: Any = answer(given, ctx)
        return await answered if inspect.isawaitable(answered) else answered

    return Tool(name, "", ANYTHING, call, read_only)


def saying(name: str, said: Any, *, read_only: bool = True) -> Tool:
    """A tool that always gives the same."""

    def answer(given: dict[str, Any], ctx: ToolContext) -> Any:
        return said

    return tool_named(name, read_only=read_only, answer=answer)


class Hanging:
    """A tool that says when it began, never ends by itself, and says when it was ended."""

    def __init__(self, name: str = "hang", *, read_only: bool = True) -> None:
        self.began = asyncio.Event()
        self.ended = asyncio.Event()
        self.tool = tool_named(name, read_only=read_only, answer=self._call)

    async def _call(self, given: dict[str, Any], ctx: ToolContext) -> str:
        self.began.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.ended.set()
        return "never"


def running(run: Run) -> "asyncio.Task[list[Message]]":
    """A task that consumes the run to its end."""

    async def consume() -> list[Message]:
        return [message async for message in run]

    return asyncio.create_task(consume())


def echo(name: str = "read", *, read_only: bool = True) -> Tool:
    """A tool that answers with its name and input."""
    return tool_named(name, read_only=read_only, answer=lambda given, ctx: f"{name} {orjson.dumps(given).decode()}")


def user(*content: Any) -> dict[str, Any]:
    """A message of the user's: one text alone stays a string, blocks and further texts are blocks."""
    if len(content) == 1 and isinstance(content[0], str):
        return {"role": "user", "content": content[0]}
    return {"role": "user", "content": [said(item) for item in content]}


def assistant(*content: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": [said(item) for item in content]}


def said(item: Any) -> dict[str, Any]:
    return {"type": "text", "text": item} if isinstance(item, str) else item


def use(id_: str, name: str, **given: Any) -> dict[str, Any]:
    """A tool_use block as it stands in the history."""
    return {"type": "tool_use", "id": id_, "name": name, "input": given}


def result(id_: str, content: Any, *, is_error: bool = False) -> dict[str, Any]:
    """A tool_result block."""
    block = {"type": "tool_result", "tool_use_id": id_, "content": content}
    return {**block, "is_error": True} if is_error else block


def transition(message: Message) -> Record | None:
    """The record of a move, where `message` tells of one."""
    return message.record if isinstance(message, TransitionMessage) else None
