"""`looplatch run`: a run over the API, with tools on a folder."""

import argparse
import asyncio
import shlex
import sys

from looplatch.cli.agent import connected
from looplatch.cli.asking import Asking
from looplatch.cli.exits import Exit
from looplatch.cli.jsonlines import JsonLines
from looplatch.cli.live import LiveView
from looplatch.cli.panel import screen_for
from looplatch.cli.screen import Style
from looplatch.cli.watching import View, watch


def perform(given: argparse.Namespace) -> Exit:
    """Run the prompt and show the run."""
    if given.json:
        return asyncio.run(_run(given, JsonLines(sys.stdout)))
    screen = screen_for()
    code = asyncio.run(_run(given, LiveView(screen)))
    kept = "not kept; --log FILE keeps it" if given.log is None else str(given.log)
    screen.line(f"log: {kept}", Style.FAINT)
    if code is Exit.SUSPENDED:
        screen.line(f"go on with: {_resuming(given)}", Style.STRONG)
    return code


def _resuming(given: argparse.Namespace) -> str:
    """The command that takes the run up, as it can be given to a shell; the model is that of the log."""
    folder = () if given.dir is None else ("--dir", str(given.dir))
    return shlex.join(("looplatch", "resume", str(given.log), *folder))


async def _run(given: argparse.Namespace, view: View) -> Exit:
    asking = Asking(keeps=given.log is not None)
    async with connected(given.model, given.dir, asking) as loop:
        run = loop.run(given.prompt, log=given.log, include_partial_messages=view.partial)
        return await watch(run, view, asking)
