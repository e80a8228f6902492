"""What type each field of a common record has, as one check that runs where the line is parsed.

A line is read by the reader of its kind. That takes only the fields that `states/shapes.py` names, with all of those
that are not in `_OPTIONAL`, each of its type; numbers are whole numbers, and no truth value is one. What it refuses is
no finding yet: such a line is looked at field by field.
"""

import types
from collections.abc import Callable, Iterable
from functools import reduce
from typing import Any, Final, Literal, NotRequired, TypedDict

import attrs
import msgspec

from looplatch.states.shapes import BLOCK, EVERY, INSIDE, RECORDS
from looplatch.states.table import TABLE

_Text = str | None


def move_kind(event: str) -> str:
    """What a move that this event makes is known by."""
    return f"transition {event}"


_EFFECTS_AND_MESSAGES: Final = (
    "message",
    "effect_begin model", "effect_begin tool", "effect_begin hook", "effect_begin sleep",
    "effect_end model", "effect_end tool", "effect_end hook", "effect_end sleep",
)  # fmt: skip

EVENTS: Final[dict[str, Any]] = {name: told["fields"] for name, told in TABLE.description["events"].items()}
"""What the present table says of the fields of each event."""
COMMON: Final = (*_EFFECTS_AND_MESSAGES, *map(move_kind, EVENTS))
"""The common kinds: as `shapes.RECORDS` names them, but a move by its event."""

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
    **dict.fromkeys(("run", "prev", "hash", "commitment", "digest", "type", "outcome", "role", "form"), str),
    **dict.fromkeys(("id", "name", "caller", "tool_use_id", "model_id", "model_name", "raw"), str),
    **dict.fromkeys(("access", "idempotency_key", "input", "source", "event", "target", "point", "pending"), str),
    **dict.fromkeys(("model", "differs", "edited", "reason", "strategy", "terminal", "result", "origin"), _Text),
    **dict.fromkeys(("message_id", "request_id", "stop_reason", "trouble", "log"), _Text),
    **dict.fromkeys(("abandoned", "is_error"), bool),
    **dict.fromkeys(("retry_after_ms", "status"), int | None),
    "ts": str,
    "op": Literal["join", "extend"],
    "awaited": list[str],
    "redacted": dict[str, list[str]],
    "change": dict[str, int | bool | str | None],
    "guards": list[tuple[str, bool]],
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


TEXTS: Final = frozenset(name for name, of in _HELD.items() if of in (str, _Text))
"""Fields of common records that hold a text, if anything."""
NUMBERS: Final = frozenset(name for name, of in _HELD.items() if of in (int, bool, int | None))
"""And those that never do."""
EVENT_TEXTS: Final = {
    move_kind(event): tuple(name for name, of in fields.items() if of == "texts" or "text" in of)
    for event, fields in EVENTS.items()
}
"""By moves: the fields of their events that hold a text or several."""
_PLAIN: Final[dict[str, Any]] = {"int": int, "text": str, "bool": bool, "null": None}


def _field(described: Any) -> Any:
    """The type of an event's field, from what the table's description says of it."""
    match described:
        case {"one of": members}:
            return Literal[*members]
        case "texts":
            return list[str]
        case _:
            return reduce(lambda one, other: one | other, [_PLAIN[name] for name in described])


@attrs.frozen
class Common:
    """A common kind. name: as in `COMMON`. read: reads a line, raises ValueError where it is not of the kind."""

    name: str
    read: Callable[[bytes], dict[str, Any]]

    @classmethod
    def of(cls, name: str) -> "Common":
        """The kind of this name."""
        kind, _, own = name.partition(" ")
        held = {**_HELD, "kind": Literal[kind]}
        if kind == "transition":
            fields = {field: _field(described) for field, described in EVENTS[own].items()}
            held |= {"event": Literal[own], "fields": _typed(own, fields, fields)}
        else:
            held |= {"class": Literal[own]}
        return cls(name, msgspec.json.Decoder(_typed(name, (*EVERY, *_fields_of(name)), held)).decode)


def _fields_of(name: str) -> tuple[str, ...]:
    return RECORDS["transition" if name in EVENT_TEXTS else name]


def _starts(what: str) -> set[bytes]:
    """What the lines of a kind may begin with."""
    optional = (*_OPTIONAL[""], *_OPTIONAL.get(what, ()))
    names = sorted((*EVERY, *_fields_of(what)))
    first = next(place for place, name in enumerate(names) if name not in optional)
    return {f'{{"{name}"'.encode()[:_START] for name in names[: first + 1]}


_START: Final = 6
_KINDS: Final[dict[bytes, Common]] = {what.encode(): Common.of(what) for what in COMMON}
_MOVES: Final = {event.encode(): _KINDS[move_kind(event).encode()] for event in EVENTS}
(_MOVE_START,) = _starts(next(iter(EVENT_TEXTS)))
_BY_START: Final[dict[bytes, Common]] = {
    start: _KINDS[what.encode()]
    for what in _EFFECTS_AND_MESSAGES
    for start in _starts(what)
    if not any(start in _starts(other) for other in _EFFECTS_AND_MESSAGES if other != what)
}
_EVENT: Final = b'"event":"'
_EVENT_SIZE: Final = len(_EVENT)


def common_of(line: bytes) -> Common | None:
    """The common kind that a line seems to be of; its reader says whether it is."""
    start = line[:_START]
    if start == _MOVE_START:
        place = line.find(_EVENT) + _EVENT_SIZE
        return _MOVES.get(line[place : line.find(b'"', place)])
    found = _BY_START.get(start)
    if found is not None:
        return found
    kind = _text_of(line, b'"kind":"')
    if kind.startswith(b"effect"):
        kind = b"%b %b" % (kind, _text_of(line, b'"class":"'))
    return _KINDS.get(kind)


def _text_of(line: bytes, name: bytes) -> bytes:
    start = line.find(name) + len(name)
    return line[start : line.find(b'"', start)]
