"""The agent toolset: the names and inputs of the API's `agent_toolset_20260401`, over one folder."""

import os
import shutil
from collections.abc import Mapping
from typing import Final

from looplatch.states.errors import UsageError
from looplatch.tools.agent.bash import bash_tool
from looplatch.tools.agent.reading import read_tool
from looplatch.tools.agent.searching import glob_tool, grep_tool
from looplatch.tools.agent.writing import edit_tool, write_tool
from looplatch.tools.files import Folder
from looplatch.tools.shell.environment import environment
from looplatch.tools.tool import Tool

__all__ = ["agent_toolset"]

TIMEOUT_S: Final = 60.0
"""How long a tool on files may take, in seconds."""


def agent_toolset(
    folder: str | os.PathLike[str], *, shell: bool = True, env: Mapping[str, str] | None = None
) -> list[Tool]:
    """The tools `read`, `glob`, `grep` (which only read), `write`, `edit` and `bash` (which are writes).

    The tools on files are confined to `folder`: no path, link or race leads out of it. `bash` only starts there and is
    confined to nothing: leave it out (`shell=False`), let a rule ask for it, or run the process in a sandbox. Each run
    has a shell of its own, which is ended with the run, and with it all that it started. env: its environment; None:
    our own without the API's keys (`ANTHROPIC_…`).
    Raises UsageError where `folder` is no folder, or there is no bash.
    """
    where = Folder(folder)
    tools = [
        read_tool(where, TIMEOUT_S),
        glob_tool(where, TIMEOUT_S),
        grep_tool(where, TIMEOUT_S),
        write_tool(where, TIMEOUT_S),
        edit_tool(where, TIMEOUT_S),
    ]
    if shell:
        bash = shutil.which("bash")
        if bash is None:
            raise UsageError("agent_toolset", "there is no bash on this machine", "Leave it out: shell=False")
        tools.append(bash_tool(where.root, bash, environment(env)))
    return tools
