"""The testing kit: a scripted Messages API, a fake clock and strategies, for tests of loops without a model.

The API speaks real server-sent events to the real SDK client, in process or over a loopback server, and refuses what
the Messages API refuses. Each name is loaded when first used, so importing this package loads neither Hypothesis nor
pytest nor the SDK.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from looplatch.testing.answers import (
        Answer,
        cut,
        disconnected,
        error,
        event_count,
        failing,
        raw,
        recorded,
        reply,
        stalled,
    )
    from looplatch.testing.api import ScriptedAPI
    from looplatch.testing.background import serve_in_process, serve_in_thread
    from looplatch.testing.blocks import Block, block, redacted_thinking, server_tool_use, text, thinking, tool_use
    from looplatch.testing.checks import assert_matches, assert_valid, check_log
    from looplatch.testing.clock import FakeClock
    from looplatch.testing.conformance import AuditLogConformance
    from looplatch.testing.drawn_histories import histories
    from looplatch.testing.errors import ScriptError
    from looplatch.testing.eventloop import DeterministicLoop, run
    from looplatch.testing.exchange import Exchange, ReceivedRequest
    from looplatch.testing.playbook import read_playbook
    from looplatch.testing.recorder import Recorder
    from looplatch.testing.rules import refusal
    from looplatch.testing.strategies import scripts
    from looplatch.testing.walks import TableWalk, contexts, events, events_of

__all__ = [
    "Answer",
    "AuditLogConformance",
    "Block",
    "DeterministicLoop",
    "Exchange",
    "FakeClock",
    "ReceivedRequest",
    "Recorder",
    "ScriptError",
    "ScriptedAPI",
    "TableWalk",
    "assert_matches",
    "assert_valid",
    "block",
    "check_log",
    "contexts",
    "cut",
    "disconnected",
    "error",
    "event_count",
    "events",
    "events_of",
    "failing",
    "histories",
    "raw",
    "read_playbook",
    "recorded",
    "redacted_thinking",
    "refusal",
    "reply",
    "run",
    "scripts",
    "serve_in_process",
    "serve_in_thread",
    "server_tool_use",
    "stalled",
    "text",
    "thinking",
    "tool_use",
]

_NAMES_OF_MODULE = {
    "answers": "Answer cut disconnected error event_count failing raw recorded reply stalled",
    "api": "ScriptedAPI",
    "background": "serve_in_process serve_in_thread",
    "blocks": "Block block redacted_thinking server_tool_use text thinking tool_use",
    "checks": "assert_matches assert_valid check_log",
    "clock": "FakeClock",
    "conformance": "AuditLogConformance",
    "drawn_histories": "histories",
    "errors": "ScriptError",
    "eventloop": "DeterministicLoop run",
    "exchange": "Exchange ReceivedRequest",
    "playbook": "read_playbook",
    "recorder": "Recorder",
    "rules": "refusal",
    "strategies": "scripts",
    "walks": "TableWalk contexts events events_of",
}
_MODULE_OF = {name: module for module, names in _NAMES_OF_MODULE.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"looplatch.testing.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
