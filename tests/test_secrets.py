"""Secrets are found in texts, under names and in the middle of nested values, and their places are marked."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from looplatch.audit import SECRETS, Secrets
from looplatch.states.errors import UsageError
from looplatch.states.secrets import KNOWN, Pattern

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


def test_what_is_opaque_is_left_alone() -> None:
    secret = FOUND["aws_access_key"]
    block = {"type": "thinking", "thinking": "so", "signature": secret}
    image = {"type": "image", "source": {"type": "base64", "data": secret}}
    assert SECRETS.taken_out([block, image]) == ([block, image], ())
    assert SECRETS.taken_out({"data": secret})[1] == ("aws_access_key",)


def test_own_patterns_take_out_their_group() -> None:
    secrets = Secrets(own={"customer": r"customer (\d{6})", "word": re.compile("xyzzy")}, known=False)
    assert secrets.taken_out("customer 123456 said xyzzy") == (
        "customer [redacted: customer] said [redacted: word]",
        ("customer", "word"),
    )
    assert secrets.taken_out(FOUND["jwt"])[1] == ()


@pytest.mark.parametrize(
    "own", [{"all": ".*"}, {"any": r"\w+"}, {"A b": "x"}, {"open": "(x"}], ids=lambda own: next(iter(own))
)
def test_patterns_that_would_take_all_are_refused(own: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="secrets"):
        Secrets(own=own)


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
    given = {"a": 0, one: 1, "[redacted: anthropic_key] 2": 2, other: {third: [one]}}
    clean, kinds = SECRETS.taken_out(given)
    mark = "[redacted: anthropic_key]"
    assert clean == {"a": 0, mark: 1, f"{mark} 2": 2, f"{mark} 3": {mark: [mark]}}
    assert list(clean) == ["a", mark, f"{mark} 2", f"{mark} 3"]
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
