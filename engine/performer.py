"""The performer: how each command is carried out, and which event answers it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import cast

import attrs

from looplatch.answering.answer import Answer
from looplatch.blocks import ToolUseBlock
from looplatch.compressing.compressor import Compressor
from looplatch.compressing.gauge import Gauge
from looplatch.diagnosis import name_trouble
from looplatch.hooks.noting import Noting
from looplatch.hooks.response_hook import show_response
from looplatch.hooks.stop_hooks import Said, ask_stop_hooks
from looplatch.messages import SystemMessage
from looplatch.recovery.sizes import Measured, Switched
from looplatch.recovery.strategies.max_output_tokens_recovery import GO_ON
from looplatch.recovery.strategies.stop_hook_blocking import hook_prompt
from looplatch.recovery.strategies.token_budget_continuation import budget_prompt
from looplatch.requests.next_request import NextRequest
from looplatch.resuming.restored import RestoredAnswer
from looplatch.states import commands as do
from looplatch.states import events as on
from looplatch.states.brief import brief
from looplatch.states.commands import Command
from looplatch.states.context import Context
from looplatch.states.event import Event
from looplatch.states.reasons import Continue
from looplatch.states.state import State
from looplatch.states.table import DECISIONS
from looplatch.states.trouble import TroubleKind
from looplatch.tools import Outcome
from looplatch.workplace import Workplace

Step = Callable[[], Awaitable[Event | None]]
"""Part of a command's work: taken again until it gives the event that answers the command."""


@attrs.frozen(kw_only=True)
class Past:
    """What an earlier process knew of the run.

    answer: the last one. is_unread: no event tells of it yet. text: of the last whole answer. unanswered: its calls
    have no results in the history. outputs: output tokens at the last continuation. block_reason: why a stop hook
    blocked. fell_back: the history is fit for the fallback model. unreported: what was spent that no event reported.
    said: what stop hooks have said of the answer. message_id: of the last whole answer.
    """

    unreported: Mapping[str, int]
    answer: RestoredAnswer | None = None
    is_unread: bool = False
    text: str | None = None
    unanswered: bool = False
    outputs: int = 0
    block_reason: str = ""
    fell_back: bool = False
    said: Sequence[tuple[str, Said]] = ()
    message_id: str | None = None


class Performer:
    """Performs the commands of one run. It decides nothing: what happens next is the machine's answer to its event."""

    def __init__(self, at: Workplace) -> None:
        self._at = at
        self.answer: Answer | None = None
        self.text: str | None = None  # of the last whole answer
        self.error: str | None = None  # what went wrong last, in words
        self.stop_asked = False
        self.unsent: list[str] = []  # what the caller wants said at the next turn
        self.suspended = False  # nothing more is done in this process
        self._unanswered = False  # the answer's calls have no results in the history yet
        self.noting = Noting(at)
        self._following = NextRequest(at)
        self.compressor = Compressor(at, Gauge(at), self._following)
        self._outputs = 0  # output tokens at the last continuation
        self._block_reason = ""
        self._fell_back = False
        self._unread: Answer | None = None  # one that an earlier process had, for the next call of the model
        self._said: Sequence[tuple[str, Said]] = ()  # what stop hooks told that process

    def restore(self, past: Past) -> None:
        """Know what an earlier process knew."""
        if (answer := past.answer) is not None:
            answer.listen(self._hear)
            if answer.failure is not None:
                self.error = f"{answer.failure.type}: {answer.failure.message}"
        self.answer, self._unread = (None, answer) if past.is_unread else (answer, None)
        self.text = past.text
        self._unanswered = past.unanswered
        self._outputs = past.outputs
        self._block_reason = past.block_reason
        self._fell_back = past.fell_back
        self._following.restore(past.message_id, fell_back=past.fell_back)
        self._said = past.said
        self._at.budget.restore(past.unreported)

    def begin(self, command: Command, context: Context, event: Event) -> Step | None:
        """Begin a command. Returns the step to take until it is answered; None when it is done already."""
        match command:
            case do.FitContext():
                return partial(self._fit_context, context)
            case do.CallModel():
                return self._call_model(context, event).step
            case do.ReadStopReason():
                return partial(self._read_stop_reason, context)
            case do.WriteSummary():
                return partial(self._write_summary, context)
            case do.Summarise():
                return partial(self._summarise, context)
            case do.DrainCollapses():
                self.compressor.drain()
            case do.RunStopHooks():
                return partial(self._run_stop_hooks, context)
            case do.AnswerCalls():
                self._current().calls.release()
                return partial(self._answer_calls, context)
            case do.AwaitApproval():
                if self._current().calls.interrupting is not None:
                    return self._deny
                self.suspended = True
            case do.NameTrouble():
                return partial(self._name_trouble, context)
            case do.Sleep():
                self._announce_retry(context, event)
                if context.fallback and not self._fell_back:
                    self._fall_back()
                return partial(self._sleep, event)
            case do.AskToGoOn():
                if self.answer is not None:
                    self.answer.keep_spoken()
                self._at.say_text(GO_ON)
            case do.InjectHookError():
                self._at.say_text(hook_prompt(self._block_reason))
            case do.InjectBudgetPrompt():
                self._ask_for_more(context)
            case do.Finish():
                self._at.close_turn()  # the run seals its log once all that came before is handed out
            case _:
                raise AssertionError(f"no event of the driver's leads to {command.name}")
        return None

    # --- prepare

    async def _fit_context(self, context: Context) -> Event:
        self.answer = None
        if self._at.budget.withdrawn:
            return on.BudgetWithdrawn()
        if self.unsent and context.reason is Continue.NEXT_TURN and self._at.history.takes_text:
            said, self.unsent = self.unsent, []
            for text in said:
                self._at.say_text(text, origin="send")
        return await self.compressor.fit(context)

    async def _write_summary(self, context: Context) -> Event:
        return await self.compressor.write(context)

    async def _summarise(self, context: Context) -> Event:
        return await self.compressor.summarise(context)

    # --- stream

    def _call_model(self, context: Context, event: Event) -> Answer:
        if self._unread is not None:  # with its results, perhaps: the end of the run may have said them
            self.answer, self._unread = self._unread, None
            return self.answer
        self._unanswered = True
        at, following = self._at, self._following
        limit = following.limit(context, self.compressor.gauge.tokens())
        differs = following.difference(context, limit) if isinstance(event, on.BackoffElapsed) else None
        self.answer = Answer(
            at,
            following.make(context, limit),
            model=following.model(context),
            max_tokens=limit,
            attempt=context.attempts,
            turn=context.turn,
            differs=differs,
            heard=self._hear,
            trouble=partial(following.trouble, limit),
        )
        return self.answer

    def _hear(self, over: Event) -> None:
        """An answer is over: keep what later commands ask for."""
        answer = self._current()
        if answer.failure is not None:
            self.error = f"{answer.failure.type}: {answer.failure.message}"
            self.compressor.gauge.overflowed(answer.failure)
        if isinstance(over, on.ModelResponded):
            self.text = answer.text
            self._following.answered(answer.message_id)
            if (held := answer.held) is not None:
                self.compressor.gauge.reported(held.prompt + (held.output if answer.joined else 0))

    # --- decide

    async def _read_stop_reason(self, context: Context) -> Event:
        answer = self._current()
        if self._at.plan.hooks.after_response is not None:
            await show_response(self._at, context, answer)
        calls, begun = len(answer.calls.asked), len(answer.calls.begun)
        kind = DECISIONS.event(answer.stop_reason, calls)
        if kind is on.ToolsRequested:
            return on.ToolsRequested(calls=calls)
        if kind is on.StopReasonUnknown:
            self.error = (
                f"the answer ended with the stop reason {brief(answer.stop_reason)}, which looplatch does not know"
            )
            return on.StopReasonUnknown(stop_reason=answer.stop_name)
        if kind is on.AnswerGiven or kind is on.TurnPaused:
            return kind()
        self.error = answer.cut_text
        if kind is on.OutputTruncated:
            return on.OutputTruncated(begun=begun)
        if kind is on.ContextExceeded:
            if (held := answer.held) is not None:
                self._at.learn(Measured(held.prompt + held.output))  # where the window ends, it has been measured
            return on.ContextExceeded(begun=begun)
        return on.Refused(begun=begun)

    async def _run_stop_hooks(self, context: Context) -> Event:
        said, self._said = self._said, ()
        new_tokens = context.output_tokens - self._outputs
        verdict = await ask_stop_hooks(self._at, context, self.text or "", new_tokens, said)
        self._block_reason = verdict.reason
        self.error = verdict.message or self.error
        return verdict.event

    # --- orchestrate

    async def _answer_calls(self, context: Context) -> Event | None:
        answer = self._current()
        if not await answer.calls.settle():
            return None
        if answer.calls.interrupting is not None:
            return await self._deny()
        if awaited := answer.calls.awaited:
            return on.ApprovalAwaited(calls=tuple(call.id for call in awaited))
        outcomes = self._answer_history()
        if self._at.journal.log.durability == "barrier":
            await self._at.journal.log.sync()
        self.noting.begin(context.turn, lambda: answer.text, outcomes)
        errors = sum(outcome.is_error for outcome in outcomes)
        return on.ToolsAnswered(results=len(outcomes), errors=errors, stop_asked=self.stop_asked)

    async def _deny(self) -> Event:
        """A call was denied, and the run with it: what runs ends, and every call is answered."""
        calls = self._current().calls
        denied = str(calls.interrupting)
        self.error = f"the call {denied} was denied, and the run with it"
        await calls.cancel()
        self._answer_history()
        return on.RunDenied(call=denied)

    @property
    def pending(self) -> tuple[ToolUseBlock, ...]:
        """The calls that wait for approval, once the run is suspended."""
        if not self.suspended or self.answer is None:
            return ()
        return self.answer.calls.pending

    def _answer_history(self) -> tuple[Outcome, ...]:
        """Answer every call in one user message, in call order."""
        outcomes = self._current().calls.outcomes
        unanswered, self._unanswered = self._unanswered, False
        if outcomes and unanswered:
            calls = self._current().calls
            self._at.say([(outcome.block(), calls.result(outcome)) for outcome in outcomes])
        return outcomes

    # --- recover

    async def _name_trouble(self, context: Context) -> Event:
        if context.trouble is TroubleKind.OVERFLOW:
            self.error = self.error or "the prompt does not fit the model's window"
        new_tokens = context.output_tokens - self._outputs
        return await name_trouble(self._at, context, self.answer, self.compressor, new_tokens=new_tokens)

    def _announce_retry(self, context: Context, event: Event) -> None:
        delay = cast("on.TroubleNamed", event).delay_ms
        self._at.outbox.push(
            SystemMessage(
                subtype="api_retry",
                data={"attempt": context.attempts, "delay_ms": delay, "error": self.error},
            )
        )

    async def _sleep(self, event: Event) -> Event:
        delay = cast("on.TroubleNamed", event).delay_ms
        journal = self._at.journal
        begin = journal.sleep_begins(delay)
        try:
            await self._at.plan.clock.sleep(delay / 1000)
        except BaseException:
            journal.ends(begin, "interrupted")
            raise
        journal.ends(begin, "ok")
        self.answer = None
        return on.BackoffElapsed()

    def _fall_back(self) -> None:
        """From here on the other model answers: thinking that is bound to the first one goes."""
        self._fell_back = True
        model = str(self._at.plan.fallback_model)
        self._at.learn(Switched())
        self.compressor.drop_thinking()
        self._following.fall_back()
        self._at.outbox.push(SystemMessage(subtype="model_fallback", data={"model": model}))

    def _ask_for_more(self, context: Context) -> None:
        self._outputs = context.output_tokens
        self._at.say_text(budget_prompt(context.output_tokens, context.limits.output_target or 0))

    # --- from outside

    async def rest(self) -> bool:
        """Let what runs end, start nothing more, and leave the rest to whoever resumes the run.

        Returns False when the consumer is to be told something first.
        """
        if self.answer is not None and not await self.answer.calls.rest():
            return False
        self.suspended = True
        return True

    def stop_tools(self) -> None:
        """Ask all tools to end, now."""
        if self.answer is not None:
            self.answer.calls.stop()

    async def stop(self, state: State) -> None:
        """End what is going on and leave a history that can be sent as it is."""
        if self.answer is None:
            self.answer, self._unread = self._unread, None  # of an earlier process: what it ran must be in the history
        answer = self.answer
        if answer is not None:
            await answer.stop()
            if state is State.STREAM:
                answer.keep_stopped()
            if answer.joined and self._unanswered:
                self._answer_history()
        self._at.close_turn()

    def _current(self) -> Answer:
        assert self.answer is not None, "an answer is read before it is decided on"
        return self.answer
