"""The tool calls of one answer: started by the scheduler, carried out between two records, told to the consumer."""

import asyncio
import copy
from collections.abc import Mapping
from typing import Any

import attrs

from looplatch.agents.parentage import FIRST_TIME, PARENTAGE, Earlier, Parentage
from looplatch.blocks import ToolUseBlock
from looplatch.encoding import copied
from looplatch.hooking import HookLeft, call_hook
from looplatch.hooks import ToolOutcomeContext, hook_name
from looplatch.kept import Kept
from looplatch.messages import ToolMessage, ToolPhase
from looplatch.permission import Permission
from looplatch.recovery.resume.past import SUSPENDED
from looplatch.recovery.waiting import waiting
from looplatch.tools import AbortSignal, Asked, Call, CallCancelled, Outcome, Scheduler, execute, not_started
from looplatch.tools.results import with_reference
from looplatch.workplace import Workplace


@attrs.frozen(kw_only=True)
class PastCall:
    """A call as an earlier process left it.

    call: as it ran, or may run. outcome: None if it is to run, or waits. result: the tool_result block that the log
    knows. begun: its tool was started. permitted: it may run. awaited: an approval is. edited: the commitment to the
    input that it was given in the place of the model's. earlier: what is known of the run inside it.
    """

    call: Call
    outcome: Outcome | None = None
    result: Kept | None = None
    begun: bool = False
    permitted: bool = False
    awaited: bool = False
    edited: str | None = None
    earlier: Earlier | None = None


class Calls:
    """Wraps a scheduler with the run's records and messages. `blocks` are the answer's finished blocks, by index."""

    def __init__(self, at: Workplace, blocks: Mapping[int, Kept], turn: int) -> None:
        self._at = at
        self._turn = turn
        self._edited: dict[str, str] = {}  # commitments to the inputs that permission put in the place of the model's
        self._blocks = blocks
        self._named = -1  # the last block that an effect record has named
        self._restored = 0  # the blocks of an answer that an earlier process read
        self._results: dict[str, Kept] = {}
        self._earlier: dict[str, Earlier] = {}  # what is known of runs inside calls
        self._stopping = False
        self._may_begin = asyncio.Event()
        self._may_begin.set()
        self._held_back: set[str] = set()  # the calls that wait for that
        self._begun_before: set[str] = set()  # by an earlier process
        self._resting = False  # the run is about to rest: what has not begun is for whoever resumes it
        self._permission: Permission | None = None
        if at.plan.rules or at.plan.hooks.before_tool is not None:
            self._permission = Permission(at, turn, self._with_input)
        self._scheduler = Scheduler(
            self._carry_out,
            permit=None if self._permission is None else self._permission.permit,
            timer=at.plan.clock.call_later,
            changed=at.outbox.changed,
        )

    @property
    def asked(self) -> tuple[Call, ...]:
        """All calls of the answer that are ours to answer, in order."""
        return self._scheduler.calls

    @property
    def started(self) -> int:
        """How many times a call was started, or its permission asked for: each takes some steps of the event loop."""
        return self._scheduler.started

    @property
    def begun(self) -> tuple[Call, ...]:
        """The calls whose tool was started."""
        return tuple(call for call in self._scheduler.begun if call.id not in self._held_back - self._begun_before)

    @property
    def settled(self) -> bool:
        """Whether every call has its outcome."""
        return self._scheduler.settled

    @property
    def awaited(self) -> tuple[Call, ...]:
        """The calls that wait for someone's approval."""
        return self._scheduler.awaited

    @property
    def pending(self) -> tuple[ToolUseBlock, ...]:
        """What someone is asked about: the calls that wait, or those that the runs inside them wait for."""
        own = [call for call in self.awaited if not self._inside(call)]
        inside = {call.id: self._inside(call) for call in self.awaited if self._inside(call)}
        shown = waiting(
            [call.id for call in own], {under: [one.id for one in calls] for under, calls in inside.items()}
        )
        blocks = [ToolUseBlock(id=call.id, name=call.name, input=copied(call.input)) for call in own]
        blocks += [block for calls in inside.values() for block in calls]
        return tuple(attrs.evolve(block, id=id_) for id_, block in zip(shown, blocks, strict=True))

    def _inside(self, call: Call) -> tuple[ToolUseBlock, ...]:
        earlier = self._earlier.get(call.id)
        return () if earlier is None else earlier.pending

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """How the calls ended, in call order."""
        return self._scheduler.outcomes

    def add(self, call: Call) -> None:
        """Take the next call of the model; it may start at once."""
        self._scheduler.add(call)
        self.tell()

    def moved_on(self, count: int) -> None:
        """The model has moved on from its first `count` blocks."""
        self._scheduler.moved_on(count)
        self.tell()

    async def call_off(self) -> None:
        """The answer was cut: no permission is asked for any more for calls after the last one begun."""
        await self._scheduler.call_off()
        self._give_up()

    def seal(self) -> None:
        """The answer was cut: calls after the last one begun did not happen."""
        self._scheduler.seal()

    def unnamed(self, last: int) -> list[Kept]:
        """The finished blocks up to index `last` that no record of an effect names; this one is going to."""
        fresh = [self._blocks[index] for index in sorted(self._blocks) if self._named < index <= last]
        self._named = max(self._named, last)
        return fresh

    def restore(self, past: PastCall) -> None:
        """Take a call as an earlier process left it; what can start does so at `release`."""
        call = past.call
        self._named = max(self._named, call.index)
        self._restored = max(self._restored, call.index + 1)
        if past.begun:
            self._begun_before.add(call.id)
        if past.result is not None:
            self._results[call.id] = past.result
        if past.edited is not None:
            self._edited[call.id] = past.edited
        if past.earlier is not None:
            self._earlier[call.id] = past.earlier
        self._scheduler.restore(call, past.outcome, permitted=past.permitted, awaited=past.awaited, begun=past.begun)

    def hold(self) -> None:
        """The answer is whole and is decided on: until `release`, what has not begun does not begin."""
        self._may_begin.clear()

    def release(self) -> None:
        """It is decided that the calls are carried out."""
        self._may_begin.set()
        if self._restored:
            self._scheduler.moved_on(self._restored)

    def result(self, outcome: Outcome) -> Kept:
        """The tool_result block of a call, encoded and committed to once."""
        kept = self._results.get(outcome.call.id)
        if kept is None:
            kept = self._results[outcome.call.id] = self._at.journal.keep(outcome.block())
        return kept

    def tell(self) -> None:
        """Tell the consumer of the calls that ended. Raises an error that is no tool's own."""
        for outcome in self._scheduler.take_finished():
            self._at.outbox.push(
                ToolMessage(
                    phase=ToolPhase.END,
                    tool_use_id=outcome.call.id,
                    name=outcome.call.name,
                    cause=str(outcome.cause),
                    is_error=outcome.is_error,
                )
            )
        if self._scheduler.fault is not None and not self._stopping:
            raise self._scheduler.fault

    async def settle(self) -> bool:
        """Wait for the tools.

        Returns False when the consumer is to be told something first; True when all ended, or wait for approval, or a
        denial asks for the end of the run.
        """
        changed = self._at.outbox.changed
        while True:
            changed.clear()
            self.tell()
            if self._at.outbox:
                return False
            if self._scheduler.settled or self._scheduler.held or self.interrupting is not None:
                return True
            await changed.wait()

    @property
    def interrupting(self) -> str | None:
        """The id of a call that was denied, and the run with it."""
        return self._scheduler.interrupting

    async def rest(self) -> bool:
        """Start nothing more, and wait for what runs. Returns False when the consumer is to be told something first."""
        self._scheduler.hold()
        self._resting = True
        self._may_begin.set()  # what waits for it does not begin any more, and must not be waited for
        changed = self._at.outbox.changed
        while True:
            changed.clear()
            self.tell()
            if self._at.outbox:
                return False
            if not self._scheduler.running:
                return True
            await changed.wait()

    def stop(self) -> None:
        """Ask every tool to end, now; nothing starts any more."""
        self._stopping = True
        self._scheduler.stop()
        self.release()

    async def cancel(self) -> None:
        """End every tool: no task is left when this returns, and every call has its outcome."""
        self.stop()
        try:
            await self._scheduler.cancel()
        finally:
            self._give_up()
        self.tell()

    def _give_up(self) -> None:
        """Ask for no permission any more."""
        if self._permission is not None:
            self._permission.give_up()

    async def _carry_out(self, call: Call, abort: AbortSignal) -> Outcome | Asked | None:
        """Carry a call out between its two records.

        Asked: a run inside it waits for someone's word. None: it has not begun, since the run is about to rest.
        """
        if not self._may_begin.is_set():
            self._held_back.add(call.id)
            await self._may_begin.wait()
            self._held_back.discard(call.id)
        if abort.is_set():
            return not_started(call)
        if self._resting:
            return None
        at, run = self._at, self._at.journal.log.run
        fresh = self.unnamed(call.index)
        asked = self._blocks[call.index].skeleton["commitment"]
        begin = at.journal.tool_begins(call, run, asked, fresh, edited=self._edited.get(call.id))
        at.outbox.push(ToolMessage(phase=ToolPhase.START, tool_use_id=call.id, name=call.name))
        inside = Parentage(at=at, call=call, begin=begin, earlier=self._earlier.get(call.id, FIRST_TIME))
        PARENTAGE.set(inside)  # of this task, and of that of the tool
        try:
            if not call.read_only:
                await at.journal.log.sync()
            outcome = await execute(
                call,
                run_id=run,
                abort=abort,
                on_progress=self._progress,
                timer=at.plan.clock.call_later,
                max_result_chars=at.sizes.result_chars,
            )
        except BaseException as error:
            ended: object = getattr(error, "outcome", None)
            if isinstance(ended, Outcome):
                self._end(inside, ended)
            else:
                at.journal.ends(begin, type(error).__name__, inside.spent())
            raise
        if inside.pending and not outcome.is_error:
            self._suspend(inside)
            return Asked()
        outcome = self._end(inside, outcome)
        if at.plan.hooks.after_tool is not None:
            await self._show(outcome, abort)
        return outcome

    def _suspend(self, inside: Parentage) -> None:
        """Record that a run inside a call waits for someone's word."""
        journal, pending = self._at.journal, inside.pending
        kept = journal.keep_value([attrs.asdict(block) for block in pending])
        named = {"awaited": [block.id for block in pending], "pending": kept.hex, "bytes": kept.size}
        journal.ends(inside.begin, SUSPENDED, {**named, **inside.spent()})
        self._earlier[inside.call.id] = inside.known()

    def _end(self, inside: Parentage, outcome: Outcome) -> Outcome:
        """Record the end of a call. Returns its outcome, which names where a result is kept that was cut to be sent."""
        journal, full = self._at.journal, None
        if outcome.full_text is not None:
            full = journal.keep_value(outcome.full_text)
            content = journal.without_halves(outcome.content, outcome.full_text, (full.hex,))
            outcome = attrs.evolve(outcome, content=content)
            if journal.log.keeps_payloads:
                outcome = attrs.evolve(outcome, content=with_reference(outcome.content, full.hex))
        journal.tool_ends(inside.begin, outcome, self.result(outcome), full, inside.spent())
        return outcome

    async def _show(self, outcome: Outcome, abort: AbortSignal) -> None:
        """Show the outcome to the caller's hook, if there is one. The outcome stands, whatever the hook does."""
        hook, journal, call = self._at.plan.hooks.after_tool, self._at.journal, outcome.call
        if hook is None or abort.is_set():
            return
        begin = journal.hook_begins("after_tool", hook_name(hook))
        about = ToolOutcomeContext(
            run_id=journal.log.run,
            turn=self._turn,
            tool_use_id=call.id,
            name=call.name,
            input=copy.deepcopy(call.input),
            cause=str(outcome.cause),
            content=copy.deepcopy(outcome.content),
            is_error=outcome.is_error,
        )
        try:
            await call_hook(hook, about, clock=self._at.plan.clock, abort=abort)
        except HookLeft:
            journal.ends(begin, "interrupted")
        except BaseException as error:
            journal.ends(begin, type(error).__name__)
            if isinstance(error, asyncio.CancelledError):
                raise CallCancelled(outcome) from error
            if isinstance(error, GeneratorExit):
                raise
            self._scheduler.fail(error)
        else:
            journal.ends(begin, "ok")

    def _with_input(self, call: Call, given: dict[str, Any]) -> Call:
        """The call with another input, looked up and checked as its own was; that it is another one is recorded."""
        self._edited[call.id] = self._at.journal.keep_value(given).hex
        return self._at.plan.toolbox.call(
            tool_use_id=call.id, name=call.name, given=given, index=call.index, toolset=call.toolset
        )

    def _progress(self, call: Call, told: tuple[object, ...]) -> None:
        self._at.outbox.push(ToolMessage(phase=ToolPhase.PROGRESS, tool_use_id=call.id, name=call.name, progress=told))
