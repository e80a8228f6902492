"""What a tool calls that is a loop: it can be told from other tools, and its plan can be seen."""

from typing import Any

import attrs

from looplatch.plan import Plan
from looplatch.tools import ToolCall, ToolContext


@attrs.frozen(eq=False)
class Agent:
    """The call of a tool that runs `plan`, carried out by `answer`."""

    plan: Plan
    answer: ToolCall

    async def __call__(self, given: dict[str, Any], ctx: ToolContext) -> object:
        """Answer one call."""
        return await self.answer(given, ctx)
