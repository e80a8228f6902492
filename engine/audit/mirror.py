"""A copy of each record for people: an event of structlog, after the record is written. It is never the record."""

import contextlib
import inspect
import sys
from typing import Any, Protocol, cast

from looplatch.states.record import Kind, Record


class Logger(Protocol):
    """What a logger of structlog has, of which the mirror uses these three."""

    def debug(self, event: str, **values: Any) -> Any:
        """Log at level debug."""
        ...

    def info(self, event: str, **values: Any) -> Any:
        """Log at level info."""
        ...

    def warning(self, event: str, **values: Any) -> Any:
        """Log at level warning."""
        ...


class Mirror(Protocol):
    """Gets a copy of each record after it is written. Whatever it does, it must not raise, nor keep the run waiting."""

    def show(self, record: Record) -> None:
        """Take the next record, of any run."""
        ...


class LoggerMirror:
    """Shows records to `logger`, as events named `looplatch.KIND` with run, seq, hash and what a reader wants to know.

    Whatever the logger does (raise, drop, change), the run and its log are not touched.
    """

    def __init__(self, logger: Logger) -> None:
        self._logger = logger

    def show(self, record: Record) -> None:
        """Log `record`."""
        with contextlib.suppress(Exception):
            answer = _method(self._logger, record)(
                f"looplatch.{record['kind']}", run=record.run, seq=record.seq, hash=record.hash, **_shown(record)
            )
            if inspect.iscoroutine(answer):  # an async logger: nobody here can wait for it
                answer.close()


def mirror_to(logger: Logger | None = None) -> Mirror | None:
    """A mirror to `logger`; without one, to structlog if the application has configured it, else none.

    structlog is not imported for this: an application that configured it has imported it.
    """
    if logger is not None:
        return LoggerMirror(logger)
    structlog: Any = sys.modules.get("structlog")
    if structlog is None or not structlog.is_configured():
        return None
    return LoggerMirror(cast("Logger", structlog.get_logger("looplatch")))


def _method(logger: Logger, record: Record) -> Any:
    match record.kind:
        case Kind.REJECTED:
            return logger.warning
        case Kind.MESSAGE | Kind.EFFECT_BEGIN | Kind.EFFECT_END | Kind.CHECKPOINT:
            return logger.debug
        case Kind.GENESIS | Kind.TRANSITION | Kind.RESUMED | Kind.TOMBSTONE | Kind.TERMINAL:
            return logger.info


def _shown(record: Record) -> dict[str, Any]:
    """The fields that are shown; `event` is structlog's own word, so the event of a move is `by`."""
    names: tuple[str, ...]
    match record.kind:
        case Kind.GENESIS:
            names = ("model", "library", "durability", "parent")
        case Kind.TRANSITION | Kind.REJECTED:
            names = ("source", "target", "reason", "strategy", "terminal")
        case Kind.MESSAGE:
            names = ("op", "index", "role", "stop_reason")
        case Kind.EFFECT_BEGIN:
            names = ("class", "model", "attempt", "name", "tool_use_id", "access", "delay_ms", "point")
        case Kind.EFFECT_END:
            names = ("class", "effect", "outcome", "usage", "error", "is_error")
        case Kind.TERMINAL:
            names = ("state", "terminal", "count", "root")
        case Kind.CHECKPOINT | Kind.RESUMED | Kind.TOMBSTONE:
            names = ("count", "root", "commitment", "of")
    shown = {name: record[name] for name in names if record.get(name) is not None}
    if record.event is not None:
        shown["by"] = record.event
    return shown
