"""What a model call spent: the API's usage, by the names of the context's totals."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs

from looplatch.encoding import mend_surrogates
from looplatch.model.shapes import is_array, is_object
from looplatch.states.record import MAX_INT

_NAME_LIMIT = 256  # characters of a name from outside that are kept
MOST_TOKENS: Final = 10**12
"""Of one prompt, its answer, or a window: who says that there are more counts nothing."""
_SPENT = (
    ("input_tokens", "input_tokens"),
    ("output_tokens", "output_tokens"),
    ("cache_read_tokens", "cache_read_input_tokens"),
    ("cache_write_tokens", "cache_creation_input_tokens"),
)
"""What is spent, by our name and the API's."""
_PROMPT = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


@attrs.frozen
class Held:
    """The tokens of a prompt, cached or not, and of the answer to it."""

    prompt: int
    output: int


Pricer = Callable[[str, Mapping[str, int]], int | None]
"""From a model's name and the tokens of a call to millionths of a US dollar; None where the price is not known."""


def spending(usage: Mapping[str, Any], model: str, pricer: Pricer | None = None) -> dict[str, int]:
    """The tokens and the cost of a call; what the API did not say is 0.

    A compaction that the server made within the call is not in the API's totals: it is added to them.
    """
    spent = {name: _count(usage.get(theirs)) for name, theirs in _SPENT}
    for one in _iterations(usage):
        if one.get("type") == "compaction":
            spent = {name: _count(spent[name] + _count(one.get(theirs))) for name, theirs in _SPENT}
    cost = None if pricer is None else pricer(model, spent)
    spent["cost_micro_usd"] = 0 if cost is None else _count(cost)
    return spent


def held(usage: Mapping[str, Any], *, served: bool) -> Held | None:
    """What the conversation held at an answer's end: its last round; None where the API does not say.

    Of an answer with rounds of the server's own tools (`served`), the totals are the sums of all their prompts.
    """
    rounds = [one for one in _iterations(usage) if one.get("type") == "message"]
    if served and not rounds:
        return None
    last = rounds[-1] if rounds else usage
    prompt = sum([_count(last.get(name)) for name in _PROMPT])
    told = Held(prompt, _count(last.get("output_tokens")))
    return told if 0 < prompt <= MOST_TOKENS >= told.output else None


def cache_miss(diagnostics: object) -> dict[str, Any] | None:
    """Why the prompt cache could not be used, as the API says, and how many tokens missed it."""
    told = diagnostics.get("cache_miss_reason") if is_object(diagnostics) else None
    if not is_object(told):
        return None
    reason, missed = told.get("type"), told.get("cache_missed_input_tokens")
    return {
        "reason": mend_surrogates(reason[:_NAME_LIMIT]) if isinstance(reason, str) else "unknown",
        "tokens": _count(missed) if isinstance(missed, int) else None,
    }


def _iterations(usage: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    found = usage.get("iterations")
    return [one for one in found if is_object(one)] if is_array(found) else []


def _count(value: object) -> int:
    """A number of tokens as a record can hold it."""
    if type(value) is int and 0 <= value <= MAX_INT:
        return value
    return min(max(value, 0), MAX_INT) if isinstance(value, int) and not isinstance(value, bool) else 0
