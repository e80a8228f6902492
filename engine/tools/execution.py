"""One call, carried out: from the tool's code to the one outcome that says truly how it ended."""

import asyncio
import contextlib
import inspect
import threading
from collections.abc import Callable
from typing import assert_never

import attrs

from looplatch.encoding import copied
from looplatch.tools import texts
from looplatch.tools.calls import Call, Cause, Denial, Outcome
from looplatch.tools.context import AbortSignal, ToolContext
from looplatch.tools.inputs import InputRejected
from looplatch.tools.leash import Ending, Stop, Timer, leashed
from looplatch.tools.results import MAX_RESULT_CHARS, render

__all__ = [
    "CallCancelled",
    "Progress",
    "answered_by_problem",
    "denied",
    "execute",
    "halted",
    "interrupted",
    "not_started",
]

Progress = Callable[[Call, tuple[object, ...]], None]
"""What is told of a running call's progress: the call, and what its tool passed to `ctx.progress`."""


class CallCancelled(asyncio.CancelledError):
    """The task that carried out a call was cancelled from outside; `outcome` says how the call ended."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__()
        self.outcome = outcome


async def execute(
    call: Call,
    *,
    run_id: str,
    abort: AbortSignal,
    on_progress: Progress | None = None,
    timer: Timer | None = None,
    grace_s: float | None = None,
    max_result_chars: int = MAX_RESULT_CHARS,
) -> Outcome:
    """Run the tool of a call and return its outcome, when the tool's code has ended or was abandoned.

    Set `abort` to stop it: the tool is cancelled and has `grace_s` seconds to end (None: its own). `timer` (default:
    the event loop's) measures that and its timeout. `on_progress` is called in the event loop's thread, never after the
    end.
    A call with a problem is answered by it. `SystemExit`, `KeyboardInterrupt` and the like, raised by a tool, pass
    through; raises `CallCancelled`, when the tool has ended, if the caller is cancelled.
    """
    tool = call.tool
    if call.problem is not None or tool is None:
        return answered_by_problem(call)
    if abort.is_set():
        return not_started(call)
    progress = _ProgressGate(call, on_progress)
    signal, untie = _signal_of_tool(abort, tool.timeout_s)
    context = ToolContext(tool_use_id=call.id, run_id=run_id, aborted=signal, report=progress.report)

    async def run() -> object:
        # A copy: the call's input is part of the history, whatever the tool does to its own.
        result = tool.call(copied(call.input), context)
        return await result if inspect.isawaitable(result) else result

    try:
        ending = await leashed(
            run,
            abort=signal,
            timeout_s=tool.timeout_s,
            grace_s=tool.grace_s if grace_s is None else grace_s,
            timer=timer,
            name=f"tool {call.name} {call.id}",
        )
    finally:
        progress.close()
        untie()
    outcome = _outcome(call, ending, max_result_chars)
    if ending.cancelled is not None:
        raise CallCancelled(outcome) from ending.cancelled
    return outcome


def _signal_of_tool(abort: AbortSignal, timeout_s: float | None) -> tuple[AbortSignal, Callable[[], None]]:
    """The signal that a tool sees, and what unties it from `abort`: a timeout ends the tool, not what follows it."""
    if timeout_s is None:
        return abort, lambda: None
    own = AbortSignal()
    return own, abort.on_set(own.set)


def _outcome(call: Call, ending: Ending, max_result_chars: int) -> Outcome:
    error = ending.error
    if error is not None and not isinstance(error, Exception | asyncio.CancelledError):
        raise error
    if ending.finished:
        rendered = render(ending.value, max_chars=max_result_chars)
        return Outcome(
            call=call,
            cause=Cause.FAILED if rendered.is_error else Cause.ANSWERED,
            content=rendered.content,
            is_error=rendered.is_error,
            full_text=rendered.full_text,
        )
    if not ending.began:
        return not_started(call)
    match ending.stop:
        case Stop.ABORTED:
            return interrupted(call, abandoned=ending.abandoned)
        case Stop.TIMED_OUT:
            return _stopped(call, Cause.TIMED_OUT, abandoned=ending.abandoned)
        case None if isinstance(error, InputRejected):
            return _error(call, Cause.INVALID_INPUT, texts.invalid_input_text(error.problem))
        case None:
            return failed(call, error if error is not None else asyncio.CancelledError())
        case _:
            assert_never(ending.stop)


def answered_by_problem(call: Call) -> Outcome:
    """The outcome of a call that cannot run: its tool is unknown, or its input invalid."""
    if call.problem is None:
        return _error(call, Cause.UNKNOWN_TOOL, texts.unknown_tool_text(call.name, ()))
    return _error(call, call.problem.cause, call.problem.text)


def denied(call: Call, denial: Denial) -> Outcome:
    """The outcome of a call that permission was refused to."""
    outcome = _error(call, Cause.DENIED, texts.denied_text(denial.message))
    return attrs.evolve(outcome, interrupt=denial.interrupt)


def not_started(call: Call) -> Outcome:
    """The outcome of a call of which nothing has run."""
    return _stopped(call, Cause.NOT_STARTED)


def halted(call: Call) -> Outcome:
    """The outcome of an action of a toolset that is not run since one before it failed."""
    return _error(call, Cause.NOT_STARTED, texts.halted_text(call.toolset or ""))


def given_up(call: Call, *, begun: bool) -> Outcome:
    """The outcome of a call that ends without one of its own."""
    return interrupted(call) if begun else not_started(call)


def interrupted(call: Call, *, abandoned: bool = False) -> Outcome:
    """The outcome of a call that was stopped while it ran: no effect for a read, effect unknown for a write."""
    cause = Cause.INTERRUPTED_NO_EFFECT if call.read_only else Cause.INTERRUPTED_EFFECT_UNKNOWN
    return _stopped(call, cause, abandoned=abandoned)


def failed(call: Call, error: BaseException) -> Outcome:
    """The outcome of a call whose tool raised."""
    return _error(call, Cause.FAILED, texts.failed_text(error))


def _stopped(call: Call, cause: Cause, *, abandoned: bool = False) -> Outcome:
    outcome = _error(call, cause, texts.stopped_text(cause, call, abandoned=abandoned))
    return attrs.evolve(outcome, abandoned=abandoned)


def _error(call: Call, cause: Cause, text: str) -> Outcome:
    return Outcome(call=call, cause=cause, content=text, is_error=True)


class _ProgressGate:
    """Brings what a tool reports, from any thread, to the event loop's; shut once the call has its outcome."""

    def __init__(self, call: Call, on_progress: Progress | None) -> None:
        self._call = call
        self._on_progress = on_progress
        self._loop = asyncio.get_running_loop()
        self._home = threading.get_ident()

    def report(self, *args: object) -> None:
        if threading.get_ident() == self._home:
            self._deliver(args)
            return
        with contextlib.suppress(RuntimeError):  # the loop was closed: the thread has been abandoned
            self._loop.call_soon_threadsafe(self._deliver, args)

    def _deliver(self, args: tuple[object, ...]) -> None:
        if self._on_progress is not None:
            self._on_progress(self._call, args)

    def close(self) -> None:
        self._on_progress = None
