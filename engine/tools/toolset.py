"""A toolset that the API defines: one entry in `tools`, and many actions that the model calls by their own names."""

import re
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

import attrs

from looplatch.states.brief import brief
from looplatch.states.errors import UsageError
from looplatch.states.given import check_function, check_kind
from looplatch.tools.context import ToolContext
from looplatch.tools.tool import Tool

__all__ = ["Act", "Toolset"]

Act = Callable[[str, dict[str, Any], ToolContext], Awaitable[object]]
"""What an action does: from its name, its input and the context to the result."""

_TYPE = re.compile(r"([a-z][a-z0-9_]*)_toolset_\d{8}")


@attrs.frozen(eq=False)
class Toolset:
    """The actions of a browser or a computer, as the API defines them.

    `definition` is what is sent, such as `{"type": "browser_toolset_20260801"}`. `act(name, input, ctx)` is async and
    called for each action of the model with the action's name; it returns what a tool may return. `timeout_s` (default
    None: no bound) is of one action, in seconds.
    The actions of one answer run in the model's order, each alone; after one that failed, or was denied, the later ones
    of the same toolset are answered with an error that says so. Raises UsageError where `definition` is no toolset's.
    """

    definition: Mapping[str, Any]
    act: Act = attrs.field(repr=False)
    timeout_s: float | None = None
    name: str = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        check_kind("toolset", self.definition, Mapping, "Give a dict, such as {'type': 'browser_toolset_20260801'}")
        check_function("toolset, act", self.act, "Give an async function of (name, input, ctx)")
        kind = self.definition.get("type")
        found = _TYPE.fullmatch(kind) if isinstance(kind, str) else None
        if found is None:
            raise UsageError("toolset", f"its type is {brief(kind)}", "Give one such as 'browser_toolset_20260801'")
        object.__setattr__(self, "name", found[1])
        self.action("screenshot")  # what is wrong with the rest is found here, not when the model calls

    def action(self, name: str) -> Tool:
        """An action, as a tool. Raises UsageError for what cannot be a name."""
        return Tool(
            name=name,
            description="",
            input_schema={"type": "object"},
            call=partial(self.act, name),
            timeout_s=self.timeout_s,
        )
