"""looplatch.tools: what the model may call, in which order calls start, and how each one ends."""

from looplatch.tools.calls import Asked, Call, Cause, Content, Denial, Outcome, Problem
from looplatch.tools.context import AbortSignal, ToolContext
from looplatch.tools.decorator import tool
from looplatch.tools.entry import Permit, Start
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

__all__ = [
    "GRACE_S",
    "MAX_PARALLEL",
    "MAX_RESULT_CHARS",
    "AbortSignal",
    "Access",
    "Asked",
    "Call",
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
    "denied",
    "execute",
    "interrupted",
    "not_started",
    "offered",
    "render",
    "tool",
]
