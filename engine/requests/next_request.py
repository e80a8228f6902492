"""The next request of a run: the loop's parts, and what this run has made different."""

from collections.abc import Mapping
from typing import Any, Final

from looplatch.ports import ModelRequest
from looplatch.recovery.compression.server_edits import BETA as CONTEXT_BETA
from looplatch.recovery.compression.server_edits import context_management
from looplatch.recovery.failure import Failure
from looplatch.recovery.strategies.max_output_tokens_escalate import trouble_of_request
from looplatch.requests.request import COMPACTION_BETA
from looplatch.states.context import Context
from looplatch.states.trouble import TroubleKind
from looplatch.workplace import Workplace

FALLBACK: Final = "fallback_model"  # why a retry is another request: another model is asked
LOWER_LIMIT: Final = "max_tokens"  # why it is: the answer may not be as long as was asked
_MARGIN: Final = 0.02  # of the window: what an estimate may be off when an answer is to have all that is left


class NextRequest:
    """Makes each request of a run from the history as it is."""

    def __init__(self, at: Workplace) -> None:
        self._at = at
        self._previous: str | None = None  # the id of the answer before
        self._fell_back = False
        self._last: tuple[str, int] | None = None  # the model and the limit of the last request

    def restore(self, message_id: str | None, *, fell_back: bool) -> None:
        """Know the id of the answer before, and whether the history is the fallback model's."""
        self._previous, self._fell_back = message_id, fell_back

    def model(self, context: Context) -> str:
        """The model that is asked now."""
        return (context.fallback and self._at.plan.fallback_model) or self._at.plan.parts.model

    def limit(self, context: Context, tokens: int) -> int:
        """The max_tokens of a request whose prompt has so many tokens.

        An escalated limit is lowered to what the window leaves; the ordinary one is not, since less would be no answer.
        """
        sizes, ordinary, room = self._at.sizes, self.ordinary_limit, self.room(tokens)
        wanted = context.output_limit if sizes.output is None else min(context.output_limit, sizes.output)
        return max(ordinary, wanted if room is None else min(wanted, room))

    def room(self, tokens: int) -> int | None:
        """What a prompt of about so many tokens leaves for the answer to it; None where no window is known."""
        window = self._at.sizes.window
        return None if window is None else window - tokens - int(_MARGIN * window)

    @property
    def ordinary_limit(self) -> int:
        """The max_tokens of a request that is not escalated: more than what it may think, or the API refuses it."""
        plan = self._at.plan
        limit = self._at.sizes.answer(plan.max_tokens)
        match plan.parts.params.get("thinking"):
            case {"type": "enabled", "budget_tokens": int(budget)} if self._thinks:
                return max(limit, min(plan.max_tokens, budget + 1))
            case _:
                return limit

    def answered(self, message_id: str | None) -> None:
        """An answer has come whole."""
        self._previous = message_id or self._previous

    def fall_back(self) -> None:
        """The next request goes to the fallback model, from a history without the thinking of the first one."""
        self._fell_back = True

    @property
    def _thinks(self) -> bool:
        """Whether the model may think. Not in a turn with open tools whose thinking went when another model took over:
        the API wants such a turn to begin with its thinking as long as thinking is on."""
        return not self._fell_back or not self._at.history.is_mid_turn or self._at.history.turn_thinks

    def difference(self, context: Context, max_tokens: int) -> str | None:
        """Why the next request, a retry, is not the one before it."""
        model, limit = self._last or (self.model(context), max_tokens)
        if model != self.model(context):
            return FALLBACK
        return LOWER_LIMIT if max_tokens < limit else None

    def trouble(self, max_tokens: int, failure: Failure) -> TroubleKind:
        """Which trouble it is that a request with this limit failed."""
        return trouble_of_request(
            failure, is_overflow=self._at.plan.is_overflow, max_tokens=max_tokens, ordinary=self.ordinary_limit
        )

    def make(self, context: Context, max_tokens: int) -> ModelRequest:
        """The next request to the model."""
        model, changes = self.model(context), self._changes()
        self._last = model, max_tokens
        return self._at.plan.parts.request(
            self._at.history.body(),
            max_tokens=max_tokens,
            model=model,
            marks=self._at.history.marks,
            changes=changes,
            betas=self._betas(changes),
            previous=self._previous,
        )

    def counting(self, context: Context) -> ModelRequest:
        """The request that counts the tokens of the next one."""
        changes = self._changes()
        return self._at.plan.parts.count_request(
            self._at.history.body(), model=self.model(context), changes=changes, betas=self._betas(changes)
        )

    def _changes(self) -> dict[str, Any]:
        at = self._at
        changes: dict[str, Any] = {}
        match at.plan.parts.params.get("thinking"):
            case {"type": "enabled"} if not self._thinks:
                changes["thinking"] = {"type": "disabled"}
            case _:
                pass
        edits = context_management(at.plan.compression, at.sizes.window, self.ordinary_limit)
        return changes if edits is None else {**changes, "context_management": edits}

    def _betas(self, changes: Mapping[str, Any]) -> tuple[str, ...]:
        history = self._at.history
        compacted = len(history) > 0 and history.role(0) == "assistant"  # only the API's own block may come first
        edits = (CONTEXT_BETA,) if "context_management" in changes else ()
        return (*edits, COMPACTION_BETA) if compacted else edits
