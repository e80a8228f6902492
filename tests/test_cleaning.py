"""What is shown of untrusted text: no escape sequence, no control character, whole words otherwise."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from looplatch.cleaning import Cleaner, cleaned, one_line


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\ttext\n", "plain\ttext\n"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x9b2Jcleared", "cleared"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;http://example.test\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bPdevice string\x1b\\x", "x"),
        ("\x1b(Bcharset", "charset"),
        ("one\r\ntwo\rthree", "one\ntwo\nthree"),
        ("bell\x07 null\x00 back\x08", "bell null back"),
        ("del\x7f c1\x85next", "del c1\nnext"),
        ("\u202eesrever\u202c", "esrever"),
        ("zero\u200bwidth\ufeff", "zerowidth"),
        ("tag\U000e0041\U000e0042", "tag"),
        ("family 👨\u200d👩", "family 👨\u200d👩"),
        ("lone \ud800 surrogate", "lone \ufffd surrogate"),
        ("unfinished \x1b[31", "unfinished [31"),
    ],
)
def test_what_is_shown(text: str, shown: str) -> None:
    assert cleaned(text) == shown


PARTS = [
    "\x1b[31m", "\x1b[", "\x9b2J", "\x1b]0;t\x07", "\x1b]8;;\x1b\\", "\x1bPx\x9c", "\x1b(B", "\x1b",
    "\r\n", "\r", "\x00", "ab ", "\u202e",
]  # fmt: skip
HARMFUL = st.lists(st.sampled_from(PARTS)).map("".join)


@given(HARMFUL | st.text())
def test_nothing_that_is_shown_steers_a_terminal(text: str) -> None:
    shown = cleaned(text)
    assert all(character.isprintable() or character in "\n\t" or character > "\x9f" for character in shown)
    assert "\u202e" not in shown


@given(HARMFUL | st.text(), st.data())
def test_cutting_a_text_into_pieces_changes_nothing(text: str, data: st.DataObject) -> None:
    cuts = data.draw(st.lists(st.integers(0, len(text))) | st.just(list(range(len(text)))))
    cleaner = Cleaner()
    pieces = [cleaner.feed(text[start:end]) for start, end in itertools.pairwise(sorted({0, *cuts, len(text)}))]
    assert "".join(pieces) + cleaner.rest() == cleaned(text)


def test_a_sequence_that_never_ends_is_not_waited_for() -> None:
    cleaner = Cleaner()
    shown = cleaner.feed("\x1b]0;") + cleaner.feed("x" * 10_000) + cleaner.rest()
    assert shown.count("x") == 10_000


@given(st.text(), st.integers(3, 80))
def test_one_line_is_one_line_and_no_wider(text: str, width: int) -> None:
    shown = one_line(text, width)
    assert "\n" not in shown
    assert len(shown) <= width


def test_one_line_says_that_it_was_cut() -> None:
    assert one_line("one two\nthree four", 12) == "one two t..."
