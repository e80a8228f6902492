"""`looplatch diagram`: the machine as a picture, with runs laid over it."""

import argparse
import sys
from pathlib import Path
from typing import Final

from looplatch.audit import read
from looplatch.cli.exits import Exit
from looplatch.cli.output import spare, write
from looplatch.cli.screen import Screen
from looplatch.diagrams import PICTURES, Format, coverage, diff, render
from looplatch.proving.tables import judge_of
from looplatch.states.errors import UsageError

_SUFFIXES: Final[dict[str, Format]] = {
    ".mmd": "mermaid",
    ".mermaid": "mermaid",
    ".dot": "dot",
    ".gv": "dot",
    ".html": "html",
    ".svg": "svg",
    ".png": "png",
    ".txt": "text",
}


def perform(given: argparse.Namespace) -> Exit:
    """Draw, and write it to the file or to standard output."""
    output: Path | None = given.output
    chosen: Format = given.format or _suffix_of(output) or PICTURES[given.kind][0]
    if chosen == "png" and output is None and sys.stdout.isatty():
        raise UsageError("--format png", "a terminal cannot show it", "Name a file with -o")
    drawn = _drawn(given, chosen)
    if output is not None:
        spare([*([given.log] if given.log else ()), *(given.diff or ()), *(given.coverage or ())], output)
        write(output, drawn if isinstance(drawn, bytes) else drawn.encode())
    elif isinstance(drawn, bytes):
        sys.stdout.buffer.write(drawn)
    else:
        Screen().write(drawn)
    return Exit.GOOD


def _suffix_of(output: Path | None) -> Format | None:
    """The format that the name of the file tells. Raises UsageError for a suffix that tells none."""
    if output is None or not output.suffix:
        return None
    known = _SUFFIXES.get(output.suffix.lower())
    if known is None:
        mend = f"End the name in one of {', '.join(_SUFFIXES)}, or say --format"
        raise UsageError("-o", f"{output}: the suffix {output.suffix!r} tells no format", mend)
    return known


def _drawn(given: argparse.Namespace, chosen: Format) -> str | bytes:
    fold: bool = given.fold
    if given.kind != "machine" and given.log is None:
        raise UsageError("--kind", f"a {given.kind} is of one run", "Name its log with --log")
    if given.diff is not None:
        a, b = given.diff
        return diff(read(a), read(b), names=(str(a), str(b)), format=chosen, fold=fold)
    if given.coverage is not None:
        return coverage((read(file) for file in given.coverage), format=chosen, fold=fold)
    if given.log is None:
        return render(format=chosen, fold=fold)
    log = read(given.log)
    return render(log, table=judge_of(log), kind=given.kind, format=chosen, fold=fold)
