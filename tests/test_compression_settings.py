"""The settings of compression, and when each level is due."""

from typing import Any

import pytest

from looplatch.recovery.compression.settings import Compression
from looplatch.states.errors import UsageError
from looplatch.states.level import Level


def test_the_thresholds_come_one_after_the_other() -> None:
    settings = Compression()
    order = [settings.snip_at, settings.micro_at, settings.collapse_at, settings.compact_at]
    assert order == [0.60, 0.70, 0.80, 0.90]
    assert settings.stage_at == 0.70


@pytest.mark.parametrize("level", Level)
def test_a_level_is_due_from_its_threshold_on(level: Level) -> None:
    settings = Compression(snip_at=0.5, micro_at=0.5, stage_at=0.5, collapse_at=0.5, compact_at=0.5)
    assert not settings.due(level, 499, 1_000)
    assert settings.due(level, 500, 1_000)
    assert settings.due(level, 501, 1_000)


def test_each_level_has_a_threshold_of_its_own() -> None:
    settings = Compression()
    due = {tokens: [level for level in Level if settings.due(level, tokens, 100)] for tokens in (59, 60, 70, 80, 90)}
    assert due == {
        59: [],
        60: [Level.SNIP],
        70: [Level.SNIP, Level.MICRO],
        80: [Level.SNIP, Level.MICRO, Level.COLLAPSE],
        90: [Level.SNIP, Level.MICRO, Level.COLLAPSE, Level.COMPACT],
    }


def test_nothing_is_due_where_the_window_is_unknown_or_the_level_is_off() -> None:
    off = Compression(snip_at=None, micro_at=None, stage_at=None, collapse_at=None, compact_at=None)
    assert not any(Compression().due(level, 10**9, None) for level in Level)
    assert not any(off.due(level, 10**9, 1_000) for level in Level)
    assert not Compression().staging_due(10**9, None)


def test_spans_are_staged_only_where_they_can_be_applied() -> None:
    assert Compression().staging_due(70, 100)
    assert not Compression().staging_due(69, 100)
    assert not Compression(stage_at=None).staging_due(100, 100)
    assert not Compression(collapse_at=None).staging_due(100, 100)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("snip_at", 0),
        ("micro_at", 1.01),
        ("stage_at", -0.1),
        ("collapse_at", "0.8"),
        ("compact_at", True),
        ("micro_frees", 2),
        ("micro_frees", None),
        ("keep_results", -1),
        ("keep_exchanges", 0),
        ("span_exchanges", 0),
        ("long_result_tokens", 99),
        ("summary_max_tokens", 0),
        ("summary_max_tokens", 1.5),
        ("summary_model", ""),
        ("cool_down_s", -1),
        ("cool_down_s", float("inf")),
        ("thinking", "forget"),
        ("thinking", ["drop"]),
        ("cache", 1),
        ("count_tokens", "yes"),
        ("server_edits", None),
        ("api_compaction", 0),
    ],
)
def test_a_value_that_is_not_allowed_is_named(name: str, value: Any) -> None:
    with pytest.raises(UsageError) as raised:
        Compression(**{name: value})
    assert raised.value.what == f"Compression.{name}"
    assert repr(value) in raised.value.problem
    assert raised.value.mend.startswith("Give ")


@pytest.mark.parametrize("name", ["keep_results", "long_result_tokens", "summary_max_tokens"])
def test_a_number_that_no_record_can_hold_is_refused(name: str) -> None:
    wrong: dict[str, Any] = {name: 2**53}
    with pytest.raises(UsageError, match=f"Compression.{name}: .*at most 9,007,199,254,740,991"):
        Compression(**wrong)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"snip_at": 0.9, "micro_at": 0.5}, "micro_at"),
        ({"micro_at": None, "snip_at": 0.85}, "collapse_at"),
        ({"stage_at": 0.9}, "collapse_at"),
        ({"compact_at": 0.3, "snip_at": 0.2, "micro_at": None, "collapse_at": None}, None),
        ({"compact_at": 0.3}, "compact_at"),
    ],
)
def test_thresholds_out_of_order_are_refused(given: dict[str, Any], name: str | None) -> None:
    if name is None:
        assert Compression(**given).compact_at == 0.3
        return
    with pytest.raises(UsageError) as raised:
        Compression(**given)
    assert raised.value.what == f"Compression.{name}"
    assert "it comes after it" in raised.value.problem
