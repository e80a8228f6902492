"""Noting: a hook is asked what the tools of a turn did, beside the run, which goes on as if there were none."""

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from looplatch.audit import AuditError
from looplatch.encoding import encode
from looplatch.hooks import AfterTools, ToolsContext
from looplatch.hooks.calling import begun, context_of
from looplatch.hooks.points import hook_name
from looplatch.messages import SystemMessage
from looplatch.model import Assembly
from looplatch.model.reading import read_answer, text_of
from looplatch.model.spending import spending
from looplatch.requests.request import RequestParts
from looplatch.states.context import TOTALS
from looplatch.states.errors import HookMisbehaved
from looplatch.states.record import Record
from looplatch.tools import Outcome
from looplatch.workplace import Workplace

MOST_AT_ONCE: Final = 4  # notes that are being written; of further turns there is none until one of them is done


class Noting:
    """The notes of a run that are being written."""

    def __init__(self, at: Workplace) -> None:
        self._at = at
        self._tasks: set[asyncio.Task[None]] = set()
        self._unasked: list[Record] = []  # a task may be cancelled before its first step, and then takes none

    def begin(self, turn: int, text: Callable[[], str], outcomes: Sequence[Outcome]) -> None:
        """Ask the hook, if there is one, about the calls that were just answered. `text` gives what the model said."""
        hook = self._at.plan.hooks.after_tools
        if hook is None or not outcomes or len(self._tasks) >= MOST_AT_ONCE:
            return
        record = self._at.journal.note_begins(hook_name(hook), [outcome.call.id for outcome in outcomes])
        self._unasked.append(record)
        task = asyncio.ensure_future(self._take(record, hook, turn, text(), outcomes))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def end(self) -> None:
        """Stop what is being written; no task is left when this returns."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        with contextlib.suppress(AuditError):  # see _take
            for record in self._unasked:
                self._at.journal.note_ends(record, "interrupted", dict.fromkeys(TOTALS, 0), None)
        self._unasked.clear()

    async def _take(self, record: Record, hook: AfterTools, turn: int, text: str, outcomes: Sequence[Outcome]) -> None:
        """Take one note, between its two records."""
        self._unasked.remove(record)
        asking = _Asking(self._at)
        shown = tuple(context_of(outcome, self._at.journal.log.run, turn) for outcome in outcomes)
        context = ToolsContext(run_id=self._at.journal.log.run, turn=turn, text=text, calls=shown, ask=asking)
        note, ended = None, "ok"
        try:
            said: object = await begun(hook, context)
            if said is not None and not isinstance(said, str):
                raise HookMisbehaved(hook_name(hook), said, "a text, or None")
            note = said
        except asyncio.CancelledError:
            ended = "interrupted"
        except Exception as error:
            ended = type(error).__name__
        with contextlib.suppress(AuditError):  # the run's own next record meets it, too
            self._finish(record, ended, note, asking.spent, context)

    def _finish(
        self, record: Record, ended: str, note: str | None, spent: Mapping[str, int], context: ToolsContext
    ) -> None:
        journal = self._at.journal
        kept = None if note is None else journal.keep_value(note)
        journal.note_ends(record, ended, dict(spent), kept)
        self._at.budget.add(spent)
        if note:
            data = {"text": note, "turn": context.turn, "tool_use_ids": [call.tool_use_id for call in context.calls]}
            self._at.outbox.push(SystemMessage(subtype="tool_note", data=data))


class _Asking:
    """Asks a model for a note, and adds up what that costs."""

    def __init__(self, at: Workplace) -> None:
        self._at = at
        self.spent: dict[str, int] = dict.fromkeys(TOTALS, 0)

    async def __call__(
        self, prompt: str, *, model: str | None = None, system: str | None = None, max_tokens: int = 1_000
    ) -> str:
        """See `AskModel`."""
        plan = self._at.plan
        name = model or plan.parts.model
        parts = RequestParts(model=name, system=system, tools=(), params=plan.parts.beside)
        body = encode([{"role": "user", "content": prompt}])[1:-1]
        assembly = Assembly()
        try:
            await read_answer(plan.connect(), parts.request(body, max_tokens=max_tokens), assembly)
        finally:
            cost = spending(assembly.usage, name, plan.pricer)
            self.spent = {total: self.spent[total] + cost[total] for total in TOTALS}
        return text_of(assembly)
