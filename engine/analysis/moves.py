"""A move in plain words: what came in, which guard held, and by which figures."""

from collections.abc import Mapping
from typing import Any, Final

import attrs

from looplatch.analysis.fields import list_in, object_in
from looplatch.states.context import TOTALS, Context
from looplatch.states.counted import counted
from looplatch.states.record import Record
from looplatch.states.table import TABLE
from looplatch.states.transition import Guard, Table

# Events that say nothing beside the effects around them: left out, unless the run goes round again or ends by them.
QUIET: Final = frozenset({"RunStarted", "ModelResponded", "ToolsRequested", "AnswerGiven", "StopHooksPassed"})
_TOKENS: Final = frozenset(TOTALS) - {"cost_micro_usd"}
_SHOWN: Final = {"event.tokens": "tokens", "event.window": "window", "event.output_limit": "output limit"}


@attrs.frozen(kw_only=True)
class Standing:
    """The figures that guards read: the fields of the context, as the records have them, and the limits."""

    context: Mapping[str, Any]
    limits: Mapping[str, Any]

    @classmethod
    def first(cls, limits: Mapping[str, Any]) -> "Standing":
        """The figures at the beginning of a run."""
        start = attrs.asdict(Context(), recurse=False)
        del start["limits"]
        return cls(context=start, limits=limits)

    def after(self, change: Mapping[str, Any]) -> "Standing":
        """The figures after a move that changed some of them."""
        return attrs.evolve(self, context={**self.context, **change})

    @property
    def turn(self) -> int:
        """The turn that the run is in."""
        turn: int = self.context["turn"]
        return turn


class Moves:
    """Puts moves into words. Those for guards are the table's own."""

    def __init__(self, table: Table = TABLE) -> None:
        self._guards: dict[str, Guard[Any]] = {row.guard.name: row.guard for row in table.rows}
        self._counters = {counter.name: counter for counter in table.counters}

    def sentence(self, move: Record, standing: Standing) -> str | None:
        """The move in one sentence; None where it goes without saying. `standing`: the figures after it."""
        event = str(move.event)
        why = self._why(move, standing)
        if move.reason is not None:
            by = f" by {move.strategy}" if move.strategy not in (None, move.reason) else ""
            return _joined(happened(move), f"continued with {move.reason}{by} because {event}{why}")
        if move.terminal is not None:
            return _joined(happened(move), f"stopped: {move.terminal} because {event}{why}")
        if event in QUIET or (event == "ContextReady" and move.target == "stream"):
            return None
        if move.target != move.source:
            return _joined(happened(move), f"went on to {move.target} because {event}{why}")
        return _joined(happened(move) or event, why.removeprefix(", ").removeprefix(": "))

    def _why(self, move: Record, standing: Standing) -> str:
        """Which guard held, in the table's words, and the figures that it read."""
        guards = list_in(move, "guards")
        held = [name for name, verdict in guards if verdict is True]
        more = ("turn",) if "turn" in move["change"] else ()
        if len(guards) < 2 or len(held) != 1:
            figures = self._figures(more, move, standing)
            return f": {figures[0]}" if figures else ""
        guard = self._guards.get(held[0])
        if guard is None:
            return f", {held[0]} holds"
        figures = self._figures((*guard.reads, *(name for name in more if name not in guard.reads)), move, standing)
        doc = guard.doc.removesuffix(".")
        return f", {guard.name} holds ({doc[:1].lower()}{doc[1:]})" + (f": {', '.join(figures)}" if figures else "")

    def _figures(self, reads: tuple[str, ...], move: Record, standing: Standing) -> list[str]:
        figures: list[str] = []
        fields = object_in(move, "fields")
        for name in reads:
            if (counter := self._counters.get(name)) is not None:
                bound = counter.bound if isinstance(counter.bound, int) else standing.limits.get(counter.bound)
                used = standing.context.get(name)
                if used or name in move["change"]:
                    figures.append(f"{name.replace('_', ' ')} {_plain(used)} of {_plain(bound)}")
            elif name in _SHOWN:
                figures.append(f"{_SHOWN[name]} {_plain(fields.get(name.removeprefix('event.')))}")
        if _TOKENS & set(reads) and (most := standing.limits.get("max_total_tokens")) is not None:
            spent = sum(standing.context.get(name, 0) for name in _TOKENS)
            figures.append(f"{_plain(spent)} of {_tokens(most)} spent")
        if "cost_micro_usd" in reads and (most := standing.limits.get("max_cost_micro_usd")) is not None:
            figures.append(f"{dollars(standing.context.get('cost_micro_usd', 0))} of {dollars(most)} spent")
        return figures


def happened(move: Record) -> str:
    """What the event of a move means, where its name alone does not say it."""
    fields = object_in(move, "fields")

    def said(name: str) -> str:
        return _plain(fields.get(name))

    match move.event:
        case "ContextReady":
            return f"the next request is estimated at {_tokens(fields.get('tokens'))}, the window is {said('window')}"
        case "BudgetWithdrawn":
            return "the run whose call this one answers, and all that answers calls of it, have spent all they may"
        case "HistoryCompressed":
            return f"the history was compressed by {said('level')}, {_shorter(fields)}"
        case "HistorySummarised":
            return f"a summary took the place of what came before the latest exchange, {_shorter(fields)}"
        case "SummaryDue":
            return f"a summary would help (level {said('level')})"
        case "CollapseStaged":
            spans = f"{_tokens(fields.get('span_tokens'))} into {said('summary_tokens')}"
            return f"a span of the history was summarised, {spans}; the summary is held until it is needed"
        case "SummaryFailed":
            return f"no summary could be had: {said('failure')}"
        case "ModelFailed" if fields.get("begun"):
            return "the answer was cut" + _kept(fields)
        case "ModelFailed":
            return f"there is no whole answer: {said('failure')} ({said('trouble')})"
        case "OutputTruncated":
            return "the answer was cut by max_tokens" + _kept(fields)
        case "ContextExceeded":
            return "the answer was cut by the end of the model's window" + _kept(fields)
        case "Refused":
            return "the model refused" + _kept(fields)
        case "TurnPaused":
            return "the API paused a long turn of its own tools"
        case "StopHooksBlocked":
            return f"the stop hook {said('hook')} wants the model to go on"
        case "StopHooksHalted":
            return f"the stop hook {said('hook')} ended the run"
        case "StopReasonUnknown":
            return f"the answer ended with a stop reason that looplatch does not know: {said('stop_reason')}"
        case "ToolsAnswered" if fields.get("errors"):
            return f"{said('errors')} of {counted(fields.get('results') or 0, 'call')} ended in an error"
        case "ApprovalAwaited":
            return f"the run rests until someone decides on {', '.join(map(str, list_in(fields, 'calls')))}"
        case "ApprovalGiven":
            return f"someone decided on {', '.join(map(str, list_in(fields, 'calls')))}; {said('awaited')} still wait"
        case "RunDenied":
            return f"the call {said('call')} was denied, and the run with it"
        case "TroubleNamed" if fields.get("delay_ms"):
            fallback = ", with the fallback model" if fields.get("fallback") else ""
            return f"trouble: {said('trouble')}; a retry in {seconds(fields['delay_ms'])}{fallback}"
        case "TroubleNamed":
            return f"trouble: {said('trouble')}"
        case "BackoffElapsed":
            return "the wait is over"
        case "RunResumed":
            return "the run was taken up again"
        case "RunPaused":
            return f"the run was paused in {move.source}, as its caller had asked"
        case "RunAborted":
            return "the caller asked for the end"
        case "DeadlinePassed":
            return "the time allowed for the run was over"
        case "RunClosed":
            return "the caller left the run"
        case "DriverFailed":
            return f"something failed that must not: {said('error')}"
        case _:
            return ""


def _kept(fields: Mapping[str, Any]) -> str:
    begun = fields.get("begun")
    return f" after {counted(begun, 'call')} had begun, so that what came before is kept" if begun else ""


def _shorter(fields: Mapping[str, Any]) -> str:
    lost = fields.get("cache_lost")
    given_up = f", and {_tokens(lost, 'cached token')} given up" if lost else ""
    return f"from {_plain(fields.get('tokens_before'))} to {_tokens(fields.get('tokens_after'))}{given_up}"


def _tokens(value: object, noun: str = "token") -> str:
    return counted(value, noun) if type(value) is int else f"{_plain(value)} {noun}s"


def _joined(*parts: str) -> str:
    return "; ".join(part for part in parts if part)


def _plain(value: object) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)


def seconds(ms: int) -> str:
    """Milliseconds as seconds, in words."""
    return f"{ms / 1000:g} s"


def dollars(micro_usd: int) -> str:
    """Millionths of a US dollar, in words."""
    return f"${micro_usd / 1_000_000:,.4f}"
