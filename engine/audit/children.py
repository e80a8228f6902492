"""Where the log of a sub-agent's run lies: beside its parent's, under a name made of that and of the call."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Final

from looplatch.audit.places import SQLITE_SUFFIXES
from looplatch.states.record import digest

_LONGEST: Final = 100  # characters of a call's id that stand in a file's name as they are


def child_files(parent: Path, call: str) -> Iterator[Path]:
    """`run.jsonl` has `run.CALL.jsonl`, then `run.CALL~2.jsonl` and so on: what never began leaves a file, too.

    The log of a parent in a database has databases beside it.
    """
    suffix = parent.suffix if parent.suffix.lower() in SQLITE_SUFFIXES else ".jsonl"
    stem = parent.name.removesuffix(suffix)
    own = call if len(call) <= _LONGEST else digest(call.encode())[:32]
    for number in count(1):
        again = "" if number == 1 else f"~{number}"
        yield parent.with_name(f"{stem}.{own}{again}{suffix}")
