"""The tools of a loop by name, and the calls that the model makes of them."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from looplatch.states.errors import UsageError
from looplatch.tools import texts
from looplatch.tools.calls import Call, Cause, Problem
from looplatch.tools.context import AbortSignal
from looplatch.tools.leash import GRACE_S, Timer, leashed
from looplatch.tools.tool import Close, Tool
from looplatch.tools.toolset import Toolset
from looplatch.undisturbed import undisturbed

__all__ = ["Toolbox"]


class Toolbox(Mapping[str, Tool]):
    """Tools by name, in the order given, and toolsets beside them. Raises `UsageError` when two have one name."""

    def __init__(self, tools: Iterable[Tool | Toolset] = ()) -> None:
        self._given = tuple(tools)
        self._tools: dict[str, Tool] = {}
        self._toolsets: dict[str, Toolset] = {}
        for tool in self._given:
            if tool.name in self._tools or tool.name in self._toolsets:
                raise UsageError(f"tool {tool.name!r}", "two tools have this name", "Rename one of them")
            if isinstance(tool, Tool):
                self._tools[tool.name] = tool
            else:
                self._toolsets[tool.name] = tool

    def __getitem__(self, name: str) -> Tool:
        return self._tools[name]

    def __iter__(self) -> Any:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)

    def reads(self) -> list[str]:
        """The names of the tools of which a call may be one that only reads, in alphabetical order."""
        return sorted(tool.name for tool in self._tools.values() if tool.read_only is not False)

    def mapped(self, change: Callable[[Tool | Toolset], Tool | Toolset]) -> "Toolbox":
        """A toolbox of what `change` makes of each tool and toolset."""
        return Toolbox(map(change, self._given))

    def definitions(self) -> list[dict[str, Any]]:
        """What is sent to the API of each tool, in order."""
        return [tool.definition() if isinstance(tool, Tool) else dict(tool.definition) for tool in self._given]

    def call(
        self,
        *,
        tool_use_id: str,
        name: str,
        given: dict[str, Any] | None,
        index: int,
        raw: str = "",
        error: str | None = None,
        empty: bool = False,
        toolset: str | None = None,
    ) -> Call:
        """Look up and check a tool_use block. Never raises: a call that cannot run has its `problem`.

        `given` is its input, None when it is unusable; then `error` says why and `raw` is what was written. `empty`
        says that nothing was written for it, so that the block may have been cut. `toolset` is its `toolset_name`.
        """
        tool = self._find(name, toolset)
        problem: Problem | None = None
        if tool is None:
            problem = self._unknown(name, toolset)
        elif given is None:
            text = texts.invalid_json_text(error or "the input is no JSON object", raw)
            problem = Problem(cause=Cause.INVALID_INPUT, text=text)
        elif (wrong := tool.problem(given)) is not None:
            problem = Problem(cause=Cause.INVALID_INPUT, text=texts.invalid_input_text(wrong))
        return Call(
            id=tool_use_id,
            name=name,
            input={} if given is None else given,
            index=index,
            tool=tool,
            read_only=tool is not None and problem is None and tool.is_read_only(given or {}),
            problem=problem,
            undecided=empty or given is None,
            toolset=toolset,
        )

    def is_read(self, call: Mapping[str, Any]) -> bool:
        """Whether a tool_use block is a call that only reads, by its tool's own word; a call of no tool is none."""
        tool = self._find(call["name"], call.get("toolset_name"))
        return tool is not None and tool.is_read_only(dict(call["input"]))

    def knows(self, call: Mapping[str, Any]) -> bool:
        """Whether a tool_use block is a call of one of the tools."""
        return self._find(call["name"], call.get("toolset_name")) is not None

    def _find(self, name: str, toolset: str | None) -> Tool | None:
        return self._tools.get(name) if toolset is None else self._action(toolset, name)

    def _action(self, toolset: str, name: str) -> Tool | None:
        known = self._toolsets.get(toolset)
        try:
            return None if known is None else known.action(name)
        except UsageError:
            return None

    def _unknown(self, name: str, toolset: str | None) -> Problem:
        if toolset is not None:
            return Problem(cause=Cause.UNKNOWN_TOOL, text=texts.unknown_action_text(toolset, name, self._toolsets))
        fails = name if name in self._toolsets else None
        text = texts.unknown_tool_text(name, self._tools) if fails is None else texts.no_action_text(name)
        return Problem(cause=Cause.UNKNOWN_TOOL, text=text, fails=fails)

    async def close(
        self, run_id: str, *, grace_s: float = GRACE_S, timer: Timer | None = None
    ) -> tuple[Exception, ...]:
        """End all that the tools hold for a run. Returns what was raised meanwhile; raises none of it.

        Each tool has `grace_s` seconds for it, measured by `timer`. If this is cancelled meanwhile it still does all
        that, and raises `CancelledError` then.
        """
        closing = [(tool.name, tool.close) for tool in self._tools.values() if tool.close is not None]
        if not closing:
            return ()
        work = asyncio.gather(*(_closed(name, close, run_id, grace_s, timer) for name, close in closing))
        return tuple(error for error in await undisturbed(work) if error is not None)


async def _closed(name: str, close: Close, run_id: str, grace_s: float, timer: Timer | None) -> Exception | None:
    ending = await leashed(
        partial(close, run_id),
        abort=AbortSignal(),
        timeout_s=grace_s,
        grace_s=grace_s,
        timer=timer,
        name=f"close {name}",
    )
    if ending.stop is not None:
        return TimeoutError(f"closing the tool {name!r} took longer than {grace_s:g} s")
    match ending.error:
        case None | Exception() as error:
            return error
        case asyncio.CancelledError():
            return RuntimeError(f"closing the tool {name!r} was cancelled from inside")
        case error:
            raise error
