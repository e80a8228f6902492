"""The settings of compression: when each level is due, and how much it takes and leaves."""

import itertools
from typing import Any, Final, Literal, get_args

import attrs

from looplatch.states.brief import brief
from looplatch.states.errors import UsageError
from looplatch.states.given import is_count, is_switch
from looplatch.states.level import Level

ThinkingRule = Literal["drop", "keep", "drop_block"]
_RULES: Final = get_args(ThinkingRule)


def _refuse(name: str, problem: str, mend: str) -> UsageError:
    return UsageError(f"Compression.{name}", problem, mend)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _fraction(_: object, attribute: "attrs.Attribute[Any]", value: Any) -> None:
    if value is not None and not (_is_number(value) and 0 < value <= 1):
        wanted = "Give a fraction of the model's window, above 0 and at most 1, or None to switch it off"
        raise _refuse(attribute.name, f"{brief(value)} is not allowed", wanted)


def _share(_: object, attribute: "attrs.Attribute[Any]", value: Any) -> None:
    if not (_is_number(value) and 0 <= value <= 1):
        raise _refuse(
            attribute.name, f"{brief(value)} is not allowed", "Give a fraction of the model's window, from 0 to 1"
        )


def _seconds(_: object, attribute: "attrs.Attribute[Any]", value: Any) -> None:
    if not (_is_number(value) and 0 <= value < 1e9):
        raise _refuse(attribute.name, f"{brief(value)} is not allowed", "Give seconds, from 0 on")


def _rule(_: object, attribute: "attrs.Attribute[Any]", value: Any) -> None:
    if value not in _RULES:
        raise _refuse(attribute.name, f"{brief(value)} is not allowed", f"Give one of {', '.join(_RULES)}")


def _model(_: object, attribute: "attrs.Attribute[Any]", value: object) -> None:
    if value is not None and (not isinstance(value, str) or not value):
        raise _refuse(
            attribute.name, f"{brief(value)} is not allowed", "Give a model's name, or None for the run's own"
        )


@attrs.frozen(kw_only=True)
class Compression:
    """When and how a history is made shorter. The thresholds are fractions of the model's window; None: never.

    snip_at: superseded reads, repeated outputs and oversized old results are cut.
    snip_frees: what that must free at once, as a fraction of the window, unless the next level would be due anyway.
    micro_at: the content of old tool results is cleared in place.
    stage_at: summaries of finished spans are written and kept beside the history.
    collapse_at: those summaries take the place of their spans.
    compact_at: one summary takes the place of all but the latest exchange.
    keep_results: the newest tool results, which are never cleared.
    micro_frees: what clearing (and so applying summaries) must free at once, as a fraction of the window; it waits
        until it can, since any edit costs the prompt cache behind it.
    long_result_tokens: old results above this are cut to head and tail, of half of it together.
    span_exchanges: exchanges (an answer and what the user's side says to it) of one span.
    keep_exchanges: the newest exchanges, which are never cut or summarised in spans.
    summary_model: the model that writes summaries; None: the run's own. summary_max_tokens: its output limit.
    cool_down_s: seconds after which summaries are tried again when too many failed in a row.
    thinking: what becomes of thinking behind an edit, which the API may refuse there. "drop": it goes, and where it
        may not (the turn whose tools were just answered), nothing before it is edited; "keep": nothing before
        thinking is edited; "drop_block": it stays, and the API is asked to drop what does not match any more.
    server_edits: old tool results are cleared by the API instead of here. api_compaction: the API's own compaction
        request writes the summary. count_tokens: the API counts the tokens of a request that may be too long.
    cache: prompt caching, by a `cache_control` on the whole request.

    Raises UsageError for a value that is not allowed, and for thresholds that are out of order.
    """

    snip_at: float | None = attrs.field(default=0.60, validator=_fraction)
    micro_at: float | None = attrs.field(default=0.70, validator=_fraction)
    stage_at: float | None = attrs.field(default=0.70, validator=_fraction)
    collapse_at: float | None = attrs.field(default=0.80, validator=_fraction)
    compact_at: float | None = attrs.field(default=0.90, validator=_fraction)
    snip_frees: float = attrs.field(default=0.02, validator=_share)
    keep_results: int = attrs.field(default=5, validator=is_count(0))
    micro_frees: float = attrs.field(default=0.05, validator=_share)
    long_result_tokens: int = attrs.field(default=4_000, validator=is_count(100))
    span_exchanges: int = attrs.field(default=8, validator=is_count(1))
    keep_exchanges: int = attrs.field(default=2, validator=is_count(1))
    summary_model: str | None = attrs.field(default=None, validator=_model)
    summary_max_tokens: int = attrs.field(default=4_000, validator=is_count(1))
    cool_down_s: float = attrs.field(default=60.0, validator=_seconds)
    thinking: ThinkingRule = attrs.field(default="drop", validator=_rule)
    server_edits: bool = attrs.field(default=False, validator=is_switch)
    api_compaction: bool = attrs.field(default=False, validator=is_switch)
    count_tokens: bool = attrs.field(default=False, validator=is_switch)
    cache: bool = attrs.field(default=True, validator=is_switch)

    def __attrs_post_init__(self) -> None:
        """Compare the thresholds with each other."""
        self._ascending("snip_at", "micro_at", "collapse_at", "compact_at")
        self._ascending("stage_at", "collapse_at")

    def _ascending(self, *names: str) -> None:
        given = [(name, getattr(self, name)) for name in names if getattr(self, name) is not None]
        for (lower, low), (name, value) in itertools.pairwise(given):
            if value < low:
                problem = f"{value} is below {lower}={low}, but it comes after it"
                raise _refuse(name, problem, f"Give at least {low}, lower {lower}, or switch one of them off with None")

    def due(self, level: Level, tokens: int, window: int | None) -> bool:
        """Whether a level is to be tried for a request of `tokens` tokens. Never, where the window is not known."""
        match level:
            case Level.SNIP:
                threshold = self.snip_at
            case Level.MICRO:
                threshold = self.micro_at
            case Level.COLLAPSE:
                threshold = self.collapse_at
            case Level.COMPACT:
                threshold = self.compact_at
        return _reached(threshold, tokens, window)

    @property
    def thresholds(self) -> tuple[float, ...]:
        """The fractions of the window at which something is due, the whole window last."""
        own = (self.snip_at, self.micro_at, self.stage_at, self.collapse_at, self.compact_at)
        return (*(share for share in own if share is not None), 1.0)

    @property
    def pressing_at(self) -> float:
        """The fraction of the window at which summaries are due, so that the prompt cache is lost anyway."""
        return min(share for share in (self.collapse_at, self.compact_at, 1.0) if share is not None)

    def staging_due(self, tokens: int, window: int | None) -> bool:
        """Whether spans are to be summarised ahead. Never, where collapsing is switched off."""
        return self.collapse_at is not None and _reached(self.stage_at, tokens, window)


def _reached(threshold: float | None, tokens: int, window: int | None) -> bool:
    return threshold is not None and window is not None and tokens >= threshold * window
