"""Limits: every bound has a least value, and none is missing."""

from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from looplatch.states.errors import UsageError
from looplatch.states.limits import Limits

LEAST = {
    "max_turns": 1, "max_attempts": 0, "max_output_recoveries": 0, "max_blocks": 1, "max_pauses": 0,
    "max_low_progress": 1, "max_continuations": 0, "breaker_threshold": 1, "max_delay_ms": 0,
}  # fmt: skip
OPTIONAL = {"output_target": 1, "max_total_tokens": 1}


def test_the_defaults() -> None:
    assert Limits().fields() == {
        "max_turns": 100, "max_attempts": 5, "max_output_recoveries": 3, "max_blocks": 5, "max_pauses": 10,
        "max_low_progress": 3, "max_continuations": 100, "breaker_threshold": 3, "output_target": None,
        "max_total_tokens": None, "max_cost_micro_usd": None, "max_wall_ms": None, "max_delay_ms": 600_000,
    }  # fmt: skip


def test_every_limit_is_a_count_a_budget_the_cost_or_the_time() -> None:
    assert {field.name for field in attrs.fields(Limits)} == {*LEAST, *OPTIONAL, "max_cost_usd", "max_wall_s"}


@pytest.mark.parametrize(("name", "least"), [*LEAST.items(), *OPTIONAL.items()])
def test_a_bound_below_its_least_value_is_refused_by_name(name: str, least: int) -> None:
    assert getattr(Limits(**{name: least}), name) == least
    for wrong in (least - 1, True, 1.5, "3"):
        bound: dict[str, Any] = {name: wrong}
        with pytest.raises(UsageError) as raised:
            Limits(**bound)
        assert raised.value.what == f"Limits.{name}"
        assert raised.value.problem == f"{wrong!r} is not allowed"
        assert f"at least {least}" in raised.value.mend


@pytest.mark.parametrize("name", [*LEAST, *OPTIONAL])
def test_a_bound_that_no_record_can_hold_is_refused_by_name(name: str) -> None:
    """The log of a run with such a limit was one that the verifier refuses, or none at all."""
    assert getattr(Limits(**{name: 2**53 - 1}), name) == 9_007_199_254_740_991
    for wrong in (2**53, 10**400):
        with pytest.raises(UsageError, match=f"Limits.{name}: .*at most 9,007,199,254,740,991"):
            Limits(**{name: wrong})


@pytest.mark.parametrize("name", sorted(LEAST))
def test_no_counter_is_without_a_bound(name: str) -> None:
    """Every run ends, so None is no bound."""
    unbounded: dict[str, Any] = {name: None}
    with pytest.raises(UsageError, match=f"Limits.{name}: None is not allowed"):
        Limits(**unbounded)


@pytest.mark.parametrize("wrong", [0, -1.0, True, float("inf"), float("nan"), "1"])
def test_a_cost_that_is_no_sum_of_dollars_is_refused(wrong: Any) -> None:
    with pytest.raises(UsageError, match=r"Limits\.max_cost_usd"):
        Limits(max_cost_usd=wrong)


@pytest.mark.parametrize("wrong", [0, -1.0, True, float("inf"), float("nan"), "1"])
def test_a_time_that_is_no_number_of_seconds_is_refused(wrong: Any) -> None:
    with pytest.raises(UsageError, match=r"Limits\.max_wall_s"):
        Limits(max_wall_s=wrong)


def test_a_time_is_kept_in_milliseconds() -> None:
    assert Limits(max_wall_s=1.5).fields()["max_wall_ms"] == 1_500
    assert Limits(max_wall_s=0.0001).max_wall_ms == 1, "some time is not none"


def test_a_cost_is_kept_in_millionths() -> None:
    assert Limits(max_cost_usd=0.25).fields()["max_cost_micro_usd"] == 250_000
    assert Limits().max_cost_micro_usd is None


@given(
    st.fixed_dictionaries({name: st.integers(least, 2**53 - 1) for name, least in LEAST.items()}),
    st.fixed_dictionaries({name: st.none() | st.integers(least, 2**53 - 1) for name, least in OPTIONAL.items()}),
    st.none() | st.integers(1, 10**14),
    st.none() | st.integers(1, 10**11),
)
def test_what_the_log_holds_of_limits_is_read_back(
    counts: dict[str, int], budgets: dict[str, int | None], cost: int | None, wall: int | None
) -> None:
    fields = {**counts, **budgets, "max_cost_micro_usd": cost, "max_wall_ms": wall}
    assert Limits.read(fields).fields() == fields
