"""read: a file of the folder as text, or as the picture or document that it is."""

import base64
from pathlib import PurePath
from typing import Annotated, Any, Final

from looplatch.tools.decorator import tool
from looplatch.tools.files import Folder, PathRefused, read_lines, read_text
from looplatch.tools.tool import Tool, ToolResult

__all__ = ["read_tool"]

# What the API takes of one block: pictures by their encoded size, documents within a whole request.
_MAX_IMAGE: Final = 5 * 1024 * 1024 // 4 * 3
_MAX_DOCUMENT: Final = 20 * 1024 * 1024

_IMAGES: Final = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
}
_DOCUMENT: Final = ".pdf"


def read_tool(folder: Folder, timeout_s: float) -> Tool:
    """The tool `read`."""

    @tool(read_only=True, timeout_s=timeout_s)
    def read(
        file_path: Annotated[str, "Path of the file to read, relative to the working directory."],
        view_range: Annotated[
            list[int] | None,
            "Optional [start_line, end_line], counted from 1, both inclusive; an end_line of 0 or below means the end "
            "of the file.",
        ] = None,
    ) -> object:
        """Read a file of the working directory: its text, or an image or PDF as it is. Of a long text only the ends are
        shown; ask for the middle by view_range."""
        kind = PurePath(file_path).suffix.lower()
        if kind in _IMAGES:
            return _block(folder, file_path, "image", _IMAGES[kind], _MAX_IMAGE)
        if kind == _DOCUMENT:
            return _block(folder, file_path, "document", "application/pdf", _MAX_DOCUMENT)
        if view_range is None:
            text, complete = read_text(folder.open(file_path))
            more = ""
        elif len(view_range) != 2:
            return ToolResult("view_range must be [start_line, end_line]", is_error=True)
        else:
            first, last = view_range
            text, complete = read_lines(folder.open(file_path), max(first, 1), last if last > 0 else None)
            more = "" if complete else "\n[... these are not all of the lines; ask for fewer at once ...]"
        if text is None:
            return ToolResult(f"{file_path!r} is binary and has no text", is_error=True)
        return text + more

    return read


def _block(folder: Folder, path: str, kind: str, media_type: str, most: int) -> list[dict[str, Any]]:
    with folder.open(path) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise PathRefused(path, f"is longer than the {most:,} bytes that can be shown")
    source = {"type": "base64", "media_type": media_type, "data": base64.b64encode(data).decode()}
    return [{"type": kind, "source": source}]
