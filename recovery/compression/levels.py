"""The levels in their order: what is tried next about the size of a history, and what is in vain."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

import attrs

from looplatch.recovery.compression.settings import Compression
from looplatch.states.level import Level

GROWTH: Final = 0.02  # of the window: what must be new before a step that was in vain is tried again
SPAN_SHARE: Final = 0.1  # of the window: where exchanges are large, a span of fewer will do
LEAST_SHARE: Final = 0.05  # of the window: what a summary of a span must be of, or it is not worth a call of the model


class Step(StrEnum):
    """What can be done about the size of a history, in the order in which it is tried.

    snip, micro, collapse, compact: the levels. stage: the summary of one more span is written. newest: the newest
    results are cut to what all else leaves them.
    """

    SNIP = "snip"
    MICRO = "micro"
    STAGE = "stage"
    COLLAPSE = "collapse"
    COMPACT = "compact"
    NEWEST = "newest"


@attrs.frozen
class Load:
    """What the next request would be, in tokens with its answer, and the window that it has to fit."""

    tokens: int
    window: int

    @property
    def is_over(self) -> bool:
        """Whether it does not fit."""
        return self.tokens > self.window

    def reaches(self, share: float) -> bool:
        """Whether it is at least this share of the window."""
        return self.tokens >= share * self.window


def _no_tokens() -> Mapping[Step, int]:
    return {}


@attrs.frozen(kw_only=True)
class Patience:
    """Which steps were tried: `visited` in this visit of `prepare`, and in vain at so many tokens."""

    visited: frozenset[Step] = frozenset()
    in_vain: Mapping[Step, int] = attrs.field(factory=_no_tokens)

    def allows(self, step: Step, load: Load) -> bool:
        """Whether a step may be tried: once in a visit; where it was in vain, only when enough is new."""
        if step in self.visited:
            return False
        before = self.in_vain.get(step)
        return before is None or not before <= load.tokens < before + GROWTH * load.window

    def tried(self, step: Step, tokens: int) -> "Patience":
        """A step is tried; it was in vain, until it turns out to be of use."""
        return Patience(visited=self.visited | {step}, in_vain={**self.in_vain, step: tokens})

    def was_of_use(self, step: Step) -> "Patience":
        """The step may be tried again in the next visit."""
        return attrs.evolve(self, in_vain={one: tokens for one, tokens in self.in_vain.items() if one is not step})

    def renewed(self) -> "Patience":
        """The history has changed: whatever was in vain may be of use now."""
        return Patience(visited=self.visited)

    def left(self) -> "Patience":
        """The visit is over."""
        return Patience(in_vain=self.in_vain)


def next_step(settings: Compression, load: Load, patience: Patience, *, staged: bool) -> Step | None:
    """The next step that is due and may be of use; None: all is done that can be. `staged`: summaries wait."""
    steps = (step for step in Step if _is_due(step, settings, load, staged))
    return next((step for step in steps if patience.allows(step, load)), None)


def _is_due(step: Step, settings: Compression, load: Load, staged: bool) -> bool:
    tokens, window = load.tokens, load.window
    match step:
        case Step.SNIP:
            return settings.due(Level.SNIP, tokens, window) or load.is_over
        case Step.MICRO:
            return settings.due(Level.MICRO, tokens, window) and not settings.server_edits
        case Step.STAGE:  # where one summary of all is due, summaries of spans come too late
            return settings.staging_due(tokens, window) and not settings.due(Level.COMPACT, tokens, window)
        case Step.COLLAPSE:
            return staged and settings.due(Level.COLLAPSE, tokens, window)
        case Step.COMPACT:
            return settings.due(Level.COMPACT, tokens, window)
        case Step.NEWEST:
            return load.is_over


def snip_waits(settings: Compression, load: Load, frees: int) -> bool:
    """Whether cutting old results waits until it frees more, or the prompt cache is lost anyway."""
    return frees < settings.snip_frees * load.window and load.tokens < settings.pressing_at * load.window


def collapse_waits(settings: Compression, window: int, frees: int) -> bool:
    """Whether the staged summaries wait for more of them."""
    return frees < settings.micro_frees * window


def span_settings(settings: Compression, exchanges: int, prompt: int, window: int) -> Compression:
    """The settings with spans as long as they have to be. `prompt`: the tokens of a history of so many exchanges."""
    enough = int(SPAN_SHARE * window * max(1, exchanges) / max(1, prompt))
    return attrs.evolve(settings, span_exchanges=min(settings.span_exchanges, max(2, enough)))


def least_span(window: int) -> int:
    """The tokens that a span must have."""
    return int(LEAST_SHARE * window)
