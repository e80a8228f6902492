"""Decisions: which event follows an answer, for every stop reason that there is or may be."""

from collections.abc import Mapping

import attrs

from looplatch.states.event import Event
from looplatch.states.events import StopReasonUnknown, ToolsRequested


@attrs.frozen(kw_only=True)
class Decisions:
    """The total map from how an answer ended to the event that `decide` is left by, or the hooks are asked by.

    by_reason: the event of each stop reason that is known, for an answer without calls. cut: those of an answer that
    ended too early; its calls are not asked for. with_calls: the event of every other answer that has calls.
    otherwise: the event of a stop reason that is not known.
    """

    by_reason: Mapping[str, type[Event]] = attrs.field(factory=dict[str, type[Event]])
    cut: frozenset[str] = frozenset()
    with_calls: type[Event] = ToolsRequested
    otherwise: type[Event] = StopReasonUnknown

    def event(self, stop_reason: str | None, calls: int) -> type[Event]:
        """The event that follows an answer: calls ask for tools unless it was cut; else the stop reason decides."""
        if calls and stop_reason not in self.cut:
            return self.with_calls
        return self.by_reason.get(stop_reason or "", self.otherwise)

    def is_whole(self, stop_reason: str | None) -> bool:
        """Whether the model said all that it wanted to; after a reason that is not known, nobody can tell."""
        return stop_reason in self.by_reason and stop_reason not in self.cut
