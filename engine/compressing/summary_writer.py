"""The summary writer: has summaries made, by the model or by the API itself, and knows when they last failed."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from looplatch.compressing.gauge import Gauge
from looplatch.compressing.summary import Compaction, NoSummary, Summary, request_compaction, write_summary
from looplatch.recovery.compression.collapse import Span, summary_request
from looplatch.recovery.compression.compact import compact, compact_signed, compacted_messages, compaction_request
from looplatch.recovery.compression.edits import Edit
from looplatch.recovery.failure import trouble_of
from looplatch.recovery.weights import Message
from looplatch.recovery.windows import model_size
from looplatch.requests.next_request import NextRequest
from looplatch.states import events as on
from looplatch.states.context import TOTALS, Context
from looplatch.states.event import Event
from looplatch.states.level import Level
from looplatch.states.trouble import TroubleKind
from looplatch.workplace import Workplace

_SECOND_NS: Final = 1_000_000_000


@attrs.frozen(kw_only=True)
class KnownSummary:
    """A summary that an earlier process had written and did not come to use; `sent` names the history it is of."""

    level: Level
    summary: Summary | Compaction
    sent: dict[str, Any]


class SummaryWriter:
    """Whether a summary may be asked for is the table's to say; what comes of it, the compressor's."""

    def __init__(self, at: Workplace, gauge: Gauge, following: NextRequest) -> None:
        self._at = at
        self._gauge = gauge
        self._following = following
        self._settings = at.plan.compression
        self._api_compacts = self._settings.api_compaction
        self._failed_ns: int | None = None  # when a summary last failed
        self._known: KnownSummary | None = None

    def restore(self, known: KnownSummary | None, failed_s: float | None, *, api_refuses: bool) -> None:
        """Know what an earlier process had written, how many seconds ago it failed, and whether the API refuses."""
        self._known = known
        if failed_s is not None:
            self._failed_ns = self._at.plan.clock.monotonic_ns() - int(failed_s * _SECOND_NS)
        self._api_compacts = self._api_compacts and not api_refuses

    # --- having them written

    async def of_span(self, messages: Sequence[Message], span: Span) -> Summary:
        """The summary of a span. Raises NoSummary."""
        known = self._take_known(Level.COLLAPSE)
        if isinstance(known, Summary):
            return known
        room, output = self._room()
        request = summary_request(messages, span, room)
        return await write_summary(self._at, request, Level.COLLAPSE, output, (span.start, span.stop))

    async def of_conversation(
        self, context: Context, messages: Sequence[Message]
    ) -> tuple[Sequence[Edit], Mapping[str, int]]:
        """The edits that put one summary in the place of all before the latest exchange, and what it cost.

        Raises NoSummary. Where the API's own compaction is wanted and refused, the model writes the summary.
        """
        at, settings, spent = self._at, self._settings, dict.fromkeys(TOTALS, 0)
        weights = at.history.weights()
        match self._take_known(Level.COMPACT):
            case Summary() as known:
                return compact(messages, known.text, settings, weights), known.spent
            case Compaction() as known:
                return compact_signed(messages, known.block, settings, weights), known.spent
            case None:
                pass
        if self._api_compacts:
            model, limit = self._following.model(context), self._following.ordinary_limit
            try:
                made = await request_compaction(at, compacted_messages(messages, settings), model, limit)
            except NoSummary as error:
                spent = error.spent
                self._api_compacts = self._trouble(error) is not TroubleKind.FATAL  # it would refuse it again
            else:
                return compact_signed(messages, made.block, settings, weights), made.spent
        room, output = self._room()
        try:
            summary = await write_summary(at, compaction_request(messages, settings, room), Level.COMPACT, output)
        except NoSummary as error:
            raise NoSummary(error.failure, _sum(spent, error.spent)) from error
        return compact(messages, summary.text, settings, weights), _sum(spent, summary.spent)

    def _take_known(self, level: Level) -> Summary | Compaction | None:
        """What an earlier process had written of this very history; it is used once."""
        known, self._known = self._known, None
        if known is None or (known.level, known.sent) != (level, self._at.history.sent):
            return None
        return known.summary

    def _room(self) -> tuple[int, int]:
        """The tokens that a transcript to summarise may have, as levels weigh them, and those of its summary."""
        settings, gauge = self._settings, self._gauge
        own = None if settings.summary_model is None else model_size(settings.summary_model).window
        # Where no window is known, so much at least is known to be too much.
        window = min([size for size in (gauge.window, own) if size is not None], default=gauge.tokens())
        output = max(1, min(settings.summary_max_tokens, window // 4))
        return gauge.in_weights((window - output) // 2), output

    # --- when there is none

    @property
    def cooled(self) -> bool:
        """Whether the cool-down since the last failed summary is over."""
        if self._failed_ns is None:
            return True
        passed = self._at.plan.clock.monotonic_ns() - self._failed_ns
        return passed >= self._settings.cool_down_s * _SECOND_NS

    def failed(self, error: NoSummary, delay_ms: int = 0) -> Event:
        """The event that tells of a failed summary; it may be asked for again after `delay_ms`."""
        self._fail()
        transient = self._trouble(error) is TroubleKind.TRANSIENT
        return on.SummaryFailed(failure=error.failure.type, transient=transient, delay_ms=delay_ms, **error.spent)

    def useless(self, spent: Mapping[str, int]) -> Event:
        """The event that tells of a summary that makes nothing shorter."""
        self._fail()
        return on.SummaryFailed(failure="not_shorter", transient=False, **spent)

    def _fail(self) -> None:
        """The cool-down begins."""
        self._failed_ns = self._at.plan.clock.monotonic_ns()

    def _trouble(self, error: NoSummary) -> TroubleKind:
        return trouble_of(error.failure, is_overflow=self._at.plan.is_overflow)


def _sum(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {name: one[name] + other[name] for name in TOTALS}
