"""The tools that look at a folder: glob, grep and read. They change nothing, lead nowhere else, and are bounded."""

import os
from typing import Annotated, Any, Final

from looplatch.tools import Tool, ToolContext, ToolResult, tool
from looplatch.tools.files.folder import Folder, PathRefused
from looplatch.tools.files.patterns import fits
from looplatch.tools.files.texts import MAX_BYTES, read_text

MAX_FILES: Final = 200
"""The most files that one glob lists."""
MAX_MATCHES: Final = 200
"""The most lines that one grep finds."""
MAX_TEXT: Final = 40_000
"""The most characters that one read returns."""

_MAX_LINE: Final = 300
_MAX_SEARCHED: Final = 256 * 1024 * 1024  # bytes of all files that one grep goes through
_TIMEOUT_S: Final = 60.0

Result = dict[str, Any]


def folder_tools(root: str | os.PathLike[str]) -> list[Tool]:
    """The tools for the folder `root`. Raises UsageError where that is no folder, or cannot be read."""
    folder = Folder(root)

    @tool(read_only=True, timeout_s=_TIMEOUT_S)
    def glob(pattern: Annotated[str, "such as *.py, or src/**/*.md; ** stands for any folders"] = "**") -> Result:
        """List the files of the folder whose path fits a pattern, those changed last first."""
        listing = folder.files()
        fitting = [entry for entry in listing.entries if fits(entry.path, pattern)]
        files = [{"path": entry.path, "bytes": entry.size} for entry in fitting[:MAX_FILES]]
        return {"files": files, "not_listed": len(fitting) - len(files), "whole_folder_seen": listing.complete}

    @tool(read_only=True, timeout_s=_TIMEOUT_S)
    def grep(
        ctx: ToolContext,
        text: Annotated[str, "plain text, no pattern; upper and lower case are the same; empty: any line with text"],
        files: Annotated[str, "a pattern of paths, as in glob"] = "**",
        per_file: Annotated[int, "at most so many lines of each file"] = 10,
    ) -> Result:
        """Find the lines that hold a text, in the files of the folder."""
        return _grep(folder, ctx, text.casefold(), files, per_file)

    @tool(read_only=True, timeout_s=_TIMEOUT_S)
    def read(
        path: Annotated[str, "relative to the folder, as glob lists it"],
        from_line: Annotated[int, "the first line that is wanted, counted from 1"] = 1,
    ) -> object:
        """Read a text file. Of a long one the middle is left out: ask for it by its lines."""
        text, _ = read_text(folder.open(path))
        if text is None:
            return ToolResult(f"{path!r} is binary, it has no text", is_error=True)
        return _shown(text, max(from_line, 1))

    return [glob, grep, read]


def _grep(folder: Folder, ctx: ToolContext, wanted: str, files: str, per_file: int) -> Result:
    found: list[Result] = []
    listing = folder.files()
    searched, left = 0, _MAX_SEARCHED
    complete = listing.complete
    for entry in listing.entries:
        if not fits(entry.path, files):
            continue
        if len(found) >= MAX_MATCHES or left <= 0 or ctx.aborted.is_set():
            complete = False
            break
        left -= min(entry.size, MAX_BYTES)
        try:
            text, whole = read_text(folder.open(entry.path))
        except PathRefused:
            continue  # it went away, or nobody may read it
        searched += 1
        complete = complete and whole
        if text is not None:
            lines = _matches(text, wanted, min(per_file, MAX_MATCHES - len(found)))
            found += [{"path": entry.path, "line": number, "text": line} for number, line in lines]
    return {"matches": found, "files_searched": searched, "all_searched": complete}


def _matches(text: str, wanted: str, most: int) -> list[tuple[int, str]]:
    matches: list[tuple[int, str]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if len(matches) >= most:
            break
        if line.strip() and (at := line.casefold().find(wanted)) >= 0:
            start = max(0, at - _MAX_LINE // 3)
            matches.append((number, line[start : start + _MAX_LINE]))
    return matches


def _shown(text: str, from_line: int) -> str:
    if from_line > 1:
        text = "".join(text.splitlines(keepends=True)[from_line - 1 :])
    if len(text) <= MAX_TEXT:
        return text
    head, tail = text[: MAX_TEXT * 3 // 4], text[-(MAX_TEXT // 4) :]
    first = from_line + head.count("\n")
    last = from_line + text.count("\n") - tail.count("\n")
    return f"{head}\n[... lines {first} to {last} are left out; read from line {first} for more ...]\n{tail}"
