"""`looplatch explain`: a log in plain words."""

import argparse
import json

from looplatch.cli.exits import Exit
from looplatch.cli.screen import Screen, Style
from looplatch.telling import explain


def perform(given: argparse.Namespace) -> Exit:
    """Print the explanation, as text or as JSON."""
    told = explain(given.log, turn=given.turn)
    screen = Screen()
    if given.json:
        screen.line(json.dumps(told.fields()))
        return Exit.GOOD
    screen.line(told.about, Style.STRONG)
    for turn in told.turns:
        for line in str(turn).split("\n"):
            screen.line(line, Style.PLAIN if line.startswith(" ") else Style.STRONG)
    screen.line(told.standing, Style.STRONG)
    return Exit.GOOD
