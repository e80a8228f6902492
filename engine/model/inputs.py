"""The input of a tool call: JSON that a model wrote, read strictly or not at all.

A lenient reading makes sense of what was cut: `{"path":"a", "content":"hel` becomes `{"path":"a"}`, which nobody asked
for. So an input is a whole JSON object, or it is unusable.
"""

import re
import sys
from typing import Any, Final

import attrs

from looplatch.encoding import DecodeError, decode, encode, mend
from looplatch.model.shapes import is_array, is_object

RAW_LIMIT: Final = 4_096  # characters of an unusable input that are sent back
NESTING_LIMIT: Final = 200  # levels; what is nested deeper cannot be sent back by every encoder

_LARGEST: Final = int(sys.float_info.max)  # the API reads a larger integer as infinity, and refuses it
_SENDABLE: Final = frozenset({str, bool, type(None)})  # types of which every value can be sent
_may_be_larger: Final = re.compile(r"[0-9]{309}").search


@attrs.frozen(kw_only=True)
class ParsedInput:
    """What came of an input.

    `value` is None when it is unusable, and `error` says why then, in a short text; `raw` is its JSON text ("" where
    nothing came, which `empty` says); `sendable` is what the API takes back in its place: the value, or the bounded
    text as `{"INVALID_JSON": ...}`.
    """

    value: dict[str, Any] | None
    raw: str
    error: str | None
    empty: bool
    sendable: dict[str, Any]


def parse_input(raw: str, begun: object) -> ParsedInput:
    """Read the JSON text `raw`, or take `begun`, the input that the block started with, where no text came."""
    value: object = begun
    empty = not raw and (begun is None or begun == {})
    if empty:
        value = dict[str, Any]()
    elif raw:
        try:
            value = decode(raw)
        except DecodeError as refusal:
            return _unusable(raw, f"the input is {refusal}")
    else:
        raw = encode(begun).decode()
    if not is_object(value):
        return _unusable(raw, f"the input is {_named(value)}, not an object")
    # Nearly every text is too short on brackets and digits to be refused, so that nothing is walked.
    suspect = raw.count("{") + raw.count("[") > NESTING_LIMIT or _may_be_larger(raw)
    if suspect and (problem := why_unsendable(value)) is not None:
        return _unusable(raw, f"the input {problem}")
    usable: dict[str, Any] = mend(value)
    return ParsedInput(value=usable, raw=raw, error=None, empty=empty, sendable=usable)


def _unusable(raw: str, error: str) -> ParsedInput:
    sendable = {"INVALID_JSON": raw[:RAW_LIMIT]}
    return ParsedInput(value=None, raw=raw, error=error, empty=False, sendable=sendable)


def _named(value: object) -> str:
    match value:
        case list():
            return "an array"
        case str():
            return "a string"
        case bool():
            return "a boolean"
        case None:
            return "null"
        case _:
            return "a number"


def why_unsendable(value: object) -> str | None:
    """What the API could not read of a decoded JSON value, if it was sent back; None when there is nothing."""
    if is_object(value) and _SENDABLE.issuperset(map(type, value.values())):
        return None
    level: list[object] = [value]
    for _ in range(NESTING_LIMIT):
        inner = [item for outer in level for item in _items(outer)]
        if any(isinstance(item, int) and not -_LARGEST <= item <= _LARGEST for item in inner):
            return "has an integer that is larger than any number the API can read"
        level = [item for item in inner if isinstance(item, dict | list)]
        if not level:
            return None
    return f"is nested deeper than {NESTING_LIMIT} levels"


def _items(value: object) -> list[object]:
    if is_object(value):
        return list(value.values())
    return value if is_array(value) else []
