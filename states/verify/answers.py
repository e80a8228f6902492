"""What the records say that the model wrote, against the message that the history keeps of it."""

from typing import Any, Final

from looplatch.states.decisions import Decisions
from looplatch.states.events import TurnPaused
from looplatch.states.verify.findings import Findings

_SERVED: Final = "_tool_result"
_THOUGHTS: Final = ("thinking", "redacted_thinking")


class Answers:
    """Follows the answer to one request: its blocks as the effect records name them, and what of them joins.

    A tool's effect_begin names the blocks up to its call, the model's effect_end all others, and the texts that the
    model left unfinished.
    """

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self.ask()

    @property
    def calls(self) -> int:
        """How many calls of it are in the history."""
        return sum(block["type"] == "tool_use" for block in self._joined)

    def ask(self) -> None:
        """Another request is sent."""
        self._named: list[dict[str, Any]] = []
        self._unfinished: list[dict[str, Any]] = []
        self._joined: list[dict[str, Any]] = []
        self._end: dict[str, Any] | None = None

    def name(self, blocks: list[dict[str, Any]]) -> None:
        """A tool begins, and its record names blocks of the answer."""
        self._named += blocks

    def end(self, record: dict[str, Any]) -> None:
        """The model call has ended."""
        self._named += record["blocks"]
        self._unfinished = record["unfinished"]
        self._end = record

    def join(self, record: dict[str, Any]) -> None:
        """A message of the assistant's joins or grows after the run began."""
        if record["op"] != "join" or _owed(record):
            return
        add, end, blocks = self._findings.add, self._end, record["blocks"]
        if end is not None:
            for field in ("message_id", "stop_reason"):
                if record[field] != end[field]:
                    add("E6", f"the message's {field} is not that of the model call", end[field], record[field])
        self._joined += blocks
        if blocks == [*self._named, *self._unfinished]:
            return
        written = iter((*self._named, *self._unfinished))
        stopped = end is None or end["outcome"] != "ok"  # the texts at its end may be cut, and so are new
        strange = next((place for place, block in enumerate(blocks) if block not in written), len(blocks))
        if any(not stopped or block["type"] != "text" for block in blocks[strange:]):
            wanted = _commitments([*self._named, *self._unfinished])
            add("E6", "the message has a block that the answer has not", wanted, _commitments(blocks))

    def check_kept(self, stop_reason: str | None, calls: list[str], decisions: Decisions) -> None:
        """The answer is whole: unless it was cut, all of it must be in the history.

        Only thinking at its end stays out, as the API takes it there from a paused answer alone.
        """
        if stop_reason in decisions.cut:
            return
        wanted = [*self._named, *self._unfinished]
        if self._joined == wanted and not (wanted and wanted[-1]["type"] in _THOUGHTS):
            return
        if decisions.event(stop_reason, len(calls)) is not TurnPaused:
            while wanted and wanted[-1]["type"] in _THOUGHTS:
                wanted.pop()
        if self._joined != wanted:
            message = "the history does not keep the answer as the model gave it"
            self._findings.add("E6", message, _commitments(wanted), _commitments(self._joined))


def _owed(record: dict[str, Any]) -> bool:
    """Whether a message holds only results that a server's tools still owed, which the model did not write."""
    named = (record["message_id"], record["model"], record["stop_reason"])
    return named == (None, None, None) and all(block["type"].endswith(_SERVED) for block in record["blocks"])


def _commitments(blocks: list[dict[str, Any]]) -> list[str]:
    return [str(block["commitment"]) for block in blocks]
