"""An effect in plain words: a call of the model or of a tool, a hook, a summary, a wait."""

from collections.abc import Mapping
from typing import Any, Final

from looplatch.analysis.fields import list_in, object_in
from looplatch.analysis.moves import seconds
from looplatch.analysis.quotes import Quotes
from looplatch.states.counted import counted
from looplatch.states.record import Record
from looplatch.states.vocabulary import EffectClass, EffectOutcome

_OF_NO_CONCERN: Final[dict[str, str]] = {EffectOutcome.OK: "it saw", "Allow": "it allows", "Pass": "it passes"}


def began(begin: Record) -> str | None:
    """The sentence for the beginning of an effect; None for those that have one at their end only."""
    match begin.effect_class:
        case EffectClass.MODEL:
            count = object_in(begin, "sent").get("count", 0)
            again = f", attempt {begin['attempt'] + 1}" if begin.get("attempt") else ""
            other = f"; another request than before: {begin['differs']}" if begin.get("differs") else ""
            return (
                f"asked {begin['model']} with {counted(count, 'message record')}, for at most "
                f"{counted(begin['max_tokens'], 'token')}{again}{other}"
            )
        case _:
            return None


def left(begin: Record, quotes: Quotes) -> str:
    """An effect whose end was never recorded."""
    match begin.effect_class:
        case EffectClass.TOOL:
            effect = "it may have had its effect" if begin.get("access") == "write" else "it only reads"
            return f"the call {_call(begin, quotes)} had begun, and its end is not recorded: {effect}"
        case EffectClass.MODEL:
            return f"the call of {begin['model']} had begun, and its end is not recorded"
        case EffectClass.HOOK:
            return f"the hook {begin['name']} ({begin['point']}) was asked, and its end is not recorded"
        case EffectClass.SUMMARY | EffectClass.NOTE | EffectClass.COUNT | EffectClass.SIZE | EffectClass.SLEEP | None:
            return f"a {begin['class']} had begun, and its end is not recorded"


def ended(begin: Record, end: Record, quotes: Quotes) -> str | None:
    """How an effect went; None where that goes without saying."""
    outcome = end["outcome"]
    match begin.effect_class:
        case EffectClass.MODEL:
            return _answered(end)
        case EffectClass.TOOL:
            said = quotes.block({"commitment": end.get("result"), "bytes": end.get("bytes") or 0})
            odd = ", and left running" if end.get("abandoned") else ""
            if (child := end.get("child")) is not None:
                odd += f" by the run {child.get('run')}"
            if end.get("awaited") is not None:
                waited = ", ".join(map(str, list_in(end, "awaited")))
                return f"ran {_call(begin, quotes)}: its own run{odd.removeprefix(' by the run')} waits for {waited}"
            return f"ran {_call(begin, quotes)}: {str(outcome).replace('_', ' ')}{odd}: {said}"
        case EffectClass.HOOK if str(outcome) in _OF_NO_CONCERN:
            return f"the hook {begin['name']} ({begin['point']}) was asked: {_OF_NO_CONCERN[str(outcome)]}"
        case EffectClass.HOOK:
            reason = end.get("reason")
            why = f": {quotes.text(reason, end.get('bytes') or 0)}" if reason is not None else ""
            return f"the hook {begin['name']} ({begin['point']}) said {outcome}{why}"
        case EffectClass.SUMMARY:
            by = "the API" if begin.get("by") == "api" else str(begin["model"])
            text = (
                quotes.text(end.get("result"), end.get("bytes") or 0) if outcome == EffectOutcome.OK else str(outcome)
            )
            return f"a summary was asked of {by} (level {begin['level']}): {text}"
        case EffectClass.NOTE:
            text = quotes.text(end.get("result"), end.get("bytes") or 0) if end.get("result") else str(outcome)
            return f"{begin['name']} was asked for a note of what the tools did: {text}"
        case EffectClass.COUNT:
            tokens = end.get("tokens")
            return (
                f"the API counted {counted(tokens, 'token')}"
                if tokens is not None
                else f"the API did not count: {outcome}"
            )
        case EffectClass.SIZE:
            return f"the API was asked for the size of {begin['model']}: window {end.get('window') or 'unknown'}"
        case EffectClass.SLEEP:
            return f"waited {seconds(begin['delay_ms'])}" + ("" if outcome == EffectOutcome.OK else f": {outcome}")
        case None:
            return f"a {begin['class']} ended: {outcome}"


def _answered(end: Record) -> str:
    error: Mapping[str, Any] | None = end.get("error")
    usage = object_in(end, "usage")
    cached = usage.get("cache_read_tokens", 0)
    read = usage.get("input_tokens", 0) + cached + usage.get("cache_write_tokens", 0)
    tokens = f"{counted(read, 'token')} read" + (f" ({cached:,} cached)" if cached else "")
    tokens += f", {usage.get('output_tokens', 0):,} written"
    if error is not None:
        status = f", status {error['status']}" if error.get("status") is not None else ""
        return f"the call failed: {error.get('type')}{status}; {tokens}"
    if end["outcome"] != EffectOutcome.OK:
        return f"the call was left: {end['outcome']}; {tokens}"
    return f"it answered, with the stop reason {end.get('stop_reason')}; {tokens}"


def _call(begin: Record, quotes: Quotes) -> str:
    """A call by its tool, its id and its input."""
    edited = begin.get("edited")
    given = (
        f"{quotes.text(edited, 0)} in the place of the model's input"
        if edited is not None
        else quotes.block({"commitment": begin.get("input"), "bytes": 0})
    )
    return f"{begin['name']} ({begin['access']}, {begin['tool_use_id']}) with {given}"
