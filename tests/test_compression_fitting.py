"""Results too big for the window are cut, with a reference to where the whole is kept."""

import copy
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from looplatch.recovery.compression.cutting import content_tokens
from looplatch.recovery.compression.edits import apply
from looplatch.recovery.compression.fitting import fit_newest, fit_results, newest_results, newest_tokens
from looplatch.recovery.weights import weigh_all
from looplatch.testing import histories as drawn_histories
from tests import histories
from tests.histories import picture, result, text


def test_what_fits_is_left_as_it_is() -> None:
    blocks = [result("toolu_1", "x" * 400), text("and this")]
    fitted = fit_results(blocks, 100)
    assert fitted == blocks
    assert fitted[0] is blocks[0]


def test_the_largest_is_cut_and_names_where_the_whole_is() -> None:
    blocks = [result("toolu_1", "x" * 400), result("toolu_2", "a" * 3_000 + "z" * 5_000), text("said " * 500)]
    fitted = fit_results(blocks, 1_100, {"toolu_2": "f00d"})
    assert fitted[0] is blocks[0]
    assert fitted[2] is blocks[2]
    marker = "\n[… 1,000 of 2,000 tokens left out; the full text is kept as f00d …]\n"
    assert fitted[1] == result("toolu_2", "a" * 3_000 + marker + "z" * 1_000)


def test_an_error_stays_an_error_with_a_text() -> None:
    (fitted,) = fit_results([result("toolu_1", "x" * 9_000, is_error=True)], -5)
    assert fitted["is_error"] is True
    assert fitted["content"] == "\n[… 2,250 of 2,250 tokens left out …]\n"


def test_texts_go_before_pictures_and_pictures_where_texts_are_not_enough() -> None:
    block = result("toolu_1", [text("x" * 8_000), picture()])
    (roomy,) = fit_results([block], 2_500)
    assert roomy["content"][1] == picture()
    assert "left out" in roomy["content"][0]["text"]
    (tight,) = fit_results([block], 500, {"toolu_1": "f00d"})
    assert tight["content"][1] == text("[… an image left out; it is kept as f00d …]")
    assert content_tokens(tight["content"]) < 600


def test_the_newest_results_share_a_budget_also_where_they_stand_in_several_messages() -> None:
    calls = histories.assistant(histories.call("a"), histories.call("b"))
    answers = [histories.user(result("a", "x" * 8_000)), histories.user(result("b", "y" * 400), "And hurry.")]
    messages = [histories.user("Go."), *histories.steps(2), calls, *answers]
    [edit] = fit_newest(messages, 700, {"a": "f00d"})
    assert (edit.start, edit.stop) == (6, 7)
    [cut] = edit.messages[0]["content"]
    assert "the full text is kept as f00d" in cut["content"]
    assert newest_tokens(apply(messages, [edit])) <= 700
    assert fit_newest(messages, 3_000) == ()


def test_only_what_the_model_has_not_read_yet_is_cut() -> None:
    """An answer stands behind the results: it has read them, and its thinking is bound to them."""
    messages = [histories.user("Go."), *histories.steps(2), histories.assistant("Well.")]
    assert fit_newest(messages, 0) == ()
    assert newest_results(messages) == ()
    assert fit_newest([histories.user("Go.")], 0) == ()


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], max_examples=60)
@given(drawn_histories(), st.integers(-100, 3_000))
def test_a_history_with_its_newest_results_cut_is_one_that_the_api_takes(
    messages: list[histories.Message], budget: int
) -> None:
    untouched = copy.deepcopy(messages)
    edits = fit_newest(messages, budget)
    assert messages == untouched
    after = apply(messages, edits)
    assert histories.problems(after, messages) == []
    assert weigh_all(after) < weigh_all(messages) if edits else after == messages
    newest = newest_results(messages)
    for place, (one, other) in enumerate(zip(messages, after, strict=True)):
        assert place in newest or one == other
        kinds = [(block["type"], block.get("tool_use_id")) for block in histories.blocks_of(one)]
        assert [(block["type"], block.get("tool_use_id")) for block in histories.blocks_of(other)] == kinds


@given(st.lists(st.tuples(st.integers(0, 3_000), st.booleans()), max_size=5), st.integers(-100, 5_000))
def test_all_together_keep_within_the_budget_but_for_markers(sizes: list[tuple[int, bool]], budget: int) -> None:
    blocks: list[dict[str, Any]] = []
    for number, (size, listed) in enumerate(sizes):
        words = "x" * size
        content: Any = [histories.text(words + "."), picture()] if listed else words
        blocks.append(result(f"toolu_{number}", content))
    untouched = copy.deepcopy(blocks)
    fitted = fit_results(blocks, budget)
    assert blocks == untouched
    assert [block["tool_use_id"] for block in fitted] == [block["tool_use_id"] for block in blocks]
    before, after = (sum(content_tokens(block["content"]) for block in them) for them in (blocks, fitted))
    assert after <= before
    assert after <= max(budget, 0) + 60 * len(blocks)
    assert fit_results(fitted, max(budget, after)) == fitted
