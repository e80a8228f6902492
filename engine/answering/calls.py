"""The tool calls of one answer: started by the scheduler, carried out between two records, told to the consumer."""

from collections.abc import Mapping

import attrs

from looplatch.agents.parentage import Earlier
from looplatch.answering.carrying import Carrier
from looplatch.blocks import ToolUseBlock
from looplatch.encoding import copied
from looplatch.messages import ToolMessage, ToolPhase
from looplatch.recovery.waiting import waiting
from looplatch.requests.kept import Kept
from looplatch.tools import Call, Outcome
from looplatch.tools.scheduler import Scheduler
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
        self._carrier = Carrier(at, blocks, turn)
        self._permission = self._carrier.permission()
        self._restored = 0  # the blocks of an answer that an earlier process read
        self._begun_before: set[str] = set()  # by an earlier process
        self._stopping = False
        self._scheduler = Scheduler(
            self._carrier.carry_out,
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
        held_back = self._carrier.held_back - self._begun_before
        return tuple(call for call in self._scheduler.begun if call.id not in held_back)

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
        inside = {call.id: calls for call in self.awaited if (calls := self._carrier.inside(call))}
        own = [call for call in self.awaited if call.id not in inside]
        shown = waiting(
            [call.id for call in own], {under: [one.id for one in calls] for under, calls in inside.items()}
        )
        blocks = [ToolUseBlock(id=call.id, name=call.name, input=copied(call.input)) for call in own]
        blocks += [block for calls in inside.values() for block in calls]
        return tuple(attrs.evolve(block, id=id_) for id_, block in zip(shown, blocks, strict=True))

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
        return self._carrier.unnamed(last)

    def restore(self, past: PastCall) -> None:
        """Take a call as an earlier process left it; what can start does so at `release`."""
        call = past.call
        self._restored = max(self._restored, call.index + 1)
        if past.begun:
            self._begun_before.add(call.id)
        self._carrier.restore(call, result=past.result, edited=past.edited, earlier=past.earlier)
        self._scheduler.restore(call, past.outcome, permitted=past.permitted, awaited=past.awaited, begun=past.begun)

    def hold(self) -> None:
        """The answer is whole and is decided on: until `release`, what has not begun does not begin."""
        self._carrier.hold()

    def release(self) -> None:
        """It is decided that the calls are carried out."""
        self._carrier.release()
        if self._restored:
            self._scheduler.moved_on(self._restored)

    def result(self, outcome: Outcome) -> Kept:
        """The tool_result block of a call, encoded and committed to once."""
        return self._carrier.result(outcome)

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
        self._carrier.rest()
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
