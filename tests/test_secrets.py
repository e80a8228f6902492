"""Secrets are found in texts, under names and in the middle of nested values, and their places are marked."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from looplatch.audit import SECRETS, Secrets
from looplatch.states.errors import UsageError
from looplatch.states.patterns import KNOWN, Pattern
from looplatch.states.reasons import Strategy, Terminal
from looplatch.states.record import Kind
from looplatch.states.state import State
from looplatch.states.table import DECISIONS
from looplatch.states.vocabulary import EffectClass, EffectOutcome, Op
from looplatch.tools import Cause

# Each as a person would come across it; every one of them is made up. Split, so that no scanner takes them for real.
FOUND = {
    "private_key": "-----BEGIN RSA " + "PRIVATE KEY-----\nMIIEow\nabc=\n-----END RSA PRIVATE KEY-----",
    "anthropic_key": "sk-ant-" + "api03-0123456789abcdefABCDEF_-x",
    "openai_key": "sk-" + "proj-0123456789abcdefghijABCD",
    "aws_access_key": "AKIA" + "ABCDEFGH2345WXYZ",
    "google_key": "AIza" + "0123456789abcdefghijABCDEFGHIJ_-xyz",
    "azure_key": "AccountKey=" + "0123456789abcdefghijABCDEFGHIJ0123456789+/==",
    "github_token": "ghp_" + "0123456789abcdefghijABCDEFGHIJ012345",
    "gitlab_token": "glpat-" + "0123456789abcdefghij",
    "slack_token": "xoxb-" + "123456789012-abcdefghij",
    "slack_webhook": "https://hooks.slack.com/services/" + "T0000000/B0000000/abcdefghij0123456789",
    "stripe_key": "sk_live_" + "0123456789abcdefgh",
    "npm_token": "npm_" + "0123456789abcdefghijABCDEFGHIJ012345",
    "pypi_token": "pypi-AgEIcHlwaS5vcmc" + "0123456789abcdefghijABCDEFGHIJ0123456789abcdefgh",
    "huggingface_token": "hf_" + "0123456789abcdefghijABCDEFGHIJ",
    "sendgrid_key": "SG." + "0123456789abcdefgh.0123456789abcdefgh",
    "jwt": "eyJhbGciOiJIUzI1" + ".eyJzdWIiOiIxMjM0.SflKxwRJSMeKKF2Q",
    "authorization": "Authorization: " + "Basic dXNlcjpwYXNzd29yZA==",
    "bearer_token": "use Bearer " + "abcdef.0123456789abcdef",
    "named_secret": 'API_KEY = "' + 'abcdef0123456789abcdef"',
    "url_password": "postgres://app:" + "hunter22@db.internal/app",
}


@pytest.mark.parametrize("kind", FOUND)
def test_a_secret_is_taken_out_of_a_text_and_nothing_else(kind: str) -> None:
    secret = FOUND[kind]
    clean, kinds = SECRETS.taken_out({"type": "text", "text": f"before\n{secret} after"})
    assert kinds == (kind,)
    assert clean["text"].startswith("before\n")
    assert clean["text"].endswith(" after") or kind == "url_password"
    assert f"[redacted: {kind}]" in clean["text"]
    assert secret not in clean["text"]


def test_what_only_looks_like_one_stays() -> None:
    text = (
        "The task-runner risk-free desk-top sk-learn; api_key = os.environ['KEY']; token: 12; the bearer of news; "
        "AKIASHORT; https://example.org:8080/path@x; Authorization is needed; a secret key: none"
    )
    assert SECRETS.taken_out(text) == (text, ())


def test_what_stands_under_a_telling_name_is_one() -> None:
    given = {
        "headers": {"Authorization": "tell no one", "Accept": "text"},
        "login": [{"password": "abc", "user": "me"}],
    }
    clean, kinds = SECRETS.taken_out(given)
    assert clean == {
        "headers": {"Authorization": "[redacted: named_secret]", "Accept": "text"},
        "login": [{"password": "[redacted: named_secret]", "user": "me"}],
    }
    assert kinds == ("named_secret",)
    assert given["headers"] == {"Authorization": "tell no one", "Accept": "text"}


KEY = FOUND["aws_access_key"]
CITED = {"type": "web_search_result_location", "encrypted_index": KEY, "cited_text": "so"}
PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": KEY}}
OUTPUT = {"type": "encrypted_code_execution_result", "encrypted_stdout": KEY}
OPAQUE = [
    {"type": "thinking", "thinking": "so", "signature": KEY},
    {"type": "redacted_thinking", "data": KEY},
    PICTURE,
    {
        "type": "document",
        "source": {"type": "content", "content": [PICTURE]},
    },
    {"type": "tool_result", "content": [PICTURE]},
    {"type": "text", "text": "so", "citations": [CITED]},
    {"type": "web_search_tool_result", "content": [{"type": "web_search_result", "encrypted_content": KEY}]},
    {
        "type": "code_execution_tool_result",
        "content": {"type": "encrypted_code_execution_result", "encrypted_stdout": KEY},
    },
    {"type": "compaction", "content": "so", "signature": KEY, "encrypted_content": KEY},
    {"type": "advisor_tool_result", "content": {"type": "advisor_redacted_result", "encrypted_content": KEY}},
]


@pytest.mark.parametrize("block", OPAQUE, ids=lambda block: block["type"])
def test_what_only_the_api_can_read_is_left_alone(block: dict[str, object]) -> None:
    assert SECRETS.taken_out_of_block(block) == (block, ())
    assert KEY not in str(SECRETS.taken_out(block)[0])


@pytest.mark.parametrize(
    "block",
    [
        *({"type": "tool_use", "id": "t", "name": "x", "input": inner} for inner in OPAQUE),
        *({"type": "server_tool_use", "id": "t", "name": "x", "input": {"content": [inner]}} for inner in OPAQUE),
        *({"type": "tool_result", "tool_use_id": "t", "content": [inner]} for inner in OPAQUE[:2]),
        {"type": "tool_use", "id": "t", "name": "x", "input": {"signature": KEY, "encrypted_content": KEY}},
        {"type": "tool_use", "id": "t", "name": "x", "input": {"type": "base64", "data": KEY}},
        {"type": "text", "text": "so", "signature": KEY, "data": KEY},
        {"type": "thinking", "thinking": "so", "data": KEY},
        {"type": "base64", "data": KEY},
        {"type": "image", "source": {"type": "text", "data": KEY}},
        {"type": "unknown", "source": {"type": "url", "url": f"https://example.org/{KEY}"}},
        {"type": ["thinking"], "signature": KEY},
        {"signature": KEY},
        [{"signature": KEY, "type": "text"}],
    ],
    ids=str,
)
def test_a_field_of_that_name_elsewhere_is_searched(block: object) -> None:
    clean, kinds = SECRETS.taken_out_of_block(block)
    assert kinds == ("aws_access_key",)
    assert KEY not in str(clean)


def test_own_patterns_take_out_their_group() -> None:
    secrets = Secrets(own={"customer": r"customer (\d{6})", "word": re.compile("xyzzy")}, known=False)
    assert secrets.taken_out("customer 123456 said xyzzy") == (
        "customer [redacted: customer] said [redacted: word]",
        ("customer", "word"),
    )
    assert secrets.taken_out(FOUND["jwt"])[1] == ()


@pytest.mark.parametrize(
    "own",
    [
        {"all": ".*"},
        {"any": r"\w+"},
        {"A b": "x"},
        {"open": "(x"},
        {"joined": "[a-z]+_[a-z]+"},
        {"reason": "^end_turn$"},
        {"glpat-" + "abcdefghij0123456789": "x"},
    ],
    ids=lambda own: next(iter(own))[:6],
)
def test_patterns_that_would_take_all_are_refused(own: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="secrets"):
        Secrets(own=own)


RECORDED = (*Kind, *EffectClass, *Op, *EffectOutcome, *Cause, *DECISIONS.by_reason, *Terminal, *Strategy, *State)


@pytest.mark.parametrize("word", sorted({str(word) for word in RECORDED}))
def test_a_pattern_that_takes_a_word_out_of_records_is_refused(word: str) -> None:
    with pytest.raises(UsageError, match=f"also matches '{word}', which no request and no log is without"):
        Secrets(own={"own": rf"\b{word}\b"})


def test_a_deep_value_is_searched_too() -> None:
    value: object = FOUND["github_token"]
    for _ in range(5_000):
        value = [value]
    assert SECRETS.taken_out(value)[1] == ("github_token",)


PIECES = st.lists(st.sampled_from([*FOUND.values(), *("\n", " ", '"', "key=", "Bearer ", "authorization: ", "a1")]))
VALUES = st.recursive(
    PIECES.map("".join),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["text", "password", FOUND["jwt"]]), inner),
)


@given(VALUES)
def test_what_is_left_has_no_secret_in_it(value: object) -> None:
    """And the cheap look never misses what the close one finds."""
    clean, kinds = SECRETS.taken_out(value)
    assert SECRETS.taken_out(clean) == (clean, ())
    assert SECRETS.may_be_in(json.dumps(value).encode()) or not kinds


PLAIN = Secrets(own={pattern.name: pattern.regex for pattern in KNOWN}, known=False)
NAMES = [
    f"{before}{between}{word}"
    for word, befores in {
        "key": ("api", "x-api", "secret", "secret_access", "mon"),
        "token": ("access", "auth", "refresh", "id", "private"),
        "secret": ("client",),
    }.items()
    for before in befores
    for between in ("", "_", "-")
]
NEAR = st.sampled_from([*FOUND.values(), *NAMES, "=", "a1" * 9, " ", "AccountKey=", "SG."]) | st.builds(
    "{}{}{}".format, st.sampled_from([*NAMES, *map(str.upper, NAMES)]), st.sampled_from("=: "), st.just("a1" * 9)
)


@given(st.lists(NEAR, max_size=6).map("".join))
def test_the_quick_looks_miss_nothing(text: str) -> None:
    """Against the same patterns, each tried on every text."""
    clean, kinds = PLAIN.taken_out(text)
    assert SECRETS.taken_out(text) == (clean, kinds)
    assert SECRETS.may_be_in(json.dumps(text).encode()) or not kinds


@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith("mon")])
def test_each_name_of_a_secret_is_worth_a_closer_look(name: str) -> None:
    text = f"{name.title()}={'a1' * 9}"
    assert SECRETS.taken_out(text)[1] == ("named_secret",) == PLAIN.taken_out(text)[1]
    assert SECRETS.may_be_in(text.encode())


@pytest.mark.parametrize("text", ["the tokens of a monkey", "a secret: the keyword is the token", "no_key, any-token"])
def test_words_that_many_texts_have_are_not_worth_a_closer_look(text: str) -> None:
    assert not SECRETS.may_be_in(json.dumps(text).encode())


# Parts without bounds that something must follow: the one ends with the text at the latest, and is then all of it; the
# other one is tried only where a token is known to be.
EXCUSED = {"private_key": [".*?"], "jwt": ["C*?"]}


@pytest.mark.parametrize("pattern", KNOWN, ids=lambda pattern: pattern.name)
def test_no_text_makes_a_pattern_slow(pattern: Pattern) -> None:
    """Nothing that can fail follows a part without bounds, unless that part gives nothing back."""
    shape = re.sub(r"\[[^\]]*\]", "C", re.sub(r"\\\[|\\\]", "e", pattern.regex.pattern))
    unbounded = re.compile(r"(?:\\?[^\s()|])(?:[*+]|\{\d+,\})[?+]?")
    found = [
        match.group() for match in unbounded.finditer(shape) if not re.match(r"\||(?:=\*)?\)*\Z", shape[match.end() :])
    ]
    assert [one for one in found if not one.endswith(("}+", "++", "*+"))] in ([], EXCUSED.get(pattern.name))


@pytest.mark.parametrize("before", ["", "x-", "x/", "a.", "x-eyJ/", "eyJaaaaaaaaaaaa.eyJ."])
def test_a_token_is_found_behind_what_looks_like_its_beginning(before: str) -> None:
    assert SECRETS.taken_out(f"{before}{FOUND['jwt']} b")[0] == f"{before}[redacted: jwt] b"


def test_secrets_one_behind_the_other_are_taken_out_in_a_few_passes() -> None:
    """Each one has no bounds before the one before it is gone: with all of them the text goes."""
    secrets = Secrets(own={"customer": r"\bc\d{6}"})
    assert secrets.taken_out("c123456" * 1_000 + " and more") == ("[redacted: customer]", ("customer",))
    assert secrets.taken_out("c123456" * 3 + " and more") == ("[redacted: customer]" * 3 + " and more", ("customer",))
    for kind in ("npm_token", "google_key", "github_token", "huggingface_token", "stripe_key"):
        assert SECRETS.taken_out(FOUND[kind] * 1_000)[0].startswith(f"[redacted: {kind}]")
        assert FOUND[kind] not in SECRETS.taken_out(FOUND[kind] * 1_000)[0]


def test_names_that_are_secrets_are_taken_out_and_nothing_with_them() -> None:
    one, other, third = (FOUND["anthropic_key"] + str(n) for n in range(3))
    mark = "[redacted: anthropic_key]"
    given = {"a": 0, one: 1, mark * 2: 2, other: {third: [one]}}
    clean, kinds = SECRETS.taken_out(given)
    assert clean == {"a": 0, mark: 1, mark * 2: 2, mark * 3: {mark: [mark]}}
    assert list(clean) == ["a", mark, mark * 2, mark * 3]
    assert kinds == ("anthropic_key",)
    assert SECRETS.taken_out(clean) == (clean, ())


def test_all_that_stands_below_a_telling_name_is_taken_out() -> None:
    mark = "[redacted: named_secret]"
    given = {
        "cookie": ["sid=1", {"of": "me", "n": 1.5, "on": True, "no": None, "": ""}],
        "password": 123456,
        "authorization": {"signature": "s", "data": [[7]]},
        "passwd": "[redacted: jwt] and more",
    }
    clean, kinds = SECRETS.taken_out(given)
    assert clean == {
        "cookie": [mark, {"of": mark, "n": mark, "on": True, "no": None, "": ""}],
        "password": mark,
        "authorization": {"signature": mark, "data": [[mark]]},
        "passwd": mark,
    }
    assert kinds == ("named_secret",)
    assert SECRETS.taken_out(clean) == (clean, ())
    assert SECRETS.may_be_in(json.dumps(given).encode())


def test_what_only_looks_like_a_mark_hides_nothing() -> None:
    assert "sk-ant" not in SECRETS.taken_out("[redacted: sk-ant-api03-0123456789abcdef]")[0]


def test_of_secrets_that_overlap_nothing_is_left() -> None:
    """Whatever another pattern finds in the middle of one: it was looked for in the text as it came."""
    secrets = Secrets(own={"digits": r"\d{6}", "word": "zzz+"})
    assert secrets.taken_out(f"a {FOUND['anthropic_key']} b") == ("a [redacted: anthropic_key] b", ("anthropic_key",))
    assert secrets.taken_out("123456zzz, zz123456zzzz") == (
        "[redacted: digits][redacted: word], zz[redacted: digits][redacted: word]",
        ("digits", "word"),
    )
    both = Secrets(own={"short": "bcd", "long": "cdefg", "more": "gh"}, known=False)
    assert both.taken_out("abcdefghi") == ("a[redacted: long]i", ("long",))
    assert both.taken_out("abcdefg ghi") == ("a[redacted: long] [redacted: more]i", ("long", "more"))


@pytest.mark.parametrize(
    ("regex", "text", "clean"),
    [
        ("(?=ü)", "a übung", "a übung"),  # matches, and nothing
        ("(?<=%)", "%", "%"),
        ("(x*)%", "a % x%", "a % [redacted: own]%"),
        (r"code=(?=(\d+))", "code=123 123", "code=[redacted: own] 123"),  # the secret is behind the match
        (r"(?<=code )(\d+)|key(\d)", "code 123 key4", "code [redacted: own] [redacted: own]"),
        (r"\d{3}", "a123b456789", "a[redacted: own]b[redacted: own][redacted: own]"),
    ],
)
def test_patterns_of_any_form_take_out_what_they_name(regex: str, text: str, clean: str) -> None:
    secrets = Secrets(own={"own": regex}, known=False)
    assert secrets.taken_out(text)[0] == clean
    assert secrets.taken_out(clean) == (clean, ())


def test_names_stay_apart_whatever_is_looked_for() -> None:
    numbers = {str(number): number for number in range(100, 250)}
    clean, _ = Secrets(own={"digits": r"\d{3}"}, known=False).taken_out(numbers)
    assert clean == {"[redacted: digits]" * (number - 99): number for number in range(100, 250)}


@pytest.mark.parametrize(
    "text",
    [
        r'{"body": "{\"api_key\": \"abcdef0123456789abcdef\"}"}',
        r'{"url": "https:\/\/me:hunter22@example.org\/x"}',
        r"{\"authorization\": \"Basic dXNlcjpwYXNzd29yZA==\"}",
        r'{"access_token": "abcdef\/0123456789\/abcdef"}',
    ],
)
def test_json_within_a_text_is_searched(text: str) -> None:
    clean, kinds = SECRETS.taken_out(text)
    assert len(kinds) == 1
    assert not re.search("abcdef|hunter22|dXNl", clean)
    assert clean.count('"') == text.count('"')
    assert SECRETS.may_be_in(json.dumps(text).encode())
