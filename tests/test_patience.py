"""What was tried in vain is tried again once enough is new, and nothing is tried twice in one visit."""

from looplatch.patience import Patience

WINDOW = 100_000


def test_in_one_visit_each_thing_is_tried_once() -> None:
    patience = Patience()
    assert patience.tries("snip", 60_000, WINDOW)
    assert not patience.tries("snip", 90_000, WINDOW)
    assert patience.tries("micro", 60_000, WINDOW)
    assert patience.once("newest")
    assert not patience.once("newest")


def test_what_was_in_vain_waits_until_two_percent_of_the_window_is_new() -> None:
    patience = Patience()
    assert patience.tries("snip", 60_000, WINDOW)
    for tokens, tried in ((60_000, False), (61_999, False), (62_000, True), (63_999, False), (64_000, True)):
        patience.leave()
        assert patience.tries("snip", tokens, WINDOW) is tried, tokens


def test_a_history_that_is_shorter_now_is_another_one() -> None:
    patience = Patience()
    assert patience.tries("snip", 60_000, WINDOW)
    patience.leave()
    assert patience.tries("snip", 59_999, WINDOW)


def test_what_was_of_use_is_tried_in_the_next_visit_and_after_a_change_everything_is() -> None:
    patience = Patience()
    assert patience.tries("stage", 60_000, WINDOW)
    assert patience.tries("snip", 60_000, WINDOW)
    patience.was_of_use("stage")
    patience.leave()
    assert patience.tries("stage", 60_000, WINDOW)
    assert not patience.tries("snip", 60_000, WINDOW)
    patience.renew()
    patience.leave()
    assert patience.tries("snip", 60_000, WINDOW)
