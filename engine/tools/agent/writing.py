"""write and edit: files of the folder made and changed."""

import os
from typing import Annotated, Final

from looplatch.tools.decorator import tool
from looplatch.tools.files import MAX_BYTES, Folder, PathRefused
from looplatch.tools.files.folder import State
from looplatch.tools.tool import Tool, ToolResult

__all__ = ["edit_tool", "write_tool"]

_WHERE: Final = "relative to the working directory."


def write_tool(folder: Folder, timeout_s: float) -> Tool:
    """The tool `write`."""

    @tool(timeout_s=timeout_s)
    def write(
        file_path: Annotated[str, f"Path of the file to write, {_WHERE}"],
        content: Annotated[str, "The whole content of the file."],
    ) -> str:
        """Write a file in the working directory, in the place of what is there. Folders on the way to it are made."""
        data = content.encode("utf-8", errors="replace")
        folder.write(file_path, data)
        return f"wrote {len(data):,} bytes to {file_path}"

    return write


def edit_tool(folder: Folder, timeout_s: float) -> Tool:
    """The tool `edit`."""

    @tool(timeout_s=timeout_s)
    def edit(
        file_path: Annotated[str, f"Path of the file to edit, {_WHERE}"],
        old_string: Annotated[str, "The text to replace, exactly as it stands in the file."],
        new_string: Annotated[str, "The text to put in its place."],
        replace_all: Annotated[
            bool | None, "Replace every occurrence; without it the text must stand in the file exactly once."
        ] = None,
    ) -> object:
        """Replace a text in a file of the working directory."""
        text, state = _read(folder, file_path)
        count = text.count(old_string) if old_string else 0
        if count == 0:
            problem = "old_string is empty" if not old_string else f"old_string does not stand in {file_path}"
            return ToolResult(f"{problem}; nothing was changed. Read the file again", is_error=True)
        if count > 1 and not replace_all:
            return ToolResult(
                f"old_string stands in {file_path} {count} times; nothing was changed. Give more of the text around "
                "it, or set replace_all",
                is_error=True,
            )
        edited = text.replace(old_string, new_string).encode("utf-8", errors="replace")
        folder.write(file_path, edited, unless_changed=state)
        return f"edited {file_path}: {count} replaced"

    return edit


def _read(folder: Folder, path: str) -> tuple[str, State]:
    """The whole text of a file, to the byte, and what it is the text of."""
    with folder.open(path) as file:
        state = State.of(os.fstat(file.fileno()))
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise PathRefused(path, f"is longer than the {MAX_BYTES:,} bytes that can be edited")
    try:
        return data.decode("utf-8"), state
    except UnicodeDecodeError as error:
        raise PathRefused(path, f"is no UTF-8 text ({error.reason} at byte {error.start:,})") from error
