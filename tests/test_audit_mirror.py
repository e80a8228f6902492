"""The copy of the log for people: what is shown, to whom, and that nothing it does reaches the run."""

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from structlog.testing import CapturingLogger

from looplatch.audit import MemoryLog, mirror_to
from looplatch.audit.mirror import LoggerMirror
from looplatch.states.reasons import Terminal
from looplatch.states.record import Kind
from looplatch.states.state import State

MOVE: dict[str, Any] = {
    "source": "decide",
    "event": "ToolsRequested",
    "fields": {"calls": 2},
    "target": "orchestrate",
    "reason": None,
    "strategy": None,
    "terminal": None,
    "guards": [["always", True]],
    "change": {},
}


@pytest.fixture(autouse=True)
def unconfigured() -> Iterator[None]:
    structlog.reset_defaults()
    yield
    structlog.reset_defaults()


def shown(kind: Kind, fields: dict[str, Any]) -> tuple[str, str, dict[str, Any]]:
    logger: Any = CapturingLogger()
    log = MemoryLog("r1", mirror=LoggerMirror(logger))
    record = log.append(kind, fields)
    (call,) = logger.calls
    assert call.args == (f"looplatch.{kind}",)
    assert (call.kwargs.pop("run"), call.kwargs.pop("seq"), call.kwargs.pop("hash")) == ("r1", 0, record.hash)
    return call.method_name, call.args[0], call.kwargs


def test_a_move_is_shown_with_the_event_that_made_it() -> None:
    assert shown(Kind.TRANSITION, MOVE) == (
        "info",
        "looplatch.transition",
        {"source": "decide", "target": "orchestrate", "by": "ToolsRequested"},
    )


def test_a_refused_event_is_a_warning() -> None:
    method, _, values = shown(Kind.REJECTED, {**MOVE, "target": "decide"})
    assert (method, values) == ("warning", {"source": "decide", "target": "decide", "by": "ToolsRequested"})


def test_a_tool_is_shown_without_its_blocks() -> None:
    begin = {"effect": 0, "class": "tool", "name": "grep", "tool_use_id": "t1", "access": "read", "blocks": [1]}
    assert shown(Kind.EFFECT_BEGIN, begin) == (
        "debug",
        "looplatch.effect_begin",
        {"class": "tool", "name": "grep", "tool_use_id": "t1", "access": "read"},
    )


def test_a_hook_is_shown_with_the_point_at_which_it_was_asked() -> None:
    begin = {"effect": 3, "class": "hook", "point": "before_tool", "name": "guard"}
    assert shown(Kind.EFFECT_BEGIN, begin) == (
        "debug",
        "looplatch.effect_begin",
        {"class": "hook", "point": "before_tool", "name": "guard"},
    )


@pytest.mark.parametrize("kind", list(Kind))
def test_every_kind_is_shown(kind: Kind) -> None:
    method, event, _ = shown(kind, {})
    assert method in {"debug", "info", "warning"}
    assert event == f"looplatch.{kind.value}"


def test_nothing_is_shown_unless_the_application_configured_structlog() -> None:
    assert mirror_to() is None


def test_a_configured_structlog_gets_the_copy_after_the_record_is_written() -> None:
    seen: list[dict[str, Any]] = []
    log: MemoryLog

    def collect(_logger: object, method: str, event: Any) -> Any:
        seen.append({**event, "level": method, "written": len(list(log.lines()))})
        raise structlog.DropEvent

    structlog.configure(processors=[collect])
    log = MemoryLog("r1", mirror=mirror_to())
    record = log.finish(State.COMPLETED, Terminal.ANSWERED)
    assert seen == [
        {
            "event": "looplatch.terminal",
            "level": "info",
            "run": "r1",
            "seq": 0,
            "hash": record.hash,
            "state": "completed",
            "terminal": "answered",
            "root": record["root"],
            "count": 0,
            "written": 1,
        }
    ]


def test_a_given_logger_needs_no_configuration() -> None:
    logger: Any = CapturingLogger()
    mirror = mirror_to(logger)
    assert mirror is not None
    MemoryLog("r", mirror=mirror).append(Kind.GENESIS, {"model": "m"})
    assert [call.method_name for call in logger.calls] == ["info"]


class FailingLogger:
    """A logger whose methods raise, as a handler with a lost connection would."""

    def debug(self, event: str, **values: Any) -> None:
        raise ConnectionError(event)

    info = warning = debug


class AsyncLogger:
    """A logger whose methods are coroutines that nobody awaits."""

    async def debug(self, event: str, **values: Any) -> None:
        raise AssertionError(event)

    info = warning = debug


@pytest.mark.parametrize("logger", [FailingLogger(), AsyncLogger(), object()])
def test_no_logger_can_disturb_the_log(logger: Any) -> None:
    log = MemoryLog("r", mirror=LoggerMirror(logger))
    for kind in Kind:
        log.append(kind, {})
    assert log.head[0] == len(Kind)


def test_structlog_is_not_imported_for_the_copy() -> None:
    code = "import sys, looplatch.audit as a; a.mirror_to(); sys.exit('structlog' in sys.modules)"
    assert subprocess.run([sys.executable, "-I", "-c", code]).returncode == 0
