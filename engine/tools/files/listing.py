"""The files below a folder."""

from collections.abc import Callable, Iterator
from typing import Final

import attrs

from looplatch.tools.files.handles import Place

__all__ = ["MAX_DEPTH", "MAX_ENTRIES", "Entry", "Listing", "listed"]

MAX_ENTRIES: Final = 100_000
"""The most entries of a folder that one look at it goes through."""

MAX_DEPTH: Final = 40


@attrs.frozen(kw_only=True)
class Entry:
    """A file: its path, relative to the root and with `/`, its size in bytes, and when it was last changed."""

    path: str
    size: int
    changed_ns: int


@attrs.frozen(kw_only=True)
class Listing:
    """The files that were found, newest first. `complete` is False where there is more than was looked at."""

    entries: tuple[Entry, ...]
    complete: bool


class _Count:
    """How much may still be looked at."""

    def __init__(self) -> None:
        self.left = MAX_ENTRIES
        self.complete = True


def listed(place: Place, prefix: str, skips: Callable[[str], bool]) -> Listing:
    """The files below `place`, whose own path is `prefix` (empty, or with `/` at its end). Links are left out, and so
    are the folders whose name `skips` takes."""
    count = _Count()
    found = sorted(_walked(place, prefix, skips, count, 0), key=lambda entry: (-entry.changed_ns, entry.path))
    return Listing(entries=tuple(found), complete=count.complete)


def _walked(place: Place, prefix: str, skips: Callable[[str], bool], count: _Count, depth: int) -> Iterator[Entry]:
    folders: list[str] = []
    try:
        for entry in place.listed():
            if count.left == 0:
                count.complete = False
                break
            count.left -= 1
            try:
                if entry.is_dir(follow_symlinks=False):
                    if not skips(entry.name):
                        folders.append(entry.name)
                elif entry.is_file(follow_symlinks=False):
                    status = entry.stat(follow_symlinks=False)
                    yield Entry(path=prefix + entry.name, size=status.st_size, changed_ns=status.st_mtime_ns)
            except OSError:
                continue  # it went away meanwhile, or nobody may look at it
    except OSError:
        return  # the same of the folder
    for name in sorted(folders):
        if depth == MAX_DEPTH or count.left == 0:
            count.complete = False
            return
        try:
            with place.inner(name) as inner:
                yield from _walked(inner, f"{prefix}{name}/", skips, count, depth + 1)
        except OSError:
            continue
