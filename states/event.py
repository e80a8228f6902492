"""Event: what every event is, and how it is written into a record and read back."""

from functools import cache
from types import NoneType
from typing import Any, ClassVar, Self, cast

import attrs

from looplatch.states.level import Level
from looplatch.states.trouble import TroubleKind

_ENUMS = {"trouble": TroubleKind, "level": Level}  # the fields whose value is a name of an enum

_PLAIN = frozenset((int, str, bool, NoneType))

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
        return {name: _plain(getattr(self, name)) for name in self.field_names()}

    @classmethod
    def read(cls, fields: dict[str, Any]) -> Self:
        """The event that `fields` came from. Raises ValueError or TypeError where they are not this event's."""
        values: dict[str, Any] = {}
        for name, value in fields.items():
            if isinstance(value, list):
                values[name] = tuple(cast("list[str]", value))
            else:
                values[name] = _ENUMS[name](value) if name in _ENUMS else value
        return cls(**values)


def _plain(value: Field) -> Any:
    if type(value) in _PLAIN:
        return value
    if isinstance(value, tuple):
        return list(value)
    return str(value) if isinstance(value, TroubleKind | Level) else value


@attrs.frozen(kw_only=True)
class Spending(Event):
    """Tokens and cost of one model call, and of notes taken beside it, which the context adds up."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_micro_usd: int = 0
