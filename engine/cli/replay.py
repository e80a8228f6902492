"""`looplatch replay`: whether the machine makes the moves that a log says it made."""

import argparse
import json

from looplatch.analysis import explain
from looplatch.audit import read
from looplatch.cleaning import cleaned
from looplatch.cli.exits import Exit
from looplatch.cli.screen import Screen, Style
from looplatch.cli.stepping import Stepper, pressed
from looplatch.proving.replaying import replay, replayed


def perform(given: argparse.Namespace) -> Exit:
    """Print how many moves agree, and the first that does not; or walk the moves one at a time."""
    screen = Screen()
    if given.step:
        return _step(given, screen)
    outcome = replay(given.log)
    if given.json:
        screen.line(json.dumps(outcome.fields()))
    else:
        screen.line(cleaned(str(outcome)), Style.PLAIN if outcome.ok else Style.BAD)
    return Exit.GOOD if outcome.ok else Exit.FAILED


def _step(given: argparse.Namespace, screen: Screen) -> Exit:
    log = read(given.log)
    moves = tuple(replayed(log))
    sentences = [(one.seq, one.text) for turn in explain(log).turns for one in turn.sentences]
    with pressed(screen) as keys:
        Stepper(screen, moves, sentences).walk(keys)
    return Exit.GOOD if all(made.difference is None for made in moves) else Exit.FAILED
