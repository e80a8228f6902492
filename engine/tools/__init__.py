"""looplatch.tools: what the model may call, in which order calls start, and how each one ends.

The tools that are ready to use are loaded when they are first named: they need a shell, the SDK or an extra.
"""

import importlib
from typing import TYPE_CHECKING

from looplatch.tools.calls import Asked, Call, Cause, Content, Denial, Outcome, Problem
from looplatch.tools.context import AbortSignal, ToolContext
from looplatch.tools.decorator import tool
from looplatch.tools.entry import CallBroken, Permit, Start
from looplatch.tools.execution import CallCancelled, Progress, denied, execute, interrupted, not_started
from looplatch.tools.inputs import InputRejected, InputValidator
from looplatch.tools.leash import GRACE_S, Timer, TimerHandle
from looplatch.tools.offered import Offered, offered
from looplatch.tools.order import Access, Line, Place
from looplatch.tools.results import MAX_RESULT_CHARS, Rendered, render
from looplatch.tools.scheduler import MAX_PARALLEL, Scheduler
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
    "MAX_PARALLEL",
    "MAX_RESULT_CHARS",
    "AbortSignal",
    "Access",
    "Asked",
    "Call",
    "CallBroken",
    "CallCancelled",
    "Cause",
    "Close",
    "Content",
    "Denial",
    "InputRejected",
    "InputValidator",
    "Line",
    "Offered",
    "Outcome",
    "Permit",
    "Place",
    "Problem",
    "Progress",
    "ReadOnly",
    "Rendered",
    "Scheduler",
    "Start",
    "Timer",
    "TimerHandle",
    "Tool",
    "ToolCall",
    "ToolContext",
    "ToolResult",
    "Toolbox",
    "Toolset",
    "agent_toolset",
    "denied",
    "execute",
    "interrupted",
    "mcp_server",
    "not_started",
    "offered",
    "reads_only",
    "render",
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
