"""What tools cut off leaves no half of a secret at the cut, which the scan for secrets would not know for one."""

import io

import pytest

from looplatch.states.secrets import Secrets
from looplatch.tools.cut_ends import without_half_at_end, without_half_at_start
from looplatch.tools.files import MAX_BYTES, read_lines, read_text
from looplatch.tools.shell.output import MAX_OUTPUT, Output
from looplatch.tools.web.fetching import Fetched
from looplatch.tools.web.pages import shown

KEY = "sk-ant-" + "api03-0123456789abcdefABCDEF_-x"
PRIVATE = "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEpAIBAAKCAQEA\n" * 20 + "-----END RSA PRIVATE KEY-----\n"
FILLING = "word " * (MAX_BYTES // 2)


def across(place: int, secret: str) -> str:
    """A text that is too long by far, in which the first half of `secret` ends at `place`."""
    before = place - len(secret) // 2
    return FILLING[: before - 1] + " " + secret + " " + FILLING[:MAX_BYTES]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_of_a_long_file_no_half_of_a_secret_is_read(encoding: str) -> None:
    unit = 2 if encoding == "utf-16" else 1
    head = MAX_BYTES // 4 * 3 // unit
    text, complete = read_text(io.BytesIO(across(head, KEY).encode(encoding)))
    assert text is not None
    assert not complete
    assert "api03" not in text
    backwards = FILLING[:MAX_BYTES] + " " + KEY + " "
    backwards += FILLING[: MAX_BYTES // 4 // unit - len(KEY) // 2 - 1]
    text, _ = read_text(io.BytesIO(backwards.encode(encoding)))
    assert text is not None
    assert "ABCDEF" not in text
    assert "\ufffd" not in text


def test_of_lines_no_half_of_a_secret_is_read() -> None:
    text, complete = read_lines(io.BytesIO(across(MAX_BYTES, KEY).encode()), 1, None)
    assert text is not None
    assert not complete
    assert "api03" not in text


def test_of_a_long_page_no_half_of_a_secret_is_told() -> None:
    data = f"Some words {KEY}".encode()[:-20]
    page = Fetched(url="http://a/", status=200, media_type="text/plain", charset=None, data=data, complete=False)
    told = str(shown(page))
    assert "Some words" in told
    assert "sk-ant-" not in told


def test_of_long_output_no_end_of_a_private_key_is_kept() -> None:
    output = Output()
    half = PRIVATE[100:]
    output.add(("before " * MAX_OUTPUT + half + "." * (MAX_OUTPUT // 4 - len(half))).encode())
    assert "MIIE" not in output.text()
    assert output.text().endswith("....")


def test_a_private_key_that_is_whole_is_left_to_the_scan() -> None:
    assert without_half_at_start(f"half\n{PRIVATE}") == f"\n{PRIVATE}"
    assert without_half_at_end(f"{PRIVATE}half") == PRIVATE


@pytest.mark.parametrize(
    "secret",
    [
        "api_key: " + "abcdefgh12345678abcd",
        "Authorization: Bearer " + "abcdefgh12345678abcd",
        "x-api-key = '" + "abcdefgh12345678abcd'",
        '{"client_secret": "' + 'abcdefgh12345678abcd"}',
        PRIVATE.replace("MIIEpAIBAAKCAQEA", "abcdefgh12345678abcd"),
    ],
)
def test_wherever_a_secret_with_a_name_is_cut_the_scan_leaves_nothing_of_it(secret: str) -> None:
    scan, begin = Secrets(), "line one\n"
    text = f"{begin}{secret} after\nlast line\n"
    assert "abcd" not in str(scan.taken_out(text)[0])
    for place in range(len(begin), len(begin) + len(secret) + 1):
        left = [without_half_at_end(text[:place]), without_half_at_start(text[place:])]
        assert "abcd" not in str(scan.taken_out(left[0])[0]), place
        assert "abcd" not in str(scan.taken_out(left[1])[0]), place
        assert left[1].endswith("\nlast line\n")


def test_of_a_line_too_long_to_be_left_out_only_the_first_word_is() -> None:
    words = " word" * 1_000
    assert without_half_at_start(f"half{words}\nlast") == f"{words}\nlast"
