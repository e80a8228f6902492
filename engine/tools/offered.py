"""What the caller of a loop offers as tools: ours, the SDK's, and definitions of tools that run elsewhere."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, cast

import attrs

from looplatch.states.brief import brief
from looplatch.states.errors import UsageError
from looplatch.states.given import check_kind
from looplatch.tools.sdk import adapted_function, adapted_toolset, is_function, is_toolset
from looplatch.tools.tool import Tool
from looplatch.tools.toolset import Toolset

__all__ = ["Offered", "offered"]


@attrs.frozen(kw_only=True)
class Offered:
    """`own` are the tools that we run; `definitions` is what the API is told of all, in the order given."""

    own: tuple[Tool | Toolset, ...]
    definitions: tuple[Mapping[str, Any], ...]


def offered(tools: Iterable[object], read_only: Collection[str] = ()) -> Offered:
    """Sort what was given as tools.

    tools: `Tool`s, `Toolset`s, the SDK's function tools and runnable toolsets as they are, and plain dicts, which are
    sent as they are. read_only: the names of tools that only read and do not say so themselves; the others are writes.
    Raises UsageError for what is no tool, for a name that two tools have, and for a name in `read_only` that no tool of
    the caller's has.
    """
    if isinstance(read_only, str):
        raise UsageError(
            "read_only", f"{brief(read_only)} is one text, not a set of names", "Give a set: {'name', ...}"
        )
    check_kind("read_only", read_only, Collection, "Give a set: {'name', ...}")
    if not isinstance(tools, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError("tools", f"{brief(tools)} is no list of tools", "Put it into a list")
    own: list[Tool | Toolset] = []
    definitions: list[Mapping[str, Any]] = []
    names: set[str] = set()
    for given in tools:
        tool = _marked(_adapted(given), read_only)
        definition = dict(tool) if isinstance(tool, Mapping) else dict(_definition(tool))
        name = definition.get("name") if isinstance(tool, Mapping) else tool.name
        if isinstance(name, str):
            if name in names:
                raise UsageError("tools", f"two tools have the name {brief(name)}", "Rename one of them")
            names.add(name)
        if not isinstance(tool, Mapping):
            own.append(tool)
        definitions.append(definition)
    own_names = tuple(tool.name for tool in own if isinstance(tool, Tool))
    unknown = sorted(brief(name) for name in read_only if name not in own_names)
    if unknown:
        named = ", ".join(unknown)
        raise UsageError("read_only", f"no tool of yours has the name {named}", "Name tools that stand in `tools`")
    return Offered(own=tuple(own), definitions=tuple(definitions))


def _adapted(given: object) -> Tool | Toolset | Mapping[str, Any]:
    if isinstance(given, Tool | Toolset):
        return given
    if isinstance(given, Mapping):
        return cast("Mapping[str, Any]", given)
    if is_function(given):
        return adapted_function(given)
    if is_toolset(given):
        return adapted_toolset(given)
    mend = "Give Tool objects, tools of the SDK, or dicts for tools that run elsewhere"
    if callable(given):
        mend = "Make a tool of the function: decorate it with @looplatch.tool"
    raise UsageError("tools", f"{brief(given)} is no tool", mend)


def _marked(tool: Tool | Toolset | Mapping[str, Any], read_only: Collection[str]) -> Tool | Toolset | Mapping[str, Any]:
    if not isinstance(tool, Tool) or tool.name not in read_only:
        return tool
    if callable(tool.read_only):
        raise UsageError(
            "read_only", f"the tool {tool.name!r} says itself which of its calls only read", "Leave its name out"
        )
    return attrs.evolve(tool, read_only=True)


def _definition(tool: Tool | Toolset) -> Mapping[str, Any]:
    return tool.definition() if isinstance(tool, Tool) else tool.definition
