"""looplatch.tools: what the model may call, in which order calls start, and how each one ends.

The tools that are ready to use are loaded when they are first named: they need a shell, the SDK or an extra.
"""

import importlib
from typing import TYPE_CHECKING

from looplatch.tools.calls import Call, Cause, Outcome
from looplatch.tools.context import AbortSignal, ToolContext
from looplatch.tools.decorator import tool
from looplatch.tools.inputs import InputRejected
from looplatch.tools.leash import GRACE_S, Timer, TimerHandle
from looplatch.tools.results import MAX_RESULT_CHARS
from looplatch.tools.tool import Close, ReadOnly, Tool, ToolCall, ToolResult
from looplatch.tools.toolbox import Toolbox
from looplatch.tools.toolset import Toolset

if TYPE_CHECKING:
    from looplatch.tools.agent import agent_toolset
    from looplatch.tools.servers import mcp_server
    from looplatch.tools.shell import reads_only, shell_tool
    from looplatch.tools.web import web_fetch

_HOME_OF = {
    "agent_toolset": "looplatch.tools.agent",
    "mcp_server": "looplatch.tools.servers",
    "reads_only": "looplatch.tools.shell",
    "shell_tool": "looplatch.tools.shell",
    "web_fetch": "looplatch.tools.web",
}

__all__ = [
    "GRACE_S",
    "MAX_RESULT_CHARS",
    "AbortSignal",
    "Call",
    "Cause",
    "Close",
    "InputRejected",
    "Outcome",
    "ReadOnly",
    "Timer",
    "TimerHandle",
    "Tool",
    "ToolCall",
    "ToolContext",
    "ToolResult",
    "Toolbox",
    "Toolset",
    "agent_toolset",
    "mcp_server",
    "reads_only",
    "shell_tool",
    "tool",
    "web_fetch",
]


def __getattr__(name: str) -> object:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
