"""Rules: who may call what, by the tool's name and what its input says."""

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final, Literal, get_args

import attrs

from looplatch.encoding import encode
from looplatch.states.brief import brief
from looplatch.states.errors import UsageError

Decision = Literal["allow", "deny", "ask"]
_DECISIONS: Final = get_args(Decision)


def _pattern(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except (re.error, TypeError) as error:
        raise UsageError("Rule.input", f"{brief(pattern)} is no regular expression: {error}", "Mend it") from error


def _patterns(given: Mapping[str, str]) -> dict[str, re.Pattern[str]]:
    if not isinstance(given, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError("Rule.input", f"{brief(given)} is no dict", "Give regular expressions by field of the input")
    return {name: _pattern(pattern) for name, pattern in given.items()}


def _no_patterns() -> Mapping[str, re.Pattern[str]]:
    return {}


def _is_known(_: object, __: object, value: object) -> None:
    if value not in _DECISIONS:
        raise UsageError("Rule.decision", f"{brief(value)} is not known", f"Use one of {', '.join(_DECISIONS)}")


def _is_text(_: object, __: object, value: object) -> None:
    if not isinstance(value, str):
        raise UsageError("Rule.tool", f"{brief(value)} is no name", "Give the name of a tool, or a pattern of one")


@attrs.frozen
class Rule:
    """A decision on the calls that match.

    decision: "allow", "deny" (the model is told) or "ask" (the run is suspended until someone decides).
    tool: the tool's name, with `*` and `?` for any characters. input: by field of the input, a regular expression that
    must be found in it (in its JSON, where it is no text); a field that is missing does not match.
    Raises UsageError for an unknown decision and for a bad expression.
    """

    decision: Decision = attrs.field(validator=_is_known)
    tool: str = attrs.field(default="*", validator=_is_text)
    input: Mapping[str, re.Pattern[str]] = attrs.field(factory=_no_patterns, converter=_patterns)

    def matches(self, tool: str, given: Mapping[str, Any]) -> bool:
        """Whether the rule decides on a call of `tool` with the input `given`."""
        return fnmatchcase(tool, self.tool) and all(
            name in given and pattern.search(_as_text(given[name])) for name, pattern in self.input.items()
        )


def decided(rules: Sequence[Rule], tool: str, given: Mapping[str, Any]) -> Decision:
    """The decision of the first rule that matches; what no rule matches is allowed."""
    for rule in rules:
        if rule.matches(tool, given):
            return rule.decision
    return "allow"


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else encode(value).decode()
