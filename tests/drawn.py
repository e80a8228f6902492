"""Events drawn by Hypothesis, with fields of the types that they declare."""

import enum
import types
from typing import Any, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

from looplatch.states import events as on
from looplatch.states.event import Event
from looplatch.states.events import EVENTS
from looplatch.states.trouble import CALL_TROUBLES


def values(declared: Any) -> st.SearchStrategy[Any]:
    """Values of a field's type; an unknown type has none."""
    if get_origin(declared) in (Union, types.UnionType):
        return st.one_of([values(part) for part in get_args(declared)])
    if get_origin(declared) is tuple:
        return st.lists(st.text(max_size=8), max_size=4).map(tuple)
    if isinstance(declared, type) and issubclass(declared, enum.Enum):
        return st.sampled_from(list(declared))
    known: dict[Any, st.SearchStrategy[Any]] = {
        bool: st.booleans(),
        int: st.integers(0, 4) | st.integers(0, 1_000) | st.integers(0, 2**53 - 1),
        str: st.text(max_size=8),
        type(None): st.none(),
    }
    return known[declared]


def of(kind: type[Event], **fixed: Any) -> st.SearchStrategy[Any]:
    """Events of one class, some fields fixed."""
    declared = get_type_hints(kind)
    fields = {name: values(declared[name]) for name in kind.field_names()}
    if kind is on.ModelFailed:
        fields["trouble"] = st.sampled_from(CALL_TROUBLES)
    return st.builds(kind, **{**fields, **{name: st.just(value) for name, value in fixed.items()}})


def events() -> st.SearchStrategy[Event]:
    """Events of any class."""
    return st.sampled_from(EVENTS).flatmap(of)
