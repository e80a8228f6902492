"""Carrying out the calls of one answer: each between its two records."""

import asyncio
from collections.abc import Mapping
from typing import Any

import attrs

from looplatch.agents.parentage import FIRST_TIME, PARENTAGE, Earlier, Parentage
from looplatch.blocks import ToolUseBlock
from looplatch.hooks.calling import HookLeft, call_hook, context_of
from looplatch.hooks.points import hook_name
from looplatch.messages import ToolMessage, ToolPhase
from looplatch.permission.permission import Permission
from looplatch.recovery.resume.past import SUSPENDED
from looplatch.requests.kept import Kept
from looplatch.tools import AbortSignal, Call, Outcome
from looplatch.tools.calls import Asked
from looplatch.tools.entry import CallBroken
from looplatch.tools.execution import CallCancelled, execute, not_started
from looplatch.tools.results import with_reference
from looplatch.workplace import Workplace


class Carrier:
    """Carries out what a scheduler starts. `blocks` are the answer's finished blocks, by index.

    It knows nothing of the scheduler: an answer, and all that its calls held, is let go of as soon as it is over, and
    does not wait for the garbage collector.
    """

    def __init__(self, at: Workplace, blocks: Mapping[int, Kept], turn: int) -> None:
        self._at = at
        self._turn = turn
        self._blocks = blocks
        self._named = -1  # the last block that an effect record has named
        self._results: dict[str, Kept] = {}
        self._edited: dict[str, str] = {}  # commitments to the inputs that permission put in the place of the model's
        self._earlier: dict[str, Earlier] = {}  # what is known of runs inside calls
        self._may_begin = asyncio.Event()
        self._may_begin.set()
        self._resting = False  # the run is about to rest: what has not begun is for whoever resumes it
        self.held_back: set[str] = set()
        """The calls that wait for `release`."""

    def permission(self) -> Permission | None:
        """What is asked before a call may run; None: all may."""
        plan = self._at.plan
        if not plan.rules and plan.hooks.before_tool is None:
            return None
        return Permission(self._at, self._turn, self._with_input)

    def restore(self, call: Call, *, result: Kept | None, edited: str | None, earlier: Earlier | None) -> None:
        """Know what an earlier process knew of a call; see `PastCall`."""
        self._named = max(self._named, call.index)
        if result is not None:
            self._results[call.id] = result
        if edited is not None:
            self._edited[call.id] = edited
        if earlier is not None:
            self._earlier[call.id] = earlier

    def hold(self) -> None:
        """Until `release`, what has not begun does not begin."""
        self._may_begin.clear()

    def release(self) -> None:
        """What was held back begins."""
        self._may_begin.set()

    def rest(self) -> None:
        """Begin nothing any more; what waits for `release` must not be waited for."""
        self._resting = True
        self._may_begin.set()

    def inside(self, call: Call) -> tuple[ToolUseBlock, ...]:
        """The calls that a run inside `call` waits for."""
        earlier = self._earlier.get(call.id)
        return () if earlier is None else earlier.pending

    def unnamed(self, last: int) -> list[Kept]:
        """The finished blocks up to index `last` that no record of an effect names; this one is going to."""
        fresh = [self._blocks[index] for index in sorted(self._blocks) if self._named < index <= last]
        self._named = max(self._named, last)
        return fresh

    def result(self, outcome: Outcome) -> Kept:
        """The tool_result block of a call, encoded and committed to once."""
        kept = self._results.get(outcome.call.id)
        if kept is None:
            kept = self._results[outcome.call.id] = self._at.journal.keep(outcome.block())
        return kept

    async def carry_out(self, call: Call, abort: AbortSignal) -> Outcome | Asked | None:
        """Carry a call out between its two records.

        Asked: a run inside it waits for someone's word. None: it has not begun, since the run is about to rest.
        """
        if not self._may_begin.is_set():
            self.held_back.add(call.id)
            await self._may_begin.wait()
            self.held_back.discard(call.id)
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
        """Show the outcome to the caller's hook, if there is one. The outcome stands, whatever the hook raises."""
        hook, journal, call = self._at.plan.hooks.after_tool, self._at.journal, outcome.call
        if hook is None or abort.is_set():
            return
        begin = journal.hook_begins("after_tool", hook_name(hook), call.id)
        about = context_of(outcome, journal.log.run, self._turn)
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
            raise CallBroken(outcome, error) from error
        else:
            journal.ends(begin, "ok")

    def _with_input(self, call: Call, given: dict[str, Any], commitment: str) -> Call:
        """The call with another input, looked up and checked as its own was; that it is another one is recorded."""
        self._edited[call.id] = commitment
        return self._at.plan.toolbox.call(
            tool_use_id=call.id, name=call.name, given=given, index=call.index, toolset=call.toolset
        )

    def _progress(self, call: Call, told: tuple[object, ...]) -> None:
        self._at.outbox.push(ToolMessage(phase=ToolPhase.PROGRESS, tool_use_id=call.id, name=call.name, progress=told))
