"""`looplatch.model.inputs`: a tool input is a whole JSON object, or it is unusable."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from looplatch.encoding import encode
from looplatch.model.inputs import ParsedInput, parse_input

words = st.text(max_size=6)
values = st.recursive(st.integers() | words | st.none(), lambda inner: st.lists(inner, max_size=3), max_leaves=5)
objects = st.dictionaries(words, values, max_size=3)


def usable(value: dict[str, Any], raw: str, *, empty: bool = False) -> ParsedInput:
    return ParsedInput(value=value, raw=raw, error=None, empty=empty, sendable=value)


@given(objects)
def test_an_object_is_what_it_says(value: dict[str, Any]) -> None:
    raw = json.dumps(value)
    assert parse_input(raw, {}) == usable(value, raw)


@given(objects, st.integers(0, 1_000))
def test_an_object_that_was_cut_anywhere_is_unusable(value: dict[str, Any], place: int) -> None:
    raw = json.dumps(value)
    cut = raw[: 1 + place % (len(raw) - 1)]
    parsed = parse_input(cut, {})
    assert (parsed.value, parsed.raw, parsed.empty) == (None, cut, False)
    assert parsed.sendable == {"INVALID_JSON": cut[:4_096]}


@pytest.mark.parametrize(
    "raw",
    ['{"path":"a", "content":"hel', '{"a": 1}}', '{"a":NaN}', "{'a':1}", '{"a":1,}', "{", "nope", '{"a":"\n"}', " "],
)
def test_what_is_no_json_is_unusable_and_tells_why(raw: str) -> None:
    parsed = parse_input(raw, {})
    assert (parsed.value, parsed.raw, parsed.empty, parsed.sendable) == (None, raw, False, {"INVALID_JSON": raw})
    assert parsed.error is not None
    assert parsed.error.startswith("the input is not valid JSON: ")


@pytest.mark.parametrize(
    ("raw", "named"),
    [("[1]", "an array"), ('"a"', "a string"), ("1.5", "a number"), ("true", "a boolean"), ("null", "null")],
)
def test_json_that_is_no_object_is_unusable(raw: str, named: str) -> None:
    parsed = parse_input(raw, {})
    assert (parsed.value, parsed.error) == (None, f"the input is {named}, not an object")
    assert parsed.sendable == {"INVALID_JSON": raw}


@pytest.mark.parametrize("raw", ["[" * 100_000, '{"n":' + "9" * 100_000 + "}", "x" * 100_000])
def test_an_unusable_input_and_its_reason_are_bounded_where_they_are_sent(raw: str) -> None:
    parsed = parse_input(raw, {})
    assert parsed.raw == raw
    assert parsed.sendable == {"INVALID_JSON": raw[:4_096]}
    assert parsed.error is not None
    assert len(parsed.error) < 500


def test_nesting_up_to_200_levels_can_be_sent_back_and_no_more() -> None:
    deepest = '{"a":' + "[" * 199 + "]" * 199 + "}"
    parsed = parse_input(deepest, {})
    assert parsed.error is None
    assert json.loads(encode(parsed.sendable)) == json.loads(deepest)
    deeper = parse_input('{"a":' + "[" * 200 + "]" * 200 + "}", {})
    assert (deeper.value, deeper.error) == (None, "the input is nested deeper than 200 levels")


@pytest.mark.parametrize("digits", [309, 310, 4_000])
@pytest.mark.parametrize("shape", ['{{"n":{}}}', '{{"n":[{{"n":-{}}}]}}'])
def test_an_integer_that_the_api_would_read_as_infinity_is_unusable(shape: str, digits: int) -> None:
    raw = shape.format("9" * digits)
    for parsed in (parse_input(raw, None), parse_input("", json.loads(raw))):
        assert parsed.value is None
        assert "integer" in str(parsed.error)
        assert "INVALID_JSON" in parsed.sendable


@pytest.mark.parametrize("value", [10**308, -(10**308), "9" * 400])
def test_a_large_integer_and_a_text_of_many_digits_can_be_sent_back(value: object) -> None:
    assert parse_input(json.dumps({"n": value}), None).value == {"n": value}


def test_an_input_that_is_wide_is_not_deep() -> None:
    parsed = parse_input('{"a":[' + ",".join(["[]"] * 1_000) + "]}", {})
    assert parsed.value == {"a": [[]] * 1_000}


def test_integers_are_exact_and_lone_surrogates_mended_but_the_raw_text_is_kept() -> None:
    raw = '{"n":123456789012345678901234567890,"s":"\\ud83a"}'
    assert parse_input(raw, {}) == usable({"n": 123456789012345678901234567890, "s": "\ufffd"}, raw)


@pytest.mark.parametrize("begun", [None, {}])
def test_nothing_at_all_is_an_empty_input_that_is_not_certain(begun: object) -> None:
    assert parse_input("", begun) == usable({}, "", empty=True)


def test_an_explicit_empty_object_is_certain() -> None:
    assert parse_input("{}", {}) == usable({}, "{}")


def test_what_the_block_began_with_is_the_input_where_no_text_came() -> None:
    assert parse_input("", {"player": "p"}) == usable({"player": "p"}, '{"player":"p"}')
    assert parse_input('{"a":1}', {"player": "p"}) == usable({"a": 1}, '{"a":1}')
    unusable = parse_input("", [1])
    assert (unusable.value, unusable.raw, unusable.error) == (None, "[1]", "the input is an array, not an object")
