"""What waits for someone's word, and what was decided, as the moves and the claims of a log tell of it."""

from collections.abc import Mapping

from looplatch.recovery.resume.past import PastApproval, PastTool
from looplatch.states.record import Record
from looplatch.states.state import State


class ApprovalFold:
    """Follows the decisions on calls.

    awaited: the calls of the last event that told of some. given: every decision so far. nested: those on calls of the
    runs inside calls, by the latter, as long as these may not know of them.
    """

    def __init__(self) -> None:
        self.given: dict[str, PastApproval] = {}
        self.nested: dict[str, dict[str, PastApproval]] = {}
        self._awaited: tuple[str, ...] = ()
        self._reported: set[str] = set()

    @property
    def awaited(self) -> tuple[str, ...]:
        """The calls that wait."""
        return tuple(call for call in self._awaited if call not in self.given)

    @property
    def untold(self) -> tuple[str, ...]:
        """The calls decided on that no event tells of."""
        return tuple(call for call in self.given if call not in self._reported)

    def move(self, record: Record) -> None:
        """A move."""
        if record["event"] == "ApprovalAwaited":
            self._awaited = tuple(record["fields"]["calls"])
            self._reported.difference_update(self._awaited)
            for call in self._awaited:
                self.given.pop(call, None)  # the run inside it has gone on, and waits again
        elif record["event"] == "ApprovalGiven":
            self._reported.update(record["fields"]["calls"])
        if record["target"] != State.SUSPENDED:
            self._awaited = ()

    def claim(self, record: Record) -> None:
        """A new owner brings decisions along."""
        for fields in record.get("approvals", ()):
            self.given[fields["call"]] = PastApproval(**fields)
        for fields in record.get("nested", ()):
            rest = {name: value for name, value in fields.items() if name != "under"}
            self.nested.setdefault(fields["under"], {})[fields["call"]] = PastApproval(**rest)

    def end(self, call: str | None) -> None:
        """A tool has ended, and with it, for now or for good, the run inside it."""
        if call is not None:
            self.nested.pop(call, None)

    def nested_awaited(self, tools: Mapping[str, PastTool]) -> dict[str, tuple[str, ...]]:
        """The calls that wait in the runs inside calls, by the latter."""
        return {
            under: tuple(call for call in tool.waiting["awaited"] if call not in self.nested.get(under, {}))
            for under, tool in tools.items()
            if tool.waiting is not None
        }
