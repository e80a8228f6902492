"""`looplatch run`: a run over the API, with tools that read a folder."""

import argparse
import asyncio
import sys

from looplatch.cli.exits import Exit
from looplatch.cli.jsonlines import JsonLines
from looplatch.cli.live import LiveView
from looplatch.cli.screen import Screen, Style
from looplatch.cli.watching import View, watch
from looplatch.demo.folder_tools import folder_tools
from looplatch.loop import Loop
from looplatch.model import default_client
from looplatch.states.errors import UsageError


def perform(given: argparse.Namespace) -> Exit:
    """Run the prompt and show the run."""
    if given.json:
        return asyncio.run(_ask(given, JsonLines(sys.stdout)))
    screen = Screen()
    code = asyncio.run(_ask(given, LiveView(screen)))
    kept = "not kept; --log FILE keeps it" if given.log is None else str(given.log)
    screen.line(f"log: {kept}", Style.FAINT)
    return code


async def _ask(given: argparse.Namespace, view: View) -> Exit:
    tools = [] if given.dir is None else folder_tools(given.dir)
    try:
        client = default_client()
    except UsageError as error:
        mend = "Set ANTHROPIC_API_KEY, or try `looplatch demo`: it needs no key"
        raise UsageError("the API", error.problem, mend) from error
    async with client:
        loop = Loop(model=given.model, tools=tools, client=client)
        run = loop.run(given.prompt, log=given.log, include_partial_messages=view.partial)
        return await watch(run, view)
