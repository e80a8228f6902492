"""The values that the modules of `looplatch.tools` share: a call, why it may not run, and how it ended."""

from enum import StrEnum
from typing import Any

import attrs

from looplatch.tools.order import Access
from looplatch.tools.tool import Tool

__all__ = ["Asked", "Call", "Cause", "Content", "Denial", "Outcome", "Problem"]

Content = str | list[dict[str, Any]]
"""The content of a tool_result: a text, or content blocks as the API knows them."""


class Cause(StrEnum):
    """Why a call ended as it did. Exactly one holds, and the result tells the model which."""

    ANSWERED = "answered"  # the tool returned a result
    FAILED = "failed"  # the tool raised, or returned a result marked as an error
    UNKNOWN_TOOL = "unknown_tool"  # no tool has the name; nothing ran
    INVALID_INPUT = "invalid_input"  # the input is no JSON object, or breaks the schema; nothing ran
    DENIED = "denied"  # permission was refused; nothing ran
    NOT_STARTED = "not_started"  # the run was stopped, or an action before it failed, before the call began
    TIMED_OUT = "timed_out"  # the tool ran longer than its timeout
    INTERRUPTED_NO_EFFECT = "interrupted_no_effect"  # a read was stopped while it ran
    INTERRUPTED_EFFECT_UNKNOWN = "interrupted_effect_unknown"  # a write was stopped while it ran


@attrs.frozen(kw_only=True)
class Problem:
    """Why a call cannot run: `cause` is `UNKNOWN_TOOL` or `INVALID_INPUT`, `text` tells the model.

    `fails` names the toolset that the call was meant for, where the call itself names none.
    """

    cause: Cause
    text: str
    fails: str | None = None


@attrs.frozen(kw_only=True)
class Call:
    """A tool_use block of the model, looked up and checked.

    `index` is the block's position in the answer. `tool` is None, or `problem` is set, when the call cannot run; then
    `input` may be empty. `read_only` is the tool's word on this very input. An `undecided` call (its input buffer was
    empty, or is no JSON) may have been cut: it counts only once the model has moved on from it. `toolset` is the name
    of the toolset (`browser`, `computer`) that the call is an action of; such a call runs as `Access.MEMBER`.
    """

    id: str
    name: str
    input: dict[str, Any]
    index: int
    tool: Tool | None = None
    read_only: bool = False
    problem: Problem | None = None
    undecided: bool = False
    toolset: str | None = None

    @property
    def access(self) -> Access:
        """How the call may run."""
        if self.toolset is not None:
            return Access.MEMBER
        return Access.READ if self.read_only else Access.WRITE


@attrs.frozen(kw_only=True)
class Denial:
    """Permission to run a call was refused. `message` tells the model why; `interrupt` asks to end the run."""

    message: str
    interrupt: bool = False


@attrs.frozen(kw_only=True)
class Asked:
    """Permission to run a call is someone's to give: the call waits for it."""


@attrs.frozen(kw_only=True)
class Outcome:
    """How a call ended: the one answer to it.

    `call` is the call as it ran (permission may have changed its input). `content` and `is_error` go to the model;
    `full_text` is the whole text of a result that was too long to send, else None. `abandoned` tells that the tool did
    not stop when asked and may still be running. `interrupt` tells that a denial asked to end the run.
    """

    call: Call
    cause: Cause
    content: Content
    is_error: bool
    full_text: str | None = None
    abandoned: bool = False
    interrupt: bool = False

    def block(self) -> dict[str, Any]:
        """The tool_result block that answers the call."""
        block: dict[str, Any] = {"type": "tool_result", "tool_use_id": self.call.id, "content": self.content}
        if self.call.toolset is not None:
            block["toolset_name"] = self.call.toolset
        if self.is_error:
            block["is_error"] = True
        return block
