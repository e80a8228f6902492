"""`looplatch explain`: a log in plain words."""

import argparse
import json

from looplatch.analysis import explain
from looplatch.cli.exits import Exit
from looplatch.cli.screen import Screen, Style


def perform(given: argparse.Namespace) -> Exit:
    """Print the explanation, as text or as JSON."""
    explanation = explain(given.log, turn=given.turn)
    screen = Screen()
    if given.json:
        screen.line(json.dumps(explanation.fields()))
        return Exit.GOOD
    screen.line(explanation.about, Style.STRONG)
    for turn in explanation.turns:
        for line in str(turn).split("\n"):
            screen.line(line, Style.PLAIN if line.startswith(" ") else Style.STRONG)
    screen.line(explanation.standing, Style.STRONG)
    return Exit.GOOD
