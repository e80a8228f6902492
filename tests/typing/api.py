"""The public names as a typed program uses them. Checked by mypy and pyright, never run."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal, assert_type

import anthropic

import looplatch
from looplatch.analysis import Difference, Explanation
from looplatch.audit import Log
from looplatch.blocks import TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock
from looplatch.diagrams import render
from looplatch.export import export
from looplatch.export.live import Spans
from looplatch.hooks import StopContext
from looplatch.messages import Message
from looplatch.playback import Playback, PlaybackDifference
from looplatch.proving.verification import verify
from looplatch.states.reasons import Terminal
from looplatch.states.record import Record
from looplatch.states.verify.findings import Report, Violation
from looplatch.testing import FakeClock


@looplatch.tool
def plain(city: str, unit: Literal["C", "F"] = "C") -> str:
    """A tool without options."""
    return f"{city} {unit}"


@looplatch.tool(read_only=True, timeout_s=5.0)
async def described(path: Annotated[str, "where"], ctx: looplatch.ToolContext) -> looplatch.ToolResult:
    """A tool with options, and the context."""
    ctx.progress("half", 50)
    return looplatch.ToolResult([{"type": "text", "text": ctx.idempotency_key}], is_error=ctx.aborted.is_set())


assert_type(plain, looplatch.Tool)
assert_type(looplatch.audit.read("run.jsonl"), looplatch.Log)
assert_type(looplatch.testing.FakeClock(), FakeClock)
assert_type(described, looplatch.Tool)


async def call(given: dict[str, object], ctx: looplatch.ToolContext) -> object:
    """What a Tool made by hand does."""
    return given


by_hand = looplatch.Tool(
    "by_hand",
    "A tool that only reads some inputs.",
    {"type": "object", "properties": {"force": {"type": "boolean"}}},
    call,
    read_only=lambda given: not given.get("force"),
    idempotent=True,
)


async def judge(about: StopContext) -> looplatch.Pass | looplatch.Block | looplatch.Halt:
    """A stop hook."""
    if about.stop_hook_active:
        return looplatch.Pass()
    return looplatch.Block("Say more.") if len(about.text) < 10 else looplatch.Halt("Enough.")


async def whole_api(client: anthropic.AsyncAnthropic) -> None:
    """A loop with everything, in each way of consuming a run."""
    loop = looplatch.Loop(
        model="claude-sonnet-5",
        tools=[plain, described, by_hand, {"type": "web_search_20250305", "name": "web_search"}],
        client=client,
        system="Be brief.",
        max_tokens=4_000,
        params={"temperature": 0.5},
        limits=looplatch.Limits(max_turns=5, max_cost_usd=1.5),
        hooks=looplatch.Hooks(stop=(judge,), on_transition=lambda record: None),
        log_dir="logs",
        payloads="digest",
        durability="barrier",
    )
    result = await loop.run("Hello")
    assert_type(result, looplatch.ResultMessage)
    assert_type(result.terminal, Terminal | None)
    assert_type(result.result, str | None)
    async with loop.run([*result.messages, {"role": "user", "content": "And?"}], log=Path("run.jsonl")) as run:
        assert_type(run, looplatch.Run)
        async for message in run:
            show(message)
        run.stop()
        run.abort()
    assert_type(run.result, looplatch.ResultMessage | None)
    assert_type(run.log, Log)


def show(message: Message) -> None:
    """Every kind of message, exhaustively."""
    match message:
        case looplatch.SystemMessage():
            assert_type(message.subtype, str)
        case looplatch.AssistantMessage() | looplatch.UserMessage():
            for block in message.content:
                match block:
                    case TextBlock():
                        assert_type(block.text, str)
                    case ThinkingBlock():
                        assert_type(block.signature, str)
                    case ToolUseBlock():
                        assert_type(block.name, str)
                    case ToolResultBlock():
                        assert_type(block.is_error, bool)
                    case dict():
                        print(block["type"])
        case looplatch.StreamEvent():
            print(message.event["type"])
        case looplatch.TransitionMessage():
            assert_type(message.record, Record)
        case looplatch.ToolMessage():
            assert_type(message.tool_use_id, str)
        case looplatch.ResultMessage():
            assert_type(message.num_turns, int)


def read_back() -> None:
    """A log is read, judged and drawn."""
    log = looplatch.read("run.jsonl")
    assert_type(log, looplatch.Log)
    assert_type(log.path, tuple[str, ...])
    report = verify(log)
    assert_type(report, Report)
    assert_type(report.violations, tuple[Violation, ...])
    assert_type(report.status, Literal["sealed", "open", "suspended", "in_doubt"])
    assert_type(render(log), str)
    assert_type(render(log, format="png"), bytes)


async def told(loop: looplatch.Loop) -> None:
    """A log is told, compared, exported, and played through a loop again."""
    explained = looplatch.explain("run.jsonl", turn=1)
    assert_type(explained, Explanation)
    assert_type(explained.turns[0].sentences[0].text, str)
    compared = looplatch.diff("run.jsonl", looplatch.read("other.jsonl"))
    assert_type(compared.same, bool)
    assert_type(compared.difference, Difference | None)
    assert_type(export("run.jsonl", "xes"), Iterator[str])
    outcome = await loop.replay("run.jsonl", tools="run", accept_changes=True)
    assert_type(outcome, Playback)
    assert_type(outcome.difference, PlaybackDifference | None)
    outcome.check()
    looplatch.Loop(model="claude-sonnet-5", mirror=Spans())


def mended() -> None:
    """Errors have one base, and fields."""
    try:
        read_back()
    except looplatch.UsageError as error:
        assert_type(error.mend, str)
    except looplatch.IllegalTransition as error:
        assert_type(error.legal, tuple[str, ...])
    except looplatch.LooplatchError:
        pass
