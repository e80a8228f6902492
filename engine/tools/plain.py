"""Anything at all as plain JSON values: total, so that no result of a tool can stop a run."""

import base64
import dataclasses
import math
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any, cast
from uuid import UUID

import attrs

from looplatch.encoding import encode

__all__ = ["json_text", "plain"]

_MAX_DEPTH = 100
_MAX_REPR_CHARS = 1_000


def json_text(value: object) -> str:
    """The value as compact JSON text. Never raises an `Exception`."""
    try:
        return encode(value).decode()
    except Exception:  # what is no JSON is made plain first; most results need no such walk
        try:
            return encode(plain(value)).decode()
        except Exception:
            return encode(_shown(value)).decode()


def plain(value: object) -> Any:
    """The value as dicts, lists, texts, numbers, bools and None.

    Records (dataclass, attrs, pydantic, named tuple) become objects; arrays become lists, sets sorted lists; bytes
    become their text, or `{"base64": …}` when they are no UTF-8; dates become ISO 8601, durations seconds, decimals and
    NaN texts; an enum's member becomes its value. What has no such form, and what contains itself, is shown by its
    `repr`.
    """
    return _plain(value, ())


def _plain(value: object, above: tuple[int, ...]) -> Any:
    """`above` holds the ids of the containers around the value."""
    try:
        return _made(value, above)
    except Exception:  # the value's own code failed: its class, properties, iteration, serialisers
        return _shown(value)


def _made(value: object, above: tuple[int, ...]) -> Any:
    if value is None or isinstance(value, bool):
        return value
    # A member of IntEnum or StrEnum is an int or a str as well.
    if isinstance(value, Enum):
        return _plain(value.value, above)
    if isinstance(value, str | int):
        return value if type(value) in (str, int) else _base(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else _non_finite(value)
    if id(value) in above or len(above) >= _MAX_DEPTH:
        return _shown(value)
    above = (*above, id(value))
    match value:
        case bytes() | bytearray() | memoryview():
            return _text_of(bytes(cast("bytes", value)))
        case date() | time():  # a datetime is a date
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
        case Decimal() | UUID() | PurePath():
            return str(value)
        case Mapping():
            return _object(cast("Mapping[object, object]", value), above)
        case AbstractSet():
            return sorted((_plain(item, above) for item in cast("AbstractSet[object]", value)), key=json_text)
        case _:
            return _record(value, above)


def _record(value: object, above: tuple[int, ...]) -> Any:
    if isinstance(value, type):
        return _shown(value)
    if dataclasses.is_dataclass(value):
        return _object(
            {field.name: getattr(value, field.name) for field in dataclasses.fields(cast("Any", value))}, above
        )
    if attrs.has(type(value)):
        names = [field.name for field in attrs.fields(cast("Any", type(value)))]
        return _object({name: getattr(value, name) for name in names}, above)
    for name in ("model_dump", "tolist"):  # pydantic and numpy, which are not imported for this
        dump = getattr(value, name, None)
        if callable(dump):
            return _plain(dump(), above)
    if isinstance(value, tuple) and hasattr(type(cast("object", value)), "_asdict"):
        return _object(cast("Any", value)._asdict(), above)
    if isinstance(value, list | tuple) or type(value).__name__ in ("deque", "dict_keys", "dict_values"):
        return [_plain(item, above) for item in cast("Iterable[object]", value)]
    return _shown(value)


def _object(value: Mapping[object, object] | Mapping[str, object], above: tuple[int, ...]) -> Any:
    keyed = [(_key(key), key, _plain(item, above)) for key, item in value.items()]
    made = {name: item for name, _, item in keyed}
    if len(made) == len(keyed):
        return made
    # Two keys have the same text (1 and "1"): nothing is lost as pairs.
    return [[_plain(key, above), item] for _, key, item in keyed]


def _key(key: object) -> str:
    made = _plain(key, ())
    return made if isinstance(made, str) else json_text(made)


def _base(value: str | int) -> str | int:
    """A subclass's value as the base type, past whatever the subclass does to `str()` and the like."""
    return str.__str__(value) if isinstance(value, str) else int.__index__(value)


def _non_finite(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _text_of(data: bytes) -> str | dict[str, str]:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode("ascii")}


def _shown(value: object) -> str:
    try:
        return repr(value)[:_MAX_REPR_CHARS]
    except Exception:
        return f"<{type(value).__name__}>"
