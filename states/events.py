"""Events: the facts that come in, in the past tense. The machine sends itself one, and moves.

Fields are whole numbers, names and flags only: they are written into the log, and the verifier asks the guards again
on them. Contents (texts, inputs, results) never stand in an event.
"""

from typing import ClassVar

import attrs

from looplatch.states.event import Event, Spending
from looplatch.states.level import Level
from looplatch.states.trouble import CALL_TROUBLES, TroubleKind

# --- prepare


@attrs.frozen(kw_only=True)
class RunStarted(Event):
    """The run began: its genesis and the messages that it starts from are in the log."""

    external: ClassVar[bool] = True


@attrs.frozen(kw_only=True)
class HistoryCompressed(Spending):
    """A compression level shortened the history: "snip", "micro", "collapse" or "compact", the last one by a summary.

    Tokens are estimates; `cache_lost` is how many cached tokens the change gave up.
    """

    level: Level
    tokens_before: int
    tokens_after: int
    cache_lost: int = 0


@attrs.frozen(kw_only=True)
class SummaryDue(Event):
    """A summary would help: of a span, to be staged ("collapse"), or of all that came before ("compact").

    `breaker_cooled`: the cool-down of the breaker is over, so that one trial is allowed.
    """

    level: Level
    breaker_cooled: bool = False


@attrs.frozen(kw_only=True)
class CollapseStaged(Spending):
    """A span of the history was summarised; the summary is held beside the history until it is needed."""

    span_tokens: int
    summary_tokens: int


@attrs.frozen(kw_only=True)
class SummaryFailed(Spending):
    """The model's summary of the history could not be had, or was of no use."""

    failure: str
    transient: bool
    delay_ms: int = 0


@attrs.frozen(kw_only=True)
class ContextReady(Event):
    """The next request was estimated: `tokens`, with the output it may use; `window` is the model's (None: unknown)."""

    tokens: int
    window: int | None


@attrs.frozen(kw_only=True)
class BudgetWithdrawn(Event):
    """The run whose call this one answers may spend no more: it, and all that answers calls of it, have spent all."""


# --- stream


@attrs.frozen(kw_only=True)
class ModelResponded(Spending):
    """The answer is whole (`message_stop` came). `calls` are those it asks of us, `begun` how many had begun."""

    stop_reason: str | None
    calls: tuple[str, ...] = ()
    begun: int = 0


@attrs.frozen(kw_only=True)
class ModelFailed(Spending):
    """The model call failed: before an answer, or in the middle of one after `begun` tool calls had begun.

    Raises ValueError for a `trouble` that no model call can end with: it would take a recovery that is not its own.
    """

    trouble: TroubleKind = attrs.field(validator=attrs.validators.in_(CALL_TROUBLES))
    failure: str
    status: int | None = None
    begun: int = 0


# --- decide


@attrs.frozen(kw_only=True)
class ToolsRequested(Event):
    """The model asks for `calls` tool calls and waits for their results."""

    calls: int


@attrs.frozen(kw_only=True)
class TurnPaused(Event):
    """The API paused a long turn of its own tools; it goes on when the answer is sent back as it is."""


@attrs.frozen(kw_only=True)
class OutputTruncated(Event):
    """The answer was cut by max_tokens, after `begun` tool calls had begun."""

    begun: int = 0


@attrs.frozen(kw_only=True)
class ContextExceeded(Event):
    """The answer was cut by the end of the model's window, after `begun` tool calls had begun."""

    begun: int = 0


@attrs.frozen(kw_only=True)
class Refused(Event):
    """The model refused, after `begun` tool calls had begun."""

    begun: int = 0


@attrs.frozen(kw_only=True)
class AnswerGiven(Event):
    """The model is done and asks for nothing more."""


@attrs.frozen(kw_only=True)
class StopHooksPassed(Event):
    """No stop hook objects to the end. `new_tokens` is the output since the last continuation (or the start)."""

    new_tokens: int = 0


@attrs.frozen(kw_only=True)
class StopHooksBlocked(Event):
    """The stop hook named `hook` wants the model to go on."""

    hook: str


@attrs.frozen(kw_only=True)
class StopHooksHalted(Event):
    """The stop hook named `hook` ended the run."""

    hook: str


@attrs.frozen(kw_only=True)
class StopReasonUnknown(Event):
    """The answer ended for a reason that looplatch does not know."""

    stop_reason: str | None


# --- orchestrate, suspended


@attrs.frozen(kw_only=True)
class ToolsAnswered(Spending):
    """Every call has its result in one user message. `stop_asked`: the caller wants the run to end after this turn.

    Tokens and cost are those of sub-agents.
    """

    results: int
    errors: int = 0
    stop_asked: bool = False


@attrs.frozen(kw_only=True)
class ApprovalAwaited(Event):
    """All that may run has run; `calls` wait for someone's approval."""

    calls: tuple[str, ...]


@attrs.frozen(kw_only=True)
class RunDenied(Event):
    """The call `call` was denied, and the run with it."""

    call: str


@attrs.frozen(kw_only=True)
class ApprovalGiven(Event):
    """`calls` were allowed or denied from outside; `awaited` still wait."""

    external: ClassVar[bool] = True
    calls: tuple[str, ...]
    awaited: int = 0


# --- recover


@attrs.frozen(kw_only=True)
class TroubleNamed(Event):
    """What is wrong, with all that the strategies' guards need to know.

    staged: summaries of spans of history that wait to be applied. can_summarise: a summary can be asked for.
    breaker_cooled: the cool-down of the breaker is over. output_limit: the max_tokens that an escalation would ask for.
    delay_ms: the wait before a retry. fallback: the retry goes to the fallback model.
    new_tokens: the output since the last continuation.
    """

    trouble: TroubleKind
    staged: int = 0
    can_summarise: bool = False
    breaker_cooled: bool = False
    output_limit: int = 0
    delay_ms: int = 0
    fallback: bool = False
    new_tokens: int = 0


@attrs.frozen(kw_only=True)
class HistorySummarised(Spending):
    """The model's summary replaced the history before the latest exchange. Tokens are estimates."""

    tokens_before: int
    tokens_after: int
    cache_lost: int = 0


@attrs.frozen(kw_only=True)
class BackoffElapsed(Event):
    """The wait before a retry is over."""


# --- from outside, at any time


@attrs.frozen(kw_only=True)
class RunResumed(Event):
    """The run goes on: in a new process, or after a pause. `begun`: tool calls of the unfinished answer had begun."""

    external: ClassVar[bool] = True
    begun: int = 0


@attrs.frozen(kw_only=True)
class RunPaused(Event):
    """The run rests in its state until it is resumed."""

    external: ClassVar[bool] = True


@attrs.frozen(kw_only=True)
class RunAborted(Event):
    """The caller asked for the end."""

    external: ClassVar[bool] = True


@attrs.frozen(kw_only=True)
class DeadlinePassed(Event):
    """The time allowed for the run is over."""

    external: ClassVar[bool] = True


@attrs.frozen(kw_only=True)
class RunClosed(Event):
    """The caller left the run, or the task that drove it was cancelled."""

    external: ClassVar[bool] = True


@attrs.frozen(kw_only=True)
class DriverFailed(Event):
    """Something that must not happen did, in looplatch, in a hook or on the disk; `error` is the exception's class."""

    external: ClassVar[bool] = True
    error: str


EVENTS: tuple[type[Event], ...] = (
    RunStarted,
    HistoryCompressed,
    SummaryDue,
    CollapseStaged,
    SummaryFailed,
    ContextReady,
    BudgetWithdrawn,
    ModelResponded,
    ModelFailed,
    ToolsRequested,
    TurnPaused,
    OutputTruncated,
    ContextExceeded,
    Refused,
    AnswerGiven,
    StopHooksPassed,
    StopHooksBlocked,
    StopHooksHalted,
    StopReasonUnknown,
    ToolsAnswered,
    ApprovalAwaited,
    RunDenied,
    ApprovalGiven,
    TroubleNamed,
    HistorySummarised,
    BackoffElapsed,
    RunResumed,
    RunPaused,
    RunAborted,
    DeadlinePassed,
    RunClosed,
    DriverFailed,
)
