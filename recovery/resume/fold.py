"""Resume: where a run stood when its last process left it, told by its records alone.

The context is folded from what the moves changed; that each change follows from its row is the verifier's to say.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import attrs

from looplatch.recovery.compression.levels import Step
from looplatch.recovery.resume.answers import AnswerFold
from looplatch.recovery.resume.approvals import ApprovalFold
from looplatch.recovery.resume.messages import MessageFold
from looplatch.recovery.resume.past import Entry, PastAnswer, PastApproval, PastCount, PastStaged, PastSummary, Skeleton
from looplatch.recovery.resume.sizes import SizeFold
from looplatch.recovery.resume.summaries import SummaryFold
from looplatch.recovery.sizes import Learned
from looplatch.states import commands as do
from looplatch.states.commands import Command
from looplatch.states.context import TOTALS, Context
from looplatch.states.errors import UsageError
from looplatch.states.limits import Limits
from looplatch.states.reasons import Continue, Terminal
from looplatch.states.record import Record
from looplatch.states.state import FINAL, INITIAL, State
from looplatch.states.table import TABLE
from looplatch.states.transition import Table
from looplatch.states.trouble import TroubleKind

COMPARED: Final = ("model", "system", "tools", "params", "limits", "table", "signed_by")
"""What a loop must have in common with the run that it resumes, by the names of the genesis."""

_RESTING: Final = ("RunPaused", "RunResumed")
_SPEAKING: Final = (do.AskToGoOn, do.InjectHookError, do.InjectBudgetPrompt)
_ENUMS: Final[dict[str, Callable[[Any], object]]] = {"trouble": TroubleKind, "reason": Continue}
_MS: Final = 1_000_000


class CannotResume(UsageError):
    """The run of a log cannot go on; nothing was sent and nothing was written."""

    def __init__(self, problem: str, mend: str) -> None:
        super().__init__("log", problem, mend)


@attrs.frozen(kw_only=True)
class Difference:
    """Something that is not as it was when the run began; both values as the log holds them.

    agents: the names of the sub-agents, from the outermost one, in which it is found; none: it is the loop itself.
    """

    name: str
    was: Any
    now: Any
    agents: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "".join(f"in the sub-agent {agent}: " for agent in self.agents) + self._told()

    def _told(self) -> str:
        if self.name != "limits":
            return f"{self.name} (was {self.was}, is {self.now})"
        names = [name for name in self.now if self.was.get(name) != self.now[name]]
        return ", ".join(f"limits.{name} (was {self.was.get(name)}, is {self.now[name]})" for name in names)


class LoopChanged(CannotResume):
    """The loop is not the one that the run began with; `differences` says in what."""

    def __init__(self, differences: Sequence[Difference]) -> None:
        super().__init__(
            f"the loop has changed since the run began: {'; '.join(map(str, differences))}",
            "Resume it with the loop that it had, or with accept_changes=True",
        )
        self.differences = tuple(differences)


class ToolMissing(CannotResume):
    """Calls of the run have no result yet, and the loop lacks their tools; `tools` names these."""

    def __init__(self, tools: Sequence[str]) -> None:
        super().__init__(
            f"calls that have no result yet need tools that the loop does not have: {', '.join(tools)}",
            "Resume it in the program that has them, with loop.resume; or deny those that wait for approval",
        )
        self.tools = tuple(tools)


@attrs.frozen(kw_only=True)
class Snapshot:
    """Where a run stands.

    settings: by the names in `COMPARED`, the changes that were accepted since included. tool_use_ids: all that were
    ever used. base: the history before a compression that was cut, None where there was none. pending: the commands
    without an answer of the last move that are still to be done. answer: the last model call. text: the text blocks of
    the last whole answer; message_id: the API's id of it. summary, staged, counted: what compression knew. in_vain: the
    tokens at which a summary was of no use. summary_failed_at: when the last one failed. api_refuses: the API makes no
    compaction of its own. learned: what was learned of the model's size. block_reason: the commitment to why a stop
    hook blocked last. outputs: the output tokens at the last continuation. fell_back: thinking was taken out for the
    fallback model. paused: the run rests until it is resumed. awaited: the calls that wait for approval. approvals:
    every decision given so far. untold: the calls among them that no event tells of. unpaid: what notes and sub-agents
    have cost that no event tells of, by the names of the totals. nested_awaited, nested_approvals: the calls that wait
    for approval in the runs inside calls, and the decisions on such, by the calls that these runs are inside. left_ms:
    what is left of the deadline.
    """

    run: str
    state: State
    context: Context
    terminal: Terminal | None
    settings: Mapping[str, Any]
    entries: tuple[Entry, ...]
    tool_use_ids: frozenset[str]
    base: tuple[Entry, ...] | None
    pending: tuple[Command, ...]
    answer: PastAnswer | None
    text: tuple[Skeleton, ...] | None
    message_id: str | None
    summary: PastSummary | None
    staged: tuple[PastStaged, ...]
    in_vain: Mapping[Step, int]
    summary_failed_at: str | None
    api_refuses: bool
    counted: PastCount | None
    learned: tuple[Learned, ...]
    block_reason: str | None
    outputs: int
    fell_back: bool
    paused: bool
    awaited: tuple[str, ...]
    approvals: Mapping[str, PastApproval]
    untold: tuple[str, ...]
    unpaid: Mapping[str, int]
    nested_awaited: Mapping[str, tuple[str, ...]]
    nested_approvals: Mapping[str, Mapping[str, PastApproval]]
    left_ms: int | None

    def differences(self, now: Mapping[str, Any]) -> tuple[Difference, ...]:
        """In what `now`, by the names in `COMPARED`, is not what the run had."""
        return tuple(
            Difference(name=name, was=self.settings[name], now=now[name])
            for name in COMPARED
            if self.settings[name] != now[name]
        )


def snapshot_of(records: Sequence[Record], table: Table = TABLE) -> Snapshot:
    """Where the run of `records` stands after the last of them.

    Raises CannotResume where the run has ended, never began, or kept no contents, and where a record makes no sense.
    """
    genesis = records[0]
    if genesis.get("payloads") != "keep":
        problem = "the run kept no contents (payloads='digest'), so it cannot be taken up again"
        raise CannotResume(problem, "Start it anew; keep contents where a run is to be resumed")
    try:
        fold = _Fold(genesis, table)
        for record in records[1:]:
            fold.take(record)
        if fold.sealed is None and fold.started:
            return fold.snapshot()
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise CannotResume(f"a record makes no sense: {error!r}", "See what `looplatch verify` says") from error
    if fold.sealed is not None:
        raise CannotResume(f"the run has ended ({fold.sealed})", "Start another one with its messages")
    problem = "the run was cut off before it began: nothing was sent, and its messages are not all in the log"
    raise CannotResume(problem, "Start it anew, with another log")


class _Fold:
    """Takes record by record."""

    def __init__(self, genesis: Record, table: Table) -> None:
        self._run = genesis.run
        self._table = table
        self._events = {event.__name__: event for event in {row.event for row in table.rows}}
        self.started = False
        self.sealed: str | None = None
        self._state = str(INITIAL)
        self._terminal: str | None = None
        self._values: dict[str, Any] = {}  # what the context has that it did not start with
        self._settings = {name: genesis.get(name) for name in COMPARED}  # signed_by: in a log that is signed
        self._messages = MessageFold()
        self._answers = AnswerFold()
        self._move: Record | None = None  # the last one that is no mere pause or resume
        self._paused = False
        self._summaries = SummaryFold()
        self._sizes = SizeFold()
        self._outputs = 0
        self._fell_back = False
        self._approvals = ApprovalFold()
        self._unpaid = dict.fromkeys(TOTALS, 0)
        self._left_ms: int | None = genesis["deadline_ms"]
        self._since_ns = self._now_ns = genesis["mono_ns"]

    def take(self, record: Record) -> None:
        """The next record."""
        self._now_ns = record["mono_ns"]
        match record["kind"]:
            case "transition":
                self._take_move(record)
            case "message":
                self._messages.take(record)
                self._answers.message(record)
            case "effect_begin":
                self._take_begin(record)
            case "effect_end":
                self._take_end(record)
            case "resumed":
                self._take_claim(record)
            case "terminal":
                self.sealed = record["terminal"]
            case _:
                pass

    def _take_move(self, record: Record) -> None:
        event, fields = record["event"], record["fields"]
        self._state, self._terminal = record["target"], record["terminal"]
        self._values.update(record["change"])
        self._paused = event == "RunPaused"
        if TOTALS[-1] in fields:
            self._unpaid = dict.fromkeys(TOTALS, 0)
        if event in _RESTING and record["source"] == record["target"]:
            return
        self.started = True
        self._move = record
        self._messages.moved()
        if record["target"] == State.STREAM != record["source"]:
            self._answers.forget()
        self._summaries.move(record, self._messages.entries)
        if event in ("ModelResponded", "ModelFailed"):
            self._take_answer(event)
        elif event == "ContextExceeded":
            self._sizes.exceeded(self._answers.model_end)
        self._approvals.move(record)
        if record["reason"] == Continue.TOKEN_BUDGET_CONTINUATION:
            self._outputs = self._values.get("output_tokens", 0)

    def _take_answer(self, event: str) -> None:
        answer, entries = self._answers.respond(), self._messages.entries
        if answer is not None and event == "ModelResponded":
            self._sizes.answered(answer.model_end, answer.joins, entries)
        elif answer is not None:
            self._sizes.refused(answer.model_end, entries)

    def _take_begin(self, record: Record) -> None:
        self._messages.settle()
        match record["class"]:
            case "summary":
                self._summaries.begin(record)
            case "sleep":
                if not self._fell_back and self._values.get("fallback") is True:
                    self._fell_back = True
                    self._sizes.switched()
            case _:
                self._answers.begin(record)

    def _take_end(self, record: Record) -> None:
        if record["class"] == "count":
            self._sizes.count(record, self._messages.entries)
        elif record["class"] == "size":
            self._sizes.asked(record)
        elif record["class"] == "summary":
            self._summaries.end(record)
        elif record["class"] == "tool":
            self._approvals.end(self._answers.call_of(record))
        if record["class"] in ("note", "tool") and record.get("usage") is not None:
            self._unpaid = {name: spent + record["usage"][name] for name, spent in self._unpaid.items()}
        self._answers.end(record)

    def _take_claim(self, record: Record) -> None:
        changes = record.get("changes", {})
        self._settings.update((name, change["now"]) for name, change in changes.items())
        if "model" in changes:
            self._sizes.changed()
        self._approvals.claim(record)
        self._left_ms = record.get("deadline_ms")
        self._since_ns = record["mono_ns"]

    # --- the end

    def snapshot(self) -> Snapshot:
        """Where the run stands now."""
        values: dict[str, Any] = {
            name: value if value is None else _ENUMS.get(name, _same)(value) for name, value in self._values.items()
        }
        left, answer = self._left_ms, self._answers.last()
        return Snapshot(
            run=self._run,
            state=State(self._state),
            context=Context(limits=Limits.read(self._settings["limits"]), **values),
            terminal=Terminal(self._terminal) if self._state in FINAL and self._terminal is not None else None,
            settings=self._settings,
            entries=self._messages.entries,
            tool_use_ids=frozenset(self._messages.ids),
            base=self._messages.base,
            pending=self._pending(),
            answer=answer,
            text=self._answers.text,
            message_id=self._answers.message_id,
            summary=self._summaries.written,
            staged=self._summaries.staged(self._messages.base or self._messages.entries),
            in_vain=dict(self._summaries.in_vain),
            summary_failed_at=self._summaries.failed_at,
            api_refuses=self._summaries.api_refuses,
            counted=self._sizes.counted,
            learned=self._sizes.learned,
            block_reason=self._answers.block_reason,
            outputs=self._outputs,
            fell_back=self._fell_back,
            paused=self._paused,
            awaited=self._approvals.awaited,
            approvals=self._approvals.given,
            untold=self._approvals.untold,
            unpaid=self._unpaid,
            nested_awaited=self._approvals.nested_awaited({} if answer is None else answer.tools),
            nested_approvals=self._approvals.nested,
            left_ms=None if left is None else max(0, left - (self._now_ns - self._since_ns) // _MS),
        )

    def _pending(self) -> tuple[Command, ...]:
        """What the last move ordered to be done at once, and was not: the commands that a resume does not repeat."""
        if self._move is None or self._state != State.PREPARE:
            return ()
        spoken = self._messages.spoken
        return tuple(
            command
            for command in self._ordered(self._move)
            if not command.answers and not (isinstance(command, _SPEAKING) and spoken)
        )

    def _ordered(self, move: Record) -> tuple[Command, ...]:
        event = self._events.get(move["event"])
        held = {name for name, verdict in move["guards"] if verdict}
        rows = () if event is None else self._table.alternatives(State(move["source"]), event)
        return next((row.commands for row in rows if row.guard.name in held), ())


def _same(value: object) -> object:
    return value
