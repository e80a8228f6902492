"""The gauge: how large the next request is, how large it may be, and when the API is asked about that."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeVar

import attrs

from looplatch.ports import ModelRequest
from looplatch.recovery.estimate import BYTES_PER_TOKEN, Estimate
from looplatch.recovery.failure import Failure, ModelCallFailed, trouble_of
from looplatch.recovery.sizes import Asked, Measured
from looplatch.states.record import MAX_INT, Record
from looplatch.states.trouble import TroubleKind
from looplatch.workplace import Workplace

WORTH_ASKING: Final = 16_000  # tokens of a request from which on the size of an unknown model matters

T = TypeVar("T")


class Gauge:
    """What the history weighs, in tokens: estimated, and counted by the API where that is wanted and could matter."""

    def __init__(self, at: Workplace) -> None:
        self._at = at
        settings = at.plan.compression
        # What the server clears it does not report, so the tokens it reports are not those of the history kept here.
        self._estimate = Estimate(fixed=at.plan.parts.weight, calibrated=not settings.server_edits)
        self._counts = settings.count_tokens

    def restore(self, estimate: Estimate) -> None:
        """Know what an earlier process was told by the API."""
        self._estimate = attrs.evolve(self._estimate, reported=estimate.reported, weight=estimate.weight)

    @property
    def window(self) -> int | None:
        """The tokens of prompt and answer that the model takes; None: not known."""
        return self._at.sizes.window

    def tokens(self) -> int:
        """The tokens of the next prompt, estimated."""
        return self._estimate.tokens(self._at.history.weight)

    @property
    def fixed(self) -> int:
        """The tokens of system prompt and tools, estimated."""
        return round(self._at.plan.parts.weight / self._estimate.bytes_per_token)

    def in_weights(self, tokens: int) -> int:
        """So many tokens as the levels weigh them, which give each the same weight."""
        return int(tokens * self._estimate.bytes_per_token / BYTES_PER_TOKEN)

    def in_tokens(self, weights: int) -> int:
        """So many tokens of the levels as the gauge counts them."""
        return int(weights * BYTES_PER_TOKEN / self._estimate.bytes_per_token)

    # --- what the API says

    def reported(self, tokens: int) -> None:
        """The API has counted the history as it is now."""
        known = self._estimate
        self._estimate = Estimate(
            reported=tokens, weight=self._at.history.weight, fixed=known.fixed, calibrated=known.calibrated
        )

    def overflowed(self, failure: Failure) -> None:
        """A request failed. Where the API measured it, and refused it as too long, that holds from now on."""
        if (measured := failure.measured) is not None:
            self._at.learn(Measured(measured.window))
            self.reported(measured.input_tokens)

    # --- asking it

    def is_doubtful(self, max_tokens: int, thresholds: Sequence[float]) -> bool:
        """Whether counting could matter: a threshold may be between the estimated and the true figure."""
        if not self._counts or self.window is None:
            return False
        tokens, doubt = self.tokens() + max_tokens, self._estimate.doubt(self._at.history.weight)
        return doubt > 0 and any(abs(tokens - share * self.window) <= doubt for share in thresholds)

    async def count(self, request: ModelRequest, model: str) -> None:
        """Have the API count the tokens of the history; where it does not, the estimate stands."""
        journal = self._at.journal
        begin = journal.count_begins(model, self._at.history.sent)
        counted = await self._asked(
            begin, lambda: self._at.plan.connect().count(request), lambda tokens: {"tokens": tokens}
        )
        if isinstance(counted, int):
            self.reported(counted)
        elif counted is not TroubleKind.TRANSIENT:
            self._counts = False  # it would say the same again

    async def ask_size(self, model: str) -> None:
        """Ask the API, once for each model, how large it is; where it does not say, nothing is known."""
        if self._at.sizes.asked:
            return
        begin = self._at.journal.size_begins(model)
        size = await self._asked(
            begin,
            lambda: self._at.plan.connect().size(model),
            lambda size: {"window": size and size.window, "output": size and size.output},
        )
        self._at.learn(Asked(None if isinstance(size, TroubleKind) else size))

    async def _asked(
        self, begin: Record, ask: Callable[[], Awaitable[T]], told: Callable[[T | None], dict[str, Any]]
    ) -> T | TroubleKind:
        """Ask, between two records; what stood in the way is returned as the trouble it is."""
        journal, none = self._at.journal, told(None)
        try:
            answer = await ask()
        except ModelCallFailed as error:
            journal.ends(begin, error.failure.type, none)
            return trouble_of(error.failure)
        except BaseException:
            journal.ends(begin, "interrupted", none)
            raise
        journal.ends(begin, "ok", _bounded(told(answer)))
        return answer


def _bounded(fields: dict[str, int | None]) -> dict[str, int | None]:
    return {name: None if value is None else min(value, MAX_INT) for name, value in fields.items()}
