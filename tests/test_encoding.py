"""`looplatch.encoding`: strict JSON both ways, exact integers, no surrogates on the wire."""

import json
import math
import tracemalloc
from enum import StrEnum
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from looplatch.encoding import (
    DecodeError,
    EncodeError,
    copied,
    decode,
    encode,
    escapes_half_a_pair,
    mend,
    mend_surrogates,
)
from looplatch.model.shapes import is_array, is_object
from looplatch.states.errors import LooplatchError

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
values = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20)
any_text = st.text(st.characters())  # with surrogates


@given(values)
def test_a_copy_says_the_same_and_shares_nothing(value: Any) -> None:
    made = copied(value)
    assert made == value
    assert not containers(made) & containers(value)


def containers(value: Any) -> set[int]:
    """The dicts and lists in a value, by what tells them apart."""
    if not is_object(value) and not is_array(value):
        return set()
    items: list[Any] = [*value.values()] if is_object(value) else [*value]
    return {id(value)}.union(*(containers(item) for item in items))


def test_a_copy_may_be_nested_deeper_than_calls_can_be() -> None:
    value: list[Any] = []
    for _ in range(5_000):
        value = [value]
    made, levels = copied(value), 0
    while made:
        made, levels = made[0], levels + 1
    assert levels == 5_000


def test_what_is_kept_of_many_small_texts_takes_little_more_than_they_are_long() -> None:
    tracemalloc.start()
    try:
        kept = [encode({"commitment": "a" * 64, "number": number}) for number in range(200)]
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert held < 2 * sum(map(len, kept)) + 200 * 100


def parsed_strictly(text: str) -> Any:
    """The standard library's reading, as the oracle."""

    def refuse(name: str) -> None:
        raise ValueError(name)

    def finite(digits: str) -> float:
        return float(digits) if math.isfinite(float(digits)) else json.loads("out of range")

    return json.loads(text, parse_constant=refuse, parse_float=finite)


@given(values)
@example(2**64)
@example(-(2**63) - 1)
@example({"n": 123456789012345678901234567890, "t": None})
def test_what_is_encoded_decodes_to_the_same(value: object) -> None:
    assert decode(encode(value)) == value


@given(values)
def test_the_encoding_is_compact_utf8_that_others_read(value: object) -> None:
    assert json.loads(encode(value).decode()) == value


def test_the_encoding_has_no_blanks_and_no_escapes_that_are_not_needed() -> None:
    assert encode({"a": [1, "ü", None], "b": True}) == '{"a":[1,"ü",null],"b":true}'.encode()


@given(st.text(alphabet='0123456789-.eE[]{},:" \\ud8NaIfint\n\t'))
@example("12345678901234567890")
@example("[1e400]")
@example('{"a": 1}}')
@example('"\\ud83a"')
@example("")
def test_decoding_agrees_with_a_strict_reader(text: str) -> None:
    try:
        expected = parsed_strictly(text)
    except ValueError:
        with pytest.raises(DecodeError):
            decode(text)
        with pytest.raises(DecodeError):
            decode(text.encode())
        return
    assert decode(text) == expected
    assert decode(text.encode()) == expected
    assert repr(decode(text)) == repr(expected) or "-0" in text  # the same types


@pytest.mark.parametrize("number", [10**18, 2**64 - 1, 2**64, 10**19, -(2**63), -(2**63) - 1, -(10**19), 10**60])
@pytest.mark.parametrize("lead", range(8))
def test_integers_of_any_size_are_exact_wherever_they_stand(number: int, lead: int) -> None:
    text = f'{{"{"x" * lead}":{number}}}'
    decoded = decode(text)["x" * lead]
    assert isinstance(decoded, int)
    assert decoded == number
    assert decode(text.encode()) == decode(text)
    assert encode(decode(text)) == text.encode()


@pytest.mark.parametrize(
    "text", ["NaN", "[Infinity]", "-Infinity", "1e999", "[1,]", '{"a":1}}', '"\n"', "\ufeff1", "01"]
)
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode(text)
    assert str(caught.value) == f"not valid JSON: {caught.value.problem}"
    assert isinstance(caught.value, LooplatchError)
    assert isinstance(caught.value, ValueError)


def test_bytes_are_utf8_and_nothing_else() -> None:
    with pytest.raises(DecodeError):
        decode('{"a":1}'.encode("utf-16"))
    with pytest.raises(DecodeError):
        decode(b'"\xff"')


def test_a_lone_surrogate_escape_is_read_as_it_is_and_written_mended() -> None:
    value = decode(r'{"a": "x\ud83a"}')
    assert value == {"a": "x\ud83a"}
    assert encode(value) == '{"a":"x\ufffd"}'.encode()


@given(any_text)
@example("\ud83d\ude00")
@example("\ud83d")
@example("a\ude00\ud83d")
def test_mended_text_is_utf8_and_differs_only_at_surrogates(text: str) -> None:
    mended = mend_surrogates(text)
    mended.encode()
    if text.isprintable() and not any("\ud800" <= char <= "\udfff" for char in text):
        assert mended == text
    assert decode(encode(text)) == mended


@given(st.text(st.characters(exclude_categories=["Cs"])), st.integers(0, 40))
def test_a_text_torn_between_its_utf16_halves_is_mended_whole(text: str, place: int) -> None:
    units = text.encode("utf-16-le")
    place = min(2 * place, len(units))
    first, rest = (part.decode("utf-16-le", "surrogatepass") for part in (units[:place], units[place:]))
    assert mend_surrogates(first + rest) == text


@pytest.mark.parametrize(
    ("text", "mended"),
    [
        ("\ud83d\ude00", "😀"),
        ("a\ud83d", "a\ufffd"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("\ud83d\ud83d\ude00", "\ufffd😀"),
    ],
)
def test_pairs_are_joined_and_lone_halves_replaced(text: str, mended: str) -> None:
    assert mend_surrogates(text) == mended


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_numbers_that_json_does_not_have_are_refused_with_their_place(bad: float) -> None:
    with pytest.raises(EncodeError) as caught:
        encode({"a": [None, {"b": bad}]})
    assert caught.value.path == "$.a[1].b"
    assert "no JSON number" in caught.value.problem
    assert isinstance(caught.value, LooplatchError)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("value", "path"),
    [({"a": {1, 2}}, "$.a"), ([b"x"], "$[0]"), ({1: 2}, "$"), (object(), "$"), ([[1, {"z": 1j}]], "$[0][1].z")],
)
def test_what_has_no_json_form_is_refused_with_its_place(value: object, path: str) -> None:
    with pytest.raises(EncodeError) as caught:
        encode(value)
    assert caught.value.path == path


def test_a_value_that_contains_itself_is_refused() -> None:
    loop: list[object] = []
    loop.append(loop)
    with pytest.raises(EncodeError, match="contains itself"):
        encode(loop)


def test_a_value_nested_beyond_what_orjson_writes_is_still_written() -> None:
    deep: Any = 1
    for _ in range(300):
        deep = [deep]
    assert encode(deep) == b"[" * 300 + b"1" + b"]" * 300
    assert decode(encode(deep)) == deep


def test_a_text_nested_without_end_is_refused_not_fatal() -> None:
    with pytest.raises(DecodeError):
        decode("[" * 200_000)


class Colour(StrEnum):
    RED = "red"


def test_string_enums_are_strings_on_both_ways_of_writing() -> None:
    assert encode([Colour.RED]) == b'["red"]'
    assert encode([Colour.RED, 2**70]) == b'["red",1180591620717411303424]'


def test_mending_leaves_a_sound_value_alone() -> None:
    sound = {"a": ["ü", 1, None]}
    assert mend(sound) is sound
    assert mend({"\ud83d": ["\ud83d\ude00", 2**70]}) == {"\ufffd": ["😀", 2**70]}


@pytest.mark.parametrize(
    ("text", "has_half"),
    [
        (r'{"a":"\ud83a"}', True),
        (r'{"a":"\ude00"}', True),
        (r'{"a":"\uDE00\ud83d"}', True),
        (r'{"a":"\ud83d\ude00"}', False),
        (r'{"a":"\u00e9"}', False),
        ('{"a":"x"}', False),
    ],
)
def test_half_a_surrogate_pair_is_seen_in_its_escape(text: str, has_half: bool) -> None:
    assert escapes_half_a_pair(text) is has_half
