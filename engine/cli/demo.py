"""`looplatch demo`: a real run with the embedded model. Real client, tools and log; only the model is a script."""

import argparse
import asyncio
import tempfile
from pathlib import Path
from typing import Final

import looplatch.diagrams
from looplatch.audit import read
from looplatch.cleaning import cleaned
from looplatch.cli.cells import fitted
from looplatch.cli.exits import Exit
from looplatch.cli.live import LiveView
from looplatch.cli.panel import screen_for
from looplatch.cli.screen import Screen, Style
from looplatch.cli.watching import watch
from looplatch.demo.folder_tools import folder_tools
from looplatch.demo.surveyor import Surveyor
from looplatch.loop import Loop
from looplatch.proving.verification import verify
from looplatch.testing.api import ScriptedAPI
from looplatch.testing.loopback import loopback_client

_MODEL: Final = "looplatch-demo"
_PROMPT: Final = "What is in this folder? Survey it, read what was changed last, and report."
_PACE_S: Final = 0.012  # between two events, for who watches


def perform(given: argparse.Namespace) -> Exit:
    """Run the demo, verify its log, and draw it."""
    screen = screen_for()
    log: Path = given.log if given.log is not None else Path(tempfile.mkdtemp(prefix="looplatch-")) / "demo.jsonl"
    code = asyncio.run(survey(given.dir, log, screen))
    report = verify(log)
    screen.line()
    for line in looplatch.diagrams.way(read(log)).splitlines():
        screen.line(fitted(line, screen.width))
    screen.line()
    screen.line(f"log: {log}", Style.STRONG)
    screen.line(f"pictures: looplatch diagram --log {log} -o run.svg [--kind timeline]", Style.FAINT)
    screen.line(f"verified: {cleaned(str(report))}", Style.STRONG if report.ok else Style.BAD)
    return code if report.ok or code is not Exit.GOOD else Exit.FAILED


async def survey(folder: Path, log: Path, screen: Screen) -> Exit:
    """Let the embedded model survey `folder`, over a loopback server and the SDK's client, and show the run."""
    tools = folder_tools(folder)
    api = ScriptedAPI(Surveyor(_PACE_S if screen.terminal else 0.0))
    async with api.serve() as url, loopback_client(url) as client:
        view = LiveView(screen)
        loop = Loop(model=_MODEL, tools=tools, client=client, max_tokens=2_000)
        code = await watch(loop.run(_PROMPT, log=log, include_partial_messages=view.partial), view)
    if code is Exit.GOOD:
        api.check_played()
    return code
