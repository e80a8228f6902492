"""Fields of records that hold objects and lists: empty where a record has none."""

from collections.abc import Mapping
from typing import Any

from looplatch.states.record import Record

Holder = Record | Mapping[str, Any]


def object_in(holder: Holder, name: str) -> dict[str, Any]:
    """The object in the field `name`."""
    found: Any = holder.get(name)
    return {} if found is None else found


def list_in(holder: Holder, name: str) -> list[Any]:
    """The list in the field `name`."""
    found: Any = holder.get(name)
    return [] if found is None else found
