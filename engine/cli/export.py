"""`looplatch export`: a log in the formats of others."""

import argparse
from pathlib import Path

from looplatch.cli.exits import Exit
from looplatch.cli.output import spare
from looplatch.cli.screen import Screen
from looplatch.export import export
from looplatch.states.errors import UsageError


def perform(given: argparse.Namespace) -> Exit:
    """Write the log, in pieces, to the file or to standard output."""
    output: Path | None = given.output
    pieces = export(given.log, given.to)
    if output is None:
        screen = Screen()
        for piece in pieces:
            screen.write(piece)
        return Exit.GOOD
    spare((given.log,), output)
    first = next(pieces)  # a log that cannot be read leaves no file
    try:
        with output.open("w", encoding="utf-8", newline="") as file:
            file.write(first)
            file.writelines(pieces)
    except (OSError, ValueError) as error:
        why = (error.strerror if isinstance(error, OSError) else None) or error
        raise UsageError("-o", f"{output} cannot be written ({why})", "Give another path") from error
    return Exit.GOOD
