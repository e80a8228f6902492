"""The order of the levels; what was tried in vain is tried again once enough is new, and nothing twice in a visit."""

import pytest

from looplatch.recovery.compression.levels import (
    Load,
    Patience,
    Step,
    collapse_waits,
    least_span,
    next_step,
    snip_waits,
    span_settings,
)
from looplatch.recovery.compression.settings import Compression

WINDOW = 100_000
DEFAULT = Compression()
SNIP, MICRO, STAGE, COLLAPSE, COMPACT, NEWEST = Step


def tried(tokens: int, settings: Compression = DEFAULT, *, staged: bool = True) -> list[Step]:
    """All that is tried in a visit in which nothing is of use."""
    steps: list[Step] = []
    load, patience = Load(tokens, WINDOW), Patience()
    while (step := next_step(settings, load, patience, staged=staged)) is not None:
        steps.append(step)
        patience = patience.tried(step, tokens)
    return steps


@pytest.mark.parametrize(
    ("tokens", "steps"),
    [
        (59_999, []),
        (60_000, [SNIP]),
        (69_999, [SNIP]),
        (70_000, [SNIP, MICRO, STAGE]),
        (80_000, [SNIP, MICRO, STAGE, COLLAPSE]),
        (90_000, [SNIP, MICRO, COLLAPSE, COMPACT]),  # no more spans where one summary of all is due
        (100_000, [SNIP, MICRO, COLLAPSE, COMPACT]),
        (100_001, [SNIP, MICRO, COLLAPSE, COMPACT, NEWEST]),
    ],
)
def test_each_step_comes_in_its_turn_from_its_threshold_on(tokens: int, steps: list[Step]) -> None:
    assert tried(tokens) == steps


def test_without_staged_summaries_none_are_applied() -> None:
    assert COLLAPSE not in tried(85_000, staged=False)


def test_what_the_api_clears_is_not_cleared_here() -> None:
    assert MICRO not in tried(85_000, Compression(server_edits=True))


def test_where_all_levels_are_off_newest_results_are_cut_to_what_the_window_holds() -> None:
    off = Compression(snip_at=None, micro_at=None, stage_at=None, collapse_at=None, compact_at=None)
    assert tried(100_000, off) == []
    assert tried(100_001, off) == [SNIP, NEWEST]


# --- patience


def allows(patience: Patience, step: Step, tokens: int) -> bool:
    return patience.allows(step, Load(tokens, WINDOW))


def test_in_one_visit_each_step_is_taken_once() -> None:
    patience = Patience().tried(SNIP, 60_000)
    assert not allows(patience, SNIP, 90_000)
    assert allows(patience, MICRO, 60_000)


@pytest.mark.parametrize(("tokens", "again"), [(59_999, True), (60_000, False), (61_999, False), (62_000, True)])
def test_what_was_in_vain_waits_until_two_percent_of_the_window_is_new(tokens: int, again: bool) -> None:
    """A history that is shorter now is another one."""
    patience = Patience().tried(SNIP, 60_000).left()
    assert allows(patience, SNIP, tokens) is again


def test_what_was_of_use_is_tried_in_the_next_visit_and_after_a_change_everything_is() -> None:
    patience = Patience().tried(STAGE, 60_000).tried(SNIP, 60_000).was_of_use(STAGE)
    assert not allows(patience, STAGE, 60_000), "not in this one"
    assert allows(patience.left(), STAGE, 60_000)
    assert not allows(patience.left(), SNIP, 60_000)
    assert allows(patience.renewed().left(), SNIP, 60_000)
    assert not allows(patience.renewed(), SNIP, 60_000), "not in this one"


# --- waiting


@pytest.mark.parametrize(
    ("tokens", "frees", "waits"),
    [(60_000, 1_999, True), (60_000, 2_000, False), (79_999, 1, True), (80_000, 1, False)],
)
def test_cutting_waits_for_two_percent_or_until_summaries_are_due(tokens: int, frees: int, waits: bool) -> None:
    assert snip_waits(DEFAULT, Load(tokens, WINDOW), frees) is waits


@pytest.mark.parametrize(("frees", "waits"), [(4_999, True), (5_000, False)])
def test_staged_summaries_wait_until_they_free_a_twentieth_together(frees: int, waits: bool) -> None:
    assert collapse_waits(DEFAULT, WINDOW, frees) is waits


# --- spans


@pytest.mark.parametrize(
    ("exchanges", "prompt", "span"),
    [
        (100, 80_000, 8),  # 800 tokens each: twelve would be a tenth of the window, and eight are wanted
        (20, 80_000, 2),  # 4,000 each: two and a half
        (16, 50_000, 3),  # 3,125 each: three
        (4, 80_000, 2),  # never fewer than two
        (0, 0, 8),
    ],
)
def test_a_span_is_a_tenth_of_the_window_where_exchanges_are_large(exchanges: int, prompt: int, span: int) -> None:
    assert span_settings(DEFAULT, exchanges, prompt, WINDOW).span_exchanges == span


def test_a_span_has_a_twentieth_of_the_window_at_least() -> None:
    assert least_span(WINDOW) == 5_000
