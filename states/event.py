"""Event: what every event is, and how it is written into a record and read back."""

from collections.abc import Callable
from enum import Enum
from functools import cache
from operator import attrgetter
from types import NoneType
from typing import Any, ClassVar, Final, NamedTuple, Self, cast, get_args, get_type_hints

import attrs

from looplatch.states.level import Level
from looplatch.states.record import MAX_INT
from looplatch.states.trouble import TroubleKind

ENUMS: Final[dict[str, type[Enum]]] = {"trouble": TroubleKind, "level": Level}  # fields whose value is a member's name
_NAMES: Final = {int: "int", str: "text", bool: "bool", NoneType: "null"}


@attrs.frozen(kw_only=True)
class Event:
    """Something that happened. `external` events come from outside the loop, the others answer a command."""

    external: ClassVar[bool] = False

    @classmethod
    @cache
    def field_names(cls) -> tuple[str, ...]:
        """The names of the event's fields, in order."""
        return tuple(field.name for field in attrs.fields(cls))

    def fields(self, name_of: Callable[[str], str] = str) -> dict[str, Any]:
        """The event's fields as the log holds them: numbers within bounds, enums by their names, tuples as lists.

        name_of: gives a text the form that a record can hold.
        """
        layout = self._layout()
        fields = dict(zip(layout.names, layout.values_of(self), strict=True))
        for name in layout.numbers:
            if (number := fields[name]) is not None and not -MAX_INT <= number <= MAX_INT:
                fields[name] = max(-MAX_INT, min(number, MAX_INT))
        for name in layout.texts:
            if (text := fields[name]) is not None:
                fields[name] = name_of(str(text))
        for name in layout.lists:
            fields[name] = list(map(name_of, fields[name]))
        return fields

    @classmethod
    @cache
    def _layout(cls) -> "_Layout":
        names, shape = cls.field_names(), cls.shape()
        lists = tuple(name for name in names if shape[name] == "texts")
        texts = tuple(name for name in names if name not in lists and _is_text(shape[name]))
        numbers = tuple(name for name in names if name not in lists and "int" in shape[name])
        return _Layout(names, reader_of(names), numbers, texts, lists)

    @classmethod
    def read(cls, fields: dict[str, Any]) -> Self:
        """The event that `fields` came from. Raises ValueError or TypeError where they are not this event's."""
        values: dict[str, Any] = {}
        for name, value in fields.items():
            if isinstance(value, list):
                values[name] = tuple(cast("list[str]", value))
            else:
                values[name] = ENUMS[name](value) if name in ENUMS else value
        return cls(**values)

    @classmethod
    @cache
    def shape(cls) -> dict[str, Any]:
        """What a record may hold in each field: a list of types, "texts", or {"one of": the members' names}."""
        declared = get_type_hints(cls)
        return {name: _shape(cls, name, declared[name]) for name in cls.field_names()}


class _Layout(NamedTuple):
    """How the fields of a kind of event are read, and which are numbers, or texts, or hold several texts."""

    names: tuple[str, ...]
    values_of: Callable[[Any], tuple[Any, ...]]
    numbers: tuple[str, ...]
    texts: tuple[str, ...]
    lists: tuple[str, ...]


def _is_text(shape: Any) -> bool:
    """Whether a field of this shape may hold a text, or a member of an enum, which is told by its name."""
    return isinstance(shape, dict) or "text" in shape


def reader_of(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    """What reads the attributes of these names from an object, as a tuple."""
    match names:
        case ():
            return lambda _: ()
        case (name,):
            return lambda held: (getattr(held, name),)
        case _:
            return attrgetter(*names)


def _shape(event: type[Event], name: str, declared: Any) -> Any:
    if isinstance(declared, type) and issubclass(declared, Enum):
        return {"one of": [str(member) for member in declared if accepts(event, name, member)]}
    parts: list[Any] = list(get_args(declared)) or [declared]
    return "texts" if Ellipsis in parts else sorted(_NAMES[part] for part in parts)


def accepts(event: type[Event], name: str, value: object) -> bool:
    """Whether an `event` takes `value` in its field `name`."""
    field = next(field for field in attrs.fields(event) if field.name == name)
    if field.validator is None:
        return True
    try:
        field.validator(None, field, value)
    except (TypeError, ValueError):
        return False
    return True


@attrs.frozen(kw_only=True)
class Spending(Event):
    """Tokens and cost of a model call, and of notes and sub-agents beside it, which the context adds up."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_micro_usd: int = 0
