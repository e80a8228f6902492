"""Every reported fault that looplatch has to get right has a test with its number in its name."""

import re
from pathlib import Path

CASES = {1, 3, 5, 7, 8, 9, 11, 13, 15, 16, 18, 20, 22, 24, 26, 28, 29, 31, 33, 35, 37, 39, 41, 42, 44, 46, 47, 50, 53}


def test_each_case_has_a_test_that_is_named_for_it() -> None:
    texts = [path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_cases*.py")]
    named = {int(number) for text in texts for number in re.findall(r"^def test_case_(\d+)_", text, re.MULTILINE)}
    assert named == CASES
