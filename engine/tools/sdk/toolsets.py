"""The SDK's runnable toolsets (a browser, a computer) as toolsets of ours."""

import inspect
from functools import partial
from typing import Any, cast

from looplatch.encoding import decode, encode
from looplatch.states.brief import brief
from looplatch.states.errors import UsageError
from looplatch.tools.context import ToolContext
from looplatch.tools.sdk.classes import is_one
from looplatch.tools.threads import run_in_thread
from looplatch.tools.tool import ToolResult
from looplatch.tools.toolset import Toolset

__all__ = ["adapted_toolset", "is_toolset"]

_SYNC = "BetaRunnableToolset"
_ASYNC = "BetaAsyncRunnableToolset"


def is_toolset(value: object) -> bool:
    """Whether this is a runnable toolset of the SDK."""
    return is_one(value, _SYNC, _ASYNC)


def adapted_toolset(toolset: Any) -> Toolset:
    """A runnable toolset of the SDK as one of ours. Like the SDK's own runner, a run never closes it.

    A synchronous one runs in worker threads, so its driver must be bound to none. Raises UsageError for what cannot be
    one.
    """
    try:
        definition = cast("dict[str, Any]", decode(encode(toolset.to_dict())))
    except Exception as error:
        raise UsageError(
            "tools", f"the toolset {brief(toolset)} cannot be described: {brief(error)}", "Mend it"
        ) from error
    family = toolset.toolset_name
    in_thread = is_one(toolset, _SYNC)

    async def act(name: str, given: dict[str, Any], ctx: ToolContext) -> object:
        from anthropic.types.beta import BetaToolUseBlock

        block = BetaToolUseBlock(id=ctx.tool_use_id, name=name, input=given, type="tool_use", toolset_name=family)
        work = partial(toolset.tool_result, block)
        answer = await run_in_thread(work, name=f"{family} {name}") if in_thread else work()
        answer = await answer if inspect.isawaitable(answer) else answer
        return ToolResult(answer.get("content", ""), is_error=answer.get("is_error") is True)

    made = Toolset(definition, act)
    if made.name != family:
        raise UsageError("tools", f"the toolset {family!r} is sent as {made.name!r}", "Let the two agree")
    return made
