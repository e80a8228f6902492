"""`looplatch resume`: a run taken up again from its log; calls that wait for approval are asked about."""

import argparse
import asyncio
import sys
from collections.abc import Iterable, Mapping
from typing import Final

from looplatch.audit import read
from looplatch.blocks import ToolUseBlock
from looplatch.cleaning import one_line
from looplatch.cli.agent import agent, connected
from looplatch.cli.asking import REFUSED, Asking
from looplatch.cli.exits import Exit
from looplatch.cli.jsonlines import JsonLines
from looplatch.cli.live import LiveView
from looplatch.cli.panel import screen_for
from looplatch.cli.screen import Screen, Style
from looplatch.cli.watching import View, watch
from looplatch.hooks import Allow, Deny
from looplatch.loop import Loop
from looplatch.recovery.resume.errors import LoopChanged, ToolMissing
from looplatch.resuming.reading import read_resumption
from looplatch.states.errors import UsageError
from looplatch.tools.plain import json_text
from looplatch.workplace import Pauses

_ELSEWHERE: Final = "A run of a program of yours has other tools than this command: resume it there, with loop.resume"


def perform(given: argparse.Namespace) -> Exit:
    """Resume the run of a log and show it."""
    if given.json:
        return asyncio.run(_resume(given, JsonLines(sys.stdout), Screen(sys.stderr)))
    screen = screen_for()
    code = asyncio.run(_resume(given, LiveView(screen), screen))
    screen.line(f"log: {given.log}", Style.FAINT)
    return code


async def _resume(given: argparse.Namespace, view: View, screen: Screen) -> Exit:
    genesis = read(given.log).genesis
    if genesis is None:
        raise UsageError("log", f"{given.log} does not begin with a genesis", "Give the log of a run")
    asking, model = Asking(keeps=True), given.model or str(genesis["model"])
    approvals = _decided(given.approve, given.deny)
    pending = _pending(agent(model, given.dir, asking), given, approvals)
    async with connected(model, given.dir, asking) as loop:
        for call in pending:
            if call.id in approvals or not asking.answerable:
                continue
            if isinstance(said := await asking.decide(call), Allow | Deny):
                approvals[call.id] = said
        if pending and not approvals:
            _tell(screen, pending)
            return Exit.SUSPENDED
        run = loop.resume(
            given.log,
            approvals=approvals,
            accept_changes=given.accept_changes,
            include_partial_messages=view.partial,
        )
        code = await watch(run, view, asking)
        if run.result is not None:
            _tell(screen, run.result.pending)
        return code


def _pending(loop: Loop, given: argparse.Namespace, approvals: Mapping[str, Allow | Deny]) -> tuple[ToolUseBlock, ...]:
    """The calls that wait; writes nothing. Raises UsageError, which names the options, where the run cannot go on."""
    try:
        found = read_resumption(
            loop.plan, given.log, approvals=approvals, accept_changes=given.accept_changes, pauses=Pauses()
        )
    except LoopChanged as error:
        mend = f"Give the --dir and --model that the run had, or go on all the same with --accept-changes. {_ELSEWHERE}"
        raise UsageError(error.what, error.problem, mend) from error
    except ToolMissing as error:
        raise UsageError(error.what, error.problem, f"Give the --dir that the run had. {_ELSEWHERE}") from error
    return found.pending()


def _decided(approve: Iterable[str], deny: Iterable[str]) -> dict[str, Allow | Deny]:
    """What the command itself says. Raises UsageError for a call that is both allowed and denied."""
    decided: dict[str, Allow | Deny] = {call: Allow() for call in approve}
    for one in deny:
        call, _, why = one.partition("=")
        if call in decided:
            raise UsageError("--deny", f"{call} is allowed as well", "Give one of the two")
        decided[call] = Deny(why or REFUSED)
    return decided


def _tell(screen: Screen, pending: Iterable[ToolUseBlock]) -> None:
    for call in pending:
        given = one_line(f"{call.name} {json_text(call.input)}", screen.width // 2)
        screen.line(f"{call.id} waits for approval: {given}", Style.STRONG)
        screen.line(f"  say --approve {call.id}, or --deny {call.id}=WHY", Style.FAINT)
