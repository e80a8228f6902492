"""A refused value is named by its error, whatever the value is."""

import sys
from collections.abc import Callable
from typing import Any, NoReturn

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from looplatch import Compression, Hooks, Limits, Loop, Tool, UsageError, tool
from looplatch.audit import Secrets
from looplatch.pricing import Price
from looplatch.states.brief import brief
from looplatch.testing import ScriptedAPI, ScriptError, reply
from tests.playing import MODEL, echo

MOST = 200


class Unreadable:
    def __init__(self, raising: type[Exception]) -> None:
        self.raising = raising

    def __repr__(self) -> str:
        raise self.raising("no repr")


@attrs.frozen
class Around:
    inner: object


def listed(value: object) -> Any:
    return [value]


def around(value: object) -> Any:
    return Around(value)


def deep() -> Any:
    value: Any = []
    for _ in range(5_000):
        value = [value]
    return value


def deep_in_objects() -> Any:
    value: Any = None
    for _ in range(5_000):
        value = Around(value)
    return value


def endless() -> Any:
    value: dict[str, Any] = {}
    value["self"] = value
    return value


HARD: dict[str, Callable[[], Any]] = {
    "deep": deep,
    "deep in objects": deep_in_objects,
    "endless": endless,
    "raising": lambda: Unreadable(RuntimeError),
    "raising inside": lambda: {"a": [Unreadable(LookupError)]},
    "long": lambda: ["x" * 100_000] * 1_000,
    "long text": lambda: "x" * 5_000_000,
    "long number": lambda: [10**400],
    "unwritable number": lambda: 10 ** (sys.get_int_max_str_digits() + 1),
}
hard = pytest.mark.parametrize("value", [pytest.param(make, id=name) for name, make in HARD.items()])


@hard
def test_every_value_has_a_short_text(value: Callable[[], Any]) -> None:
    assert 0 < len(brief(value())) <= MOST


@given(st.recursive(st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.floats() | st.text(), st.lists))
def test_a_short_value_has_its_repr(value: object) -> None:
    whole = repr(value)
    assert brief(value) == whole if len(whole) <= 40 and whole.count("[") <= 6 else len(brief(value)) <= MOST


def test_a_value_whose_class_tells_no_name_has_a_text() -> None:
    def no_name(cls: type) -> NoReturn:
        raise LookupError("no name")

    nameless: Any = type("Nameless", (type,), {"__name__": property(no_name)})
    assert "Named object at" in brief(nameless("Named", (), {})())


def test_a_long_text_shows_both_its_ends() -> None:
    text = brief("begin" + "x" * 1_000 + "end")
    assert text.startswith("'begin")
    assert text.endswith("end'")


async def _never(given: dict[str, Any], ctx: Any) -> str:
    return ""


REFUSALS: dict[str, Callable[[Any], object]] = {
    "model": lambda value: Loop(model=listed(value), max_tokens=100),
    "max_tokens": lambda value: Loop(model=MODEL, max_tokens=listed(value)),
    "tools": lambda value: Loop(model=MODEL, max_tokens=100, tools=listed(listed(value))),
    "tools, as one": lambda value: Loop(model=MODEL, max_tokens=100, tools=around(value)),
    "read_only": lambda value: Loop(model=MODEL, max_tokens=100, tools=[echo()], read_only=(around(value),)),
    "payloads": lambda value: Loop(model=MODEL, max_tokens=100, payloads=listed(value)),
    "durability": lambda value: Loop(model=MODEL, max_tokens=100, durability=listed(value)),
    "fallback_model": lambda value: Loop(model=MODEL, max_tokens=100, fallback_model=listed(value)),
    "limits": lambda value: Loop(model=MODEL, max_tokens=100, limits=listed(value)),
    "system": lambda value: Loop(model=MODEL, max_tokens=100, system=around(value)),
    "betas": lambda value: Loop(model=MODEL, max_tokens=100, params={"betas": around(value)}),
    "extra_body": lambda value: Loop(model=MODEL, max_tokens=100, params={"extra_body": listed(value)}),
    "Limits.max_turns": lambda value: Limits(max_turns=listed(value)),
    "Limits.max_cost_usd": lambda value: Limits(max_cost_usd=listed(value)),
    "Compression.snip_at": lambda value: Compression(snip_at=listed(value)),
    "Compression.keep_results": lambda value: Compression(keep_results=listed(value)),
    "Hooks.stop": lambda value: Hooks(stop=around(value)),
    "Price": lambda value: Price(input=listed(value), output=1),
    "Secrets": lambda value: Secrets(own=listed(value)),
    "Secrets.known": lambda value: Secrets(known=listed(value)),
    "a tool's name": lambda value: Tool(listed(value), "", {"type": "object"}, _never),
    "a tool's schema": lambda value: Tool("read", "", {"type": listed(value)}, _never),
    "a tool's timeout": lambda value: Tool("read", "", {"type": "object"}, _never, timeout_s=listed(value)),
    "tool": lambda value: tool(listed(value)),
    "ScriptedAPI": lambda value: ScriptedAPI([], count=listed(value)),
    "a reply": lambda value: reply("hi", pings=listed(listed(value))),
}


@hard
@pytest.mark.parametrize("refuse", [pytest.param(refuse, id=name) for name, refuse in REFUSALS.items()])
def test_every_value_is_refused_with_a_short_error(refuse: Callable[[Any], object], value: Callable[[], Any]) -> None:
    with pytest.raises((UsageError, ScriptError)) as caught:
        refuse(value())
    assert len(str(caught.value)) <= 2 * MOST
