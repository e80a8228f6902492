"""The estimate of a history's size: four bytes a token until the API has counted, then that and what is new."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from looplatch.recovery.estimate import Estimate


def test_before_anything_is_counted_a_token_has_four_bytes_and_system_and_tools_count() -> None:
    assert Estimate(fixed=400).tokens(4_000) == 1_100
    assert Estimate().tokens(0) == 0


def test_what_was_counted_holds_and_what_came_since_is_estimated() -> None:
    """1,000 tokens of 4,000 bytes: four bytes each."""
    counted = Estimate(reported=1_000, weight=4_000)
    assert counted.tokens(4_000) == 1_000
    assert counted.tokens(4_400) == 1_100
    assert counted.tokens(2_000) == 500


@pytest.mark.parametrize(
    ("reported", "weight", "fixed", "bytes_per_token"),
    [(1_000, 3_000, 0, 3.0), (1_000, 2_000, 1_000, 3.0), (1_000, 500, 0, 2.0), (1_000, 90_000, 0, 6.0)],
)
def test_the_count_says_what_a_token_weighs_within_reason(
    reported: int, weight: int, fixed: int, bytes_per_token: float
) -> None:
    counted = Estimate(reported=reported, weight=weight, fixed=fixed)
    assert counted.bytes_per_token == bytes_per_token
    assert counted.tokens(weight + 6_000) == 1_000 + round(6_000 / bytes_per_token)


def test_a_small_count_says_nothing_of_what_a_token_weighs() -> None:
    assert Estimate(reported=499, weight=998).bytes_per_token == 4
    assert Estimate(reported=500, weight=1_000).bytes_per_token == 2


def test_where_the_server_clears_what_is_kept_here_its_count_says_nothing_of_it_either() -> None:
    assert Estimate(reported=1_000, weight=90_000, calibrated=False).bytes_per_token == 4


def test_a_history_that_lost_nearly_all_still_has_tokens() -> None:
    """At more bytes a token than are believed, taking away what went would leave less than nothing."""
    dense = Estimate(reported=1_000, weight=12_000)
    assert dense.tokens(600) == 25, "a half of what its share would be"
    assert dense.tokens(12_000) == 1_000


def test_what_was_not_counted_is_in_doubt_by_half() -> None:
    assert Estimate().doubt(4_000) == 500
    counted = Estimate(reported=1_000, weight=4_000)
    assert counted.doubt(4_000) == 0
    assert counted.doubt(4_800) == 100
    assert counted.doubt(3_200) == 100


@given(
    reported=st.none() | st.integers(0, 10**6),
    weight=st.integers(0, 10**7),
    fixed=st.integers(0, 10**6),
    now=st.integers(0, 10**7),
    more=st.integers(0, 10**6),
)
def test_the_estimate_never_falls_as_the_history_grows(
    reported: int | None, weight: int, fixed: int, now: int, more: int
) -> None:
    estimate = Estimate(reported=reported, weight=weight, fixed=fixed)
    assert 0 <= estimate.tokens(now) <= estimate.tokens(now + more)
