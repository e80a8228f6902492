"""`looplatch diff`: where two runs part, and in what they differ."""

import argparse
import json

from looplatch.analysis import diff
from looplatch.cli.exits import Exit
from looplatch.cli.screen import Screen, Style


def perform(given: argparse.Namespace) -> Exit:
    """Print the comparison; runs that differ are a finding."""
    found = diff(given.a, given.b)
    screen = Screen()
    if given.json:
        screen.line(json.dumps(found.fields()))
    else:
        for line in str(found).split("\n"):
            screen.line(line, Style.PLAIN if found.same else Style.BAD)
    return Exit.GOOD if found.same else Exit.FAILED
