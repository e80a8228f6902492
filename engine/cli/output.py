"""The file that a command writes."""

import os
from pathlib import Path

from looplatch.states.errors import UsageError


def write(output: Path, content: bytes, *, mode: int = 0o666) -> None:
    """Write `content` to the file; one that is made anew gets `mode`. Raises UsageError where it cannot be written."""
    try:
        made = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0), mode)
        with open(made, "wb") as file:
            file.write(content)
    except (OSError, ValueError) as error:
        why = (error.strerror if isinstance(error, OSError) else None) or error
        raise UsageError("-o", f"{output} cannot be written ({why})", "Give another path") from error
