"""glob and grep: which files of the folder there are, and which lines they hold."""

import os
from typing import Annotated, Final

from looplatch.tools.context import ToolContext
from looplatch.tools.decorator import tool
from looplatch.tools.files import (
    MAX_BYTES,
    Entry,
    Folder,
    LinePattern,
    Listing,
    PathRefused,
    fits,
    read_text,
)
from looplatch.tools.tool import Tool

__all__ = ["glob_tool", "grep_tool"]

MAX_FILES: Final = 200
"""The most files that one glob lists."""
MAX_FOUND: Final = 100_000
"""The most characters of lines that one grep returns."""

_MAX_LINE: Final = 2_000
_MAX_SEARCHED: Final = 256 * 1024 * 1024  # bytes of all files that one grep goes through
_NOTHING: Final = "no matches"


def glob_tool(folder: Folder, timeout_s: float) -> Tool:
    """The tool `glob`."""

    @tool(read_only=True, timeout_s=timeout_s)
    def glob(
        pattern: Annotated[str, "Such as **/*.py; ** stands for any folders, and * for any characters of a name."],
        path: Annotated[str | None, "The folder to search under; the working directory when it is left out."] = None,
    ) -> str:
        """List the files of the working directory that fit a pattern, those changed last first."""
        if os.path.isabs(pattern) or ".." in pattern.split("/"):
            raise PathRefused(pattern, "leads out of the folder; give a pattern relative to it, and a folder as path")
        under = path or ""
        listing = folder.files(under)
        start = len("".join(f"{part}/" for part in folder.parts(under)))
        # `./`: a pattern without a folder means the files of that folder itself.
        fitting = [entry.path for entry in listing.entries if fits(entry.path[start:], f"./{pattern}")]
        notes = [f"[... {len(fitting) - MAX_FILES:,} more files ...]"] if len(fitting) > MAX_FILES else []
        if not listing.complete:
            notes.append("[... the folder holds more files than were looked at ...]")
        return "\n".join([*fitting[:MAX_FILES], *notes]) or _NOTHING

    return glob


def grep_tool(folder: Folder, timeout_s: float) -> Tool:
    """The tool `grep`."""

    @tool(read_only=True, timeout_s=timeout_s)
    def grep(
        ctx: ToolContext,
        pattern: Annotated[str, "A regular expression, without look-around and back-references."],
        path: Annotated[str | None, "The file or folder to search; the working directory when it is left out."] = None,
    ) -> str:
        """Search the files of the working directory for lines that a regular expression fits. Each line is returned as
        path:number:text."""
        wanted = LinePattern(pattern)
        if path and not folder.is_folder(path):
            one = Entry(path="/".join(folder.parts(path)), size=0, changed_ns=0)
            folder.open(one.path).close()
            return _found(folder, ctx, wanted, Listing(entries=(one,), complete=True))
        return _found(folder, ctx, wanted, folder.files(path or ""))

    return grep


def _found(folder: Folder, ctx: ToolContext, wanted: LinePattern, listing: Listing) -> str:
    found: list[str] = []
    room, left, complete = MAX_FOUND, _MAX_SEARCHED, listing.complete
    for entry in listing.entries:
        if left <= 0 or ctx.aborted.is_set():
            complete = False
            break
        left -= min(entry.size, MAX_BYTES)
        try:
            text, whole = read_text(folder.open(entry.path))
        except PathRefused:
            continue  # it went away, or nobody may read it
        complete = complete and whole
        for number, line in enumerate((text or "").split("\n"), 1):
            if wanted.found_in(line):
                shown = f"{entry.path}:{number}:{line[:_MAX_LINE]}"
                room -= len(shown) + 1
                if room < 0:
                    return "\n".join([*found, "[... more lines fit; narrow the pattern or the path ...]"])
                found.append(shown)
    if not complete:
        found.append("[... not all was searched; name a folder as path ...]")
    return "\n".join(found) or _NOTHING
