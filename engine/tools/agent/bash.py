"""bash: a shell that lives as long as the run, so that folders, variables and jobs stay from call to call."""

import asyncio
import secrets
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final

from looplatch.tools.context import ToolContext
from looplatch.tools.decorator import tool
from looplatch.tools.shell.output import Output
from looplatch.tools.shell.process import Process
from looplatch.tools.tool import Tool, ToolResult

__all__ = ["bash_tool"]

DEFAULT_S: Final = 120.0
"""How long a command may take unless it says otherwise, in seconds."""

_ASIDE: Final = 254  # the number of a file that no command is likely to use
_AFRESH: Final = "The next command starts a fresh shell."


def bash_tool(folder: Path, bash: str, environment: Mapping[str, str]) -> Tool:
    """The tool `bash`. `bash`: the program."""
    shells: dict[str, _Shell] = {}

    @tool
    async def bash_(
        ctx: ToolContext,
        command: Annotated[str | None, "The command to run. Leave it out only to restart."] = None,
        restart: Annotated[bool | None, "Start a fresh shell instead of running a command."] = None,
        timeout_ms: Annotated[
            int | None, "How long the command may take, in milliseconds; by custom two minutes."
        ] = None,
    ) -> object:
        """Run a command in a bash shell that stays open from call to call, in the working directory at first. Commands
        get no input."""
        shell = shells.setdefault(ctx.run_id, _Shell(folder, bash, environment))
        if restart:
            await shell.close()
            return "a fresh shell is there"
        if not command:
            return ToolResult("there is no command", is_error=True)
        return await shell.run(command, timeout_ms / 1000 if timeout_ms and timeout_ms > 0 else DEFAULT_S)

    async def close(run_id: str) -> None:
        if (shell := shells.pop(run_id, None)) is not None:
            await shell.close()

    return Tool(
        name="bash", description=bash_.description, input_schema=bash_.input_schema, call=bash_.call, close=close
    )


class _Shell:
    """The shell of one run; the program is started by the first command."""

    def __init__(self, folder: Path, bash: str, environment: Mapping[str, str]) -> None:
        self._folder = folder
        self._bash = bash
        self._environment = environment
        self._process: Process | None = None
        self._one_at_a_time = asyncio.Lock()

    async def run(self, command: str, seconds: float) -> object:
        """Run a command: what it printed, as an error unless its exit code is 0."""
        if "\0" in command:
            return ToolResult("the command holds a null character", is_error=True)
        async with self._one_at_a_time:
            output = Output()
            try:
                async with asyncio.timeout(seconds):
                    code = await self._carried_out(command, output)
            except TimeoutError:
                await self.close()
                note = f"timed out after {seconds:g} s; it and all that the shell had started was ended. {_AFRESH}"
                return ToolResult(_joined(output.text(), f"[{note}]"), is_error=True)
            except BaseException:
                await self.close()  # what runs on would print into the next command's output
                raise
            if code is None:
                ended = await self._ended()
                note = f"the shell has ended with exit code {ended}. {_AFRESH}"
                return ToolResult(_joined(output.text(), f"[{note}]"), is_error=True)
            text = output.text().removesuffix("\n")
            return text if code == 0 else ToolResult(_joined(text, f"[exit code {code}]"), is_error=True)

    async def close(self) -> None:
        """End the shell and all that it started."""
        process, self._process = self._process, None
        if process is not None:
            await process.close()

    async def _carried_out(self, command: str, output: Output) -> int | None:
        """The exit code of a command; None if the shell ended with it."""
        if self._process is None:
            self._process = await Process.start(
                [self._bash, "--noprofile", "--norc"], folder=self._folder, environment=self._environment, feed=True
            )
            # Kept aside, so that a command that gives its output away for good is still seen to end.
            await self._process.write(f"exec {_ASIDE}>&1\n".encode())
        process = self._process
        # Told in two pieces, so that a shell that shows its commands does not show the mark.
        first, second = secrets.token_hex(8), secrets.token_hex(8)
        mark = f"\n{first}{second} ".encode()
        carried_out = f"eval {shlex.quote(command)} </dev/null >&{_ASIDE} 2>&1"
        script = f"{carried_out}; printf '\\n{first}%s %d\\n' {second} $? >&{_ASIDE}\n"
        try:
            await process.write(script.encode("utf-8", errors="replace"))
        except OSError:
            return None
        pending = b""
        try:
            while piece := await process.read():
                pending += piece
                at = pending.find(mark)
                if at >= 0 and (end := pending.find(b"\n", at + len(mark))) >= 0:
                    code, pending = int(pending[at + len(mark) : end]), pending[:at]
                    return code
                if at < 0:
                    output.add(pending[: -len(mark)])
                    pending = pending[-len(mark) :]
            return None
        finally:
            output.add(pending)

    async def _ended(self) -> int | None:
        process = self._process
        await self.close()
        return None if process is None else process.code


def _joined(text: str, note: str) -> str:
    text = text.rstrip("\n")
    return f"{text}\n{note}" if text else note
