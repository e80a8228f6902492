"""The agent of the command line: a model of the API, with tools on a folder; before it writes, someone is asked."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

from looplatch.hooks import Allow, Ask, Deny, Hooks, ToolCallContext
from looplatch.loop import Loop
from looplatch.model import default_client
from looplatch.model.sdk import AsyncClient
from looplatch.states.errors import UsageError
from looplatch.tools.agent.reading import read_tool
from looplatch.tools.agent.searching import glob_tool, grep_tool
from looplatch.tools.agent.toolset import TIMEOUT_S
from looplatch.tools.agent.writing import edit_tool, write_tool
from looplatch.tools.files import Folder


class Asks(Protocol):
    """Who decides on calls."""

    async def before_tool(self, call: ToolCallContext) -> Allow | Deny | Ask:
        """See `Hooks.before_tool`."""
        ...


def agent(model: str, folder: Path | None, asking: Asks, client: AsyncClient | None = None) -> Loop:
    """The loop; it may look at `folder` and, when `asking` allows it, change files there. Raises UsageError."""
    tools: list[Any] = []
    if folder is not None:
        where = Folder(folder)
        tools = [make(where, TIMEOUT_S) for make in (glob_tool, grep_tool, read_tool, write_tool, edit_tool)]
    return Loop(model=model, tools=tools, client=client, hooks=Hooks(before_tool=asking.before_tool))


@asynccontextmanager
async def connected(model: str, folder: Path | None, asking: Asks) -> AsyncGenerator[Loop]:
    """`agent` with a client of the API, as long as it is open. Raises UsageError, also where there is no key."""
    try:
        client = default_client()
    except UsageError as error:
        mend = "Set ANTHROPIC_API_KEY, or try `looplatch demo`: it needs no key"
        raise UsageError("the API", error.problem, mend) from error
    async with client:
        yield agent(model, folder, asking, client)
