"""The shell tool: each command in a fresh shell; those that are certain to only read run beside other reads."""

import asyncio
import os
import shutil
from collections.abc import Mapping
from typing import Annotated, Any, Final

from looplatch.states.errors import UsageError
from looplatch.tools.decorator import tool
from looplatch.tools.files import Folder
from looplatch.tools.shell.command import reads_only
from looplatch.tools.shell.environment import environment, quiet_environment
from looplatch.tools.shell.output import Output
from looplatch.tools.shell.process import Process
from looplatch.tools.tool import Tool, ToolResult

__all__ = ["shell_tool"]

DEFAULT_S: Final = 120.0
"""How long a command may take unless it says otherwise, in seconds."""


def shell_tool(folder: str | os.PathLike[str], *, name: str = "shell", env: Mapping[str, str] | None = None) -> Tool:
    """A tool that runs shell commands in `folder`, each in a shell of its own that is ended with all that it started.

    A command that is certain to only read (`reads_only`) is a read, any other a write. Commands are confined to
    nothing. env: their environment; None: our own without the API's keys (`ANTHROPIC_…`).
    Raises UsageError where `folder` is no folder, or there is no bash.
    """
    where = Folder(folder).root
    bash = shutil.which("bash")
    if bash is None:
        raise UsageError(f"tool {name!r}", "there is no bash on this machine", "Leave the tool out")
    words = [bash, "--noprofile", "--norc", "-c"]
    loud = environment(env)
    quiet = quiet_environment(loud, where)

    @tool(name=name, read_only=_reads_only)
    async def shell(
        command: Annotated[str, "The command to run, by bash. It gets no input."],
        timeout_ms: Annotated[int | None, "How long it may take, in milliseconds; by custom two minutes."] = None,
    ) -> object:
        """Run a shell command in the working directory, in a shell of its own: what it starts is ended with it."""
        if "\0" in command:
            return ToolResult("the command holds a null character", is_error=True)
        seconds = timeout_ms / 1000 if timeout_ms and timeout_ms > 0 else DEFAULT_S
        given = quiet if reads_only(command) else loud
        process = await Process.start([*words, command], folder=where, environment=given)
        output, late = Output(), False
        try:
            async with asyncio.timeout(seconds):
                while piece := await process.read():
                    output.add(piece)
        except TimeoutError:
            late = True
        finally:
            await process.close()
        text = output.text().removesuffix("\n")
        if late:
            return ToolResult(f"{text}\n[timed out after {seconds:g} s and was ended]".lstrip("\n"), is_error=True)
        if process.code != 0:
            return ToolResult(f"{text}\n[exit code {process.code}]".lstrip("\n"), is_error=True)
        return text

    return shell


def _reads_only(given: dict[str, Any]) -> bool:
    return reads_only(given["command"])
