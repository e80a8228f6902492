"""What the command line takes. Each command is listed here with the function that performs it."""

import argparse
import importlib.metadata
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import attrs

from looplatch.cli.exits import Exit
from looplatch.diagrams import FORMATS, PICTURES
from looplatch.export import FORMATS as EXPORTS

DEFAULT_MODEL: Final = "claude-sonnet-5"

Perform = Callable[[argparse.Namespace], Exit]


@attrs.frozen(kw_only=True)
class Commands:
    """What performs each command."""

    run: Perform
    resume: Perform
    demo: Perform
    verify: Perform
    replay: Perform
    redact: Perform
    explain: Perform
    diff: Perform
    export: Perform
    diagram: Perform
    view: Perform
    check: Perform


def parser_for(commands: Commands) -> argparse.ArgumentParser:
    """The parser; the parsed arguments carry what performs the command as `perform`."""
    parser = argparse.ArgumentParser(
        prog="looplatch",
        description="An agent loop as a finite-state machine, with a log that proves what it did.",
        epilog="exit codes: 0 good, 1 a finding or a failed run, 2 usage, 3 suspended, 130 interrupted",
    )
    parser.add_argument("--version", action="version", version=importlib.metadata.version("looplatch"))
    listed = parser.add_subparsers(metavar="COMMAND", required=True)

    def add(name: str, summary: str, perform: Perform) -> argparse.ArgumentParser:
        command = listed.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
        command.set_defaults(perform=perform)
        return command

    run = add("run", "ask a model of the API, with tools on a folder", commands.run)
    run.add_argument("prompt", metavar="PROMPT", help="what the model is to do")
    run.add_argument(
        "--dir", metavar="DIR", type=_path, help="a folder that the model may read, and, once you allow it, change"
    )
    run.add_argument("--log", metavar="FILE", type=_path, help="where the audit log goes; it is not kept without it")
    run.add_argument("--model", metavar="M", default=DEFAULT_MODEL, help="the model (%(default)s)")
    run.add_argument("--json", action="store_true", help="one message a line, as JSON")

    resume = add("resume", "take up a run from its log, and decide on what waits", commands.resume)
    resume.description = (
        "Take up a run of `looplatch run` from its log, after a suspension or the death of its process, and decide on "
        "the calls that wait. A run of a program of yours has that program's tools: resume it there, with loop.resume."
    )
    resume.add_argument("log", metavar="LOG", type=_path, help="the log of the run; it is gone on with in that file")
    resume.add_argument("--approve", metavar="ID", action="append", default=[], help="let this call run")
    resume.add_argument("--deny", metavar="ID[=WHY]", action="append", default=[], help="do not; the model is told why")
    resume.add_argument("--dir", metavar="DIR", type=_path, help="the folder of the run")
    resume.add_argument("--model", metavar="M", help="another model; with --accept-changes")
    resume.add_argument("--accept-changes", action="store_true", help="go on although something has changed")
    resume.add_argument("--json", action="store_true", help="one message a line, as JSON")

    demo = add("demo", "survey a folder with an embedded scripted model; needs no key", commands.demo)
    demo.add_argument("--dir", metavar="DIR", type=_path, default=Path(), help="the folder (the current one)")
    demo.add_argument("--log", metavar="FILE", type=_path, help="where the audit log goes (a new temporary folder)")

    verify = add("verify", "check a log: its chain, its moves, its end", commands.verify)
    verify.add_argument("log", metavar="LOG", type=_path)
    verify.add_argument("--expect", metavar="COUNT:HASH", help="a checkpoint of the run, which the log must still have")
    verify.add_argument(
        "--key",
        metavar="PUBKEY.pem",
        type=_path,
        action="append",
        help="the public key of its signatures; repeatable, for a log resumed with another signer",
    )
    verify.add_argument(
        "--secrets",
        metavar="NAME=REGEX",
        action="append",
        default=[],
        help="a pattern of your own that nothing may match; repeatable; @FILE takes them from a JSON object",
    )
    verify.add_argument("--format", choices=("text", "json", "sarif"), default="text", help="(%(default)s)")

    replay = add("replay", "make the recorded moves again, and compare", commands.replay)
    replay.add_argument("log", metavar="LOG", type=_path)
    shown = replay.add_mutually_exclusive_group()
    shown.add_argument("--step", action="store_true", help="walk the moves one at a time, by keys")
    shown.add_argument("--json", action="store_true", help="print the outcome as JSON")

    explain = add("explain", "tell in plain words what a run did, and why", commands.explain)
    explain.add_argument("log", metavar="LOG", type=_path)
    explain.add_argument("--turn", metavar="N", type=int, help="of this turn alone")
    explain.add_argument("--json", action="store_true", help="print it as JSON")

    diff = add("diff", "show where two runs part, and their counts", commands.diff)
    diff.add_argument("a", metavar="A", type=_path)
    diff.add_argument("b", metavar="B", type=_path)
    diff.add_argument("--json", action="store_true", help="print it as JSON")

    export = add("export", "write a log in a format of others", commands.export)
    export.add_argument("log", metavar="LOG", type=_path)
    export.add_argument("--to", choices=EXPORTS, required=True, help="the format")
    export.add_argument("-o", dest="output", metavar="FILE", type=_path, help="write to FILE, not to standard output")

    redact = add("redact", "delete the contents of a record; the log still verifies", commands.redact)
    redact.add_argument("log", metavar="LOG", type=_path)
    redact.add_argument("--seq", metavar="N", type=int, required=True, help="the record's number")

    diagram = add("diagram", "draw the machine, and a run on it", commands.diagram)
    diagram.add_argument("--kind", choices=PICTURES, default="machine", help="what is drawn (%(default)s)")
    diagram.add_argument("--format", choices=FORMATS, help="by the suffix of the output file, or the kind's usual one")
    what = diagram.add_mutually_exclusive_group()
    what.add_argument("--log", metavar="LOG", type=_path, help="a run, to be drawn over the table")
    what.add_argument("--diff", metavar=("A", "B"), nargs=2, type=_path, help="two runs, in two colours")
    what.add_argument("--coverage", metavar="FILE", nargs="+", type=_path, help="what these runs walked together")
    diagram.add_argument("--fold", action="store_true", help="count the moves that stay instead of listing them")
    diagram.add_argument("-o", dest="output", metavar="FILE", type=_path, help="write to FILE, not to standard output")

    view = add("view", "show a log as a page in the browser", commands.view)
    view.add_argument("log", metavar="LOG", type=_path)
    view.add_argument("-o", dest="output", metavar="FILE", type=_path, help="the page (beside the log, as .html)")
    view.add_argument("--serve", action="store_true", help="follow a log that is being written, until Ctrl-C")
    view.add_argument("--port", metavar="N", type=int, default=0, help="where to serve, on 127.0.0.1 (a free port)")

    check = add("check", "explore all that the table allows, and look for faults", commands.check)
    check.add_argument("--table", metavar="MODULE:NAME", help="a table of yours; that of looplatch without it")
    check.add_argument(
        "--limit", metavar="NAME=NUMBER", action="append", default=[], help="another limit than a small one; repeatable"
    )
    return parser


def _path(given: str) -> Path:
    """A path; an empty one would silently be the current folder."""
    if not given:
        raise argparse.ArgumentTypeError("the path is empty")
    return Path(given)


def complain(problem: object) -> None:
    """Say on standard error what went wrong."""
    print(f"looplatch: {problem}", file=sys.stderr, flush=True)
