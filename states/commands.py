"""Commands: the orders that go out, in the imperative. The machine returns them, the driver performs them.

A command with `answers` is over when one of these events has been sent; the others are over at once. What a command
needs to know stands in the context and in the event that called it forth.
"""

from typing import ClassVar

import attrs

from looplatch.states import events
from looplatch.states.event import Event


@attrs.frozen
class Command:
    """An order to the driver."""

    answers: ClassVar[tuple[type[Event], ...]] = ()

    @property
    def name(self) -> str:
        """The command's name, as the diagrams show it."""
        return type(self).__name__


@attrs.frozen
class FitContext(Command):
    """Bring the history under the model's window, one level at a time."""

    answers: ClassVar[tuple[type[Event], ...]] = (
        events.ContextReady,
        events.HistoryCompressed,
        events.SummaryDue,
        events.BudgetWithdrawn,
    )


@attrs.frozen
class CallModel(Command):
    """Send the request and read the answer, starting tools as soon as their calls are certain."""

    answers: ClassVar[tuple[type[Event], ...]] = (events.ModelResponded, events.ModelFailed)


@attrs.frozen
class ReadStopReason(Command):
    """Say what the answer asks for, by the total map of stop reasons."""

    answers: ClassVar[tuple[type[Event], ...]] = (
        events.ToolsRequested,
        events.TurnPaused,
        events.OutputTruncated,
        events.ContextExceeded,
        events.Refused,
        events.AnswerGiven,
        events.StopReasonUnknown,
    )


@attrs.frozen
class RunStopHooks(Command):
    """Ask the stop hooks whether the run may end."""

    answers: ClassVar[tuple[type[Event], ...]] = (
        events.StopHooksPassed,
        events.StopHooksBlocked,
        events.StopHooksHalted,
    )


@attrs.frozen
class AnswerCalls(Command):
    """Wait for the tools and answer every call in one user message."""

    answers: ClassVar[tuple[type[Event], ...]] = (events.ToolsAnswered, events.ApprovalAwaited, events.RunDenied)


@attrs.frozen
class AwaitApproval(Command):
    """Hand the awaited calls to the caller and rest."""

    answers: ClassVar[tuple[type[Event], ...]] = (events.ApprovalGiven, events.RunDenied)


@attrs.frozen
class NameTrouble(Command):
    """Say what is wrong and what could be done about it."""

    answers: ClassVar[tuple[type[Event], ...]] = (events.TroubleNamed,)


@attrs.frozen
class WriteSummary(Command):
    """Have the model write the summary that is due in `prepare`."""

    answers: ClassVar[tuple[type[Event], ...]] = (
        events.CollapseStaged,
        events.HistoryCompressed,
        events.SummaryFailed,
    )


@attrs.frozen
class Summarise(Command):
    """Have the model write a summary that replaces the history before the latest exchange."""

    answers: ClassVar[tuple[type[Event], ...]] = (events.HistorySummarised, events.SummaryFailed)


@attrs.frozen
class Sleep(Command):
    """Wait before the retry, as long as the event says."""

    answers: ClassVar[tuple[type[Event], ...]] = (events.BackoffElapsed,)


@attrs.frozen
class DrainCollapses(Command):
    """Apply every staged summary of a span of history."""


@attrs.frozen
class AskToGoOn(Command):
    """Keep the text of the cut answer and ask the model to go on from there."""


@attrs.frozen
class InjectHookError(Command):
    """Tell the model why the stop hook wants it to go on."""


@attrs.frozen
class InjectBudgetPrompt(Command):
    """Tell the model how much of the wanted output is still to come."""


@attrs.frozen
class Finish(Command):
    """End all tools, close the history, seal the log, hand out the result."""


COMMANDS: tuple[type[Command], ...] = (
    FitContext,
    CallModel,
    ReadStopReason,
    RunStopHooks,
    AnswerCalls,
    AwaitApproval,
    NameTrouble,
    WriteSummary,
    Summarise,
    Sleep,
    DrainCollapses,
    AskToGoOn,
    InjectHookError,
    InjectBudgetPrompt,
    Finish,
)
