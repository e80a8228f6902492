"""What tools return: whatever it is, the result can be sent, says what it was, and is of bounded size."""

import collections
import dataclasses
import datetime as dt
import enum
import json
import uuid
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import attrs
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from looplatch.tools import MAX_RESULT_CHARS, ToolResult
from looplatch.tools.results import Rendered, render


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    LOW = 1


class Word(enum.StrEnum):
    YES = "yes"


@dataclasses.dataclass
class Row:
    id: int
    tags: set[str]


@attrs.frozen
class Point:
    x: float
    when: dt.date


class Model(pydantic.BaseModel):
    name: str
    price: Decimal


class Pair(NamedTuple):
    left: int
    right: Colour


class Hostile:
    """Fails whatever is asked of it."""

    def __repr__(self) -> str:
        raise RuntimeError

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError


class Array:
    """As numpy's, for what the rendering asks of them."""

    def tolist(self) -> list[int]:
        return [1, 2]


class Labelled(str):
    """A text with a mind of its own."""

    __slots__ = ()

    def __str__(self) -> str:
        return "something else"


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("text", "text"),
        ("", ""),
        (" \n", " \n"),
        ("ä\U0001f600", "ä\U0001f600"),
        (Word.YES, "yes"),
        (Labelled("itself"), "itself"),
        (None, "null"),
        (True, "true"),
        (3, "3"),
        (2**70, "1180591620717411303424"),
        (0.5, "0.5"),
        (float("nan"), '"NaN"'),
        (float("-inf"), '"-Infinity"'),
        ({"a": [1, {"b": None}]}, '{"a":[1,{"b":null}]}'),
        ({"a": float("nan"), "b": float("inf")}, '{"a":"NaN","b":"Infinity"}'),
        ({1: "a", None: "b", False: "c"}, '{"1":"a","null":"b","false":"c"}'),
        ({2: "a", "2": "b"}, '[[2,"a"],["2","b"]]'),
        ({(1, 2): "a"}, '{"[1,2]":"a"}'),
        ([], "[]"),
        ([1, "a"], '[1,"a"]'),
        ((1, "a"), '[1,"a"]'),
        ({"b", "a"}, '["a","b"]'),
        (frozenset([2, 1]), "[1,2]"),
        (collections.deque([1]), "[1]"),
        ({"k": 1}.keys(), '["k"]'),
        (b"plain", "plain"),
        (b"\xff\x00", '{"base64":"/wA="}'),
        (bytearray(b"plain"), "plain"),
        (memoryview(b"plain"), "plain"),
        ({"data": b"\xff"}, '{"data":{"base64":"/w=="}}'),
        (Decimal("1.10"), '"1.10"'),
        (dt.datetime(2026, 1, 2, 3, 4, tzinfo=dt.UTC), '"2026-01-02T03:04:00+00:00"'),
        (dt.date(2026, 1, 2), '"2026-01-02"'),
        (dt.time(3, 4), '"03:04:00"'),
        (dt.timedelta(minutes=1), "60.0"),
        (uuid.UUID(int=1), '"00000000-0000-0000-0000-000000000001"'),
        (PurePosixPath("/a/b"), '"/a/b"'),
        (Colour.RED, '"red"'),
        (Level.LOW, "1"),
        (Row(1, {"x"}), '{"id":1,"tags":["x"]}'),
        (Point(1.5, dt.date(2026, 1, 2)), '{"x":1.5,"when":"2026-01-02"}'),
        (Model(name="a", price=Decimal("1.10")), '{"name":"a","price":"1.10"}'),
        (Pair(1, Colour.RED), '{"left":1,"right":"red"}'),
        (Array(), "[1,2]"),
        (int, "\"<class 'int'>\""),
        (ValueError("bad"), "\"ValueError('bad')\""),
        (range(3), '"range(0, 3)"'),
    ],
)
def test_a_value_becomes_text(value: object, content: str) -> None:
    assert render(value) == Rendered(content=content)


def test_a_value_that_fails_whatever_it_is_asked_is_named() -> None:
    assert render(Hostile()) == Rendered(content='"<Hostile>"')
    assert render([Hostile()]) == Rendered(content='["<Hostile>"]')
    assert render(ToolResult({"a": Hostile()}, is_error=True)) == Rendered(content='{"a":"<Hostile>"}', is_error=True)


def test_a_marked_result_keeps_its_mark_at_any_depth() -> None:
    assert render(ToolResult({"a": 1}, is_error=True)) == Rendered(content='{"a":1}', is_error=True)
    assert render(ToolResult(ToolResult("a", is_error=True))) == Rendered(content="a", is_error=True)
    assert render(ToolResult("a")) == Rendered(content="a")
    assert render(ToolResult("a", True)) == Rendered(content="a", is_error=True)


def test_a_lone_surrogate_is_mended_in_texts_of_every_kind() -> None:
    assert render("a\ud83a") == Rendered(content="a�")
    assert render({"k\ud83a": "\ud83a"}) == Rendered(content='{"k�":"�"}')
    assert render([{"type": "text", "text": "\ud83a"}]) == Rendered(content=[{"type": "text", "text": "�"}])


def test_what_contains_itself_ends() -> None:
    loop: list[object] = [1]
    loop.append(loop)
    assert render(loop) == Rendered(content='[1,"[1, [...]]"]')


def test_what_is_nested_without_end_ends() -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    content = render(deep).content
    assert isinstance(content, str)
    assert content.startswith("[[[")
    assert len(content) < 5_000


BLOCKS: list[dict[str, Any]] = [
    {"type": "text", "text": "a picture"},
    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
    {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "words"}},
    {"type": "search_result", "source": "s", "title": "t", "content": [{"type": "text", "text": "found"}]},
    {"type": "tool_reference", "tool_name": "read"},
]


def test_content_blocks_stay_as_they_are_but_share_nothing_with_the_tool() -> None:
    content = render(BLOCKS).content
    assert content == BLOCKS
    assert content is not BLOCKS
    assert isinstance(content, list)
    assert content[1]["source"] is not BLOCKS[1]["source"]
    assert render(tuple(BLOCKS)).content == BLOCKS


@pytest.mark.parametrize(
    "value",
    [
        [{"type": "text"}],
        [{"type": "text", "text": 3}],
        [{"type": "image", "source": "a.png"}],
        [{"type": "tool_use", "id": "a"}],
        [{"type": ["text"]}],
        [{"kind": "text"}],
        [{"type": "text", "text": "a"}, "b"],
        {"type": "text", "text": "a"},
    ],
)
def test_what_only_looks_like_content_blocks_becomes_json_text(value: object) -> None:
    content = render(value).content
    assert isinstance(content, str)
    assert json.loads(content) == value


def test_a_block_that_holds_what_is_no_json_becomes_json_text() -> None:
    assert render([{"type": "text", "text": "a", "extra": {1}}]).content == '[{"type":"text","text":"a","extra":[1]}]'


def test_empty_text_blocks_which_the_api_refuses_are_left_out() -> None:
    assert render([{"type": "text", "text": ""}, BLOCKS[1]]).content == [BLOCKS[1]]
    assert render([{"type": "text", "text": ""}]).content == ""


def test_a_long_text_keeps_its_head_and_tail_and_the_whole_is_handed_on() -> None:
    text = "h" * 6 + "." * 1_000 + "t" * 2
    assert render(text, max_chars=8) == Rendered(
        content="hhhhhh\n[… 1,000 of 1,008 characters left out …]\ntt", full_text=text
    )
    assert render("x" * 8, max_chars=8) == Rendered(content="x" * 8)


def test_json_is_cut_like_any_text() -> None:
    rendered = render(["x" * 100], max_chars=8)
    assert rendered.content == '["xxxx\n[… 96 of 104 characters left out …]\n"]'
    assert rendered.full_text == json.dumps(["x" * 100])


def test_the_texts_of_blocks_share_the_bound_and_pictures_stay_whole() -> None:
    document = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "d" * 8}}
    found = {"type": "search_result", "source": "s", "title": "t", "content": [{"type": "text", "text": "f" * 8}]}
    value = [{"type": "text", "text": "a" * 6}, BLOCKS[1], found, document, {"type": "text", "text": "b"}, BLOCKS[4]]
    assert render(value, max_chars=10) == Rendered(
        content=[
            {"type": "text", "text": "a" * 6},
            BLOCKS[1],
            {**found, "content": [{"type": "text", "text": "fff\n[… 4 of 8 characters left out …]\nf"}]},
            {
                "type": "document",
                "source": {
                    "type": "text",
                    "media_type": "text/plain",
                    "data": "\n[… 8 of 8 characters left out …]\n",
                },
            },
            BLOCKS[4],
            {"type": "text", "text": "[… 1 more text blocks left out …]"},
        ],
        full_text=json.dumps(value, separators=(",", ":")),
    )


def test_a_result_of_millions_of_characters_fits_a_request() -> None:
    for value in ("x" * 3_000_000, ["x"] * 1_000_000, [{"type": "text", "text": "xx"}] * 300_000):
        rendered = render(value)
        assert len(json.dumps(rendered.content)) < 40 * MAX_RESULT_CHARS
        assert rendered.full_text is not None


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(exclude_categories=[]))
    | st.binary()
    | st.decimals()
    | st.datetimes()
    | st.uuids()
    | st.just(object()),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text() | st.integers() | st.booleans(), inner, max_size=4)
        | st.builds(ToolResult, inner)
        | st.fixed_dictionaries({"type": st.sampled_from(["text", "image"])}, optional={"text": inner, "source": inner})
    ),
    max_leaves=20,
)


@given(anything, st.integers(0, 200))
def test_anything_becomes_content_that_the_api_takes(value: object, max_chars: int) -> None:
    rendered = render(value, max_chars=max_chars)
    json.dumps(rendered.content, allow_nan=False, ensure_ascii=False).encode()
    if isinstance(rendered.content, str):
        assert len(rendered.content) <= max_chars + 100
        assert (rendered.full_text is None) == (len(rendered.content) <= max_chars)
    else:
        assert all(block["type"] in {"text", "image"} for block in rendered.content)
        assert all(block["text"] for block in rendered.content if block["type"] == "text")


IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}


@pytest.mark.parametrize("said", ["", " \n", [], [{"type": "text", "text": ""}]])
def test_an_error_that_says_nothing_still_has_words(said: object) -> None:
    rendered = render(ToolResult(said, is_error=True))
    assert rendered.is_error
    assert isinstance(rendered.content, str)
    assert rendered.content.strip()


def test_an_error_is_told_in_text_alone() -> None:
    rendered = render(ToolResult([{"type": "text", "text": "broken"}, IMAGE], is_error=True))
    assert rendered.content == [
        {"type": "text", "text": "broken"},
        {"type": "text", "text": "[image left out: an error can only be told in text]"},
    ]


def test_fields_that_the_api_does_not_take_are_left_out() -> None:
    found = {
        "type": "search_result",
        "source": "s",
        "title": "t",
        "content": [{"type": "text", "text": "x", "annotations": None, "meta": {"a": 1}}],
        "score": 3,
    }
    marked = {"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}
    assert render([marked, found]).content == [
        {"type": "text", "text": "x"},
        {"type": "search_result", "source": "s", "title": "t", "content": [{"type": "text", "text": "x"}]},
    ]
