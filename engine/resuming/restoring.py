"""Putting a run together again from its snapshot and its contents, and the moves with which it goes on."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

import attrs

from looplatch.audit import AuditLog
from looplatch.audit.stamps import unix_ns
from looplatch.compressing.compressor import PastCompression
from looplatch.compressing.summary import Compaction, Summary
from looplatch.compressing.summary_writer import KnownSummary
from looplatch.driver import Driver
from looplatch.hooks import Block, Halt, Pass
from looplatch.hooks.stop_hooks import Said
from looplatch.journal import Journal
from looplatch.opening import announced
from looplatch.outbox import Outbox
from looplatch.performer import Past
from looplatch.plan import Plan
from looplatch.recovery.compression.collapse import Staged, span_at
from looplatch.recovery.estimate import Estimate
from looplatch.recovery.resume.errors import CannotResume
from looplatch.recovery.resume.past import Entry, PastAnswer, PastApproval, PastHook, Skeleton
from looplatch.recovery.resume.snapshot import Snapshot
from looplatch.requests.history import Joining, Rewrite
from looplatch.requests.kept import Kept
from looplatch.resuming.contents import Contents
from looplatch.resuming.restored import RestoredAnswer
from looplatch.states.event import Event
from looplatch.states.events import ApprovalGiven, RunResumed
from looplatch.states.level import Level
from looplatch.states.secrets import is_marked
from looplatch.states.state import FINAL, State
from looplatch.workplace import Pauses, Workplace

STOPPED: Final = "Your answer was interrupted before it was whole. Go on with the task from there."
"""What the model is told of an answer that was being stopped from outside when its process died."""


class Restoring:
    """Restores one run. All contents are looked up at once, so that nothing is written of a run that lacks some."""

    def __init__(
        self,
        plan: Plan,
        log: AuditLog,
        snapshot: Snapshot,
        contents: Contents,
        partial: bool,
        pauses: Pauses,
        accepts_changes: bool,
    ) -> None:
        _refuse_other_names(snapshot, plan)
        _refuse_what_nothing_mends(snapshot, contents)
        history = contents.history(snapshot.entries)
        history.tool_use_ids.update(snapshot.tool_use_ids)
        self._at = Workplace(
            plan=plan,
            journal=Journal(log, plan.secrets),
            history=history,
            outbox=Outbox(),
            partial=partial,
            pauses=pauses,
            accepts_changes=accepts_changes,
        )
        for learned in snapshot.learned:
            self._at.learn(learned)
        self._snapshot = snapshot
        self._contents = contents
        self._past = at_hand(snapshot)
        self._staged = _staged_again(snapshot, contents)
        self._estimate = _counted_again(snapshot, contents)
        self._text = None if snapshot.text is None else contents.text(snapshot.text)
        self._reason = "" if snapshot.block_reason is None else str(contents.value(snapshot.block_reason))
        self._lost = None if snapshot.base is None else _Gap.between(snapshot.entries, snapshot.base, contents)
        self._said = _said_again(self._past, contents) if snapshot.state is State.DECIDE else ()
        if snapshot.summary is not None:
            contents.payload(snapshot.summary.text)
        if self._past is not None:
            _look_up(self._past, snapshot, contents)

    def driver(self, given: Mapping[str, PastApproval], nested: Mapping[str, Mapping[str, PastApproval]]) -> Driver:
        """The run's driver, with the moves made that bring it back; `given` and `nested` are decisions that are new."""
        at, snapshot, past = self._at, self._snapshot, self._past
        at.outbox.push(announced(at.plan, at.journal.log, resumed=True))
        if self._lost is not None:
            self._lost.close(at)
        driver = Driver(at)
        driver.restore(snapshot.state, attrs.evolve(snapshot.context, limits=at.plan.limits), snapshot.terminal)
        driver.performer.compressor.restore(self._compression())
        approvals = {**snapshot.approvals, **given}
        awaited = [call for call in snapshot.awaited if call not in approvals]
        answer = None if past is None else self._answer(past, approvals, awaited, nested)
        cut = 0
        if past is not None and answer is not None and snapshot.state is State.STREAM and not past.ended:
            cut = past.begun
            if cut:
                answer.keep_cut()
            else:
                self._leave_behind(past, answer)
                answer = None
        driver.performer.restore(
            Past(
                answer=answer,
                is_unread=snapshot.state is State.STREAM and not cut,
                text=self._text,
                unanswered=past is not None and not past.results,
                outputs=snapshot.outputs,
                block_reason=self._reason,
                fell_back=snapshot.fell_back,
                unreported=snapshot.unpaid,
                said=self._said,
                message_id=_whole(snapshot.message_id),
            )
        )
        if snapshot.terminal is None:
            events: list[Event] = [RunResumed(begun=cut)]
            decided = (*snapshot.untold, *given)
            if decided and snapshot.state is State.SUSPENDED:
                events.append(ApprovalGiven(calls=decided, awaited=len(awaited)))
            driver.resume(events, snapshot.pending)
        return driver

    def _answer(
        self,
        past: PastAnswer,
        approvals: Mapping[str, PastApproval],
        awaited: Sequence[str],
        nested: Mapping[str, Mapping[str, PastApproval]],
    ) -> RestoredAnswer:
        before = self._snapshot.nested_approvals
        return RestoredAnswer(
            self._at,
            past,
            self._contents,
            turn=self._snapshot.context.turn,
            approvals=approvals,
            awaited=frozenset(awaited),
            nested={call: {**before.get(call, {}), **nested.get(call, {})} for call in (*before, *nested)},
        )

    def _leave_behind(self, past: PastAnswer, answer: RestoredAnswer) -> None:
        """An answer without begun tools is discarded whole, but for what a stop had brought into the history."""
        if past.joined is None or self._at.history.last_role != "assistant":
            return
        calls = answer.calls
        if outcomes := calls.outcomes:
            self._at.say([(outcome.block(), calls.result(outcome)) for outcome in outcomes])
        else:
            self._at.say_text(STOPPED)

    def _compression(self) -> PastCompression:
        snapshot, failed_s = self._snapshot, None
        if snapshot.summary_failed_at is not None:
            since_ns = self._at.plan.clock.now_ns() - unix_ns(snapshot.summary_failed_at)
            failed_s = max(0.0, since_ns / 1e9)
        return PastCompression(
            staged=self._staged,
            estimate=self._estimate,
            summary=self._summary(),
            in_vain=snapshot.in_vain,
            failed_s=failed_s,
            api_refuses=snapshot.api_refuses,
        )

    def _summary(self) -> KnownSummary | None:
        past = self._snapshot.summary
        if past is None:
            return None
        written: object = self._contents.value(past.text)
        spent = dict(past.spent)
        summary: Summary | Compaction = Summary(text=str(written), spent=spent)
        if isinstance(written, dict):  # of the API's own compaction a whole block is kept
            summary = Compaction(block=cast("dict[str, Any]", written), spent=spent)
        return KnownSummary(level=Level(past.level), summary=summary, sent=self._at.history.sent)


def _whole(message_id: str | None) -> str | None:
    """An id of the API's, to be sent to it; None where the record does not have all of it."""
    return None if message_id is None or is_marked(message_id) else message_id


@attrs.frozen
class _Gap:
    """What a compression that was cut took out of the history, or put in: the messages from `start` to before `stop`
    give way to those that stood there before."""

    start: int
    stop: int
    before: tuple[tuple[Entry, list[Kept]], ...]

    @classmethod
    def between(cls, now: Sequence[Entry], before: Sequence[Entry], contents: Contents) -> "_Gap":
        """The difference between two histories."""
        shorter = min(len(now), len(before))
        start = next((place for place in range(shorter) if not now[place].says(before[place])), shorter)
        same = 0
        while same < shorter - start and now[-1 - same].says(before[-1 - same]):
            same += 1
        lost = before[start : len(before) - same]
        kept = tuple((entry, contents.blocks(entry)) for entry in lost)
        stop = len(now) - same
        return cls(start, stop, kept)

    def close(self, at: Workplace) -> None:
        """Put the history right, and record it."""
        joining = [Joining(entry.role, "text" if entry.plain else "blocks", kept) for entry, kept in self.before]
        if self.start != self.stop or joining:
            rewrites = [Rewrite(self.start, self.stop, joining)]
            at.history.rewrite(rewrites, at.journal.edits(rewrites).hash)


def _refuse_other_names(snapshot: Snapshot, plan: Plan) -> None:
    """See that the calls go on having the ids that the log has: without what is a secret now, they would be others."""
    answer = () if snapshot.answer is None else snapshot.answer.blocks
    for id_ in (*snapshot.tool_use_ids, *(block["id"] for block in answer if "id" in block)):
        if plan.secrets is not None and (kinds := plan.secrets.taken_out(id_)[1]):
            problem = f"it has a call with an id in which a secret is found now ({', '.join(kinds)})"
            raise CannotResume(problem, "Look for the secrets that were looked for before, or start another run")


def at_hand(snapshot: Snapshot) -> PastAnswer | None:
    """The last answer, where the run is still busy with it."""
    answer = snapshot.answer
    match snapshot.state:
        case State.STREAM:
            return None if answer is None or answer.responded else answer
        case State.PREPARE:
            return answer if snapshot.pending else None
        case state:
            return None if state in FINAL else answer


def unanswered(past: PastAnswer) -> Iterator[Skeleton]:
    """The calls of an answer that have no result yet and get one when the run goes on."""
    for call in past.blocks if past.ended or past.begun else ():
        if call["type"] == "tool_use" and call["id"] not in past.results:
            tool = past.tools.get(call["id"])
            if tool is None or tool.is_open:
                yield call


def _refuse_what_nothing_mends(snapshot: Snapshot, contents: Contents) -> None:
    """See that thinking, and the inputs that tools are still to get, are as they were.

    They come first, since of other contents it is said how to go on without them.
    """
    for entry in snapshot.entries:
        for skeleton in entry.blocks:
            contents.check(skeleton)
    past = at_hand(snapshot)
    if past is None:
        return
    for skeleton in (*past.blocks, *past.unfinished):
        contents.check(skeleton)
    for call in unanswered(past):
        tool, allowed = past.tools.get(call["id"]), snapshot.approvals.get(call["id"])
        asked = past.verdicts.get(call["id"])
        if tool is not None:
            edited = tool.begin.get("edited")
        elif allowed is not None:
            edited = allowed.input
        else:
            edited = None if asked is None else asked.edited
        contents.original(call["commitment"] if edited is None else edited)


def _look_up(past: PastAnswer, snapshot: Snapshot, contents: Contents) -> None:
    """Find all that restoring an answer asks for."""
    for skeleton in (*past.blocks, *past.unfinished, *past.results.values()):
        contents.kept(skeleton)
    named = [tool.end.get("result") for tool in past.tools.values() if not tool.is_open and tool.end is not None]
    named += [tool.begin.get("edited") for tool in past.tools.values()]
    named += [tool.waiting["pending"] for tool in past.tools.values() if tool.waiting is not None]
    named += [text for hook in past.verdicts.values() for text in (hook.reason, hook.edited)]
    for approvals in (snapshot.approvals, *snapshot.nested_approvals.values()):
        named += [text for approval in approvals.values() for text in (approval.message, approval.input)]
    for commitment in named:
        if commitment is not None:
            contents.payload(commitment)


def _staged_again(snapshot: Snapshot, contents: Contents) -> list[Staged]:
    staged: list[Staged] = []
    for past in snapshot.staged:
        messages = contents.history(past.entries).messages()
        staged.append(Staged(span=span_at(messages, past.start, past.stop), summary=str(contents.value(past.text))))
    return staged


def _counted_again(snapshot: Snapshot, contents: Contents) -> Estimate | None:
    counted = snapshot.counted
    if counted is None:
        return None
    return Estimate(reported=counted.tokens, weight=contents.history(counted.entries).weight)


def _said_again(past: PastAnswer | None, contents: Contents) -> tuple[tuple[str, Said], ...]:
    hooks = () if past is None else past.hooks
    verdicts = ((hook.name, _verdict(hook, contents)) for hook in hooks if hook.point == "stop")
    return tuple((name, verdict) for name, verdict in verdicts if verdict is not None)


def _verdict(hook: PastHook, contents: Contents) -> Said | None:
    reason = "" if hook.reason is None else str(contents.value(hook.reason))
    match hook.outcome:
        case "Pass":
            return Pass()
        case "Block":
            return Block(reason)
        case "Halt":
            return Halt(reason)
        case _:
            return None
