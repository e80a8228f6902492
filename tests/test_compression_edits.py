"""What messages weigh, how content is cut, and how edits are applied."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from looplatch.recovery.compression.cutting import content_tokens, cut_content, cut_text, text_tokens, waterline
from looplatch.recovery.compression.edits import Edit, apply, first_changed, is_worth_it, lowering, saving
from looplatch.recovery.weights import encoded, size_of, weigh, weigh_all, weigh_text
from tests.histories import Block, assistant, call, picture, result, text, user

HISTORY = [user("one"), assistant("two"), user("three"), assistant("four")]


def test_a_message_weighs_a_quarter_of_its_json() -> None:
    message = user("x" * 4_000)
    assert weigh(message) == (4_000 + len('{"content":"","role":"user"}')) // 4
    assert weigh_all([message, message]) == 2 * weigh(message)


def test_a_picture_weighs_the_same_whatever_its_size() -> None:
    small, large = picture(), picture()
    large["source"] = {**large["source"], "data": "A" * 400_000}
    assert weigh(user(small)) == weigh(user(large))
    assert 1_600 <= weigh(user(small)) < 1_650
    assert 3_200 <= weigh(user(small, large)) < 3_300


def test_what_orjson_refuses_is_weighed_anyhow() -> None:
    assert weigh(user("\ud83a" * 40)) >= 10
    assert weigh(assistant(call("toolu_1", "read", number=2**80))) > 10


def test_equal_values_have_the_same_json_whatever_the_order_of_their_keys() -> None:
    assert encoded({"a": 1, "b": {"c": 2, "d": 3}}) == encoded({"b": {"d": 3, "c": 2}, "a": 1})


def test_edits_replace_their_messages_and_leave_the_others_as_they_are() -> None:
    edits = (Edit(start=2, stop=3, messages=()), Edit(start=0, stop=1, messages=(user("new"), user("newer"))))
    edited = apply(HISTORY, edits)
    assert edited == [user("new"), user("newer"), assistant("two"), assistant("four")]
    assert edited[2] is HISTORY[1]
    assert first_changed(edits) == 0


def test_without_edits_nothing_was_changed_first() -> None:
    assert apply(HISTORY, ()) == HISTORY
    with pytest.raises(ValueError, match=r"empty"):
        first_changed(())


def test_an_edit_that_saves_nothing_is_left_out() -> None:
    longer = Edit(start=0, stop=1, messages=(user("more than before " * 4),))
    equal = Edit(start=1, stop=2, messages=(assistant("TWO"),))
    shorter = Edit(start=2, stop=4, messages=(user("3"),))
    kept = lowering(HISTORY, (longer, equal, shorter))
    assert kept == (shorter,)
    assert saving(HISTORY, (shorter,)) == saving(HISTORY, (shorter,), list(map(weigh, HISTORY))) > 0
    assert saving(HISTORY, (longer, equal, shorter)) < 0


@pytest.mark.parametrize(("left", "worth"), [("x" * 39, True), ("x" * 40, False)])
def test_what_saves_less_than_sixteen_tokens_is_not_worth_the_cache_behind_it(left: str, worth: bool) -> None:
    messages = [user("x" * 100)]
    assert is_worth_it(messages, [Edit(start=0, stop=1, messages=(user(left),))]) is worth


# --- cutting


def test_head_and_tail_stay_around_a_marker_that_says_how_much_went() -> None:
    cut = cut_text("a" * 4_000 + "m" * 4_000 + "z" * 2_000, 4_000)
    assert cut == "a" * 3_000 + "\n[… 1,500 of 2,500 tokens left out …]\n" + "z" * 1_000


def test_the_marker_names_where_the_whole_is_kept() -> None:
    assert cut_text("a" * 100, 0, "f00d") == "\n[… 25 of 25 tokens left out; the full text is kept as f00d …]\n"


def test_what_fits_is_the_same_object() -> None:
    words, blocks = "x" * 400, [text("x" * 400), picture()]
    assert cut_text(words, 400) is words
    assert cut_content(words, 100) is words
    assert cut_content(blocks, 100) is blocks


@given(st.text(max_size=300), st.integers(-5, 400))
def test_a_cut_text_has_no_more_than_its_size_beside_the_marker(words: str, size: int) -> None:
    cut = cut_text(words, size)
    if cut is words:
        assert size_of(words) <= max(size, 0)
        return
    head, tail = cut.split("\n[… ")[0], cut.split(" …]\n")[-1]
    assert size_of(head) + size_of(tail) <= max(size, 0)
    assert words.startswith(head)
    assert words.endswith(tail)


def test_the_largest_texts_of_a_list_are_cut_and_the_rest_stays() -> None:
    search: Block = {"type": "search_result", "source": "s", "title": "t", "content": [text("b" * 8_000)]}
    document: Block = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "c" * 8_000}}
    blocks = [text("a" * 400), search, document, picture()]
    cut = cut_content(blocks, 1_100)
    assert isinstance(cut, list)
    assert cut[0] == blocks[0]
    assert cut[3] == blocks[3]
    gone = "\n[… 1,500 of 2,000 tokens left out …]\n"
    assert cut[1]["content"][0]["text"] == "b" * 1_500 + gone + "b" * 500
    assert cut[2]["source"]["data"] == "c" * 1_500 + gone + "c" * 500
    assert search["content"][0]["text"] == "b" * 8_000, "the original is not touched"
    assert document["source"]["data"] == "c" * 8_000


def test_the_tokens_of_content() -> None:
    assert content_tokens(None) == content_tokens("") == content_tokens([]) == 0
    assert content_tokens("x" * 400) == text_tokens("x" * 400) == weigh_text("x" * 400) == 100
    assert text_tokens([text("x" * 400), picture(), text("é" * 200)]) == 200
    assert 1_700 < content_tokens([text("x" * 400), picture()]) < 1_750


@given(st.lists(st.integers(0, 1_000), max_size=8), st.integers(-10, 4_000))
def test_under_the_waterline_all_have_room_and_no_room_is_wasted(sizes: list[int], budget: int) -> None:
    level = waterline(sizes, budget)
    used = sum(min(size, level) for size in sizes)
    assert used <= max(budget, 0)
    if used < sum(sizes):
        assert used > max(budget, 0) - len(sizes), "one more each would be too much"


def test_results_without_content_weigh_nothing() -> None:
    assert content_tokens(result("toolu_1", "")["content"]) == 0
