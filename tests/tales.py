"""Runs that are cut off and taken up again: each made so that the same script serves before and after the cut."""

from collections.abc import Callable, Sequence
from typing import Any

from attrs import frozen

from looplatch import Block, Compression, Hooks, Limits, Pass, Tool, ToolContext
from looplatch.hooks import ResponseContext, StopContext, ToolsContext
from looplatch.testing import Answer, block, error, reply, server_tool_use, text, thinking, tool_use
from tests.playing import ANYTHING, Watch
from tests.stories import STORIES, Story

Ran = list[str]


@frozen(kw_only=True, eq=False)
class Tale:
    """`script` is made anew for each process: a list, of which answers that were had are left out, or a function of
    the request. `options`: of the loop, made anew; what its tools and hooks did goes into the list."""

    name: str
    script: Callable[[], tuple[Any, Watch | None]]
    options: Callable[[Ran], dict[str, Any]]
    known: Sequence[dict[str, Any]] = ()  # blocks that the API has signed

    def rest(self, had: int) -> tuple[Any, Watch | None]:
        """The script without the answers that were had."""
        script, watch = self.script()
        return (script if callable(script) else script[had:]), watch


def noted(name: str, ran: Ran, *, read_only: bool = False, idempotent: bool = False, size: int = 0) -> Tool:
    """A tool that notes the calls that it carries out."""

    async def call(given: dict[str, Any], ctx: ToolContext) -> str:
        ran.append(ctx.tool_use_id)
        return f"{name} did {ctx.tool_use_id} {given}" + "x" * size

    return Tool(name, "", ANYTHING, call, read_only, idempotent=idempotent)


def tools(ran: Ran) -> list[Tool]:
    return [noted("read", ran, read_only=True), noted("write", ran), noted("put", ran, idempotent=True)]


def always(*script: Any) -> Callable[[], tuple[Any, Watch | None]]:
    return lambda: (script, None)


# --- reads and writes, in one answer and in several

WRITES = Tale(
    name="reads and writes",
    script=always(
        reply(
            "First.",
            tool_use("r1", "read", {"n": 1}),
            tool_use("w1", "write", {"n": 1}),
            tool_use("r2", "read", {"n": 2}),
            tool_use("u1", "unknown", {}),
            tool_use("w2", "put", {"n": 2}),
            tool_use("b1", "read", '{"n": '),
        ),
        reply(tool_use("w3", "write", {"n": 3})),
        reply("Done."),
    ),
    options=lambda ran: {"tools": tools(ran)},
)

# --- hooks: one that sees each answer, and two that are asked at the end


def hooked(ran: Ran) -> dict[str, Any]:
    async def see(context: ResponseContext) -> None:
        ran.append(f"see {context.stop_reason} {len(context.content)} {context.usage['output_tokens']}")

    async def content(context: StopContext) -> Pass:
        ran.append(f"content {context.text}")
        return Pass()

    async def demand(context: StopContext) -> Pass | Block:
        ran.append(f"demand {context.text}")
        return Pass() if context.stop_hook_active else Block("Say more.")

    return {"tools": tools(ran), "hooks": Hooks(after_response=see, stop=[content, demand])}


HOOKS = Tale(
    name="hooks",
    script=always(
        reply("One.", tool_use("r1", "read", {})),
        reply("Two.", usage={"output_tokens": 7}),
        reply("Three."),
    ),
    options=hooked,
)

# --- more output is wanted than the model gives

TARGET = Tale(
    name="an output target",
    script=always(
        reply("Some.", usage={"output_tokens": 600}),
        reply("More.", usage={"output_tokens": 30}),
        reply("Enough.", usage={"output_tokens": 900}),
    ),
    options=lambda ran: {"limits": Limits(output_target=1_500)},
)

# --- overload, and another model from then on: thinking goes

FALLBACK = Tale(
    name="a fallback model",
    script=always(
        reply(thinking("Hm.", "sig"), tool_use("r1", "read", {})),
        error(529, "overloaded_error"),
        error(529, "overloaded_error"),
        reply(thinking("So.", "gis"), tool_use("r2", "read", {})),
        error(529, "overloaded_error"),
        reply("Done."),
    ),
    options=lambda ran: {
        "tools": tools(ran),
        "fallback_model": "claude-haiku-4-5",
        "params": {"thinking": {"type": "enabled", "budget_tokens": 2_000}},
    },
    known=[
        {"type": "thinking", "thinking": "Hm.", "signature": "sig"},
        {"type": "thinking", "thinking": "So.", "signature": "gis"},
    ],
)

# --- a pause with a tool of the server's, after which the model is asked to go on

SERVED = Tale(
    name="a server tool that stays open",
    script=always(
        reply("I search.", server_tool_use("s1", "web_search", {"query": "q"}), stop="pause_turn"),
        reply(block({"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}), "Found."),
    ),
    options=lambda ran: {"tools": [{"type": "web_search_20250305", "name": "web_search"}]},
)

# --- a tool of the server's that waits for our results, and to which it does not come back

OWED = Tale(
    name="a server tool that is forgotten",
    script=always(
        reply(server_tool_use("s1", "web_search", {"query": "q"}), tool_use("r1", "read", {})),
        reply(stop="max_tokens"),
        reply(stop="max_tokens"),
        reply("I hold on. ", stop="pause_turn"),
        reply("Done."),
    ),
    options=lambda ran: {"tools": [{"type": "web_search_20250305", "name": "web_search"}, *tools(ran)]},
)

# --- cut answers: a higher limit, a sealed turn, asking to go on

CUT = Tale(
    name="cut answers",
    script=always(
        reply("Part", stop="max_tokens"),
        reply("Part one,", text(" and", closed=False), stop="max_tokens"),
        reply("I read.", tool_use("r1", "read", {}), tool_use("w1", "write", '{"a": '), stop="max_tokens"),
        reply("Done."),
    ),
    options=lambda ran: {"tools": tools(ran)},
)

# --- a history that has to be made shorter, again and again


def _asked_for_summary(request: dict[str, Any]) -> bool:
    return not request.get("tools")


def working(turns: int, calls: int = 1) -> Callable[[dict[str, Any]], Answer]:
    """A model that calls a tool in each turn until it has done so often enough, and writes the summaries."""

    def answer(request: dict[str, Any]) -> Answer:
        if _asked_for_summary(request):
            return reply("In short: much was read.", usage={"input_tokens": 50, "output_tokens": 10})
        said = str(request["messages"])
        turn = next(turn for turn in range(turns + 1) if f"c{turn}_0'" not in said and f"did c{turn}_0" not in said)
        last = max((turn for turn in range(turns) if f"c{turn}_" in said), default=-1)
        turn = max(turn, last + 1)
        if turn >= turns:
            return reply("Done.", usage={"input_tokens": len(said) // 4, "output_tokens": 5})
        used = [tool_use(f"c{turn}_{call}", "read", {"turn": turn}) for call in range(calls)]
        return reply(*used, usage={"input_tokens": len(said) // 4, "output_tokens": 20})

    return answer


def compressing(size: int, window: int, **settings: Any) -> Callable[[Ran], dict[str, Any]]:
    return lambda ran: {
        "tools": [noted("read", ran, read_only=True, size=size)],
        "window": window,
        "max_tokens": 500,
        "compression": Compression(**settings),
    }


CLEARED = Tale(
    name="old results are cleared",
    script=lambda: (working(9), None),
    options=compressing(4_000, 9_000, snip_at=None, stage_at=None, collapse_at=None, keep_results=2),
)

COLLAPSED = Tale(
    name="spans collapse",
    script=lambda: (working(9), None),
    options=compressing(
        4_000, 9_000, snip_at=None, micro_at=None, compact_at=None, stage_at=0.3, collapse_at=0.5, span_exchanges=2
    ),
)

COMPACTED = Tale(
    name="one summary for all",
    script=lambda: (working(6), None),
    options=compressing(4_000, 6_000, snip_at=None, micro_at=None, stage_at=None, collapse_at=None, compact_at=0.6),
)

# --- the API says that the prompt is too long: staged summaries first, then one for all

TOO_LONG = error(400, "invalid_request_error", "prompt is too long: 9500 tokens > 9000 maximum")
SHORT = reply("In short.", usage={"input_tokens": 50, "output_tokens": 10})


def reads(*turns: int) -> list[Answer]:
    return [reply(tool_use(f"c{turn}", "read", {"turn": turn}), usage={"input_tokens": 1_000 * turn}) for turn in turns]


OVERFLOWN = Tale(
    name="the prompt is too long",
    script=always(*reads(1, 2, 3, 4), SHORT, TOO_LONG, TOO_LONG, SHORT, reply("Done.")),
    options=compressing(
        4_000, 9_000, snip_at=None, micro_at=None, compact_at=0.99, stage_at=0.3, collapse_at=0.95, span_exchanges=2
    ),
)

# --- the summary cannot be had at first

SUMMARY_LATE = Tale(
    name="a summary that comes late",
    script=always(*reads(1, 2), TOO_LONG, error(529, "overloaded_error"), SHORT, reply("Done.")),
    options=compressing(4_000, 9_000, snip_at=None, micro_at=None, stage_at=None, collapse_at=None),
)


# --- notes are taken beside the run, and cost something


def noting(ran: Ran) -> dict[str, Any]:
    async def note(context: ToolsContext) -> str:
        return await context.ask("What was done?")

    return {**compressing(10, 100_000)(ran), "hooks": Hooks(after_tools=note)}


NOTED = Tale(name="notes beside the run", script=lambda: (working(4), None), options=noting)


def of_story(story: Story) -> Tale:
    def options(ran: Ran) -> dict[str, Any]:
        return story.options

    return Tale(name=story.name, script=story.script, options=options)


TALES: Sequence[Tale] = (
    WRITES,
    HOOKS,
    TARGET,
    FALLBACK,
    SERVED,
    OWED,
    CUT,
    CLEARED,
    COLLAPSED,
    COMPACTED,
    OVERFLOWN,
    SUMMARY_LATE,
    NOTED,
    *map(of_story, STORIES),
)
