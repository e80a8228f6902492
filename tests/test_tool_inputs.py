"""Inputs against schemas: what is wrong is named by its field, in bounded text, and nothing raises."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from looplatch.tools.inputs import InputValidator

VALIDATOR = InputValidator(
    {
        "type": "object",
        "properties": {
            "path": {"type": "string", "maxLength": 3},
            "mode": {"enum": ["r", "w"]},
            "limit": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            "either": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
            "rows": {
                "type": "array",
                "items": {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]},
            },
        },
        "required": ["path"],
        "additionalProperties": False,
    }
)


def test_a_valid_input_has_no_problem() -> None:
    assert VALIDATOR.problem({"path": "abc", "mode": "r", "limit": None, "rows": [{"id": 1}]}) is None


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"path": 3}, 'path: 3 is not of type "string"'),
        ({"path": "abcd"}, 'path: "abcd" is longer than 3 characters'),
        ({}, "path: is required"),
        ({"path": "a", "mode": "x"}, 'mode: "x" is not one of "r" or "w"'),
        ({"path": "a", "rows": [{"id": 1}, {}]}, "rows[1].id: is required"),
        ({"path": "a", "rows": [{"id": "x"}]}, 'rows[0].id: "x" is not of type "integer"'),
        ({"path": "a", "pth": "b"}, "pth: is not a known field"),
        ({"path": "a", "limit": "x"}, 'limit: "x" is not of type "integer"'),
        (
            {"path": "a", "either": []},
            'either: [] is not of type "integer"; or either: [] is not of type "string"',
        ),
    ],
)
def test_a_problem_names_its_field(given: dict[str, Any], problem: str) -> None:
    assert VALIDATOR.problem(given) == problem


def test_several_problems_stand_a_line_each() -> None:
    assert VALIDATOR.problem({"mode": 1, "x": 2}) == (
        'mode: 1 is not one of "r" or "w"\npath: is required\nx: is not a known field'
    )


def test_the_input_itself_can_be_the_place() -> None:
    assert InputValidator({"type": "object", "minProperties": 1}).problem({}) == "input: {} has less than 1 property"


def test_only_so_many_problems_are_told() -> None:
    told = VALIDATOR.problem({"path": "a", **{f"x{number:02}": 0 for number in range(15)}})
    assert told is not None
    assert told.splitlines() == [
        *(f"x{number:02}: is not a known field" for number in range(10)),
        "and 5 more problems",
    ]


def test_a_huge_value_does_not_make_a_huge_problem() -> None:
    told = VALIDATOR.problem({"path": "a", "mode": "z" * 1_000_000, "rows": "y" * 1_000_000})
    assert told is not None
    assert len(told) < 1_000
    assert 'is not one of "r" or "w"' in told


def test_a_schema_of_an_older_draft_is_read_as_such() -> None:
    validator = InputValidator(
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "properties": {"pair": {"type": "array", "items": [{"type": "integer"}, {"type": "string"}]}},
        }
    )
    assert validator.problem({"pair": [1, 2]}) == 'pair[1]: 2 is not of type "string"'


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.sampled_from(["path", "mode", "limit", "either", "rows"]) | st.text(), json_values))
def test_any_input_is_judged_and_none_raises(given: dict[str, Any]) -> None:
    told = VALIDATOR.problem(given)
    assert told is None or 0 < len(told) < 10_000


@pytest.mark.parametrize("value", [{1, 2}, object(), {1: "a"}])
def test_what_is_no_json_is_a_problem_not_an_exception(value: object) -> None:
    assert VALIDATOR.problem({"path": "a", "rows": value}) is not None
