"""Resume: where a run stood when its last process left it, told by its records alone.

The context is folded from what the moves changed; that each change follows from its row is the verifier's to say.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, assert_never

from looplatch.recovery.resume.answers import AnswerFold
from looplatch.recovery.resume.approvals import ApprovalFold
from looplatch.recovery.resume.errors import CannotResume
from looplatch.recovery.resume.messages import MessageFold
from looplatch.recovery.resume.settings import COMPARED
from looplatch.recovery.resume.sizes import SizeFold
from looplatch.recovery.resume.snapshot import Snapshot
from looplatch.recovery.resume.summaries import SummaryFold
from looplatch.states import commands as do
from looplatch.states.brief import brief
from looplatch.states.commands import Command
from looplatch.states.context import TOTALS, Context
from looplatch.states.limits import Limits
from looplatch.states.reasons import Continue, Terminal
from looplatch.states.record import Record
from looplatch.states.state import FINAL, INITIAL, State
from looplatch.states.table import TABLE
from looplatch.states.transition import Table
from looplatch.states.trouble import TroubleKind
from looplatch.states.vocabulary import EffectClass

_RESTING: Final = ("RunPaused", "RunResumed")
_SPEAKING: Final = (do.AskToGoOn, do.InjectHookError, do.InjectBudgetPrompt)
_ENUMS: Final[dict[str, Callable[[Any], object]]] = {"trouble": TroubleKind, "reason": Continue}
_MS: Final = 1_000_000


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
        raise CannotResume(f"a record makes no sense: {brief(error)}", "See what `looplatch verify` says") from error
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
        begun = EffectClass(record["class"])
        match begun:
            case EffectClass.SUMMARY:
                self._summaries.begin(record)
            case EffectClass.SLEEP:
                if not self._fell_back and self._values.get("fallback") is True:
                    self._fell_back = True
                    self._sizes.switched()
            case EffectClass.MODEL | EffectClass.TOOL | EffectClass.HOOK:
                self._answers.begin(record)
            case EffectClass.COUNT | EffectClass.SIZE | EffectClass.NOTE:
                pass
            case _:
                assert_never(begun)

    def _take_end(self, record: Record) -> None:
        ended = EffectClass(record["class"])
        match ended:
            case EffectClass.COUNT:
                self._sizes.count(record, self._messages.entries)
            case EffectClass.SIZE:
                self._sizes.asked(record)
            case EffectClass.SUMMARY:
                self._summaries.end(record)
            case EffectClass.TOOL:
                self._approvals.end(self._answers.call_of(record))
            case EffectClass.MODEL | EffectClass.HOOK | EffectClass.SLEEP | EffectClass.NOTE:
                pass
            case _:
                assert_never(ended)
        if ended in (EffectClass.NOTE, EffectClass.TOOL) and record.get("usage") is not None:
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
