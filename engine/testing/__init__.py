"""The testing kit: a scripted Messages API, a fake clock and strategies, for tests of loops without a model.

The API speaks real server-sent events to the real SDK client, in process or over a loopback server, and refuses what
the Messages API refuses. Each name is loaded when first used, so importing this package loads neither Hypothesis nor
pytest nor the SDK. `TableWalk`, `scripts`, `events`, `events_of` and `contexts` need Hypothesis (`looplatch[testing]`);
`import *` leaves them out.
"""

import importlib
from typing import TYPE_CHECKING, Any

from looplatch.states.errors import UsageError

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
    from looplatch.testing.drawn_histories import histories as histories
    from looplatch.testing.errors import ScriptError
    from looplatch.testing.eventloop import DeterministicLoop, run
    from looplatch.testing.exchange import Exchange, ReceivedRequest
    from looplatch.testing.playbook import read_playbook
    from looplatch.testing.recorder import Recorder
    from looplatch.testing.rules import refusal
    from looplatch.testing.strategies import scripts as scripts
    from looplatch.testing.walks import TableWalk as TableWalk
    from looplatch.testing.walks import contexts as contexts
    from looplatch.testing.walks import events as events
    from looplatch.testing.walks import events_of as events_of

# What needs Hypothesis is asked for by its name: `import *` shall not need it.
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
    "assert_matches",
    "assert_valid",
    "block",
    "check_log",
    "cut",
    "disconnected",
    "error",
    "event_count",
    "failing",
    "raw",
    "read_playbook",
    "recorded",
    "redacted_thinking",
    "refusal",
    "reply",
    "run",
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
_EXTRA = ("hypothesis", "pytest")
_MODULE_OF = {name: module for module, names in _NAMES_OF_MODULE.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(importlib.import_module(f"looplatch.testing.{_MODULE_OF[name]}"), name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in _EXTRA:
            raise
        problem = f"it needs {error.name.partition('.')[0]}, which is not installed"
        raise UsageError(
            f"looplatch.testing.{name}", problem, "Install it: pip install 'looplatch[testing]'"
        ) from error


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_OF})
