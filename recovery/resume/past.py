"""What a log tells of a run's past: its messages, its last answer, its effects; values only.

Contents are not in a log. A skeleton stands for a content block: its type, its ids, and the commitment under which the
payload store has it.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import attrs

from looplatch.recovery.failure import MeasuredOverflow
from looplatch.states.context import TOTALS
from looplatch.states.record import Record
from looplatch.states.trouble import TroubleKind

Skeleton = Mapping[str, Any]

VERDICTS: Final = ("Allow", "Deny", "Ask")
"""What a hook may say of a call."""

SUSPENDED: Final = "suspended"
"""The outcome of a call whose own run waits for someone's word: it has ended for now, without a result."""


@attrs.frozen
class Part:
    """The blocks that one record brought into a message; `hash` is that of the record."""

    hash: str
    blocks: tuple[Skeleton, ...]


@attrs.frozen
class Entry:
    """A message of the history. `form` is "text" where its first part was a plain text and not blocks."""

    role: str
    form: str
    parts: tuple[Part, ...]

    @property
    def blocks(self) -> tuple[Skeleton, ...]:
        """All blocks of the message."""
        return tuple(block for part in self.parts for block in part.blocks)

    @property
    def plain(self) -> bool:
        """Whether the content is one text and no list of blocks."""
        return self.form == "text" and len(self.parts) == 1

    def says(self, other: "Entry") -> bool:
        """Whether another message has the same content, whatever records brought it."""
        mine, others = ([block["commitment"] for block in one.blocks] for one in (self, other))
        return (self.role, self.plain, mine) == (other.role, other.plain, others)


@attrs.frozen(kw_only=True)
class PastTool:
    """A call that was begun: the record of its last begin, and that of the end of that, if it has one.

    paid: what all records of its ends say that the run inside it has spent, by the names of the totals. child: how far
    that run had come at least, as the last of them names it; None: none does.
    """

    begin: Record
    end: Record | None = None
    child: Mapping[str, Any] | None = None
    paid: Mapping[str, int] = attrs.field(factory=lambda: dict.fromkeys(TOTALS, 0))

    @property
    def is_open(self) -> bool:
        """Whether the call has no result yet."""
        return self.end is None or self.waiting is not None

    @property
    def waiting(self) -> Record | None:
        """The record of its end, where that says that the run inside it waits for someone's word."""
        return self.end if self.end is not None and self.end["outcome"] == SUSPENDED else None


@attrs.frozen(kw_only=True)
class PastHook:
    """A hook that was asked and has answered. `point` says where; `reason` is the commitment to what it said.

    call: which one it was asked about; None where that is not on record. interrupt: the run was to end with that call.
    edited: the commitment to the input that it put in the place of the model's.
    """

    point: str
    name: str
    outcome: str
    reason: str | None
    call: str | None = None
    interrupt: bool = False
    edited: str | None = None

    @classmethod
    def of(cls, begin: Record, end: Record) -> "PastHook":
        """The hook of these records."""
        return cls(
            point=begin.get("point", ""),
            name=begin["name"],
            outcome=end["outcome"],
            reason=end.get("reason"),
            call=begin.get("call"),
            interrupt=end.get("interrupt", False),
            edited=end.get("edited"),
        )


@attrs.frozen(kw_only=True)
class PastAnswer:
    """The last model call and all that came of it.

    end: None while the call had not ended. blocks: the finished content blocks that are named by records, in order;
    all of them once the call has ended. unfinished: the texts after them that were cut. joined: the message record of
    what stays of the answer. responded: the event that ends the call is recorded. tools: by call. results: the
    tool_result blocks that the history has for its calls. hooks: those that have answered since.
    """

    begin: Record
    end: Record | None = None
    blocks: tuple[Skeleton, ...] = ()
    unfinished: tuple[Skeleton, ...] = ()
    joined: Record | None = None
    responded: bool = False
    tools: Mapping[str, PastTool] = attrs.field(factory=dict[str, PastTool])
    results: Mapping[str, Skeleton] = attrs.field(factory=dict[str, Skeleton])
    hooks: tuple[PastHook, ...] = ()

    @property
    def ended(self) -> bool:
        """Whether the call came to its own end, good or bad; if not, it was cut by a crash or stopped from outside."""
        return self.end is not None and self.end["outcome"] != "interrupted"

    @property
    def failed(self) -> bool:
        """Whether the call ended with a failure."""
        return self.ended and self.end is not None and self.end["error"] is not None

    @property
    def trouble(self) -> TroubleKind | None:
        """Which trouble the failure is."""
        known = None if self.end is None else self.end.get("trouble")
        return None if known is None else TroubleKind(known)

    @property
    def measured(self) -> MeasuredOverflow | None:
        """What the API measured of a prompt that was too long."""
        return None if self.end is None else measured_in(self.end)

    @property
    def verdicts(self) -> dict[str, PastHook]:
        """What the hook that is asked before tools has said of its calls."""
        asked = (hook for hook in self.hooks if hook.point == "before_tool" and hook.outcome in VERDICTS)
        return {hook.call: hook for hook in asked if hook.call is not None}

    @property
    def begun(self) -> int:
        """How many of its calls had begun."""
        return len(self.tools)


@attrs.frozen(kw_only=True)
class PastSummary:
    """A summary that the model wrote and that no event has told of. `text` is the commitment to it."""

    level: str
    text: str
    spent: Mapping[str, int]


@attrs.frozen(kw_only=True)
class PastStaged:
    """The summary of `entries[start:stop]`, as the history was then, that waits beside it. `text`: the commitment."""

    entries: Sequence[Entry]
    start: int
    stop: int
    text: str


@attrs.frozen(kw_only=True)
class PastCount:
    """What the API counted: `tokens`, when the history consisted of `entries`."""

    tokens: int
    entries: Sequence[Entry]


@attrs.frozen(kw_only=True)
class PastApproval:
    """A decision on a call that was given from outside.

    message: the commitment to what the model is told of a denial. input: that to the input in the place of the model's.
    """

    call: str
    allowed: bool
    interrupt: bool = False
    message: str | None = None
    input: str | None = None

    def fields(self) -> dict[str, Any]:
        """The decision as a `resumed` record holds it."""
        return attrs.asdict(self)


def measured_in(end: Record) -> MeasuredOverflow | None:
    """What the API measured when it refused a prompt as too long, as the end of the call tells."""
    error: Mapping[str, Any] = end.get("error") or {}
    measured = error.get("measured")
    return None if measured is None else MeasuredOverflow(**measured)


def answers_of(blocks: Iterable[Skeleton]) -> dict[str, Skeleton]:
    """The tool_result blocks among `blocks`, by the call that they answer."""
    return {block["tool_use_id"]: block for block in blocks if block["type"] == "tool_result"}
