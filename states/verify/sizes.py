"""Sizes: what a move says of the prompt and of the model's window, against what was counted and measured before."""

from typing import Any, Final

from looplatch.states.record import MAX_INT
from looplatch.states.state import State
from looplatch.states.verify.findings import Findings

_PREPARE, _STREAM = str(State.PREPARE), str(State.STREAM)

SIZED: Final = frozenset(
    (
        "ContextReady", "HistoryCompressed", "HistorySummarised", "ModelResponded", "ModelFailed", "ContextExceeded",
        "TroubleNamed", "BackoffElapsed",
    )
)  # fmt: skip
"""Moves that tell how large something is, or after which that is known, or no more known."""


class Sizes:
    """Follows how large the history and the window are said to be, as far as one process knows it.

    learned: how often something became known of the model that may change what can be asked of it.
    """

    def __init__(self, findings: Findings) -> None:
        self.learned = 0
        self._findings = findings
        self._window: tuple[int | None] | None = None  # as the last record had it; None: it is not known here
        self._tokens = 0  # of the prompt, at least
        self._exact = False  # or exactly
        self._before: tuple[int, bool] | None = None  # both, before the history was rewritten
        self._ready: int | None = None  # of the request that is to follow, with the longest answer to it

    # --- what was counted

    def count(self, record: dict[str, Any]) -> None:
        """The API was asked how large the history is."""
        if record["outcome"] == "ok" and type(record["tokens"]) is int:
            self._know(record["tokens"])

    def ask(self, record: dict[str, Any]) -> None:
        """The API was asked how large the model is."""
        self.learned += 1
        if self._window == (None,):
            self._window = (record["window"],)

    def _know(self, tokens: int) -> None:
        self._tokens, self._exact = tokens, True

    def _measure(self, window: int) -> None:
        self.learned += 1
        if self._window is not None and window:
            known = self._window[0]
            self._window = (min(window, MAX_INT) if known is None else min(known, window),)

    # --- moves

    def move(
        self,
        event: str,
        target: str,
        fields: dict[str, Any],
        end: dict[str, Any] | None,
        *,
        joins: bool,
        fell_back: bool,
    ) -> None:
        """A move of `SIZED`. end: of the last call of the model. joins: some of its answer stays in the history."""
        match event:
            case "ContextReady":
                self._check_ready(target, fields)
            case "HistoryCompressed" | "HistorySummarised":
                self._check_shortened(fields, event)
            case "ModelResponded" if end is not None:
                held = end.get("held")
                if held is not None:
                    self._know(held["prompt"] + (held["output"] if joins else 0))
            case "ContextExceeded" if end is not None:  # the window's end has cut the answer
                held = end.get("held")
                if held is not None:
                    self._measure(held["prompt"] + held["output"])
            case "ModelFailed" if end is not None:  # the API may have measured the request that it refused
                measured = None if end["error"] is None else end["error"].get("measured")
                if measured is not None:
                    self._measure(measured["window"])
                    self._know(measured["input_tokens"])
            case "TroubleNamed" if target == _PREPARE and fields["staged"]:
                self._forget()  # summaries may be applied, of which no move tells
            case "BackoffElapsed" if fell_back:
                self._fall_back()
            case _:
                pass

    # --- what changes that

    def grow(self) -> None:
        """Something was said: the history is not smaller than before."""
        self._exact = False

    def rewrite(self) -> None:
        """The history becomes another one: a move may tell how large it was, and is."""
        if self._tokens:
            self._before = self._tokens, self._exact
        self._tokens, self._exact = 0, False

    def _forget(self) -> None:
        """It does, and no move will tell."""
        self._tokens, self._exact, self._before = 0, False, None

    def _fall_back(self) -> None:
        """Another model may go on, of which nothing is known."""
        self.learned += 1
        self._window = None
        self._forget()

    def claim(self) -> None:
        """A new process goes on."""
        self._fall_back()
        self._ready = None

    # --- what is said of it

    def _check_ready(self, target: str, fields: dict[str, Any]) -> None:
        """The next request was estimated."""
        window = fields["window"]
        if self._window is not None and self._window != (window,):
            self._findings.add("C7", "the model's window is another one than before", self._window[0], window)
        self._window = (window,)
        self._ready = fields["tokens"] if target == _STREAM else None

    def check_request(self, limit: int) -> None:
        """The request that was estimated: its prompt, and the longest answer to it."""
        if self._ready is not None and self._ready < MAX_INT:
            self._check(self._ready - limit, "the request")
        self._ready = None

    def _check_shortened(self, fields: dict[str, Any], event: str) -> None:
        """The history became shorter."""
        before, after = fields["tokens_before"], fields["tokens_after"]
        if event == "HistoryCompressed" and after >= before:
            self._findings.add("C7", "the compression shortened nothing", f"fewer than {before} tokens", after)
        if self._before is not None:
            (self._tokens, self._exact), self._before = self._before, None
        self._check(before, "the history that was shortened")
        if not 0 <= fields["cache_lost"] <= before:
            self._findings.add("C7", "more is lost than was cached", f"0 to {before} tokens", fields["cache_lost"])
        self._know(after)

    def _check(self, tokens: int, what: str) -> None:
        if tokens < self._tokens or (self._exact and tokens != self._tokens):
            wanted = f"{'' if self._exact else 'at least '}{self._tokens} tokens"
            self._findings.add("C7", f"{what} has another size than was counted", wanted, tokens)
        self._tokens, self._exact = max(tokens, 0), False
