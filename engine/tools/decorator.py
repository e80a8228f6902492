"""`@tool`: a typed function as a tool."""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, cast, overload

from looplatch.states.brief import brief
from looplatch.states.errors import UsageError
from looplatch.tools.context import ToolContext
from looplatch.tools.docstrings import read_docstring
from looplatch.tools.parameters import Parameters
from looplatch.tools.threads import run_in_thread
from looplatch.tools.tool import ReadOnly, Tool, ToolCall

__all__ = ["tool"]


@overload
def tool(function: Callable[..., object], /) -> Tool: ...


@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    read_only: ReadOnly = False,
    timeout_s: float | None = None,
    idempotent: bool = False,
) -> Callable[[Callable[..., object]], Tool]: ...


def tool(
    function: Callable[..., object] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    read_only: ReadOnly = False,
    timeout_s: float | None = None,
    idempotent: bool = False,
) -> Tool | Callable[[Callable[..., object]], Tool]:
    """Make a `Tool` of a typed function: `@tool`, or `@tool(read_only=True, …)`.

    The schema comes from the annotations: plain types, `list`, `dict`, `tuple`, `Literal`, `Enum`, unions, `TypedDict`,
    dataclass, attrs and pydantic classes. Texts come from the docstring (Google, NumPy or Sphinx style) or from
    `Annotated[T, "text"]`. A parameter annotated `ToolContext`, by custom named `ctx`, gets the context and is no part
    of the schema. An async function runs in the event loop; any other in a worker thread, which cannot be killed: on an
    abort or timeout it is abandoned, so a long one should look at `ctx.aborted`.

    `name` and `description` default to the function's; the rest is as in `Tool`. Raises `UsageError`, naming the
    parameter and its type, for what cannot be described.
    """
    # Types that are local to the caller are named by strings under `from __future__ import annotations`.
    frame = inspect.currentframe()
    caller = frame.f_back if frame is not None else None
    namespace: dict[str, Any] = dict(caller.f_locals) if caller is not None else {}
    del frame, caller

    def make(function: Callable[..., object]) -> Tool:
        return _made(
            function,
            namespace,
            name=name,
            description=description,
            read_only=read_only,
            timeout_s=timeout_s,
            idempotent=idempotent,
        )

    return make if function is None else make(function)


def _made(
    function: Callable[..., object],
    namespace: dict[str, Any],
    *,
    name: str | None,
    description: str | None,
    read_only: ReadOnly,
    timeout_s: float | None,
    idempotent: bool,
) -> Tool:
    if not callable(cast("object", function)) or isinstance(function, type):
        raise UsageError("@tool", f"{brief(function)} is no function", "Decorate a function, or pass a bound method")
    name = getattr(function, "__name__", None) if name is None else name
    if name is None:
        raise UsageError("@tool", f"{brief(function)} has no name", "Give one: tool(name=…)(function)")
    what = f"tool {brief(name)}"
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise UsageError(what, "it is a generator", "Return one result; report steps by ctx.progress(…)")
    doc = read_docstring(function.__doc__)
    parameters = Parameters(function, what, doc, namespace)
    return Tool(
        name=name,
        description=doc.summary if description is None else description,
        input_schema=parameters.schema,
        call=_call_of(function, name, parameters),
        read_only=read_only,
        timeout_s=timeout_s,
        idempotent=idempotent,
    )


def _call_of(function: Callable[..., object], name: str, parameters: Parameters) -> ToolCall:
    # An object may have an async `__call__`.
    is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)

    async def call(given: dict[str, Any], ctx: ToolContext) -> object:
        arguments = parameters.arguments(given, ctx)
        bound = partial(function, *arguments.args, **arguments.kwargs)
        result = bound() if is_async else await run_in_thread(bound, name=f"tool {name}")
        return await result if inspect.isawaitable(result) else result

    return call
