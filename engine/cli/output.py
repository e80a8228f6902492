"""The file that a command writes."""

import os
from collections.abc import Iterable
from pathlib import Path

from looplatch.audit.payloads import payloads_of
from looplatch.audit.segments import first_of, segments_of
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


def spare(logs: Iterable[Path], output: Path) -> None:
    """Raise UsageError where the file to write belongs to a log that is read: all of it would be lost."""
    if not output.exists():
        return
    for path in (path for log in logs for path in segments_of(first_of(log))):
        if any(own.exists() and output.samefile(own) for own in (path, payloads_of(path))):
            raise UsageError("-o", f"{output} belongs to the log itself", "Give another path")
