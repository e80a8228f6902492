"""`looplatch verify`: whether a log is whole and legal."""

import argparse
import json

from looplatch.cleaning import cleaned
from looplatch.cli.exits import Exit
from looplatch.cli.reporting import as_json, as_sarif
from looplatch.cli.screen import Screen, Style
from looplatch.verification import verify


def perform(given: argparse.Namespace) -> Exit:
    """Print the report; a broken invariant is a finding."""
    report = verify(given.log, expect=given.expect, key=given.key)
    screen = Screen()
    match given.format:
        case "json":
            screen.line(json.dumps(as_json(report)))
        case "sarif":
            screen.line(json.dumps(as_sarif(report, given.log), indent=2))
        case _:
            for line in cleaned(str(report)).split("\n"):
                screen.line(line, Style.PLAIN if report.ok else Style.BAD)
    return Exit.GOOD if report.ok else Exit.FAILED
