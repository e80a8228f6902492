"""Ends: how the calls of the model and the waits between them ended, against the moves that follow from that."""

from typing import Any, Final

from looplatch.states.state import State
from looplatch.states.trouble import CALL_TROUBLES, TroubleKind
from looplatch.states.verify.findings import Findings

_RECOVER: Final = str(State.RECOVER)
_OK: Final = "ok"
_STOPPED: Final = "interrupted"  # from outside
_TROUBLES: Final = frozenset(map(str, CALL_TROUBLES))
_FIRST_MS: Final = 500  # the wait before the first retry, of which chance takes up to a half
_LONGEST_MS: Final = 32_000
_MOST_DOUBLINGS: Final = 16
_OVERLOADED: Final = ("overloaded_error", 529)  # the type and the status for which another model is asked
_NEVER_FIRST: Final = 2  # tries that have failed by then, at least


OF_ENDS: Final = frozenset(("ModelResponded", "ModelFailed", "BackoffElapsed"))
"""Moves that tell how an effect ended."""


class Ends:
    """Follows how effects ended. model: the record that ended the last call of the model, None while there is none."""

    def __init__(self, findings: Findings) -> None:
        self.model: dict[str, Any] | None = None
        self._findings = findings
        self.heard = False  # of what the next move is to be compared with, whatever it is
        self._waited = False  # a wait has ended by itself, and nothing followed yet
        self._hook: str | None = None  # what the hook raised that was shown the answer

    def begin(self) -> None:
        """A call of the model begins."""
        self.model = None

    def end(self, record: dict[str, Any], kind: str, point: str | None) -> None:
        """An effect of this class ends; a hook of this point."""
        outcome = record["outcome"]
        if kind == "model":
            self._end_model(record, outcome)
            self.model = record
        elif kind == "sleep":
            if outcome not in (_OK, _STOPPED):
                self._findings.add("C5", "a wait cannot end so", f"{_OK} or {_STOPPED}", outcome)
            self._waited = outcome == _OK
            self.heard = self.heard or self._waited
        elif point == "after_response" and outcome != _OK:
            self._hook, self.heard = outcome, True

    def _end_model(self, record: dict[str, Any], outcome: str) -> None:
        """The outcome is the error's type where there is one, and the trouble that follows is named with it."""
        error, trouble = record["error"], record.get("trouble")
        if error is None:
            right, wanted = outcome in (_OK, _STOPPED) and trouble is None, f"{_OK} or {_STOPPED}, and no trouble"
        else:
            right = outcome == error["type"] and (trouble in _TROUBLES or "trouble" not in record)
            wanted = f"{error['type']}, and its trouble"
        if not right:
            self._findings.add("M13", "the call's outcome, error and trouble differ", wanted, (outcome, trouble))

    # --- moves

    def claim(self) -> None:
        """A new process waits again."""
        self._waited = False

    def move(self, event: str, fields: dict[str, Any], *, external: bool) -> None:
        """One of `OF_ENDS` was made, or any move where something was heard."""
        if self._hook is not None and not external:
            self._findings.add("M13", "a hook has failed, and the run goes on", "its end", event)
        self._hook, self.heard = None, False
        if event == "ModelResponded":
            if self.model is None or self.model["outcome"] != _OK or self.model["error"] is not None:
                found = None if self.model is None else self.model["outcome"]
                self._findings.add("M13", "the model responded, and its call has not ended so", _OK, found)
            elif self.model["stop_reason"] != (told := fields["stop_reason"]):
                wanted = self.model["stop_reason"]
                self._findings.add("M13", "the stop reason is not that of the model call", wanted, told)
        elif event == "ModelFailed":
            self._check_failure(fields)
        elif event == "BackoffElapsed" and not self._waited:
            self._findings.add("C5", "the wait is said to be over, and has not ended so", _OK, "no such end")
        self._waited = False

    def _check_failure(self, fields: dict[str, Any]) -> None:
        model = self.model
        error = None if model is None else model["error"]
        told = fields["failure"], fields["status"], str(fields["trouble"])
        if model is None or error is None:
            self._findings.add("M13", "the model failed, and its call has not ended so", "an error", told)
            return
        wanted = error["type"], error["status"], model.get("trouble", told[2])
        if told != wanted:
            self._findings.add("M13", "the model failed otherwise than its call ended", wanted, told)

    def check_retry(self, tried: int, fell_back: bool, fields: dict[str, Any]) -> None:
        """A retry was named: how long to wait, and whether for another model. tried: how often it has failed before."""
        error: dict[str, Any] | None = None if self.model is None else self.model["error"]
        delay, asked = fields["delay_ms"], None if error is None else error["retry_after_ms"]
        if error is not None and error.get("measured") is not None:
            least = most = max(asked or 0, 0)  # waiting would mend nothing
        elif asked is not None:
            least = most = max(asked, 0)
        else:
            most = min(_LONGEST_MS, _FIRST_MS << min(tried, _MOST_DOUBLINGS))
            least = most - most // 2
        if not least <= delay <= most:
            self._findings.add("C5", "the wait is not within its bounds", f"{least} to {most} ms", delay)
        due = error is not None and (error["type"] == _OVERLOADED[0] or error["status"] == _OVERLOADED[1])
        if fields["fallback"] is not fell_back and (fell_back or not due or tried + 1 < _NEVER_FIRST):
            self._findings.add("M8", "another model is to go on otherwise than is due", fell_back, fields["fallback"])


def is_retry(event: str, fields: dict[str, Any]) -> bool:
    """Whether a move tells of a retry of the model's call."""
    return event == "TroubleNamed" and fields["trouble"] is TroubleKind.TRANSIENT
