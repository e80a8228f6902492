"""What a run that begins inside a call has from the run that made the call."""

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any, Final

import attrs

from looplatch.audit.protocol import AuditLog
from looplatch.blocks import ToolUseBlock
from looplatch.hooks import Allow, Deny
from looplatch.states.context import TOTALS
from looplatch.states.record import Record
from looplatch.tools import Call
from looplatch.workplace import Workplace

NOTHING: Final[Mapping[str, int]] = dict.fromkeys(TOTALS, 0)


@attrs.frozen(kw_only=True)
class Child:
    """How far the run inside a call has come: its last record, and what it has spent in all.

    file: the name of its log, None in memory. pending: the calls that it waits for someone's word on; it is suspended
    then.
    """

    run: str
    seq: int
    hash: str
    file: str | None
    spent: Mapping[str, int]
    pending: tuple[ToolUseBlock, ...] = ()

    @classmethod
    def of(cls, log: AuditLog, spent: Mapping[str, int], pending: tuple[ToolUseBlock, ...]) -> "Child":
        """The child that writes `log`."""
        count, head = log.head
        file = None if log.file is None else log.file.name
        return cls(run=log.run, seq=count - 1, hash=head, file=file, spent=spent, pending=pending)


@attrs.frozen(kw_only=True)
class Earlier:
    """What an earlier process knew of the run inside a call.

    paid: what is on record that it has spent. pending: the calls that it waited for someone's word on. approvals:
    decisions on them.
    """

    paid: Mapping[str, int] = NOTHING
    pending: tuple[ToolUseBlock, ...] = ()
    approvals: Mapping[str, Allow | Deny] = attrs.field(factory=dict[str, Allow | Deny])


FIRST_TIME: Final = Earlier()
"""Of a call that no earlier process has carried out."""


@attrs.define(kw_only=True, eq=False)
class Parentage:
    """A call that is being carried out: the run it belongs to, and the record of its begin.

    child: the run that its tool makes, once there is one.
    """

    at: Workplace
    call: Call
    begin: Record
    earlier: Earlier
    child: Child | None = None

    @property
    def pending(self) -> tuple[ToolUseBlock, ...]:
        """The calls that the run inside waits for someone's word on."""
        return () if self.child is None else self.child.pending

    def known(self) -> Earlier:
        """What is to be known of the run inside, once this record of it has an end."""
        child = self.child
        return self.earlier if child is None else Earlier(paid=child.spent, pending=child.pending)

    def spent(self) -> dict[str, Any]:
        """What the record of the call's end says of the run inside, nothing where there was none; it is counted now."""
        child = self.child
        if child is None:
            return {}
        named = {"run": child.run, "seq": child.seq, "hash": child.hash, "log": child.file}
        usage = {name: child.spent[name] - self.earlier.paid[name] for name in TOTALS}
        self.at.budget.add(usage)
        return {"child": named, "usage": usage}


PARENTAGE: Final[ContextVar[Parentage | None]] = ContextVar("looplatch_parentage", default=None)
"""The call whose tool is running."""
