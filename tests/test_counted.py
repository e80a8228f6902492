"""A noun stands in the number that goes with its count."""

import pytest

from looplatch.analysis.moves import happened
from looplatch.states.counted import counted
from looplatch.states.record import Record


@pytest.mark.parametrize(
    ("count", "told"), [(0, "0 rows"), (1, "1 row"), (2, "2 rows"), (1_000, "1,000 rows"), (-1, "-1 rows")]
)
def test_only_one_is_singular(count: int, told: str) -> None:
    assert counted(count, "row") == told


@pytest.mark.parametrize(
    ("event", "fields", "told"),
    [
        ("ContextReady", {"tokens": 1, "window": 2}, "the next request is estimated at 1 token, the window is 2"),
        ("ContextReady", {"tokens": 2}, "the next request is estimated at 2 tokens, the window is unknown"),
        ("ContextReady", {}, "the next request is estimated at unknown tokens, the window is unknown"),
        (
            "HistoryCompressed",
            {"level": "snip", "tokens_before": 2, "tokens_after": 1, "cache_lost": 1},
            "the history was compressed by snip, from 2 to 1 token, and 1 cached token given up",
        ),
    ],
)
def test_tokens_are_counted(event: str, fields: dict[str, object], told: str) -> None:
    assert happened(Record({"kind": "transition", "event": event, "fields": fields})) == told
