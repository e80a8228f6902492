"""A loop as a tool of another loop."""

from typing import Any, Final

from looplatch.agents.agent import Agent
from looplatch.agents.child import answered, answered_within
from looplatch.agents.parentage import PARENTAGE
from looplatch.plan import Plan
from looplatch.tools import Tool, ToolContext

_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"prompt": {"type": "string", "minLength": 1, "description": "The task, with all that is needed."}},
    "required": ["prompt"],
    "additionalProperties": False,
}
_READ_BY_SERVER: Final = ("web_search_", "web_fetch_")  # the API's own tools that only read, by their types
_GRACE_S: Final = 10.0  # for ending the child's tools, and for the end of its log


def agent_tool(plan: Plan, name: str, description: str) -> Tool:
    """The tool whose calls run `plan`. Raises UsageError for what cannot be a tool's name."""

    async def call(given: dict[str, Any], ctx: ToolContext) -> object:
        parent = PARENTAGE.get()
        if parent is None or parent.call.id != ctx.tool_use_id:
            return await answered(plan, given["prompt"])  # called by hand, outside any run
        return await answered_within(plan, given["prompt"], parent)

    return Tool(
        name,
        description,
        _SCHEMA,
        Agent(plan, call),
        read_only=_only_reads(plan),
        idempotent=True,  # its log knows what was done: it goes on from there
        grace_s=_GRACE_S + max((tool.grace_s for tool in plan.toolbox.values()), default=0.0),
    )


def _only_reads(plan: Plan) -> bool:
    """Whether nothing that the loop may call writes; a predicate over the input may say so of some calls only."""
    own = plan.toolbox
    return all(
        own[name].read_only is True
        if (name := str(definition.get("name"))) in own
        else str(definition.get("type")).startswith(_READ_BY_SERVER)
        for definition in plan.parts.tools
    )
