"""Decisions on calls that wait for someone's word, sorted by the run that each call is of."""

from collections.abc import Mapping

import attrs

from looplatch.hooks import Allow, Deny
from looplatch.recovery.resume.past import PastApproval
from looplatch.recovery.resume.snapshot import Snapshot
from looplatch.recovery.waiting import waiting
from looplatch.states.brief import brief
from looplatch.states.errors import UsageError
from looplatch.states.given import check_kind

Approval = Allow | Deny


@attrs.frozen(kw_only=True)
class Approvals:
    """Decisions that are new. own: on calls of the run itself. nested: on those of the runs inside its calls."""

    own: Mapping[str, Approval] = attrs.field(factory=dict[str, Approval])
    nested: Mapping[str, Mapping[str, Approval]] = attrs.field(factory=dict[str, Mapping[str, Approval]])


def new_approvals(approvals: Mapping[str, Approval], snapshot: Snapshot) -> Approvals:
    """The decisions that were not given before.

    Raises UsageError for what is no decision, for a call that is not awaited, and for one that was decided otherwise.
    """
    check_kind("approvals", approvals, Mapping, "Give decisions by the ids of calls: {'toolu_...': Allow()}")
    shown = waiting(snapshot.awaited, snapshot.nested_awaited)
    own: dict[str, Approval] = {}
    nested: dict[str, dict[str, Approval]] = {}
    for call, approval in approvals.items():
        if not isinstance(approval, Allow | Deny):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError("approvals", f"{brief(approval)} is no decision", "Give Allow() or Deny('why')")
        found = shown.get(call)
        if found is None:
            _check_given(call, approval, snapshot, list(shown))
        elif found.under is None:
            own[call] = approval
        else:
            nested.setdefault(found.under, {})[found.call] = approval
    return Approvals(own=own, nested=nested)


def _check_given(call: str, approval: Approval, snapshot: Snapshot, shown: list[str]) -> None:
    """Raise unless the same was decided before."""
    before: PastApproval | None = snapshot.approvals.get(call)
    for under, known in snapshot.nested_approvals.items():
        before = before or known.get(call.removeprefix(f"{under}/"))
    if before is None:
        awaited = ", ".join(shown) or "none"
        raise UsageError("approvals", f"the call {brief(call)} is not awaited", f"Awaited are: {awaited}")
    if before.allowed is not isinstance(approval, Allow):
        told = "allowed" if before.allowed else "denied"
        raise UsageError("approvals", f"the call {call} was {told} already", "Leave it out")
