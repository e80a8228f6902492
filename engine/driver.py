"""The driver: hands the machine its events and has the commands performed that come back.

A move's record is written before its commands run. Every step is taken when the consumer pulls: nothing runs ahead of
it but the tools. What ends a run from outside (abort, deadline, close) ends all tools first, then closes the history,
then moves.
"""

from collections import deque
from collections.abc import Sequence

from looplatch.hooks.calling import show_move
from looplatch.machine import Machine, Move
from looplatch.messages import TransitionMessage
from looplatch.performer import Performer, Step
from looplatch.states import events as on
from looplatch.states.commands import Command, Finish
from looplatch.states.context import Context
from looplatch.states.errors import RefusedEvent
from looplatch.states.event import Event
from looplatch.states.reasons import Terminal
from looplatch.states.record import Record
from looplatch.states.state import State
from looplatch.workplace import Workplace

MACHINE = Machine()


class Driver:
    """One run, from its first event to its seal."""

    def __init__(self, at: Workplace) -> None:
        self.at = at
        self.performer = Performer(at)
        self.terminal: Terminal | None = None
        self._cursor = MACHINE.start(Context(limits=at.plan.limits))
        self._event: Event = on.RunStarted()
        self._commands: deque[Command] = deque()
        self._step: Step | None = None
        self._pausing = False  # a state was entered or left at which the caller wants to look
        self._unshown: deque[Record] = deque()  # moves that the hook has not seen

    def restore(self, state: State, context: Context, terminal: Terminal | None) -> None:
        """Stand where an earlier process left the run; one that has ended is only finished."""
        self._cursor = MACHINE.start(context, state)
        self.at.budget.context = context
        self.terminal = terminal
        if terminal is not None:
            self._commands.append(Finish())

    def resume(self, events: Sequence[Event], first: Sequence[Command] = ()) -> None:
        """Go on by `events`; what is performed then is `first`, and what the last of them orders."""
        for event in events:
            self._commands.clear()
            self.send(event)
        self._commands.extendleft(reversed(first))

    def stop_after_turn(self, asked: bool = True) -> None:
        """Whether the run is to end after the current turn."""
        self.performer.stop_asked = asked

    def withdraw_budget(self) -> None:
        """The run may spend no more, whatever its own limits say."""
        self.at.budget.withdrawn = True

    def say_next(self, texts: Sequence[str]) -> None:
        """Say texts to the model at the next turn."""
        self.performer.unsent += texts

    def stop_tools(self) -> None:
        """Ask all tools to end, now."""
        self.performer.stop_tools()

    @property
    def context(self) -> Context:
        """The run's context as it is now."""
        return self._cursor.context

    @property
    def state(self) -> State:
        """The run's state as it is now."""
        return State(self._cursor.state)

    @property
    def idle(self) -> bool:
        """Whether nothing is left to perform."""
        return self._step is None and not self._commands

    def send(self, event: Event) -> None:
        """Move by `event`: its record is written, and its commands wait. A refused event is recorded, and raised."""
        event = self.at.budget.report(event)
        try:
            move = MACHINE.send(self._cursor, event)
        except RefusedEvent as refused:
            record = self.at.journal.rejected(self.state, event, tuple(refused.verdicts.items()))
            self.at.outbox.push(TransitionMessage(record=record))
            raise
        self.at.budget.context = self._cursor.context
        record = self.at.journal.move(move)
        self._event = event
        self._commands.extend(move.commands)
        self.terminal = move.row.terminal
        pauses = self.at.pauses
        if (pauses.before or pauses.after) and self.terminal is None:
            self._look_for_pause(move)
        self.at.outbox.push(TransitionMessage(record=record))
        if self.at.plan.hooks.on_transition is not None:
            self._unshown.append(record)

    def _look_for_pause(self, move: Move) -> None:
        """Pause before the next command, if a state was entered or left at which the caller wants to look."""
        moved = move.target is not move.source
        entered = moved or isinstance(move.event, on.RunStarted)
        self._pausing |= entered and move.target in self.at.pauses.before
        self._pausing |= moved and move.source in self.at.pauses.after
        if move.target is State.SUSPENDED:
            self._pausing = False  # it rests there as it is, until someone has decided

    def _show(self) -> None:
        """Show the hook its moves. Those of the opening wait for the first step: the run can end by what it raises."""
        hook = self.at.plan.hooks.on_transition
        while hook is not None and self._unshown:
            show_move(hook, self._unshown.popleft())

    async def advance(self) -> None:
        """Perform until there is something to hand out, or nothing is left to do."""
        waiting = self.at.outbox.waiting
        if self._unshown:  # asked here, since this is called for each delta
            self._show()
        while not waiting:
            if self._step is None:
                if not self._commands:
                    return
                if self._pausing and self._commands[0].answers:
                    await self._pause()
                    continue  # unless there is something to hand out first
                self._step = self._begin(self._commands.popleft())
                continue
            event = await self._step()
            if event is None:
                return
            self._step = None
            self.send(event)
            self._show()

    async def _pause(self) -> None:
        """Rest in this state: what was begun ends, and nothing else is performed until the run is resumed."""
        if not await self.performer.rest():
            return
        self._pausing = False
        self.send(on.RunPaused())
        self._commands.clear()
        self._show()

    async def end(self, event: Event) -> None:
        """End the run by an event from outside: the tools first, then the history, then the move."""
        self._commands.clear()
        self._step = None
        await self.performer.stop(self.state)
        self.send(event)
        self._commands.clear()
        self._show()

    def _begin(self, command: Command) -> Step | None:
        return self.performer.begin(command, self.context, self._event)
