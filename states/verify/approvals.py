"""Approvals: which calls wait for someone's word, what was decided on them, and the moves that tell of that."""

from collections.abc import Collection
from typing import Any, Final

from looplatch.states.state import State
from looplatch.states.verify.findings import Findings
from looplatch.states.verify.values import is_list

_SUSPENDED: Final = "suspended"  # how a call ends, for now, whose own run waits for someone's word

TOLD: Final = frozenset(("ApprovalAwaited", "ApprovalGiven", "RunDenied", "ToolsAnswered"))
"""Moves that tell of calls that wait, or of decisions on them."""


class Approvals:
    """Follows the calls that wait, and the decisions on them."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._waiting: list[str] = []
        self._inside: set[str] = set()  # calls whose own runs wait
        self._given: dict[str, dict[str, Any]] = {}
        self._new: list[dict[str, Any]] = []  # those of the last claim
        self._told: set[str] = set()

    def end(self, call: str, outcome: object) -> None:
        """A tool ends, for now or for good."""
        if outcome == _SUSPENDED:
            self._inside.add(call)
        else:
            self._inside.discard(call)

    def claim(self, record: dict[str, Any]) -> None:
        """A new owner brings decisions along: on calls that wait, and of each call one."""
        approvals = record.get("approvals")
        self._new = approvals if is_list(approvals) else []
        for one in self._new:
            call = one["call"]
            if call in self._given or (call not in self._waiting and call not in self._inside):
                wanted = ", ".join(self._waiting) or "no decision"
                self._findings.add("R3", "a decision on a call that does not wait for one", wanted, call)
            self._given[call] = one
            if set(one) ^ _FIELDS:
                self._findings.add("R3", "a decision says something else", ", ".join(sorted(_FIELDS)), sorted(one))
            says = (one["allowed"], one["interrupt"], one["message"] is None, one["input"] is None)
            if says not in _DECISIONS:
                self._findings.add("R3", "a decision that contradicts itself", "allowed, or denied with a message", one)
        for one in record.get("nested") or ():
            if one["under"] not in self._inside:
                wanted = ", ".join(sorted(self._inside)) or "no such decision"
                self._findings.add("R3", "a decision inside a call that does not wait", wanted, one["under"])

    def move(self, event: str, target: str, fields: dict[str, Any], calls: Collection[str], *, denied: bool) -> None:
        """One of `TOLD`. calls: those of the answer. denied: the hook has denied the one that the run ends with."""
        if event == "ApprovalAwaited":
            self._await(fields["calls"], calls)
        elif event == "ApprovalGiven":
            self._give(fields)
        elif event == "RunDenied":
            given = self._given.get(fields["call"])
            if fields["call"] not in calls or not ((given is not None and given["interrupt"] is True) or denied):
                self._findings.add("T7", "a call was denied with the run, and nobody did", "no such call", fields)
        else:
            for one in self._new:
                if one["interrupt"] is True and one["call"] in calls:
                    self._findings.add("T7", "a call was denied with the run, which goes on", "RunDenied", one["call"])
        if target != State.SUSPENDED:
            self._waiting = []

    def _await(self, told: list[str], calls: Collection[str]) -> None:
        if not told or len(set(told)) != len(told) or not set(told) <= set(calls):
            self._findings.add("T7", "others wait than calls of the answer", list(calls), told)
        self._waiting = told
        self._told.difference_update(told)
        for call in told:
            self._given.pop(call, None)  # the run inside it has gone on, and waits again

    def _give(self, fields: dict[str, Any]) -> None:
        untold = [call for call in self._given if call not in self._told]
        left = len([call for call in self._waiting if call not in self._given])
        if fields["calls"] != untold or fields["awaited"] != left:
            told = fields["calls"], fields["awaited"]
            self._findings.add("R3", "the event tells of other decisions than the claim", (untold, left), told)
        self._told.update(fields["calls"])


_FIELDS: Final[frozenset[str]] = frozenset(("call", "allowed", "interrupt", "message", "input"))
_DECISIONS: Final = frozenset(
    (allowed, interrupt, allowed, bare)
    for allowed, interrupt, bare in (
        (True, False, True),
        (True, False, False),
        (False, False, True),
        (False, True, True),
    )
)  # whether allowed, whether the run ends with the call, whether there is no message, and no other input
