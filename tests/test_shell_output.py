"""What a program prints, bounded: the middle goes, and no word at its edges is cut in half."""

import re

from hypothesis import given
from hypothesis import strategies as st

from looplatch.states.secrets import SECRETS
from looplatch.tools.shell.output import MAX_OUTPUT, Output

SECRET = "sk-ant-" + "api03-" + "A1b2C3d4" * 10
HEAD = MAX_OUTPUT * 3 // 4


def printed(text: str) -> str:
    output = Output()
    for start in range(0, len(text), 4_000):
        output.add(text[start : start + 4_000].encode())
    return output.text()


@given(st.integers(0, len(SECRET)), st.integers(0, len(SECRET)))
def test_a_secret_at_an_edge_is_there_whole_or_not_at_all(before: int, behind: int) -> None:
    """`before`: how much of one is left of the first edge; `behind`: how much of another is right of the second."""
    first = "x " * ((HEAD - before) // 2) + " " * ((HEAD - before) % 2) + SECRET
    last = SECRET + " y" * ((MAX_OUTPUT - HEAD - behind) // 2) + " " * ((MAX_OUTPUT - HEAD - behind) % 2)
    told = printed(first + " z" * 1_000 + last)
    clean, _ = SECRETS.taken_out(told)
    assert "sk-ant" not in clean
    assert "C3d4" not in clean


def test_what_is_left_out_is_counted() -> None:
    whole = "word " * 40_000
    told = printed(whole)
    [gone] = re.findall(r"\n\[\.\.\. ([\d,]+) bytes left out \.\.\.\]\n", told)
    marker = f"\n[... {gone} bytes left out ...]\n"
    head, tail = told.split(marker)
    assert len(head) + len(tail) + int(gone.replace(",", "")) == len(whole)
    assert whole.startswith(head)
    assert whole.endswith(tail)


def test_one_word_without_end_is_cut_anyhow() -> None:
    told = printed("x" * (MAX_OUTPUT + 7))
    assert told == f"{'x' * HEAD}\n[... 7 bytes left out ...]\n{'x' * (MAX_OUTPUT - HEAD)}"
