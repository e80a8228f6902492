"""`looplatch redact`: delete the contents of a record."""

import argparse

from looplatch.audit import redact
from looplatch.cli.exits import Exit
from looplatch.cli.screen import Screen
from looplatch.states.counted import counted


def perform(given: argparse.Namespace) -> Exit:
    """Delete them, and say which."""
    done = redact(given.log, given.seq)
    screen = Screen()
    for commitment, stone in zip(done.commitments, done.tombstones, strict=True):
        screen.line(f"deleted {commitment} of record {done.seq}; record {stone.seq} is its tombstone")
    if done.also:
        others = ", ".join(map(str, done.also))
        screen.line(f"{counted(len(done.also), 'other record')} had the same contents: {others}")
    return Exit.GOOD
