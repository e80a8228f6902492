"""What a run knows of its model's size, and what follows from it."""

import pytest

from looplatch.recovery.sizes import Asked, Measured, Sizes, Switched
from looplatch.recovery.windows import ModelSize, model_size


@pytest.mark.parametrize(
    ("model", "window", "output"),
    [
        ("claude-3-haiku-20240307", 200_000, 4_096),
        ("claude-3-5-sonnet-20241022", 200_000, 8_192),
        ("claude-3-7-sonnet-latest", 200_000, 64_000),
        ("claude-opus-4-20250514", 200_000, 32_000),
        ("anthropic.claude-opus-4-1-20250805-v1:0", 200_000, 32_000),
        ("claude-sonnet-4-5", 200_000, 64_000),
        ("claude-haiku-4-5@20251001", 200_000, 64_000),
        ("claude-of-tomorrow", None, None),
        ("gpt-4", None, None),
    ],
)
def test_the_table_knows_models_by_their_names(model: str, window: int | None, output: int | None) -> None:
    assert model_size(model) == ModelSize(window=window, output=output)


def test_what_the_api_says_fills_what_is_not_known_and_is_asked_once() -> None:
    sizes = Sizes(output=4_096)
    assert not sizes.asked
    learned = sizes.after(Asked(ModelSize(window=100_000, output=9_000)))
    assert (learned.window, learned.output, learned.asked) == (100_000, 4_096, True)


def test_an_api_that_does_not_say_is_not_asked_again() -> None:
    sizes = Sizes().after(Asked(None))
    assert (sizes.window, sizes.output, sizes.asked) == (None, None, True)


def test_what_the_api_has_measured_lowers_the_window_and_never_raises_it() -> None:
    sizes = Sizes()
    for measured, window in ((50_000, 50_000), (20_000, 20_000), (30_000, 20_000), (0, 20_000)):
        sizes = sizes.after(Measured(measured))
        assert sizes.window == window


def test_an_answer_is_bounded_by_the_model_and_by_half_a_window() -> None:
    assert Sizes().answer(8_000) == 8_000
    assert Sizes(output=4_096).answer(8_000) == 4_096
    assert Sizes(window=8_000).answer(8_000) == 4_000
    assert Sizes(window=200_000, output=64_000).answer(8_000) == 8_000
    assert Sizes(window=1).answer(8_000) == 1


def test_a_result_is_bounded_by_a_quarter_of_the_window() -> None:
    """At four characters a token; never more than 200,000 characters."""
    assert Sizes().result_chars == 200_000
    assert Sizes(window=200_000).result_chars == 200_000
    assert Sizes(window=1_000_000).result_chars == 200_000
    assert Sizes(window=20_000).result_chars == 20_000


def test_of_two_models_what_holds_for_both_is_known() -> None:
    small, unknown = ModelSize(window=200_000, output=4_096), ModelSize()
    sizes = Sizes(window=1_000_000, output=128_000, fallback=small).after(Asked(None)).after(Switched())
    assert (sizes.window, sizes.output, sizes.asked) == (200_000, 4_096, False)
    sizes = Sizes(window=200_000, output=4_096, fallback=unknown).after(Switched())
    assert (sizes.window, sizes.output) == (200_000, None)


def test_a_window_that_the_caller_gave_is_not_replaced_by_that_of_the_table() -> None:
    fallback = ModelSize(window=200_000, output=4_096)
    assert Sizes(window=900_000, given=True, fallback=fallback).after(Switched()).window == 900_000
