"""The tools of a playback: the caller's, with the recorded results in the place of their code, or with their own."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal

import attrs

from looplatch.agents.agent import Agent
from looplatch.agents.parentage import NOTHING, PARENTAGE
from looplatch.encoding import decode
from looplatch.playback.model import PlaybackOver
from looplatch.resuming.contents import Contents
from looplatch.states.record import Kind, Record
from looplatch.states.vocabulary import EffectClass
from looplatch.tools import Tool, Toolbox, ToolContext, ToolResult
from looplatch.tools.toolset import Toolset

Mode = Literal["recorded", "run"]
"""Whether tools answer with what the log says, or run."""


class PlayedTools:
    """Makes the tools of a playback. begun: the calls whose tools have begun."""

    def __init__(self, records: Sequence[Record], contents: Contents, mode: Mode) -> None:
        self.begun: set[str] = set()
        self._contents = contents
        self._mode = mode
        begins = {r["effect"]: r for r in records if r.kind is Kind.EFFECT_BEGIN and r.effect_class is EffectClass.TOOL}
        self._ends: dict[str, Record] = {
            begins[record["effect"]]["tool_use_id"]: record
            for record in records
            if record.kind is Kind.EFFECT_END and record["effect"] in begins and record.get("result") is not None
        }

    def toolbox(self, own: Toolbox) -> Toolbox:
        """The caller's toolbox, played."""
        return own.mapped(self._played)

    def _played(self, tool: Tool | Toolset) -> Tool | Toolset:
        if isinstance(tool, Toolset):
            return attrs.evolve(tool, act=partial(self._act, tool))
        if self._mode == "run":
            return attrs.evolve(tool, call=partial(self._run, tool))
        return attrs.evolve(tool, call=self._recorded, timeout_s=None, close=None)

    async def _act(self, toolset: Toolset, name: str, given: dict[str, Any], ctx: ToolContext) -> object:
        if self._mode == "recorded":
            return await self._recorded(given, ctx)
        self.begun.add(ctx.tool_use_id)
        return await toolset.act(name, given, ctx)

    async def _run(self, tool: Tool, given: dict[str, Any], ctx: ToolContext) -> object:
        self.begun.add(ctx.tool_use_id)
        parent = PARENTAGE.get()
        if parent is None or not isinstance(tool.call, Agent):
            return await tool.call(given, ctx)
        # Its run is no child of the one that is played: what it spent is on record, and is counted from there. While it
        # runs, that is not taken from what is left for it.
        end, budget = self._ends.get(ctx.tool_use_id), parent.at.budget
        spent: Mapping[str, int] = NOTHING if end is None else end.get("usage") or NOTHING
        budget.follow(ctx.tool_use_id, {name: -value for name, value in spent.items()})
        PARENTAGE.set(attrs.evolve(parent))
        try:
            return await tool.call(given, ctx)
        finally:
            budget.follow(ctx.tool_use_id, None)

    async def _recorded(self, given: dict[str, Any], ctx: ToolContext) -> object:
        """The result that is on record, whole; where it was cut to be sent, it is cut again."""
        self.begun.add(ctx.tool_use_id)
        end = self._ends.get(ctx.tool_use_id)
        if end is None:
            raise PlaybackOver
        block: Any = self._contents.value(end["result"])
        content: Any = block.get("content", "")
        if (full := end.get("full")) is not None:
            text: Any = self._contents.value(full["commitment"])
            content = decode(text) if isinstance(content, list) else text
        return ToolResult(content, is_error=end["is_error"])
