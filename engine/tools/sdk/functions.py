"""The SDK's function tools (`@beta_tool`, `@beta_async_tool`, the memory tool …) as tools of ours."""

import inspect
from collections.abc import Iterator
from functools import partial
from typing import Any, cast

from looplatch.encoding import decode, encode
from looplatch.states.brief import brief
from looplatch.states.errors import UsageError
from looplatch.tools.context import ToolContext
from looplatch.tools.inputs import InputRejected
from looplatch.tools.sdk.classes import is_one
from looplatch.tools.sdk.resources import Resource
from looplatch.tools.threads import run_in_thread
from looplatch.tools.tool import Tool, ToolCall, ToolResult

__all__ = ["adapted_function", "is_function"]

_SYNC = ("BetaFunctionTool", "BetaBuiltinFunctionTool")
_ASYNC = ("BetaAsyncFunctionTool", "BetaAsyncBuiltinFunctionTool")
# Those of the SDK's agent toolset that only read; they are told by the module that defines them.
_READERS = frozenset({"read", "glob", "grep"})
_AGENT_TOOLSET = "anthropic.lib.tools.agent_toolset"


def is_function(value: object) -> bool:
    """Whether this is a function tool of the SDK."""
    return is_one(value, *_SYNC, *_ASYNC)


def adapted_function(tool: Any) -> Tool:
    """A function tool of the SDK as a tool of ours: a write, unless it is a reader of the SDK's agent toolset.

    It is sent as it describes itself. What it holds open (its `close`, the context manager that it was made of) is
    ended when the last run that has called it ends. Raises UsageError, naming the tool, for what cannot be one.
    """
    try:
        sent = cast("dict[str, Any]", decode(encode(tool.to_dict())))
        name = sent["name"]
    except Exception as error:
        raise UsageError(
            "tools", f"the SDK's tool {brief(tool)} cannot be described: {brief(error)}", "Mend the tool"
        ) from error
    resource = Resource(name, tool)
    return Tool(
        name=name,
        description=str(sent.get("description") or ""),
        input_schema=sent.get("input_schema", {"type": "object"}),
        call=_call_of(tool, name, resource),
        read_only=name in _READERS and getattr(getattr(tool, "func", None), "__module__", None) == _AGENT_TOOLSET,
        close=resource.leave,
        sent=sent,
    )


def _call_of(tool: Any, name: str, resource: Resource) -> ToolCall:
    in_thread = is_one(tool, *_SYNC)

    async def call(given: dict[str, Any], ctx: ToolContext) -> object:
        resource.use(ctx.run_id)
        work = partial(tool.call, given)
        try:
            result = await run_in_thread(work, name=f"tool {name}") if in_thread else work()
            result = await result if inspect.isawaitable(result) else result
        except Exception as error:
            if is_one(error, "ToolError"):
                return ToolResult(_listed(cast("Any", error).content), is_error=True)
            if (problem := _input_problem(error)) is not None:
                raise InputRejected(problem) from error
            raise
        return _listed(result)

    return call


def _listed(content: object) -> object:
    """The SDK takes any iterable of blocks; an iterator is read to its end."""
    return list(cast("Iterator[object]", content)) if isinstance(content, Iterator) else content


def _input_problem(error: Exception) -> str | None:
    """What pydantic says against the input, field by field, where that is why the SDK did not call the function."""
    import pydantic

    cause = error.__cause__
    if not isinstance(error, ValueError) or not isinstance(cause, pydantic.ValidationError):
        return None
    if not str(error).startswith("Invalid arguments for function"):
        return None
    return "\n".join(
        f"{'.'.join(map(str, found['loc'])) or 'input'}: {found['msg']}"
        for found in cause.errors(include_url=False, include_context=False, include_input=False)
    )
