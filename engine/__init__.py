"""looplatch: an agent loop over the Anthropic Messages API as an explicit finite-state machine with a provable log.

Names, and the public modules (`looplatch.audit`, `looplatch.testing` …), are loaded when they are first used, so that
importing looplatch costs next to nothing.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from looplatch import analysis as analysis
    from looplatch import audit as audit
    from looplatch import blocks as blocks
    from looplatch import diagrams as diagrams
    from looplatch import export as export
    from looplatch import hooks as hooks
    from looplatch import messages as messages
    from looplatch import playback as playback
    from looplatch import recovery as recovery
    from looplatch import states as states
    from looplatch import testing as testing
    from looplatch import tools as tools
    from looplatch.analysis import diff, explain
    from looplatch.audit import AuditError, Log, read
    from looplatch.blocks import TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock
    from looplatch.hooks import Allow, Ask, Block, Deny, Halt, Hooks, Pass
    from looplatch.loop import Loop
    from looplatch.messages import (
        AssistantMessage,
        ResultMessage,
        StreamEvent,
        SystemMessage,
        ToolMessage,
        TransitionMessage,
        UserMessage,
    )
    from looplatch.permission.rules import Rule
    from looplatch.pricing import Price
    from looplatch.proving.replaying import replay
    from looplatch.proving.verification import verify
    from looplatch.recovery.compression.settings import Compression
    from looplatch.run import Run
    from looplatch.states.errors import IllegalTransition, LooplatchError, NoGuardPassed, UsageError
    from looplatch.states.limits import Limits
    from looplatch.tools import Tool, ToolContext, ToolResult, tool

    __version__: str

_HOMES = {
    "looplatch.analysis": ("diff", "explain"),
    "looplatch.audit": ("AuditError", "Log", "read"),
    "looplatch.blocks": ("TextBlock", "ThinkingBlock", "ToolResultBlock", "ToolUseBlock"),
    "looplatch.hooks": ("Allow", "Ask", "Block", "Deny", "Halt", "Hooks", "Pass"),
    "looplatch.loop": ("Loop",),
    "looplatch.messages": (
        "AssistantMessage",
        "ResultMessage",
        "StreamEvent",
        "SystemMessage",
        "ToolMessage",
        "TransitionMessage",
        "UserMessage",
    ),
    "looplatch.permission.rules": ("Rule",),
    "looplatch.pricing": ("Price",),
    "looplatch.proving.replaying": ("replay",),
    "looplatch.proving.verification": ("verify",),
    "looplatch.recovery.compression.settings": ("Compression",),
    "looplatch.run": ("Run",),
    "looplatch.states.errors": ("IllegalTransition", "LooplatchError", "NoGuardPassed", "UsageError"),
    "looplatch.states.limits": ("Limits",),
    "looplatch.tools": ("Tool", "ToolContext", "ToolResult", "tool"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
_MODULES = frozenset(
    {
        *("analysis", "audit", "blocks", "diagrams", "export", "hooks", "messages", "playback", "recovery", "states"),
        *("testing", "tools"),
    }
)

__all__ = [
    "Allow",
    "Ask",
    "AssistantMessage",
    "AuditError",
    "Block",
    "Compression",
    "Deny",
    "Halt",
    "Hooks",
    "IllegalTransition",
    "Limits",
    "Log",
    "Loop",
    "LooplatchError",
    "NoGuardPassed",
    "Pass",
    "Price",
    "ResultMessage",
    "Rule",
    "Run",
    "StreamEvent",
    "SystemMessage",
    "TextBlock",
    "ThinkingBlock",
    "Tool",
    "ToolContext",
    "ToolMessage",
    "ToolResult",
    "ToolResultBlock",
    "ToolUseBlock",
    "TransitionMessage",
    "UsageError",
    "UserMessage",
    "diff",
    "explain",
    "read",
    "replay",
    "tool",
    "verify",
]


def __getattr__(name: str) -> object:
    if name == "__version__":
        return importlib.import_module("importlib.metadata").version("looplatch")
    if name in _MODULES:
        return importlib.import_module(f"looplatch.{name}")
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES, *__all__, "__version__"})
