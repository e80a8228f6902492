"""The readers of common records: parsing a line and checking the type of each field is one step.

A line is read by the reader of its kind, a move by that of its event. What a reader refuses is no finding yet: such a
line is looked at field by field.
"""

from collections.abc import Callable
from functools import reduce
from typing import Any, Final, Literal

import attrs
import msgspec

from looplatch.states.shapes import EVERY, RECORDS
from looplatch.states.table import TABLE
from looplatch.states.verify.fields import TYPES, first_names, held_by, typed


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
        if kind != "transition":
            return cls(name, msgspec.json.Decoder(TYPES[name]).decode)
        fields = {field: _field(described) for field, described in EVENTS[own].items()}
        held = {**held_by(kind), "event": Literal[own], "fields": typed(own, fields, fields)}
        return cls(name, msgspec.json.Decoder(typed(name, (*EVERY, *RECORDS[kind]), held)).decode)


def _starts(what: str) -> set[bytes]:
    """What the lines of a kind may begin with."""
    return {f'{{"{name}"'.encode()[:_START] for name in first_names("transition" if what in EVENT_TEXTS else what)}


_START: Final = 6
_KINDS: Final[dict[bytes, Common]] = {what.encode(): Common.of(what) for what in COMMON}
_EVENT_START: Final = 12  # by so many bytes each event is told from the others
_MOVES: Final = {f'{event}","fields"'.encode()[:_EVENT_START]: _KINDS[move_kind(event).encode()] for event in EVENTS}
(_MOVE_START,) = _starts(next(iter(EVENT_TEXTS)))
_BY_START: Final[dict[bytes, Common]] = {
    start: _KINDS[what.encode()]
    for what in _EFFECTS_AND_MESSAGES
    for start in _starts(what)
    if not any(start in _starts(other) for other in _EFFECTS_AND_MESSAGES if other != what)
}
_EVENT: Final = b'"event":"'
_EVENT_SIZE: Final = len(_EVENT)
_EVENT_END: Final = _EVENT_SIZE + _EVENT_START
_KIND: Final = b'"kind":"'
_KIND_SIZE: Final = len(_KIND)
_CLASS: Final = b'"class":"'
_CLASS_SIZE: Final = len(_CLASS)
_EFFECT: Final = b"effect"


def common_of(line: bytes) -> Common | None:
    """The common kind that a line seems to be of; its reader says whether it is."""
    start = line[:_START]
    if start == _MOVE_START:
        place = line.find(_EVENT)
        return _MOVES.get(line[place + _EVENT_SIZE : place + _EVENT_END])
    found = _BY_START.get(start)
    if found is not None:
        return found
    place = line.rfind(_KIND) + _KIND_SIZE
    if line[place : place + _START] == _EFFECT:
        own = line.find(_CLASS) + _CLASS_SIZE
        return _KINDS.get(line[place : line.find(b'"', place)] + b" " + line[own : line.find(b'"', own)])
    return _KINDS.get(line[place : line.find(b'"', place)])
