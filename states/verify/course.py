"""The course of a run: what it asks for, how that ends, and what each move tells of it."""

from collections.abc import Collection, Mapping
from typing import Any, Final

from looplatch.states.verify.approvals import TOLD as OF_APPROVALS
from looplatch.states.verify.approvals import Approvals
from looplatch.states.verify.claims import Edits
from looplatch.states.verify.ends import OF_ENDS, Ends, is_retry
from looplatch.states.verify.findings import Findings
from looplatch.states.verify.requests import OF_RETRIES, Requests
from looplatch.states.verify.sizes import SIZED, Sizes
from looplatch.states.verify.summaries import TOLD as OF_SUMMARIES
from looplatch.states.verify.summaries import Summaries

_BEFORE_TOOL: Final = "before_tool"
_TELLING: Final = SIZED | OF_RETRIES | OF_SUMMARIES | OF_APPROVALS


class Course:
    """Hands the records of effects, and the moves, to those who compare them."""

    def __init__(self, findings: Findings) -> None:
        self.sizes = Sizes(findings)
        self._ends = Ends(findings)
        self._requests = Requests(findings, self.sizes)
        self._summaries = Summaries(findings)
        self._approvals = Approvals(findings)
        self._edits = Edits(findings)

    def configure(self, genesis: dict[str, Any]) -> None:
        """The run says what it is made of."""
        self._requests.configure(genesis)

    def claim(self, record: dict[str, Any]) -> None:
        """A new process owns the run."""
        self._edits.claim(record)
        self._approvals.claim(record)
        self._summaries.claim()
        self._ends.claim()
        self.sizes.claim()
        self._requests.claim(record)

    # --- effects

    def begin(self, kind: str, record: dict[str, Any], context: Mapping[str, Any]) -> None:
        """An effect of this class begins."""
        match kind:
            case "tool":
                self._edits.begin(record["tool_use_id"], record.get("edited"))
            case "hook":
                if record["point"] == _BEFORE_TOOL:
                    self._edits.ask_hook()
            case "model":
                self._ends.begin()
                self._requests.begin(record, context)
                self._edits.ask()
            case "summary":
                self._requests.ask(record, context)
                self._summaries.begin(record)
            case "count" | "size":
                self._requests.ask(record, context)
            case _:
                pass

    def end(self, kind: str, record: dict[str, Any], point: str | None, call: str | None) -> None:
        """It ends. point: of a hook; call: of a tool, or the one that a hook was asked about."""
        match kind:
            case "tool":
                self._approvals.end(str(call), record["outcome"])
            case "hook":
                if point == _BEFORE_TOOL:
                    self._edits.end_hook(call, record)
                else:
                    self._ends.end(record, kind, point)
            case "model" | "sleep":
                self._ends.end(record, kind, point)
            case "summary":
                self._summaries.end(record)
            case "count":
                self.sizes.count(record)
            case "size":
                self.sizes.ask(record)
            case _:
                pass

    # --- moves

    def move(
        self,
        record: dict[str, Any],
        fields: dict[str, Any],
        tried: int,
        fell_back: bool,
        calls: Collection[str],
        *,
        external: bool,
        cut: bool,
    ) -> None:
        """A move was made, and its event holds `fields`.

        tried, fell_back: the attempts, and whether the fallback model was named, in the context before it. calls: those
        of the answer. external: the event came from outside. cut: the answer that it tells of was.
        """
        event = record["event"]
        if is_retry(event, fields):
            self._ends.check_retry(tried, fell_back, fields)
        if event in OF_ENDS or self._ends.heard:
            self._ends.move(event, fields, external=external)
        if event not in _TELLING:
            return
        target = record["target"]
        if event in SIZED:
            joins = event == "ModelResponded" and (not cut or fields["begun"] > 0)
            self.sizes.move(event, target, fields, self._ends.model, joins=joins, fell_back=fell_back)
        if event in OF_RETRIES:
            self._requests.move(event, target, fields)
        if event in OF_SUMMARIES:
            self._summaries.move(event, record["source"], fields)
        if event in OF_APPROVALS:
            denied = event == "RunDenied" and self._edits.denied(fields["call"])
            self._approvals.move(event, target, fields, calls, denied=denied)
            if event == "ApprovalGiven":
                self._edits.approve(fields["calls"])
            elif event == "ToolsAnswered":
                self._edits.go_on(calls)
