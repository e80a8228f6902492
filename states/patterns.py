"""The kinds of secrets that are known: patterns of them, and the quick looks that say where none can be."""

import re
from collections.abc import Callable, Iterable
from typing import Final

import attrs

KNOWN_VERSION: Final = 3
"""Rises with each change of `KNOWN`, so that a log is judged by the patterns that its run had."""

_QUOTE: Final = r"\\{0,3}[\"']?"  # JSON within JSON has backslashes before it
_AROUND: Final = rf"{_QUOTE}\s{{0,9}}[:=]\s{{0,9}}{_QUOTE}"  # between a name and its value
_VALUE: Final = r"((?=[^\s\"']{0,99}[0-9])(?:[A-Za-z0-9_+/=.~-]|\\/){16,})"
_NAMES: Final = (
    r"(?:x-api-key|api[_-]?key|apikey|(?:access|auth|refresh|id)[_-]?token|client[_-]?secret"
    r"|secret[_-]?(?:access[_-]?)?key|private[_-]?token)"
)


@attrs.frozen
class Pattern:
    """A kind of secret. regex: its first group is the secret, or all of it where it has none.

    anchors: in small letters; a text has one of them wherever the pattern matches. None: that is not known.
    """

    name: str
    regex: re.Pattern[str]
    anchors: tuple[str, ...] | None = None

    def may_match(self, lowered: str) -> bool:
        """Whether a text, given in small letters, is worth a closer look."""
        if self.anchors is None:
            return True
        for anchor in self.anchors:
            if anchor in lowered and (anchor not in _IN_NAMES or _in_names[anchor](lowered)):
                return True
        return False


def _known(name: str, anchors: str, regex: str, flags: re.RegexFlag = re.NOFLAG) -> Pattern:
    return Pattern(name, re.compile(regex, flags | re.ASCII), tuple(anchors.split()))


# Words that many texts have, and what must stand before them in the name of a secret. A hyphen, a _ or nothing is
# between the two.
_IN_NAMES: Final = {
    "key": ("api", "secret", "access", "private"),
    "token": ("access", "auth", "refresh", "id", "private"),
    "secret": ("client",),
}


def _named(word: str) -> str:
    """A pattern of the place behind `word`, where that stands behind one of its forerunners."""
    ways = [f"(?<={before}{between}{word})" for before in _IN_NAMES[word] for between in ("", "[_-]")]
    lasts = "".join(sorted({before[-1] for before in _IN_NAMES[word]}))
    return f"(?<=[{lasts}_-]{word})(?:{'|'.join(ways)})"


_in_names: Final = {word: re.compile(word + _named(word)).search for word in _IN_NAMES}  # the word is quickly found


# Each takes time that grows with the text alone, whatever it holds: no pattern but `jwt` needs anything behind a part
# that has no bounds, and that one looks at a run of its characters only from where the run begins. And each takes all
# characters of its kind, so that nothing else begins where it ends.
_START: Final = "(?<![A-Za-z0-9])"  # a name may stand before it, and a _
_END: Final = "(?![A-Za-z0-9])"
_JWT: Final = "[A-Za-z0-9_-]"
KNOWN: Final = (
    _known(
        "private_key",
        "-----begin",
        r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----"
        r"(?:.*?-----END (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----|.*)",
        re.DOTALL,
    ),
    _known("anthropic_key", "sk-ant-", rf"{_START}sk-ant-[A-Za-z0-9_-]{{16,}}"),
    _known(
        "openai_key", "sk-", rf"{_START}sk-(?:(?:proj|svcacct|admin|or-v1)-[A-Za-z0-9_-]{{20,}}|[A-Za-z0-9]{{32,}})"
    ),
    _known("aws_access_key", "akia asia abia acca", rf"{_START}(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{{16}}{_END}"),
    _known("google_key", "aiza ya29.", rf"{_START}(?:AIza[A-Za-z0-9_-]{{35,}}|ya29\.[A-Za-z0-9_-]{{20,}})"),
    _known("azure_key", "accountkey= sharedaccesskey=", r"(?:AccountKey|SharedAccessKey)=([A-Za-z0-9+/=]{40,})"),
    _known(
        "github_token",
        "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_",
        rf"{_START}(?:gh[pousr]_[A-Za-z0-9]{{36}}\w*|github_pat_[A-Za-z0-9_]{{22,}})",
    ),
    _known("gitlab_token", "glpat-", rf"{_START}glpat-[A-Za-z0-9_-]{{20,}}"),
    _known("slack_token", "xox xapp-", rf"{_START}x(?:ox[abeoprs]|app)-[A-Za-z0-9-]{{10,}}"),
    _known("slack_webhook", "hooks.slack.com", r"hooks\.slack\.com\\?/services\\?/((?:[A-Za-z0-9]|\\?/){20,})"),
    _known("stripe_key", "sk_live_ sk_test_ rk_live_ rk_test_", rf"{_START}[rs]k_(?:live|test)_[A-Za-z0-9]{{16}}\w*"),
    _known("npm_token", "npm_", rf"{_START}npm_[A-Za-z0-9]{{36}}\w*"),
    _known("pypi_token", "pypi-ag", rf"{_START}pypi-Ag[A-Za-z0-9_-]{{50,}}"),
    _known("huggingface_token", "hf_", rf"{_START}hf_[A-Za-z0-9]{{30}}\w*"),
    _known("sendgrid_key", "sg.", rf"{_START}SG\.[A-Za-z0-9_-]{{16,200}}+\.[A-Za-z0-9_-]{{16,}}"),
    _known(
        "jwt",
        "eyj",
        rf"(?<!{_JWT})(?={_JWT}++\.eyJ{_JWT}{{10,}}+\.{_JWT}{{10}}){_JWT}*?{_START}"
        rf"(eyJ{_JWT}{{10,}}+\.eyJ{_JWT}{{10,}}+\.{_JWT}{{10,}}+)",
    ),
    _known(
        "authorization",
        "authorization",
        rf"{_START}authorization{_AROUND}(?:[A-Za-z][A-Za-z0-9-]{{1,20}}\s{{1,9}})?([^\s\"',;\[\]<>\\]{{8,}})",
        re.IGNORECASE,
    ),
    _known("bearer_token", "bearer", rf"{_START}bearer\s{{1,9}}([A-Za-z0-9._~+/-]{{16,}}=*)", re.IGNORECASE),
    _known("named_secret", "key token secret", rf"{_START}{_NAMES}{_AROUND}{_VALUE}", re.IGNORECASE),
    _known(
        "url_password",
        r":// :\/",
        rf"{_START}[A-Za-z][A-Za-z0-9+.-]{{1,20}}:(?:\\?/){{2}}[^\s/:@\"']{{1,200}}:([^\s/@\"'\[\]]{{3,200}})@",
    ),
)
"""The kinds of secrets that are looked for by default."""

is_named: Final = re.compile(
    rf"(?:proxy-)?authorization|(?:set-)?cookie|passw(?:or)?d|passphrase|private[_-]?key|{_NAMES}", re.IGNORECASE
).fullmatch
"""Whether a name tells that all below it is secret."""

NAMED: Final = "named_secret"
"""The kind of what is known by its name."""

_NAMED_ANCHORS: Final = ("authorization", "cookie", "passw", "passphrase", "key", "token", "secret")


def may_be_in(encoded: bytes) -> bool:
    """Whether a text, or the JSON text of a value, may have a secret of a known kind, or a name that tells of one."""
    lowered = encoded.lower().decode("latin-1")  # a text of the bytes: in a text, another one is found much faster
    for rare, find in _ANCHORS:
        if rare in lowered:  # which is seen much faster than where a pattern matches
            found = find(lowered)
            if found is not None:
                return True
    return False


def _spelled(anchor: str) -> set[str]:
    """As it stands in a text, and in its JSON."""
    return {anchor, anchor.replace("\\", "\\\\")}


_ALL_ANCHORS: Final = {
    *_NAMED_ANCHORS,
    *(one for pattern in KNOWN for anchor in pattern.anchors or () for one in _spelled(anchor)),
}
_RARE: Final = ("_", "/", "-", ".", "z", "ia", "ke")  # each is in several anchors, and in few texts


def _by_rare() -> tuple[tuple[str, Callable[[str], re.Match[str] | None]], ...]:
    """What finds any of the anchors, but for those that another one finds, by what they have in common.

    One with nothing of that is by itself.
    """
    groups: dict[str, list[str]] = {}
    for one in sorted(_ALL_ANCHORS):
        if not any(other in one for other in _ALL_ANCHORS - {one} if other not in _IN_NAMES):
            rare = next((part for part in _RARE if part in one), one)
            groups.setdefault(rare, []).append(one)
    return tuple((rare, re.compile(_around(rare, anchors)).search) for rare, anchors in groups.items())


def _around(rare: str, anchors: Iterable[str]) -> str:
    """A pattern of any of the anchors that starts with what they have in common, and looks at both sides of it."""
    ways: list[str] = []
    before: set[str] = set()
    for one in anchors:
        head, _, tail = one.partition(rare)
        way = f"(?<={re.escape(head + rare)}){re.escape(tail)}"
        ways.append(way + _named(one) if one in _IN_NAMES else way)
        before.add(head[-1:])
    quick = "" if "" in before else f"(?<=[{re.escape(''.join(sorted(before)))}]{re.escape(rare)})"
    return f"{re.escape(rare)}{quick}(?:{'|'.join(ways)})"


_ANCHORS: Final = _by_rare()
