"""What type each field of a common record has, as one check that runs where the line is parsed.

A line is read by the reader of its kind. That takes only the fields that `states/shapes.py` names, with all of those
that are not in `_OPTIONAL`, each of its type; numbers are whole numbers, and no truth value is one. What it refuses is
no finding yet: such a line is looked at field by field.
"""

import types
from collections.abc import Callable, Iterable
from typing import Any, Final, Literal, NotRequired, TypedDict

import msgspec

from looplatch.states.shapes import BLOCK, EVERY, INSIDE, RECORDS

Read = Callable[[bytes], dict[str, Any]]
"""Reads a line; raises ValueError where it is not of the kind."""

_Text = str | None
_COMMON: Final = (
    "transition", "message",
    "effect_begin model", "effect_begin tool", "effect_begin hook", "effect_begin sleep",
    "effect_end model", "effect_end tool", "effect_end hook", "effect_end sleep",
)  # fmt: skip

# Fields that not all records of a kind have, and of blocks and what else stands inside of records.
_OPTIONAL: Final = {
    "": ("redacted",),
    "message": ("count", "message_id", "model", "origin", "stop_reason"),
    "effect_begin model": ("differs",),
    "effect_begin tool": ("edited",),
    "effect_end model": ("cache_miss", "context_edits", "held", "stop_reason", "trouble"),
    "effect_end tool": (
        "abandoned", "awaited", "bytes", "child", "full", "is_error", "pending", "result", "usage",
    ),
    "effect_end hook": ("bytes", "reason"),
    "block": ("caller", "id", "is_error", "model_id", "model_name", "name", "raw", "tool_use_id"),
    "error": ("measured",),
    "usage": INSIDE["usage"],
}  # fmt: skip


def _typed(what: str, names: Iterable[str], held: dict[str, Any]) -> Any:
    """A type for objects with these fields. They are in the order of the line, in which they are found fastest."""
    optional = (*_OPTIONAL[""], *_OPTIONAL.get(what, ()))
    fields = {name: NotRequired[held[name]] if name in optional else held[name] for name in sorted(names)}
    return types.new_class(what, (TypedDict,), {}, lambda own: own.update(__annotations__=fields))


_VALUES: Final[dict[str, Any]] = {
    **dict.fromkeys(("v", "seq", "epoch", "mono_ns", "effect", "attempt", "bytes", "count", "delay_ms", "index"), int),
    **dict.fromkeys(("max_tokens", "payloads", "records", "prompt", "output"), int),
    **dict.fromkeys(INSIDE["usage"], int),
    **dict.fromkeys(("run", "prev", "hash", "commitment", "digest", "type", "outcome", "op", "role", "form"), str),
    **dict.fromkeys(("id", "name", "caller", "tool_use_id", "model_id", "model_name", "raw", "message_id"), _Text),
    **dict.fromkeys(("access", "idempotency_key", "input", "source", "event", "target", "point", "pending"), str),
    **dict.fromkeys(("model", "differs", "edited", "reason", "strategy", "terminal", "result", "origin"), _Text),
    **dict.fromkeys(("request_id", "stop_reason", "trouble", "log"), _Text),
    **dict.fromkeys(("abandoned", "is_error"), bool),
    **dict.fromkeys(("retry_after_ms", "status"), int | None),
    "ts": str,
    "awaited": list[str],
    "redacted": dict[str, list[str]],
    "fields": dict[str, int | bool | str | list[str] | None],
    "change": dict[str, int | bool | str | None],
    "guards": list[list[str | bool]],
    "measured": dict[str, int | None] | None,
    "cache_miss": dict[str, int | str | None] | None,
    "context_edits": list[dict[str, int | str | None]],
}  # fmt: skip
_INSIDE: Final = {
    name: _typed(name, INSIDE[name], _VALUES) for name in ("sent", "usage", "held", "error", "full", "child")
}
_BLOCKS: Final = types.GenericAlias(list, (_typed("block", BLOCK, _VALUES),))
_HELD: Final[dict[str, Any]] = {
    **_VALUES,
    **{name: of | None for name, of in _INSIDE.items()},
    "sent": _INSIDE["sent"],
    "blocks": _BLOCKS,
    "unfinished": _BLOCKS,
}


def _reader(what: str) -> Read:
    kind, _, of = what.partition(" ")
    held = {**_HELD, "kind": Literal[kind], "class": Literal[of]}
    return msgspec.json.Decoder(_typed(what, (*EVERY, *RECORDS[what]), held)).decode


def _starts(what: str) -> set[bytes]:
    """What the lines of a kind may begin with."""
    optional = (*_OPTIONAL[""], *_OPTIONAL.get(what, ()))
    names = sorted((*EVERY, *RECORDS[what]))
    first = next(place for place, name in enumerate(names) if name not in optional)
    return {f'{{"{name}"'.encode()[:_START] for name in names[: first + 1]}


_START: Final = 6
_BY_NAME: Final[dict[bytes, Read]] = {what.encode(): _reader(what) for what in _COMMON}
_BY_START: Final[dict[bytes, Read]] = {
    start: _BY_NAME[what.encode()]
    for what in _COMMON
    for start in _starts(what)
    if not any(start in _starts(other) for other in _COMMON if other != what)
}
_KIND: Final = b'"kind":"'
_CLASS: Final = b'"class":"'


def _none(line: bytes) -> dict[str, Any]:
    raise ValueError("the line is of no common kind")


def reader_of(line: bytes) -> Read:
    """The reader of the kind that a line seems to be of; it says itself whether it is."""
    found = _BY_START.get(line[:_START])
    if found is not None:
        return found
    place = line.find(_KIND) + len(_KIND)
    kind = line[place : line.find(b'"', place)]
    if kind.startswith(b"effect"):
        place = line.find(_CLASS) + len(_CLASS)
        kind = b"%b %b" % (kind, line[place : line.find(b'"', place)])
    return _BY_NAME.get(kind, _none)
