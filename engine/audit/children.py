"""Where the log of a sub-agent's run lies: beside its parent's, under a name made of that and of the call."""

import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Final

from looplatch.audit.places import SQLITE_SUFFIXES
from looplatch.states.record import digest

_LONGEST: Final = 100  # characters of a call's id that stand in a file's name as they are
_MOST_BYTES: Final = 224  # of a name: file systems take 255, and payloads, segments and torn ends add to it


def child_files(parent: Path, call: str) -> Iterator[Path]:
    """`run.jsonl` has `run.CALL.jsonl`, then `run.CALL~2.jsonl` and so on: what never began leaves a file, too.

    A name that would be too long for a file system has a digest of the parent's and the call's in its place. The log of
    a parent in a database has databases beside it.
    """
    suffix = parent.suffix if parent.suffix.lower() in SQLITE_SUFFIXES else ".jsonl"
    stem = parent.name.removesuffix(suffix)
    own = call if len(call) <= _LONGEST else digest(call.encode())[:32]
    room = _MOST_BYTES - len(os.fsencode(suffix))
    for number in count(1):
        again = "" if number == 1 else f"~{number}"
        name = f"{stem}.{own}{again}"
        if len(os.fsencode(name)) > room:
            short = digest(os.fsencode(f"{stem}/{call}"))[:32]
            name = f"{_cut(stem, room - len(short) - len(again) - 1)}.{short}{again}"
        yield parent.with_name(name + suffix)


def parent_files(child: Path) -> Iterator[Path]:
    """The files beside `child` that may be the log of its parent, by their names; a shortened name tells of none."""
    suffix = child.suffix
    stem = child.name.removesuffix(suffix)
    while (stem := stem.rpartition(".")[0]) and stem.strip("."):
        yield from (path for path in (child.with_name(stem + suffix), child.with_name(stem)) if path.is_file())


def _cut(text: str, most: int) -> str:
    """The beginning of a name, in whole characters: at most so many bytes of a file system."""
    while len(os.fsencode(text)) > most:
        text = text[:-1]
    return text
