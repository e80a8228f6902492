"""`looplatch view`: a log as a page that shows every record, or a server that follows a log as it is written."""

import argparse
import asyncio
from pathlib import Path
from typing import Final

from looplatch.audit.errors import LogDamaged
from looplatch.audit.log import Log, as_it_is
from looplatch.audit.places import SQLITE_SUFFIXES
from looplatch.audit.segments import first_of
from looplatch.cli.exits import Exit
from looplatch.cli.output import spare, write
from looplatch.cli.screen import Screen, Style
from looplatch.diagrams.viewer import live_page, page
from looplatch.proving.tables import judge_of
from looplatch.proving.verification import verify
from looplatch.serving import Site, serve
from looplatch.states.errors import UsageError
from looplatch.states.table import TABLE
from looplatch.states.transition import Table

_LOGS: Final = (".jsonl", *SQLITE_SUFFIXES)
_OURS: Final = b'<meta name="generator" content="looplatch">'
_HEAD: Final = 4_096  # bytes of a file in which that stands
_PRIVATE: Final = 0o600  # the page holds what the payload store does


def perform(given: argparse.Namespace) -> Exit:
    """Write the page and name it; or serve it until Ctrl-C."""
    log = first_of(given.log)
    if given.serve:
        if given.output is not None:
            raise UsageError("-o", "a page that is served is not written", "Leave out -o or --serve")
        if not log.is_file():
            raise UsageError("log", f"{log} cannot be read (No such file or directory)", "Give the path of a log")
        return asyncio.run(_serve(log, given.port))
    if given.port:
        raise UsageError("--port", "no server was asked for", "Add --serve, or leave out --port")
    held = as_it_is(log)
    output = _output(log, given.output)
    write(output, page(held, table=_table(held), report=verify(held)).encode(), mode=_PRIVATE)
    Screen().line(str(output))
    return Exit.GOOD


def _output(log: Path, named: Path | None) -> Path:
    """The file to write: the one that was named, or one beside the log, which is no stranger's."""
    output = named or (log.with_suffix(".html") if log.suffix.lower() in _LOGS else log.with_name(f"{log.name}.html"))
    if output.exists():
        spare((log,), output)
        if named is None and not _is_ours(output):
            raise UsageError("view", f"{output} is there, and is no page of looplatch", "Name a file with -o")
    return output


def _is_ours(file: Path) -> bool:
    try:
        with file.open("rb") as opened:
            return _OURS in opened.read(_HEAD)
    except OSError:
        return False


def _table(log: Log) -> Table:
    try:
        return judge_of(log)
    except LogDamaged:  # and is shown all the same
        return TABLE


async def _serve(log: Path, port: int) -> Exit:
    site = Site(log, live_page(log.name))
    async with serve(site, port) as address:
        screen = Screen()
        screen.line(address, Style.STRONG)
        screen.line("follows the log; Ctrl-C ends it", Style.FAINT)
        await asyncio.Event().wait()
    return Exit.GOOD
