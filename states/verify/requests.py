"""Requests: each asks the run's model for as much as it may, and a retry is the request before it or says why not."""

from collections.abc import Mapping
from typing import Any, Final

from looplatch.states.state import State
from looplatch.states.verify.findings import Findings
from looplatch.states.verify.sizes import Sizes
from looplatch.states.verify.values import is_object

_STREAM: Final = str(State.STREAM)
_NAME_LIMIT: Final = 256  # characters of a model's name that a request's record keeps
_FALLBACK: Final = "fallback_model"  # why a retry is another request: another model is asked
_LOWER_LIMIT: Final = "max_tokens"  # why it is: the answer may not be as long as was asked
_MOST_TOKENS: Final = 64_000  # that an answer which was cut is ever asked for again with

OF_RETRIES: Final = frozenset(("TroubleNamed", "BackoffElapsed"))
"""Moves after which a request may be another one, or must be the same."""


class Requests:
    """Follows what is asked of which model.

    A log does not hold all that the loop was given: the names of the fallback model and of the one that writes
    summaries, and the ordinary max_tokens, are learned from the first record that has them. They hold for its process.
    """

    def __init__(self, findings: Findings, sizes: Sizes) -> None:
        self._findings = findings
        self._sizes = sizes
        self._model = ""  # the run's own
        self._others: dict[str, str] = {}
        self._last: tuple[Any, int, str] | None = None  # the request before: what it sent, its limit, its model
        self._learned = 0  # how much was known of the model then
        self._retries = False  # the next request is the last one again
        self._same = False  # in every way, but for a lower limit
        self._fell_back = self._may_differ = False  # the fallback model was named; the next retry goes to it first
        self._limit: tuple[int, int] | None = None  # the ordinary max_tokens, and how much was known of the model then

    def configure(self, genesis: dict[str, Any]) -> None:
        """The run says which model it asks."""
        self._model = genesis["model"][:_NAME_LIMIT]

    def begin(self, record: dict[str, Any], context: Mapping[str, Any]) -> None:
        """A model call begins."""
        add, sent, limit, model = self._findings.add, record["sent"], record["max_tokens"], record["model"]
        self._check_model(model, context)
        last, differs = self._last, record.get("differs")
        if not self._retries:
            if differs is not None:
                add("E5", "a request that is no retry says that it differs", "no reason", differs)
            self._check_limit(limit, context)
            self._sizes.check_request(limit)
        else:
            wanted = None
            if last is not None:
                wanted = _FALLBACK if model != last[2] else _LOWER_LIMIT if limit < last[1] else None
                if self._same and (sent != last[0] or limit > last[1] or model != last[2]):
                    add("E5", "the retry is another request", last, (sent, limit, model))
            if differs != wanted:
                add("E5", "the retry differs otherwise than it says", wanted, differs)
        self._last = (sent, limit, model)
        self._learned = self._sizes.learned
        self._retries = False

    def ask(self, record: dict[str, Any], context: Mapping[str, Any]) -> None:
        """The API is asked for a summary, or how large the model or the history is."""
        model: str = record["model"]
        if record["class"] != "summary" or record["by"] == "api":
            self._check_model(model, context)
        elif model != (wanted := self._others.setdefault("summary", model)):
            self._findings.add("E5", "another model is asked for a summary than before", wanted, model)

    def _check_model(self, model: str, context: Mapping[str, Any]) -> None:
        """It is the run's own, or the fallback model once that is due."""
        wanted = self._others.setdefault(_FALLBACK, model) if context["fallback"] else self._model
        if model != wanted:
            self._findings.add("E5", "another model is asked than the run's", wanted, model)

    def _check_limit(self, limit: int, context: Mapping[str, Any]) -> None:
        """The max_tokens: always the same, but for what is learned of the model, and what an escalation allows."""
        escalated, learned = context["output_limit"], self._sizes.learned
        if context["fallback"]:
            self._limit = None  # it has limits of its own
            return
        least, most = 1, limit
        if self._limit is not None:
            known, then = self._limit
            least, most = known if then == learned else 1, max(known, escalated)
        if not least <= limit <= most:
            self._findings.add("E5", "the request asks for another max_tokens than it may", f"{least} to {most}", limit)
        elif not escalated:
            self._limit = limit, learned

    def move(self, event: str, target: str, fields: dict[str, Any]) -> None:
        """One of `OF_RETRIES` was made."""
        if event == "TroubleNamed":
            if fields["fallback"] and not self._fell_back:
                self._fell_back = self._may_differ = True  # thinking that is bound to the other model goes
            if fields["output_limit"]:
                self._check_escalation(fields["output_limit"])
        elif event == "BackoffElapsed":
            self._retries = target == _STREAM
            self._same, self._may_differ = not self._may_differ, False

    def _check_escalation(self, limit: int) -> None:
        """A higher limit than that of the answer that was cut, within what is ever asked for."""
        least = self._last[1] + 1 if self._last is not None and self._learned == self._sizes.learned else 1
        if not least <= limit <= _MOST_TOKENS:
            self._findings.add("M8", "an answer may not be so long", f"0, or {least} to {_MOST_TOKENS}", limit)

    def claim(self, record: dict[str, Any]) -> None:
        """A new process, which may have been given other models and another max_tokens."""
        changes = record.get("changes")
        change = changes.get("model") if is_object(changes) else None
        if change is not None:
            self._model = change["now"][:_NAME_LIMIT]
        self._others.clear()
        self._last = self._limit = None
        self._retries = False
