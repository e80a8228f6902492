"""The snapshot: where a run stood when its last process left it."""

from collections.abc import Mapping
from typing import Any

import attrs

from looplatch.recovery.compression.levels import Step
from looplatch.recovery.resume.past import Entry, PastAnswer, PastApproval, PastCount, PastStaged, PastSummary, Skeleton
from looplatch.recovery.resume.settings import COMPARED, SettingChange
from looplatch.recovery.sizes import Learned
from looplatch.states.commands import Command
from looplatch.states.context import Context
from looplatch.states.reasons import Terminal
from looplatch.states.state import State


@attrs.frozen(kw_only=True)
class Snapshot:
    """Where a run stands.

    settings: by the names in `COMPARED`, the changes that were accepted since included. tool_use_ids: all that were
    ever used. base: the history before a compression that was cut, None where there was none. pending: the commands
    without an answer of the last move that are still to be done. answer: the last model call. text: the text blocks of
    the last whole answer; message_id: the API's id of it. summary, staged, counted: what compression knew. in_vain: the
    tokens at which a summary was of no use. summary_failed_at: when the last one failed. api_refuses: the API makes no
    compaction of its own. learned: what was learned of the model's size. block_reason: the commitment to why a stop
    hook blocked last. outputs: the output tokens at the last continuation. fell_back: thinking was taken out for the
    fallback model. awaited: the calls that wait for approval. approvals: every decision given so far. untold: the calls
    among them that no event tells of. unpaid: what notes and sub-agents have cost that no event tells of, by the names
    of the totals. nested_awaited, nested_approvals: the calls that wait for approval in the runs inside calls, and the
    decisions on such, by the calls that these runs are inside. left_ms: what is left of the deadline.
    """

    run: str
    state: State
    context: Context
    terminal: Terminal | None
    settings: Mapping[str, Any]
    entries: tuple[Entry, ...]
    tool_use_ids: frozenset[str]
    base: tuple[Entry, ...] | None
    pending: tuple[Command, ...]
    answer: PastAnswer | None
    text: tuple[Skeleton, ...] | None
    message_id: str | None
    summary: PastSummary | None
    staged: tuple[PastStaged, ...]
    in_vain: Mapping[Step, int]
    summary_failed_at: str | None
    api_refuses: bool
    counted: PastCount | None
    learned: tuple[Learned, ...]
    block_reason: str | None
    outputs: int
    fell_back: bool
    awaited: tuple[str, ...]
    approvals: Mapping[str, PastApproval]
    untold: tuple[str, ...]
    unpaid: Mapping[str, int]
    nested_awaited: Mapping[str, tuple[str, ...]]
    nested_approvals: Mapping[str, Mapping[str, PastApproval]]
    left_ms: int | None

    def changes(self, now: Mapping[str, Any]) -> tuple[SettingChange, ...]:
        """In what `now`, by the names in `COMPARED`, is not what the run had."""
        return tuple(
            SettingChange(name=name, was=self.settings[name], now=now[name])
            for name in COMPARED
            if self.settings[name] != now[name]
        )
