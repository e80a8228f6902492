"""The calls of one answer of the model: started while it is still writing, in order, and ended for certain."""

import asyncio
from collections import deque
from functools import partial

from looplatch.states.errors import UsageError
from looplatch.tools.asking import ask
from looplatch.tools.calls import Asked, Call, Denial, Outcome
from looplatch.tools.entry import CallBroken, Entry, Permit, Start
from looplatch.tools.execution import CallCancelled, answered_by_problem, denied, failed, given_up, halted, not_started
from looplatch.tools.leash import GRACE_S, Timer
from looplatch.tools.roster import Roster

__all__ = ["MAX_PARALLEL", "Scheduler"]

MAX_PARALLEL = 10
"""How many calls that only read may run at once."""


class Scheduler:
    """Starts calls by the rule of `order.Line` and gathers their outcomes. One per answer; one event loop.

    Calls are added in the model's order. Each gets exactly one outcome, unless `seal` drops it. Calls that cannot run
    (an unknown tool, an invalid input), and the actions of a toolset after one that failed, are answered at once and
    take no slot. `start` is called for each call that may run, at most once, after `permit` (default: all may run) has
    let it pass.

    An exception out of `start` or `permit` is no outcome of a tool: nothing more starts, and `next_finished` raises it
    (`fault`). Whoever owns a scheduler must `await cancel()` unless every call has ended; that leaves no task behind.
    Raises `UsageError` for a `max_parallel` below 1.
    """

    def __init__(
        self,
        start: Start,
        *,
        permit: Permit | None = None,
        max_parallel: int = MAX_PARALLEL,
        grace_s: float = GRACE_S,
        timer: Timer | None = None,
        changed: asyncio.Event | None = None,
    ) -> None:
        if max_parallel < 1:
            raise UsageError("max_parallel", f"it is {max_parallel}", "Give at least 1, or no call could start")
        self._start = start
        self._permit = permit
        self._grace_s = grace_s
        self._timer = timer
        self._roster = Roster(max_parallel)
        self._finished: deque[Outcome] = deque()
        self._changed = asyncio.Event() if changed is None else changed
        self._tasks: dict[asyncio.Task[None], Entry] = {}
        self._stopped = False
        self._holding = False
        self._fault: BaseException | None = None
        self.started = 0
        """How many times a call was started, or its permission asked for."""

    @property
    def calls(self) -> tuple[Call, ...]:
        """All calls, in the model's order."""
        return tuple(entry.call for entry in self._roster.entries)

    @property
    def running(self) -> tuple[Call, ...]:
        """The calls in flight, those that wait for permission included."""
        return tuple(entry.call for entry in self._roster.open if entry.running)

    @property
    def awaited(self) -> tuple[Call, ...]:
        """The calls that wait for someone's approval."""
        return () if not self._roster.awaits else tuple(entry.call for entry in self._roster.open if entry.awaited)

    @property
    def held(self) -> bool:
        """Whether all that may run has run, and what is left waits for an approval, or behind a call that does."""
        return self._roster.held

    @property
    def begun(self) -> tuple[Call, ...]:
        """The calls that `start` was called for, ended or not."""
        return tuple(entry.call for entry in self._roster.entries if entry.begun)

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """The outcomes so far, in the model's order of the calls."""
        return tuple(entry.outcome for entry in self._roster.entries if entry.outcome is not None)

    @property
    def interrupting(self) -> str | None:
        """The id of the first call that was denied so that all is to end."""
        return next((one.call.id for one in self.outcomes if one.interrupt), None) if self._roster.interrupts else None

    @property
    def settled(self) -> bool:
        """Whether every call has its outcome."""
        return self._roster.settled

    @property
    def fault(self) -> BaseException | None:
        """What `start` or `permit` raised first, an exit raised by a tool included."""
        return self._fault

    def add(self, call: Call) -> None:
        """Take the next call of the model. Raises `ValueError` for an id that was added before."""
        entry = self._roster.add(call)
        if self._stopped:
            self._end(entry, not_started(call))
        self._answer(entry)
        self._advance()

    def moved_on(self, count: int) -> None:
        """The model has moved on from its first `count` blocks: writes and undecided calls among them may start."""
        for entry in self._roster.moved_on(count):
            self._answer(entry)
        self._advance()

    def restore(
        self, call: Call, outcome: Outcome | None, *, permitted: bool, awaited: bool, begun: bool | None = None
    ) -> None:
        """Take a call as an earlier process left it: with its outcome, allowed already, or waiting for approval.

        begun: `start` was called for it; None: it was if there is an outcome. What can start does so at the next
        `moved_on`.
        """
        begun = outcome is not None if begun is None else begun
        entry = Entry(call, moved_on=True, permitted=permitted, awaited=awaited, begun=begun, outcome=outcome)
        self._roster.restore(entry)
        self._answer(entry)

    async def call_off(self) -> None:
        """The answer was cut, and is about to be sealed: call off the permissions asked for what will be dropped.

        Returns when none of them is being asked for any more. Nothing starts meanwhile.
        """
        doomed = {entry for entry in self._roster.unbegun() if entry.running}
        if not doomed:
            return
        for entry in doomed:
            entry.abort.set()
        holding, self._holding = self._holding, True
        try:
            while alive := [task for task, entry in self._tasks.items() if entry in doomed]:
                await asyncio.wait(alive)
        finally:
            self._holding = holding

    def seal(self) -> tuple[Call, ...]:
        """The answer was cut: drop all calls after the last one begun, and return them. They have no outcome.

        What is kept goes on. Nothing dropped starts any more; a permission that is being asked for is called off.
        """
        dropped = self._roster.seal()
        for entry in dropped:
            entry.abort.set()
        gone = {entry.call.id for entry in dropped}
        self._finished = deque(outcome for outcome in self._finished if outcome.call.id not in gone)
        self._changed.set()
        self._advance()
        return tuple(entry.call for entry in dropped)

    def take_finished(self) -> tuple[Outcome, ...]:
        """The outcomes not taken before, in the order in which they came."""
        if not self._finished:
            return ()
        taken = tuple(self._finished)
        self._finished.clear()
        return taken

    async def next_finished(self) -> Outcome | None:
        """Wait for the next outcome, in the order in which they come; None when no call is left without one.

        May be cancelled without loss. Raises `fault` once the outcomes before it are taken.
        """
        while not self._finished:
            if self._fault is not None:
                raise self._fault
            if self._roster.settled:
                return None
            self._changed.clear()
            await self._changed.wait()
        return self._finished.popleft()

    def fail(self, fault: BaseException) -> None:
        """Something around the tools has failed: nothing more starts, and `fault` is to be raised."""
        if self._fault is None:
            self._fault = fault
        self._changed.set()

    def hold(self) -> None:
        """Start nothing more; what runs goes on."""
        self._holding = True

    def stop(self) -> None:
        """Ask everything to end, at once: nothing starts any more, what runs is stopped. `cancel` waits for the end."""
        self._stopped = True
        for entry in self._roster.open:
            if entry.running:
                entry.abort.set()
            else:
                self._end(entry, given_up(entry.call, begun=entry.begun))

    async def cancel(self) -> None:
        """End everything: nothing starts any more, what runs is stopped, and every call has its outcome.

        A call that has finished keeps its result. Returns when no task is left, within the grace that tools have to
        end; what did not end in it is abandoned, and its outcome says so. If this is cancelled meanwhile it still does
        all that, and raises `CancelledError` then. May be called again, and by several tasks.
        """
        self.stop()
        cancelled: asyncio.CancelledError | None = None
        mine = asyncio.current_task()
        while alive := [task for task in self._tasks if task is not mine and not task.done()]:
            try:
                await asyncio.wait(alive)
            except asyncio.CancelledError as outer:
                cancelled = outer
        for entry in self._roster.open:
            # Its task was cancelled, by a closing event loop, before the first step; or it waits for someone's word.
            self._end(entry, given_up(entry.call, begun=entry.begun))
        if cancelled is not None:
            raise cancelled

    @property
    def _broken_off(self) -> bool:
        return self._stopped or self._holding or self._fault is not None

    def _answer(self, entry: Entry) -> None:
        """Answer a call that is not to run, if it is one and its making is certain."""
        if self._broken_off or entry.running or not entry.decided:
            return
        if entry.call.problem is not None:
            self._end(entry, answered_by_problem(entry.call))
        elif self._roster.halts(entry):
            self._end(entry, halted(entry.call))

    def _advance(self) -> None:
        """Start all that can be started now."""
        if self._broken_off:
            return
        for entry in self._roster.startable():
            self._begin(entry)
        if self._permit is not None and self.held:
            # Nothing starts behind a call that is awaited: ask for all the others, so that all are asked at once.
            for entry in self._roster.unasked():
                self._begin(entry, only_ask=True)

    def _begin(self, entry: Entry, *, only_ask: bool = False) -> None:
        self._roster.begin(entry)
        self.started += 1
        task = asyncio.create_task(self._supervise(entry, only_ask=only_ask), name=f"call {entry.call.id}")
        self._tasks[task] = entry
        task.add_done_callback(partial(self._left, entry))

    async def _supervise(self, entry: Entry, *, only_ask: bool = False) -> None:
        """Bring a call to its outcome; nothing of the tool's or a hook's gets out of here but into `fault`."""
        try:
            outcome = await self._carry_out(entry, only_ask=only_ask)
        except CallCancelled as cancelled:
            self._end(entry, cancelled.outcome)
            raise
        except CallBroken as broken:
            self.fail(broken.fault)
            outcome = broken.outcome
        except asyncio.CancelledError as cancelled:
            self._end(entry, given_up(entry.call, begun=entry.begun))
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            fault = RuntimeError(f"start of the call {entry.call.id} was cancelled from inside")
            fault.__cause__ = cancelled
            self.fail(fault)
            return
        except GeneratorExit:
            raise
        except BaseException as fault:
            # An exit comes from the tool itself; an exception from around it, which leaves open how far the tool came.
            known = entry.begun and not isinstance(fault, Exception)
            self._end(entry, failed(entry.call, fault) if known else given_up(entry.call, begun=entry.begun))
            self.fail(fault)
            return
        if outcome is not None:
            self._end(entry, outcome)
        else:
            self._roster.wait(entry)
            self._changed.set()
            self._answer(entry)
        self._advance()

    async def _carry_out(self, entry: Entry, *, only_ask: bool) -> Outcome | None:
        """The outcome of a call; None if it has to wait: for its turn, or for someone's approval."""
        if self._permit is not None and not entry.permitted:
            verdict = await ask(self._permit, entry.call, abort=entry.abort, grace_s=self._grace_s, timer=self._timer)
            if verdict is None:
                return not_started(entry.call)
            if isinstance(verdict, Denial):
                return denied(entry.call, verdict)
            if isinstance(verdict, Asked):
                self._roster.await_word(entry)
                return None
            entry.permitted = True
            became_write = entry.call.read_only and not verdict.read_only
            entry.call = verdict
            if verdict.problem is not None:
                return answered_by_problem(verdict)
            if (became_write or only_ask or self._holding) and not entry.abort.is_set():
                return None
        if entry.abort.is_set():
            return not_started(entry.call)
        before, entry.begun = entry.begun, True
        outcome = await self._start(entry.call, entry.abort)
        entry.begun = before or outcome is not None
        if isinstance(outcome, Asked):
            self._roster.await_word(entry)
            return None
        return outcome

    def _end(self, entry: Entry, outcome: Outcome) -> None:
        """Give a call its one outcome; a call that has one, or was dropped, keeps what it has."""
        if not self._roster.is_open(entry):
            return
        later = self._roster.end(entry, outcome)
        self._finished.append(outcome)
        self._changed.set()
        for action in later:
            self._answer(action)

    def _left(self, entry: Entry, task: asyncio.Task[None]) -> None:
        """The task of a call is over; if it was cancelled before its first step, or broke, there is no outcome yet."""
        self._tasks.pop(task, None)
        broken = task.cancelled() or task.exception() is not None
        if broken and entry.running and self._roster.is_open(entry):
            self._end(entry, given_up(entry.call, begun=entry.begun))
        self._changed.set()
