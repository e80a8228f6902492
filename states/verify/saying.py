"""Who may speak: after the run began the model answers, tools give results, and a text comes where a move asks."""

from typing import Any, Final

from looplatch.states.reasons import Continue
from looplatch.states.state import State
from looplatch.states.verify.findings import Findings

_STREAM: Final = str(State.STREAM)
_RESULT: Final = "tool_result"  # and those of the server's own tools, whose types end in it
_SENT: Final = "send"  # the caller said it, in the middle of the run
_MARKED_FROM: Final = 2  # the first schema in which that is on record
_NEXT: Final = Continue.NEXT_TURN  # the caller may have said something meanwhile, as often as it likes
_ASKING: Final = (
    Continue.MAX_OUTPUT_TOKENS_RECOVERY,
    Continue.STOP_HOOK_BLOCKING,
    Continue.TOKEN_BUDGET_CONTINUATION,
)


class Saying:
    """Judges each message that joins or grows at the end, by the state that it joins in and the reason to go on."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._said = 0
        self._claimed = False

    def go_on(self) -> None:
        """A move with a reason to go on: it may bring one text of its own."""
        self._said = 0

    def claim(self) -> None:
        """A new owner puts right what its predecessor left, until it takes the run up."""
        self._claimed = True

    def take_up(self) -> None:
        """It does."""
        self._claimed = False

    def check(self, record: dict[str, Any], state: str, reason: object) -> None:
        """A message record at the end of the history, after the run began and while nothing is compressed."""
        if self._claimed:
            return
        if record["role"] != "user":
            self._check_model(record, state, reason)
            return
        types = [block["type"] for block in record["blocks"] if block["type"] != "tool_result"]
        if not (texts := len(types)):
            return
        if strange := [type_ for type_ in types if type_ != "text"]:
            self._findings.add("E6", "nothing but results and texts is said in a run", "text", ", ".join(strange))
        self._said += texts
        origin = record.get("origin")
        if origin is not None and (origin != _SENT or reason != _NEXT):
            self._findings.add("E6", "nobody can have said this here", f"{_SENT}, after {_NEXT}", origin)
        elif reason == _NEXT and origin != _SENT and record["v"] >= _MARKED_FROM:
            self._findings.add("E6", "nobody is said to have said this", f"the origin {_SENT}", origin)
        elif state != State.PREPARE or (reason != _NEXT and (reason not in _ASKING or self._said > 1)):
            found = f"{texts} such blocks in {state}"
            self._findings.add("E6", "no move asks for more than results here", "tool_result blocks alone", found)

    def _check_model(self, record: dict[str, Any], state: str, reason: object) -> None:
        if record["role"] != "assistant":
            self._findings.add("E6", "nobody speaks in this role in a run", "user or assistant", record["role"])
        elif record["op"] == "extend":
            types = [block["type"] for block in record["blocks"] if not block["type"].endswith(_RESULT)]
            if types:
                self._findings.add("E6", "the model adds nothing to an answer that is over", "results", types)
        elif state != _STREAM and (state != State.PREPARE or reason not in _ASKING):
            self._findings.add("E6", "the model answers in stream alone", str(State.STREAM), state)
