"""The compressor: keeps the history under the model's window, one level at a time, and writes down what it did."""

from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from looplatch.gauge import WORTH_ASKING, Gauge
from looplatch.messages import SystemMessage
from looplatch.next_request import NextRequest
from looplatch.patience import Patience
from looplatch.recovery.collapse import Span, Staged, drain, fresh, next_span
from looplatch.recovery.compact import compaction_request
from looplatch.recovery.edits import Edit, change_of, first_changed
from looplatch.recovery.estimate import BYTES_PER_TOKEN, Estimate
from looplatch.recovery.exchanges import outline
from looplatch.recovery.fitting import fit_newest, newest_results, newest_tokens
from looplatch.recovery.micro import micro
from looplatch.recovery.snip import snip
from looplatch.recovery.strategies.max_output_tokens_escalate import escalated_limit
from looplatch.recovery.strategies.request_retry import backoff_ms
from looplatch.recovery.thinking import bound_turn, without_thinking
from looplatch.recovery.weights import Message, weigh_all, weigh_text
from looplatch.rewriting import rewrite
from looplatch.states import events as on
from looplatch.states.context import TOTALS, Context
from looplatch.states.event import Event
from looplatch.states.level import Level
from looplatch.summary import NoSummary
from looplatch.summary_writer import KnownSummary, SummaryWriter
from looplatch.workplace import Workplace

LEAST_SAVING: Final = 16  # tokens below which no edit is worth the prompt cache behind it
SPAN_SHARE: Final = 0.1  # of the window: where exchanges are large, a span of fewer will do
LEAST_SHARE: Final = 0.05  # of the window: what a summary of a span must be of, or it is not worth a call of the model


class Compressor:
    """What the history weighs, and what can be done about it; whether that may be done is the table's to say."""

    def __init__(self, at: Workplace, gauge: Gauge, following: NextRequest) -> None:
        self._at = at
        self.gauge = gauge
        self._following = following
        self._writer = SummaryWriter(at, gauge, following)
        self._settings = at.plan.compression
        self._patience = Patience()
        self._staged: list[Staged] = []
        self._span: Span | None = None  # the span whose summary is due; None: that of the conversation is

    def restore(self, staged: Sequence[Staged], estimate: Estimate | None, known: KnownSummary | None) -> None:
        """Know what an earlier process knew: summaries, and what the API counted."""
        self._staged = list(staged)
        self._writer.restore(known)
        if estimate is not None:
            self.gauge.restore(estimate)

    # --- prepare

    async def fit(self, context: Context) -> Event:
        """The next thing to do about the history's size: done, unless it needs the model."""
        await self._ask(context)
        prompt, window = self.gauge.tokens(), self.gauge.window
        ready = on.ContextReady(tokens=prompt + self._following.limit(context, prompt), window=window)
        if window is None:
            return ready
        event = self._shorten(prompt + self._following.ordinary_limit, window)
        if event is None:
            self._patience.leave()
        return event or ready

    async def _ask(self, context: Context) -> None:
        """Ask the API what is not known and matters now."""
        gauge, limit = self.gauge, self._following.ordinary_limit
        if gauge.window is None and gauge.tokens() + limit >= WORTH_ASKING:
            await gauge.ask_size(self._following.model(context))
        if gauge.is_doubtful(limit, self._settings.thresholds):
            await gauge.count(self._following.counting(context), self._following.model(context))

    def _shorten(self, tokens: int, window: int) -> Event | None:
        """What is to be done about a request of so many tokens, level by level; None where nothing is, or can be."""
        settings, patience = self._settings, self._patience
        over = tokens > window
        if (settings.due(Level.SNIP, tokens, window) or over) and (event := self._snip(tokens, window)):
            return event
        micro_due = settings.due(Level.MICRO, tokens, window) and not settings.server_edits
        if micro_due and patience.tries(Level.MICRO, tokens, window) and (event := self._micro(window)):
            return event
        compact_due = settings.due(Level.COMPACT, tokens, window)
        # Where one summary of all is due, summaries of spans come too late.
        if settings.staging_due(tokens, window) and not compact_due and patience.tries("stage", tokens, window):
            self._span = self._next_span(tokens, window)
            if self._span is not None:
                return on.SummaryDue(level=Level.COLLAPSE, breaker_cooled=self.cooled)
        collapse_due = settings.due(Level.COLLAPSE, tokens, window) and bool(self._staged)
        if collapse_due and patience.tries(Level.COLLAPSE, tokens, window) and (event := self._collapse(window)):
            return event
        if compact_due and patience.tries(Level.COMPACT, tokens, window):
            self._span = None
            if compaction_request(self._at.history.messages(), settings):
                return on.SummaryDue(level=Level.COMPACT, breaker_cooled=self.cooled)
        return self._cut_newest(tokens, window) if over and patience.once("newest") else None

    # --- the levels that need no model

    def _snip(self, tokens: int, window: int) -> Event | None:
        settings = self._settings
        looks = settings.due(Level.SNIP, tokens, window) and self._patience.tries(Level.SNIP, tokens, window)
        fits = tokens > window and self._patience.once("oversized")
        if not looks and not fits:
            return None
        messages = self._at.history.messages()
        edits = snip(messages, settings) if looks else ()
        before, after = change_of(messages, edits)
        if before - after < settings.snip_frees * window and tokens < settings.pressing_at * window:
            edits = ()  # it waits for more, or until the cache is lost anyway
        oversized = self._oversized(messages) if fits else ()
        return self._edited(Level.SNIP, messages, (*edits, *oversized))

    def _micro(self, window: int) -> Event | None:
        messages = self._at.history.messages()
        return self._edited(Level.MICRO, messages, micro(messages, self._settings, window))

    def _collapse(self, window: int) -> Event | None:
        """Apply the staged summaries, once they free enough together; else they wait for more of them."""
        messages, settings = self._at.history.messages(), self._settings
        before, after = change_of(messages, drain(messages, self._staged, settings))
        if before - after < settings.micro_frees * window:
            return None
        return self._edited(Level.COLLAPSE, messages, self._drained(messages))

    def _cut_newest(self, tokens: int, window: int) -> Event | None:
        """The last resort: the newest results are cut to what all else leaves them."""
        messages = self._at.history.messages()
        budget = newest_tokens(messages) - self.gauge.in_weights(tokens - window)
        return self._edited(Level.SNIP, messages, fit_newest(messages, budget, self._references(messages)))

    def _oversized(self, messages: Sequence[Message]) -> tuple[Edit, ...]:
        """The edits that cut the newest results to a half of what the window leaves for the prompt.

        With more than that in them, no summary of all else would make the request fit.
        """
        gauge = self.gauge
        whole = gauge.tokens() if gauge.window is None else gauge.window - self._following.ordinary_limit - gauge.fixed
        return fit_newest(messages, gauge.in_weights(whole // 2), self._references(messages))

    def _references(self, messages: Sequence[Message]) -> dict[str, str]:
        """Where the newest results are kept whole, by the calls' ids."""
        if self._at.plan.payloads != "keep":
            return {}
        skeletons = [one for place in newest_results(messages) for one in self._at.history.skeletons(place)]
        return {str(one["tool_use_id"]): str(one["commitment"]) for one in skeletons if "tool_use_id" in one}

    # --- the levels that have the model write

    def _next_span(self, tokens: int, window: int) -> Span | None:
        """The next span to be summarised, as long as the summaries that are staged would not free enough."""
        messages, settings = self._at.history.messages(), self._settings
        self._staged = list(fresh(messages, self._staged))
        before, after = change_of(messages, drain(messages, self._staged, settings))
        if not settings.staging_due(tokens - (before - after), window):
            return None
        exchanges = max(1, len(outline(messages).exchanges))
        enough = int(SPAN_SHARE * window * exchanges / max(1, self.gauge.tokens()))
        count = min(settings.span_exchanges, max(2, enough))
        least = self.gauge.in_weights(int(LEAST_SHARE * window))
        return next_span(messages, attrs.evolve(settings, span_exchanges=count), self._staged, least_tokens=least)

    async def write(self, context: Context) -> Event:
        """Have the summary written that is due, and use it."""
        messages, span = self._at.history.messages(), self._span
        try:
            if span is not None:
                return await self._stage(messages, span)
            edits, spent = await self._writer.of_conversation(context, messages)
        except NoSummary as error:
            return self._writer.failed(error)
        return self._edited(Level.COMPACT, messages, edits, spent) or self._writer.useless(spent)

    async def _stage(self, messages: Sequence[Message], span: Span) -> Event:
        summary = await self._writer.of_span(messages, span)
        span_tokens, summary_tokens = weigh_all(messages[span.start : span.stop]), weigh_text(summary.text)
        if summary_tokens >= span_tokens:
            return self._writer.useless(summary.spent)
        self._staged.append(Staged(span=span, summary=summary.text))
        self._patience.was_of_use("stage")
        return on.CollapseStaged(span_tokens=span_tokens, summary_tokens=summary_tokens, **summary.spent)

    # --- recover

    @property
    def staged(self) -> int:
        """How many summaries of spans can be applied."""
        if not self._staged:
            return 0
        messages = self._at.history.messages()
        return len(fresh(messages, self._staged)) if drain(messages, self._staged, self._settings) else 0

    def drain(self) -> None:
        """Apply every staged summary that still fits."""
        messages = self._at.history.messages()
        self._change(Level.COLLAPSE, messages, self._drained(messages))

    @property
    def can_summarise(self) -> bool:
        """Whether the history could be made shorter: by a summary, or by cutting newest results that are too big."""
        messages = self._at.history.messages()
        return self._may_compact(messages) or bool(self._oversized(messages))

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

        Newest results that would not leave the summary room are cut, whether there is anything to summarise or not.
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
        lost = max(lost, self._change(Level.SNIP, messages, self._oversized(messages)) or 0)
        after = self.gauge.tokens()
        if after >= before:
            self._writer.note_failure()
        return on.HistorySummarised(tokens_before=before, tokens_after=after, cache_lost=lost, **spent)

    def _may_compact(self, messages: Sequence[Message]) -> bool:
        return self._settings.compact_at is not None and bool(compaction_request(messages, self._settings))

    def drop_thinking(self) -> bool:
        """Take all thinking out of the history: another model goes on with it.

        Returns whether there was any in a turn whose tools the model has yet to hear of.
        """
        messages = self._at.history.messages()
        edits: list[Edit] = []
        for place, message in enumerate(messages):
            left = without_thinking(message) if message["role"] == "assistant" else message
            if left is not message and left != message:
                edits.append(Edit(start=place, stop=place + 1, messages=() if left is None else (left,)))
        if edits:
            rewrite(self._at, "dropping thinking", messages, edits)
        bound = bound_turn(messages, outline(messages))
        return any(edit.start in bound for edit in edits)

    # --- both

    def _drained(self, messages: Sequence[Message]) -> tuple[Edit, ...]:
        edits = drain(messages, self._staged, self._settings)
        self._staged.clear()  # what was not applied now is stale, or of no use
        return edits

    def _edited(
        self, level: Level, messages: Sequence[Message], edits: Sequence[Edit], spent: Mapping[str, int] | None = None
    ) -> Event | None:
        before = self.gauge.tokens()
        lost = self._change(level, messages, edits)
        if lost is None:
            return None
        after = self.gauge.tokens()
        return on.HistoryCompressed(
            level=level, tokens_before=before, tokens_after=after, cache_lost=lost, **(spent or {})
        )

    def _change(self, level: Level, messages: Sequence[Message], edits: Sequence[Edit]) -> int | None:
        """Change the history. Returns how many cached tokens that gave up; None where it was not worth it."""
        before, after = change_of(messages, edits)
        if before - after < LEAST_SAVING:
            return None
        tokens = self.gauge.tokens()
        lost = min(tokens, self.gauge.in_tokens(self._at.history.weight_from(first_changed(edits)) // BYTES_PER_TOKEN))
        rewrite(self._at, f"the level {level}", messages, edits)
        self._patience.renew()
        self._at.outbox.push(
            SystemMessage(
                subtype="compact_boundary",
                data={"level": str(level), "tokens_before": tokens, "tokens_after": self.gauge.tokens()},
            )
        )
        return lost
