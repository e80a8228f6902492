"""What a run hands to its consumer, in the vocabulary of the Agent SDK, and two kinds of our own.

`parent_tool_use_id` names the call of a sub-agent whose run a message comes from; None: it is the run's own.
"""

from enum import StrEnum
from typing import Any

import attrs

from looplatch.audit import Log
from looplatch.blocks import Block, ToolUseBlock
from looplatch.states.reasons import Terminal
from looplatch.states.record import Record


@attrs.frozen(kw_only=True)
class SystemMessage:
    """Something about the run itself: `init` first, then `api_retry`, `error` and the like; `data` has the details."""

    subtype: str
    data: dict[str, Any]
    parent_tool_use_id: str | None = None


@attrs.frozen(kw_only=True)
class AssistantMessage:
    """One finished content block of the model's answer; those of one answer share `message_id`."""

    content: tuple[Block, ...]
    message_id: str | None
    model: str | None
    parent_tool_use_id: str | None = None


@attrs.frozen(kw_only=True)
class UserMessage:
    """What was said to the model on the user's side: tool results, and what the loop asks it."""

    content: tuple[Block, ...]
    parent_tool_use_id: str | None = None


@attrs.frozen(kw_only=True)
class StreamEvent:
    """A raw event of the stream, as the API sent it; only with `include_partial_messages`."""

    event: dict[str, Any]
    parent_tool_use_id: str | None = None


@attrs.frozen(kw_only=True)
class TransitionMessage:
    """The record of a move, or of an event that was refused."""

    record: Record


class ToolPhase(StrEnum):
    """How far a tool call is."""

    START = "start"
    PROGRESS = "progress"
    END = "end"


@attrs.frozen(kw_only=True)
class ToolMessage:
    """A tool started, reported progress, or ended.

    `progress` holds what the tool passed to `ctx.progress`; `skipped` counts reports before it that a slow consumer
    missed. `cause` says how an ended call ended.
    """

    phase: ToolPhase
    tool_use_id: str
    name: str
    progress: tuple[object, ...] = ()
    skipped: int = 0
    cause: str | None = None
    is_error: bool = False
    parent_tool_use_id: str | None = None


class Subtype(StrEnum):
    """How a run ended, in the Agent SDK's words."""

    SUCCESS = "success"
    ERROR_MAX_TURNS = "error_max_turns"
    ERROR_MAX_BUDGET_USD = "error_max_budget_usd"
    ERROR_DURING_EXECUTION = "error_during_execution"
    SUSPENDED = "suspended"


SUBTYPES: dict[Terminal, Subtype] = {
    Terminal.ANSWERED: Subtype.SUCCESS,
    Terminal.ABORTED: Subtype.ERROR_DURING_EXECUTION,
    Terminal.STOPPED: Subtype.ERROR_DURING_EXECUTION,
    Terminal.DEADLINE: Subtype.ERROR_DURING_EXECUTION,
    Terminal.CLOSED: Subtype.ERROR_DURING_EXECUTION,
    Terminal.BUDGET_SPENT: Subtype.ERROR_MAX_BUDGET_USD,
    Terminal.MAX_TURNS: Subtype.ERROR_MAX_TURNS,
    Terminal.PAUSE_LIMIT: Subtype.ERROR_DURING_EXECUTION,
    Terminal.HOOK_HALTED: Subtype.ERROR_DURING_EXECUTION,
    Terminal.UNKNOWN_STOP_REASON: Subtype.ERROR_DURING_EXECUTION,
    Terminal.DENIED: Subtype.ERROR_DURING_EXECUTION,
    Terminal.CONTEXT_BLOCKED: Subtype.ERROR_DURING_EXECUTION,
    Terminal.OUTPUT_TRUNCATED: Subtype.ERROR_DURING_EXECUTION,
    Terminal.STOP_HOOK_LIMIT: Subtype.ERROR_DURING_EXECUTION,
    Terminal.MODEL_ERROR: Subtype.ERROR_DURING_EXECUTION,
    Terminal.REFUSED: Subtype.ERROR_DURING_EXECUTION,
    Terminal.INTERNAL_ERROR: Subtype.ERROR_DURING_EXECUTION,
}


@attrs.frozen(kw_only=True)
class ResultMessage:
    """The end of a run.

    `subtype` and `is_error` say whether it went well; `terminal` says exactly why it ended, None for a suspended run.
    `num_turns` counts turns, `session_id` is the run's id. `result` is the text of the last answer, or None. `usage`
    holds the tokens of the whole run, by the API's names; `total_cost_usd`, in US dollars, is None where the price is
    not known. `error` says what went wrong, in words, or is None. `pending` are the calls that wait for approval, in a
    suspended run; `unsent` is what `run.send` could not say any more. `messages` is the history, ready to be sent again
    (that of a suspended run is resumed instead); `log` is the audit log.
    """

    subtype: Subtype
    is_error: bool
    num_turns: int
    total_cost_usd: float | None
    usage: dict[str, int]
    result: str | None
    session_id: str
    terminal: Terminal | None
    error: str | None
    pending: tuple[ToolUseBlock, ...] = ()
    unsent: tuple[str, ...] = ()
    messages: list[dict[str, Any]] = attrs.field(repr=False)
    log: Log = attrs.field(repr=False)


Message = SystemMessage | AssistantMessage | UserMessage | StreamEvent | TransitionMessage | ToolMessage | ResultMessage
