"""Runs that between them have a log show all that a log can show, to be kept for the looplatches to come."""

import asyncio
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any, Final

from looplatch import Allow, Block, Deny, Hooks, Limits, Pass, Rule, Tool
from looplatch.audit import read, redact
from looplatch.messages import Message, ToolMessage, ToolPhase
from looplatch.run import Run
from looplatch.testing import ScriptedAPI, error, failing, reply, server_tool_use, thinking, tool_use
from tests.nesting import Agents, ask
from tests.playing import echo, played, saying, scripted, transition
from tests.recovering import Model, files, meet, only, reads

DONE: Final = reply("Done.")
TOO_LONG: Final = error(400, "invalid_request_error", "prompt is too long")
SECRET: Final = "sk-ant-api03-" + "A1b2C3d4" * 4
SEARCH: Final = {"type": "web_search_20250305", "name": "web_search"}
READ: Final = echo("read")
WRITE: Final = echo("write", read_only=False)
ASKS: Final = [Rule("ask", "write")]


def _tools(log: Path) -> None:
    """Reads beside each other, a write, thinking, a call of an unknown tool and one whose input is none."""
    script = [
        reply(
            thinking("Both."),
            "Two files.",
            tool_use("t1", "read", {"path": "a"}),
            tool_use("t2", "read", {"path": "b"}),
            tool_use("t3", "write", {"path": "c"}),
        ),
        reply(tool_use("t4", "fly", {}), tool_use("t5", "read", '{"a": 1}}')),
        reply(server_tool_use("srvtoolu_1", "web_search", {"query": "q"}), stop="pause_turn"),
        DONE,
    ]
    asyncio.run(played(script, log=log, tools=[READ, WRITE, SEARCH]))


def _recovered(log: Path) -> None:
    """Waits, a sealed turn, a higher limit, requests to go on, a stop hook that blocks, a target of output."""
    asked = count()

    async def looks(messages: Any) -> Pass | Block:
        return Block("Look again.") if next(asked) == 0 else Pass()

    cut = reply("I read.", tool_use("t1", "read", {}), tool_use("t2", "read", '{"path": "b'), stop="max_tokens")
    broken = failing(reply("Both.", tool_use("t3", "read", {}), "And then"), after=1 + 3 * 2 + 1)
    script = [
        error(529, "overloaded_error", "Overloaded", {"retry-after": "7"}),
        reply("Part", stop="max_tokens"),
        reply("Part one,", stop="max_tokens"),
        cut,
        broken,
        reply("It is done."),
        reply("It is done indeed.", usage={"input_tokens": 100, "output_tokens": 600}),
        reply("And more.", usage={"input_tokens": 100, "output_tokens": 600}),
    ]
    limits = Limits(output_target=1_000, max_turns=20)
    asyncio.run(played(script, log=log, tools=[READ], limits=limits, hooks=Hooks(stop=(looks,))))


def _cleared(log: Path) -> None:
    """What is read again goes out of the older results, and old results are cleared."""
    again = [reply(tool_use(f"again{n}", "read", {"path": "f0"})) for n in range(2)]
    settings = only(snip_at=0.4, micro_at=0.6, keep_results=1)
    model = Model([*reads(2), *again, *reads(4, first=4), DONE])
    meet(model, tools=[files(1_600)], window=4_000, max_tokens=500, compression=settings, log=log)


def _summarised(log: Path) -> None:
    """Spans are summarised and take their places later; in the end one summary takes that of all but the latest."""
    settings = only(stage_at=0.5, collapse_at=0.6, compact_at=0.7)
    model = Model([*reads(7), reply(*(tool_use(f"b{n}", "read", {"path": f"b{n}"}) for n in range(6))), DONE])
    meet(model, tools=[files(1_600)], window=6_000, max_tokens=500, compression=settings, log=log)


def _overflow(log: Path) -> None:
    """The API says that the prompt is too long: staged summaries are applied, then one of all is written."""
    settings = only(stage_at=0.3, collapse_at=1.0, compact_at=1.0)
    model = Model([*reads(6), TOO_LONG, TOO_LONG, reply(tool_use("t9", "read", {})), DONE])
    meet(model, tools=[files(1_600)], window=8_000, max_tokens=500, compression=settings, log=log)


def _hooks(log: Path) -> None:
    """A call with another input, one that a hook denies, one that a rule denies; a note of what they did."""

    async def guard(call: Any) -> Allow | Deny:
        return Deny("Not that.") if "no" in call.input else Allow(updated_input={"path": "elsewhere"})

    async def shown(*told: Any) -> None:
        return None

    async def noted(*told: Any) -> str:
        return "It wrote."

    hooks = Hooks(before_tool=guard, after_tool=shown, after_tools=noted, after_response=shown)
    calls = [tool_use("t1", "write", {"path": "here"}), tool_use("t2", "write", {"no": 1}), tool_use("t3", "read", {})]
    rules = [Rule("deny", "read")]
    asyncio.run(played([reply(*calls), DONE], log=log, tools=[READ, WRITE], hooks=hooks, rules=rules))


def _suspended(log: Path) -> None:
    """Three processes: one asks for two approvals, the next is given one, the last denies the other."""
    calls = [tool_use(f"t{n}", "write", {"n": n}) for n in (1, 2)]
    script = [reply(tool_use("t0", "read", {}), *calls), DONE]
    asyncio.run(_approved(script, log, {"t1": Allow(updated_input={"n": 7})}, {"t2": Deny("Not this one.")}))


def _waiting(log: Path) -> None:
    """A run that still waits for an approval."""
    script = [reply("I write.", tool_use("t0", "read", {}), tool_use("t1", "write", {"n": 1}))]
    asyncio.run(_approved(script, log))


async def _approved(script: list[Any], log: Path, *approvals: dict[str, Allow | Deny]) -> None:
    async with scripted(ScriptedAPI(script), tools=[READ, WRITE], rules=ASKS) as loop:
        await loop.run("Go.", log=log)
        for given in approvals:
            await loop.resume(log, approvals=given)


def _agents(log: Path) -> None:
    """A run with two sub-agents at once, each with a log of its own beside it."""

    async def main() -> None:
        inner = [reply(tool_use("i1", "read", {"path": "a"})), reply("Found."), reply("Nothing.")]
        parent = [reply(ask("t1", "Look there.")), reply(ask("t2", "And here.")), DONE]
        async with Agents(parent, inner, inner_options={"tools": [READ]}) as loop:
            await loop.run("Go.", log=log)

    asyncio.run(main())


def _redacted(log: Path) -> None:
    """A secret that was taken out by itself, and contents that were deleted later on."""
    script = [reply(tool_use("t1", "tell", {"key": SECRET})), reply("It is told.")]
    asyncio.run(played(script, log=log, tools=[saying("tell", f"The key is {SECRET}.")]))
    redact(log, next(one.seq for one in read(log) if one.kind == "message"))


def _digests(log: Path) -> None:
    """A run that keeps no contents."""
    script = [reply(tool_use("t1", "read", {"path": "a"})), DONE]
    asyncio.run(played(script, log=log, tools=[READ], payloads="digest"))


def _refused(log: Path) -> None:
    """A refusal after a call that had begun."""
    details = {"type": "refusal", "category": "cyber"}
    script = [reply(tool_use("t1", "read", {}), "I would", stop="refusal", stop_details=details)]
    asyncio.run(played(script, log=log, tools=[READ]))


def _aborted(log: Path) -> None:
    """A message that was sent while it ran, and an end from outside while a write runs."""

    def watch(message: Message, run: Run) -> None:
        move = transition(message)
        if move is not None and move.event == "ToolsRequested":
            run.send("And mind the gap.")
        if isinstance(message, ToolMessage) and message.phase is ToolPhase.START and message.tool_use_id == "t2":
            run.abort()

    async def hangs(given: dict[str, Any], ctx: Any) -> str:
        await asyncio.Event().wait()
        return "never"

    hang = Tool("hang", "", {"type": "object"}, hangs)
    script = [
        reply(tool_use("t1", "read", {})),
        reply("I wait.", tool_use("t2", "hang", {}), tool_use("t3", "read", {})),
    ]
    asyncio.run(played(script, log=log, tools=[READ, hang], watch=watch))


def _cut(log: Path) -> None:
    """A process that died while a tool ran: its log ends there."""
    whole = log.with_name("whole.jsonl")
    asyncio.run(played([reply(tool_use("t1", "write", {"n": 1})), DONE], log=whole, tools=[READ, WRITE]))
    lines = whole.read_bytes().splitlines(keepends=True)
    begun = next(one.seq for one in read(whole) if one.kind == "effect_begin" and one["class"] == "tool")
    log.write_bytes(b"".join(lines[: begun + 1]))
    whole.with_suffix(".payloads").rename(log.with_suffix(".payloads"))
    whole.unlink()


RUNS: Final[dict[str, Callable[[Path], None]]] = {
    "aborted": _aborted,
    "agents": _agents,
    "cleared": _cleared,
    "cut": _cut,
    "digests": _digests,
    "hooks": _hooks,
    "overflow": _overflow,
    "recovered": _recovered,
    "redacted": _redacted,
    "refused": _refused,
    "summarised": _summarised,
    "suspended": _suspended,
    "tools": _tools,
    "waiting": _waiting,
}
