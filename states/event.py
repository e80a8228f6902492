"""Event: what every event is, and how it is written into a record and read back."""

from collections.abc import Callable
from enum import Enum
from functools import cache
from operator import attrgetter
from types import NoneType
from typing import Any, ClassVar, Final, Self, cast, get_args, get_type_hints

import attrs

from looplatch.states.level import Level
from looplatch.states.trouble import TroubleKind

ENUMS: Final[dict[str, type[Enum]]] = {"trouble": TroubleKind, "level": Level}  # fields whose value is a member's name
_NAMES: Final = {int: "int", str: "text", bool: "bool", NoneType: "null"}

Scalar = int | str | bool | None
Field = Scalar | tuple[str, ...]


@attrs.frozen(kw_only=True)
class Event:
    """Something that happened. `external` events come from outside the loop, the others answer a command."""

    external: ClassVar[bool] = False

    @classmethod
    @cache
    def field_names(cls) -> tuple[str, ...]:
        """The names of the event's fields, in order."""
        return tuple(field.name for field in attrs.fields(cls))

    def fields(self) -> dict[str, Any]:
        """The event's fields as the log holds them; names of enums as plain strings, tuples as lists."""
        values_of, others = self._layout()
        fields = dict(zip(self.field_names(), values_of(self), strict=True))
        for name in others:
            fields[name] = _plain(fields[name])
        return fields

    @classmethod
    @cache
    def _layout(cls) -> tuple[Callable[[Any], tuple[Any, ...]], tuple[str, ...]]:
        """What reads all fields at once, and the names of those that the log holds in another form."""
        others = tuple(name for name, held in cls.shape().items() if not isinstance(held, list))
        return reader_of(cls.field_names()), others

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


def _plain(value: Field) -> Any:
    if isinstance(value, tuple):
        return list(value)
    return str(value) if isinstance(value, TroubleKind | Level) else value


@attrs.frozen(kw_only=True)
class Spending(Event):
    """Tokens and cost of a model call, and of notes and sub-agents beside it, which the context adds up."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_micro_usd: int = 0
