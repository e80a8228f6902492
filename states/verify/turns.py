"""The order of calls and results in a history: every call answered once, at once, and in order."""

from collections.abc import Container
from typing import Any, Final

from looplatch.states.verify.findings import Findings

_ROLES: Final = ("user", "assistant", "system")
_COMPACTION: Final = ("other", "compaction")
Part = tuple[str, str]
"""What counts of a block: ("call", id), ("served", id) of a call that a server tool made, ("result", id), or ("other",
its type)."""


def parts_of(blocks: list[dict[str, Any]]) -> tuple[Part, ...]:
    """What counts of a message's skeletons."""
    return tuple([_part(block) for block in blocks])


def _part(block: dict[str, Any]) -> Part:
    kind = block["type"]
    if kind == "tool_use":
        return "call" if block.get("caller", "direct") == "direct" else "served", block["id"]
    return ("result", block["tool_use_id"]) if kind == "tool_result" else ("other", kind)


class Turns:
    """Reads a history message by message, as the API does: messages of one role in a row are one.

    `given` holds the ids of the calls that the run started from: the API lets an id come again in a later turn, and
    what a caller hands in may make use of that.
    """

    def __init__(self, findings: Findings, given: Container[str]) -> None:
        self.unanswered: list[str] = []
        self._findings = findings
        self._given = given
        self._turn: set[str] = set()  # the ids of the current turn
        self._ids: set[str] = set()
        self._answered: set[str] = set()  # calls of the current turn that have their result
        self._served: set[str] = set()  # calls of a server tool in this turn: they may be left to the server
        self._role: str | None = None
        self._other: bool = False  # something else than a result stands in this turn of the user's

    def read(self, role: str, parts: tuple[Part, ...]) -> None:
        """The next message, or more of the last one."""
        add = self._findings.add
        compacted = parts[:1] == (_COMPACTION,)  # the API's own block: it stands for the messages before it
        if role not in _ROLES or (self._role is None and role != "user" and not compacted):
            add("E6", "the API does not take this role here", "user first; user, assistant or system", role)
        if role != self._role and role == "assistant":
            self.check_answered("before the next answer")
            self._answered.clear()
            self._served.clear()
            self._turn.clear()
        if role != self._role:
            self._other = False
        self._role = role
        for kind, name in parts:
            if kind in ("call", "served") and role == "assistant":
                if name in self._turn or (name in self._ids and name not in self._given):
                    add("T1", "a tool_use id occurs twice", "a new id", name)
                self._ids.add(name)
                self._turn.add(name)
                if kind == "call":
                    self.unanswered.append(name)
                else:
                    self._served.add(name)
            elif kind == "result":
                self._answer(name, role)
            else:
                self._other = True

    def _answer(self, name: str, role: str) -> None:
        add = self._findings.add
        if name in self._answered:
            add("T2", "a call is answered twice", "one tool_result", name)
        elif name in self._served:
            if self._other and role == "user":
                add("T3", "a tool_result after other content", "results first", name)
            self._answered.add(name)
        elif name not in self.unanswered:
            add(
                "T3",
                "a tool_result without its call directly before",
                ", ".join(self.unanswered) or "no tool_result",
                name,
            )
        else:
            if self._other and role == "user":
                add("T3", "a tool_result after other content", "results first", name)
            if name != self.unanswered[0]:
                add("T4", "the results are not in the order of the calls", self.unanswered[0], name)
            self.unanswered.remove(name)
            self._answered.add(name)

    def check_answered(self, when: str) -> None:
        """Every call so far must have its result."""
        if self.unanswered:
            self._findings.add(
                "T2", f"calls have no result {when}", "a tool_result for each", ", ".join(self.unanswered)
            )
            self.unanswered = []
