"""The compressor: keeps the history under the model's window, one level at a time, and writes down what it did."""

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from looplatch.compressing.gauge import WORTH_ASKING, Gauge
from looplatch.compressing.rewriting import rewrite
from looplatch.compressing.summary import NoSummary
from looplatch.compressing.summary_writer import KnownSummary, SummaryWriter
from looplatch.messages import SystemMessage
from looplatch.recovery.compression.collapse import Span, Staged, drain, moved, next_span
from looplatch.recovery.compression.compact import may_compact
from looplatch.recovery.compression.edits import LEAST_SAVING, Edit, first_changed, is_worth_it, saving
from looplatch.recovery.compression.exchanges import outline
from looplatch.recovery.compression.fitting import fit_newest, newest_results, newest_tokens
from looplatch.recovery.compression.levels import (
    Load,
    Patience,
    Step,
    collapse_waits,
    least_span,
    next_step,
    snip_waits,
    span_settings,
)
from looplatch.recovery.compression.micro import micro
from looplatch.recovery.compression.snip import snip
from looplatch.recovery.compression.thinking import all_thinking_dropped
from looplatch.recovery.estimate import BYTES_PER_TOKEN, Estimate
from looplatch.recovery.strategies.max_output_tokens_escalate import escalated_limit
from looplatch.recovery.strategies.request_retry import backoff_ms
from looplatch.recovery.weights import Message, weigh_all, weigh_text
from looplatch.requests.next_request import NextRequest
from looplatch.states import events as on
from looplatch.states.context import TOTALS, Context
from looplatch.states.event import Event
from looplatch.states.level import Level
from looplatch.workplace import Workplace


@attrs.frozen(kw_only=True)
class PastCompression:
    """What an earlier process knew.

    staged: summaries of spans. estimate: what the API counted. summary: one that was not used. in_vain: the tokens at
    which a summary was of no use. failed_s: how many seconds ago one failed, None: none did. api_refuses: the API makes
    no compaction of its own.
    """

    staged: Sequence[Staged] = ()
    estimate: Estimate | None = None
    summary: KnownSummary | None = None
    in_vain: Mapping[Step, int] = attrs.field(factory=dict[Step, int])
    failed_s: float | None = None
    api_refuses: bool = False


@attrs.frozen(kw_only=True)
class _Due:
    """A summary that the next command asks for: of a span, or else of the conversation.

    messages: the history as it was found, of the records that `sent` names.
    """

    sent: Mapping[str, Any]
    messages: Sequence[Message]
    span: Span | None = None


class Compressor:
    """What the history weighs, and what can be done about it; whether that may be done is the table's to say."""

    def __init__(self, at: Workplace, gauge: Gauge, following: NextRequest) -> None:
        self._at = at
        self.gauge = gauge
        self._following = following
        self._writer = SummaryWriter(at, gauge, following)
        self._settings = at.plan.compression
        self._thresholds = self._settings.thresholds
        self._lightest = min(self._thresholds)  # of the window: below it nothing is due
        self._patience = Patience()
        self._staged: tuple[Staged, ...] = ()
        self._due: _Due | None = None

    def restore(self, past: PastCompression) -> None:
        """Know what an earlier process knew."""
        self._staged = tuple(past.staged)
        self._patience = Patience(in_vain=past.in_vain)
        self._writer.restore(past.summary, past.failed_s, api_refuses=past.api_refuses)
        if past.estimate is not None:
            self.gauge.restore(past.estimate)

    # --- prepare

    async def fit(self, context: Context) -> Event:
        """The next thing to do about the history's size: done, unless it needs the model."""
        self._due = None  # where its summary was withheld, it holds the messages of a whole history
        await self._ask(context)
        prompt, window = self.gauge.tokens(), self.gauge.window
        ready = on.ContextReady(tokens=prompt + self._following.limit(context, prompt), window=window)
        load = None if window is None else Load(prompt + self._following.ordinary_limit, window)
        if load is not None and load.reaches(self._lightest) and (event := self._shorten(load)) is not None:
            return event
        if self._patience.visited:
            self._patience = self._patience.left()
        return ready

    async def _ask(self, context: Context) -> None:
        """Ask the API what is not known and matters now."""
        gauge, limit = self.gauge, self._following.ordinary_limit
        if gauge.window is None and gauge.tokens() + limit >= WORTH_ASKING:
            await gauge.ask_size(self._following.model(context))
        if gauge.is_doubtful(limit, self._thresholds):
            await gauge.count(self._following.counting(context), self._following.model(context))

    def _shorten(self, load: Load) -> Event | None:
        """Take the steps that are due, one after the other; None where nothing is, or can be done."""
        messages: list[Message] | None = None
        while (step := self._next(load)) is not None:
            self._patience = self._patience.tried(step, load.tokens)
            messages = self._at.history.messages() if messages is None else messages
            if (event := self._take(step, messages, load)) is not None:
                return event
        return None

    def _next(self, load: Load) -> Step | None:
        return next_step(self._settings, load, self._patience, staged=bool(self._staged))

    def _take(self, step: Step, messages: Sequence[Message], load: Load) -> Event | None:
        match step:
            case Step.SNIP:
                edits, saved = self._snipped(messages, load)
                if load.is_over and (cut := self._oversized(messages)):
                    edits = (*edits, *cut)
                    saved = self._saving(messages, edits)
                return self._edited(Level.SNIP, messages, edits, saved=saved)
            case Step.MICRO:
                window = self.gauge.in_weights(load.window)
                return self._edited(Level.MICRO, messages, micro(messages, self._settings, window))
            case Step.STAGE:
                span = self._next_span(messages, load)
                return None if span is None else self._is_due(Level.COLLAPSE, messages, span)
            case Step.COLLAPSE:
                edits, saved = self._collapsed(messages, load)
                return self._edited(Level.COLLAPSE, messages, edits, saved=saved)
            case Step.COMPACT:
                return self._is_due(Level.COMPACT, messages) if self._may_compact(messages) else None
            case Step.NEWEST:
                return self._edited(Level.SNIP, messages, self._squeezed(messages, load))

    def _is_due(self, level: Level, messages: Sequence[Message], span: Span | None = None) -> Event:
        self._due = _Due(sent=self._at.history.sent, messages=messages, span=span)
        return on.SummaryDue(level=level, breaker_cooled=self.cooled)

    # --- the levels that need no model

    def _snipped(self, messages: Sequence[Message], load: Load) -> tuple[tuple[Edit, ...], int]:
        """The edits that cut old results, where that is due and does not wait, and what they save."""
        settings = self._settings
        if not settings.due(Level.SNIP, load.tokens, load.window):
            return (), 0
        edits = snip(messages, settings, is_read=self._at.plan.toolbox.is_read)
        saved = self._saving(messages, edits)
        return ((), 0) if snip_waits(settings, load, self.gauge.in_tokens(saved)) else (edits, saved)

    def _collapsed(self, messages: Sequence[Message], load: Load) -> tuple[tuple[Edit, ...], int]:
        """The edits that apply the staged summaries, where they do not wait for more of them, and what they save."""
        edits = drain(messages, self._staged, self._settings)
        saved = self._saving(messages, edits)
        waits = collapse_waits(self._settings, load.window, self.gauge.in_tokens(saved))
        return ((), 0) if waits else (edits, saved)

    def _oversized(self, messages: Sequence[Message]) -> tuple[Edit, ...]:
        """The edits that cut the newest results to a half of what the window leaves for the prompt.

        With more than that in them, no summary of all else would make the request fit.
        """
        gauge = self.gauge
        whole = gauge.tokens() if gauge.window is None else gauge.window - self._following.ordinary_limit - gauge.fixed
        return fit_newest(messages, gauge.in_weights(whole // 2), self._references(messages))

    def _squeezed(self, messages: Sequence[Message], load: Load) -> tuple[Edit, ...]:
        """The edits that cut the newest results to what all else leaves them, where that is too little."""
        if not load.is_over:
            return ()
        gone = max(LEAST_SAVING, self.gauge.in_weights(load.tokens - load.window))
        return fit_newest(messages, newest_tokens(messages) - gone, self._references(messages))

    def _references(self, messages: Sequence[Message]) -> dict[str, str]:
        """Where the newest results are kept whole, by the calls' ids."""
        if not self._at.journal.log.keeps_payloads:
            return {}
        skeletons = [one for place in newest_results(messages) for one in self._at.history.skeletons(place)]
        return {str(one["tool_use_id"]): str(one["commitment"]) for one in skeletons if "tool_use_id" in one}

    # --- the levels that have the model write

    def _next_span(self, messages: Sequence[Message], load: Load) -> Span | None:
        """The next span to be summarised, as long as the summaries that are staged would not free enough."""
        settings, gauge = self._settings, self.gauge
        freed = gauge.in_tokens(self._saving(messages, drain(messages, self._staged, settings)))
        if not settings.staging_due(load.tokens - freed, load.window):
            return None
        sized = span_settings(settings, len(outline(messages).exchanges), gauge.tokens(), load.window)
        return next_span(messages, sized, self._staged, least_tokens=gauge.in_weights(least_span(load.window)))

    async def write(self, context: Context) -> Event:
        """Have the summary written that is due, and use it."""
        due, self._due, history = self._due, None, self._at.history
        messages = due.messages if due is not None and due.sent == history.sent else history.messages()
        try:
            if due is not None and due.span is not None:
                return await self._stage(messages, due.span)
            edits, spent = await self._writer.of_conversation(context, messages)
        except NoSummary as error:
            return self._writer.failed(error)
        return self._edited(Level.COMPACT, messages, edits, spent) or self._writer.useless(spent)

    async def _stage(self, messages: Sequence[Message], span: Span) -> Event:
        summary = await self._writer.of_span(messages, span)
        staged = Staged(span=span, summary=summary.text)
        if not is_worth_it(messages, drain(messages, (staged,), self._settings)):
            return self._writer.useless(summary.spent)
        self._staged = (*self._staged, staged)
        self._patience = self._patience.was_of_use(Step.STAGE)
        return on.CollapseStaged(
            span_tokens=weigh_all(messages[span.start : span.stop]),
            summary_tokens=weigh_text(summary.text),
            **summary.spent,
        )

    # --- recover

    @property
    def staged(self) -> int:
        """How many summaries of spans can be applied."""
        if not self._staged:
            return 0
        messages = self._at.history.messages()
        return len(self._staged) if is_worth_it(messages, drain(messages, self._staged, self._settings)) else 0

    def drain(self) -> None:
        """Apply every staged summary that still fits; the others wait on."""
        messages = self._at.history.messages()
        self._change(Level.COLLAPSE, messages, drain(messages, self._staged, self._settings))

    @property
    def can_summarise(self) -> bool:
        """Whether the history could be made shorter: by a summary, or by cutting newest results."""
        messages = self._at.history.messages()
        return self._may_compact(messages) or bool(self._overflowing(messages))

    @property
    def cooled(self) -> bool:
        """Whether the cool-down since the last failed summary is over."""
        return self._writer.cooled

    async def escalation(self, context: Context) -> int:
        """The max_tokens that a cut answer could be asked for again with; 0 when no higher limit is possible."""
        if self._at.sizes.output is None:
            await self.gauge.ask_size(self._following.model(context))
        prompt, following = self.gauge.tokens(), self._following
        return escalated_limit(following.limit(context, prompt), self._at.sizes.output, following.room(prompt))

    async def summarise(self, context: Context) -> Event:
        """Have one summary written that takes the place of what came before the latest exchange.

        Newest results that would not leave the summary room, or with which the request would still not fit, are cut,
        whether there is anything to summarise or not.
        """
        messages, before, lost = self._at.history.messages(), self.gauge.tokens(), 0
        spent: Mapping[str, int] = dict.fromkeys(TOTALS, 0)
        if self._may_compact(messages):
            try:
                edits, spent = await self._writer.of_conversation(context, messages)
            except NoSummary as error:
                delay = backoff_ms(context.attempts, self._at.plan.jitter(), error.failure.retry_after_ms)
                return self._writer.failed(error, delay)
            lost = self._change(Level.COMPACT, messages, edits) or 0
            messages = self._at.history.messages()
        lost = max(lost, self._change(Level.SNIP, messages, self._overflowing(messages)) or 0)
        return on.HistorySummarised(tokens_before=before, tokens_after=self.gauge.tokens(), cache_lost=lost, **spent)

    def _overflowing(self, messages: Sequence[Message]) -> tuple[Edit, ...]:
        """The edits that cut newest results with which the request does not fit, by as little as that takes."""
        window = self.gauge.window
        edits = self._oversized(messages)
        if edits or window is None:
            return edits
        return self._squeezed(messages, Load(self.gauge.tokens() + self._following.ordinary_limit, window))

    def _may_compact(self, messages: Sequence[Message]) -> bool:
        return self._settings.compact_at is not None and may_compact(messages, self._settings)

    def drop_thinking(self) -> None:
        """Take all thinking out of the history: another model goes on with it."""
        messages = self._at.history.messages()
        if edits := all_thinking_dropped(messages):
            rewrite(self._at, "dropping thinking", messages, edits)
            self._staged = moved(self._staged, edits)

    # --- both

    def _saving(self, messages: Sequence[Message], edits: Sequence[Edit]) -> int:
        """What the edits save, in tokens as the levels weigh them; `messages` are those of the history as it is."""
        return saving(messages, edits, self._at.history.weights())

    def _edited(
        self,
        level: Level,
        messages: Sequence[Message],
        edits: Sequence[Edit],
        spent: Mapping[str, int] | None = None,
        saved: int | None = None,
    ) -> Event | None:
        before = self.gauge.tokens()
        lost = self._change(level, messages, edits, saved)
        if lost is None:
            return None
        after = self.gauge.tokens()
        return on.HistoryCompressed(
            level=level, tokens_before=before, tokens_after=after, cache_lost=lost, **(spent or {})
        )

    def _change(
        self, level: Level, messages: Sequence[Message], edits: Sequence[Edit], saved: int | None = None
    ) -> int | None:
        """Change the history. Returns how many cached tokens that gave up; None where it was not worth it.

        saved: what the edits save, where that is known.
        """
        if (self._saving(messages, edits) if saved is None else saved) < LEAST_SAVING:
            return None
        tokens = self.gauge.tokens()
        lost = min(tokens, self.gauge.in_tokens(self._at.history.weight_from(first_changed(edits)) // BYTES_PER_TOKEN))
        rewrite(self._at, f"the level {level}", messages, edits)
        self._patience = self._patience.renewed()
        self._staged = moved(self._staged, edits)
        self._at.outbox.push(
            SystemMessage(
                subtype="compact_boundary",
                data={"level": str(level), "tokens_before": tokens, "tokens_after": self.gauge.tokens()},
            )
        )
        return lost
