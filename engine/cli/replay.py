"""`looplatch replay`: whether the machine makes the moves that a log says it made."""

import argparse

from looplatch.cli.cleaning import cleaned
from looplatch.cli.exits import Exit
from looplatch.cli.screen import Screen, Style
from looplatch.replaying import replay


def perform(given: argparse.Namespace) -> Exit:
    """Print how many moves agree, and the first that does not."""
    outcome = replay(given.log)
    Screen().line(cleaned(str(outcome)), Style.PLAIN if outcome.ok else Style.BAD)
    return Exit.GOOD if outcome.ok else Exit.FAILED
