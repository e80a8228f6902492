"""What the model is told about a call that was not answered by its tool. Each text says what is true, and no more."""

import difflib
from collections.abc import Iterable
from typing import assert_never

from looplatch.encoding import mend_surrogates
from looplatch.tools.calls import Call, Cause

__all__ = [
    "MAX_ERROR_CHARS",
    "bounded",
    "denied_text",
    "failed_text",
    "halted_text",
    "invalid_input_text",
    "invalid_json_text",
    "no_action_text",
    "stopped_text",
    "unknown_action_text",
    "unknown_tool_text",
]

MAX_ERROR_CHARS = 4_096
"""The longest text of an exception, a raw input or a denial that is sent to the model, in characters."""
_MAX_NAMES = 50

_PARTS = "it may have done all, part or none of its work. Find out before you call it again."
_ABANDONED = " It did not end when asked to and may still be running."


def stopped_text(cause: Cause, call: Call, *, abandoned: bool = False) -> str:
    """The text for a call that was stopped, or never begun; `ValueError` for a cause that is neither."""
    tail = _ABANDONED if abandoned else ""
    match cause:
        case Cause.NOT_STARTED:
            return "not started. The run was stopped before this call began, so nothing of it was done."
        case Cause.TIMED_OUT:
            bound = f" after {call.tool.timeout_s:g} s" if call.tool is not None and call.tool.timeout_s else ""
            effect = "no effect: the tool only reads." if call.read_only else f"effect unknown: {_PARTS}"
            return f"timed out{bound}, {effect}{tail}"
        case Cause.INTERRUPTED_NO_EFFECT:
            return f"interrupted, no effect. The call was interrupted while running; the tool only reads.{tail}"
        case Cause.INTERRUPTED_EFFECT_UNKNOWN:
            return (
                f"interrupted, effect unknown. The call was interrupted while running, effect unknown: {_PARTS}{tail}"
            )
        case Cause.ANSWERED | Cause.FAILED | Cause.DENIED | Cause.UNKNOWN_TOOL | Cause.INVALID_INPUT:
            raise ValueError(f"a call that ended as {cause} was not stopped")
        case _:
            assert_never(cause)


def denied_text(message: str) -> str:
    """The text for a call that permission was refused to."""
    reason = bounded(message).strip()
    return f"denied. The call was not run: {reason}" if reason else "denied. The call was not run."


def halted_text(toolset: str) -> str:
    """The text for an action of a toolset that is not run since one before it failed; the API's own wording."""
    named = "action" if toolset == "browser" else f"{toolset} action"
    return f"Not executed: an earlier {bounded(named)} in this turn failed."


def failed_text(error: BaseException) -> str:
    """The text for a tool that raised. Never raises, whatever the exception's own text does."""
    try:
        text = "\n".join([str(error), *getattr(error, "__notes__", [])]).strip()
    except Exception:
        text = "(its text could not be read)"
    kind = type(error).__name__
    return bounded(f"failed: {kind}: {text}" if text else f"failed: {kind}")


def unknown_tool_text(name: str, known: Iterable[str]) -> str:
    """The text for a call of a tool that does not exist: names like it, and the tools there are."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=3)
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    there = f" The tools are: {', '.join(names[:_MAX_NAMES])}{more}." if names else " There are no tools."
    return f"unknown tool: {bounded(name)!r}.{hint}{there}"


def unknown_action_text(toolset: str, name: str, known: Iterable[str]) -> str:
    """The text for an action of a toolset that does not exist, or whose name cannot be one."""
    there = f" The toolsets are: {', '.join(sorted(known))}." if known else " There are no toolsets."
    return f"unknown action: {bounded(name)!r} of the toolset {bounded(toolset)!r}.{there}"


def no_action_text(toolset: str) -> str:
    """The text for a call of a toolset by its own name, as if it were a tool."""
    return f"unknown tool: {toolset!r} is a toolset; nothing of it was done. Call one of its actions."


def invalid_input_text(problem: str) -> str:
    """The text for an input that breaks the tool's schema; `problem` names the fields."""
    return bounded(f"invalid input. The tool was not run. Mend this and call it again:\n{problem}")


def invalid_json_text(problem: str, raw: str) -> str:
    """The text for an input that is no JSON object: why, and what was written, bounded."""
    return f"invalid input. The tool was not run: {bounded(problem)}\nWhat was written:\n{bounded(raw)}"


def bounded(text: str) -> str:
    """The text as it can be sent, with its middle left out when it is longer than `MAX_ERROR_CHARS`."""
    text = mend_surrogates(text)
    if len(text) <= MAX_ERROR_CHARS:
        return text
    kept = MAX_ERROR_CHARS // 2
    return f"{text[:kept]}\n[… {len(text) - 2 * kept:,} characters left out …]\n{text[-kept:]}"
