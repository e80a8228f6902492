"""Secrets: what must not stand in a payload store, how it is found in JSON values, and what takes its place."""

import hashlib
import re
from collections.abc import Mapping
from functools import cached_property, partial
from typing import Any, Final, cast

import attrs

from looplatch.states.errors import UsageError

KNOWN_VERSION: Final = 2
"""Rises with each change of `KNOWN`, so that a log is judged by the patterns that its run had."""

_AROUND: Final = r"[\"']?\s{0,9}[:=]\s{0,9}[\"']?"  # between a name and its value
_VALUE: Final = r"((?=[^\s\"']{0,99}[0-9])[A-Za-z0-9_+/=.~-]{16,})"
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
            if anchor in lowered and (anchor not in _IN_NAMES or _in_names_text[anchor](lowered)):
                return True
        return False


def _known(name: str, anchors: str, regex: str, flags: re.RegexFlag = re.NOFLAG) -> Pattern:
    return Pattern(name, re.compile(regex, flags), tuple(anchors.split()))


# Words that many texts have, and what must stand before them in the name of a secret. A hyphen, a _ or nothing is
# between the two.
_IN_NAMES: Final = {
    "key": ("api", "secret", "access", "private"),
    "token": ("access", "auth", "refresh", "id", "private"),
    "secret": ("client",),
}


def _after(word: str) -> str:
    """A pattern of `word` behind one of its forerunners; it starts with the word, which is quickly found."""
    ways = [f"(?<={before}{between}{word})" for before in _IN_NAMES[word] for between in ("", "[_-]")]
    lasts = "".join(sorted({before[-1] for before in _IN_NAMES[word]}))
    return f"{word}(?<=[{lasts}_-]{word})(?:{'|'.join(ways)})"


_in_names_text: Final = {word: re.compile(_after(word)).search for word in _IN_NAMES}
_in_names_bytes: Final = {word.encode(): re.compile(_after(word).encode()).search for word in _IN_NAMES}


# Each takes time that grows with the text alone, whatever it holds: no pattern but `jwt` needs anything behind a part
# that has no bounds, and that one looks at a run of its characters only from where the run begins. And each takes all
# characters of its kind, so that nothing else begins where it ends.
_JWT: Final = "[A-Za-z0-9_-]"
KNOWN: Final = (
    _known(
        "private_key",
        "-----begin",
        r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----"
        r"(?:.*?-----END (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----|.*)",
        re.DOTALL,
    ),
    _known("anthropic_key", "sk-ant-", r"\bsk-ant-[A-Za-z0-9_-]{16,}"),
    _known("openai_key", "sk-", r"\bsk-(?:(?:proj|svcacct|admin|or-v1)-[A-Za-z0-9_-]{20,}|[A-Za-z0-9]{32,})"),
    _known("aws_access_key", "akia asia abia acca", r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b"),
    _known("google_key", "aiza ya29.", r"\b(?:AIza[A-Za-z0-9_-]{35,}|ya29\.[A-Za-z0-9_-]{20,})"),
    _known("azure_key", "accountkey= sharedaccesskey=", r"(?:AccountKey|SharedAccessKey)=([A-Za-z0-9+/=]{40,})"),
    _known(
        "github_token",
        "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_",
        r"\b(?:gh[pousr]_[A-Za-z0-9]{36}\w*|github_pat_[A-Za-z0-9_]{22,})",
    ),
    _known("gitlab_token", "glpat-", r"\bglpat-[A-Za-z0-9_-]{20,}"),
    _known("slack_token", "xox xapp-", r"\bx(?:ox[abeoprs]|app)-[A-Za-z0-9-]{10,}"),
    _known("slack_webhook", "hooks.slack.com", r"hooks\.slack\.com/services/([A-Za-z0-9/]{20,})"),
    _known("stripe_key", "sk_live_ sk_test_ rk_live_ rk_test_", r"\b[rs]k_(?:live|test)_[A-Za-z0-9]{16}\w*"),
    _known("npm_token", "npm_", r"\bnpm_[A-Za-z0-9]{36}\w*"),
    _known("pypi_token", "pypi-ag", r"\bpypi-Ag[A-Za-z0-9_-]{50,}"),
    _known("huggingface_token", "hf_", r"\bhf_[A-Za-z0-9]{30}\w*"),
    _known("sendgrid_key", "sg.", r"\bSG\.[A-Za-z0-9_-]{16,200}+\.[A-Za-z0-9_-]{16,}"),
    _known(
        "jwt",
        "eyj",
        rf"(?<!{_JWT})(?={_JWT}++\.eyJ{_JWT}{{10,}}+\.{_JWT}{{10}}){_JWT}*?\b"
        rf"(eyJ{_JWT}{{10,}}+\.eyJ{_JWT}{{10,}}+\.{_JWT}{{10,}}+)",
    ),
    _known(
        "authorization",
        "authorization",
        rf"\bauthorization{_AROUND}(?:[A-Za-z][A-Za-z0-9-]{{1,20}}\s{{1,9}})?([^\s\"',;\[\]<>]{{8,}})",
        re.IGNORECASE,
    ),
    _known("bearer_token", "bearer", r"\bbearer\s{1,9}([A-Za-z0-9._~+/-]{16,}=*)", re.IGNORECASE),
    _known("named_secret", "key token secret", rf"(?:\b|_){_NAMES}{_AROUND}{_VALUE}", re.IGNORECASE),
    _known("url_password", "://", r"\b[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s/:@\"']{1,200}:([^\s/@\"'\[\]]{3,200})@"),
)
"""The kinds of secrets that are looked for by default."""

_is_named: Final = re.compile(
    rf"(?:proxy-)?authorization|(?:set-)?cookie|passw(?:or)?d|passphrase|private[_-]?key|{_NAMES}", re.IGNORECASE
).fullmatch
_NAMED_ANCHORS: Final = (b"authorization", b"cookie", b"passw", b"passphrase", b"key", b"token", b"secret")
_OPAQUE: Final = frozenset(("signature", "encrypted_content", "encrypted_index", "encrypted_stdout"))
_BINARY: Final = ("base64", "redacted_thinking")
_MARKED: Final = "[redacted: "
_NAMED: Final = "named_secret"
_PASSES: Final = 16  # over a text; after these all of it is taken out


def marker(name: str) -> str:
    """What stands in the place of a secret of the kind `name`."""
    return f"{_MARKED}{name}]"


def _compiled(own: Mapping[str, str | re.Pattern[str]]) -> dict[str, re.Pattern[str]]:
    found: dict[str, re.Pattern[str]] = {}
    for name, regex in own.items():
        try:
            found[name] = re.compile(regex) if isinstance(regex, str) else regex
        except re.error as error:  # without the pattern, which may be a secret itself
            problem = f"the pattern {name!r} is no regular expression ({error.msg})"
            raise UsageError("secrets", problem, "Mend it") from None
    return found


@attrs.frozen(kw_only=True)
class Secrets:
    """Which secrets are taken out of contents before these are kept.

    own: patterns by names of your own, as regular expressions: the first group is the secret, or the whole match.
    known: whether those in `KNOWN` are looked for too (API keys, tokens, headers, private keys …), and what stands
    under a name such as "password" or "authorization".
    Raises UsageError for a pattern that is none, or that matches nothing at all or what takes a secret's place.
    """

    own: Mapping[str, re.Pattern[str]] = attrs.field(factory=dict[str, re.Pattern[str]], converter=_compiled)
    known: bool = True

    def __attrs_post_init__(self) -> None:
        for name, regex in self.own.items():
            if not re.fullmatch(r"[a-z0-9_-]{1,40}", name):
                raise UsageError("secrets", f"{name!r} is no name", "Use up to 40 of a-z, 0-9, _ and -")
            if regex.search("") or regex.search(marker(name)):
                problem = f"the pattern {name!r} also matches nothing, or what stands in the place of a secret"
                raise UsageError("secrets", problem, "Make it match secrets only")

    @cached_property
    def _patterns(self) -> tuple[Pattern, ...]:
        own = tuple(Pattern(name, regex) for name, regex in self.own.items())
        return own + KNOWN if self.known else own

    @cached_property
    def _marked(self) -> re.Pattern[str]:
        """Finds what takes a secret's place; nothing else may look like it, and hide one."""
        names = "|".join(sorted({*self.own, *(pattern.name for pattern in KNOWN)}))
        return re.compile(rf"(\[redacted: (?:{names})\])")

    def fields(self) -> dict[str, Any]:
        """What a genesis says of it: names and digests, since a pattern may be a secret itself."""
        digests = {name: hashlib.sha256(regex.pattern.encode()).hexdigest() for name, regex in self.own.items()}
        return {"known": KNOWN_VERSION if self.known else None, "own": digests}

    def may_be_in(self, encoded: bytes) -> bool:
        """Whether the JSON text `encoded` is worth a closer look."""
        if self.own:
            return True
        if not self.known:
            return False
        lowered = encoded.lower()
        for rare, anchors in _ANCHORS:
            if rare in lowered:
                for anchor in anchors:
                    if anchor in lowered and (anchor not in _in_names_bytes or _in_names_bytes[anchor](lowered)):
                        return True
        return False

    def taken_out(self, value: object) -> tuple[Any, tuple[str, ...]]:
        """A copy of `value` without secrets, and the kinds of those that were in it."""
        found: dict[str, None] = {}
        whole: list[Any] = [value]
        left: list[tuple[Any, bool]] = [(whole, False)]  # and whether a telling name is above it
        while left:
            outer, told = left.pop()
            named = _is_object(outer)
            if named:
                self._clean_names(outer, found)
            places: list[Any] = list(outer) if named else list(range(len(outer)))
            for place in places:
                inner: Any = outer[place]
                telling = told or (named and self.known and _is_named(place) is not None)
                if _is_object(inner) or _is_list(inner):
                    outer[place] = own = dict(inner) if _is_object(inner) else list(inner)
                    left.append((own, telling))
                elif telling:
                    outer[place] = _stand_in(inner, found)
                elif isinstance(inner, str) and not _is_opaque(outer, place):
                    outer[place] = self._clean(inner, found)
        return whole[0], tuple(found)

    def _clean_names(self, held: dict[str, Any], found: dict[str, None]) -> None:
        """Take secrets out of the names in an object, which keeps all it has."""
        clean = {name: self._clean(name, found) for name in held}
        if all(name == own for name, own in clean.items()):
            return
        inner = list(held.items())
        held.clear()
        times: dict[str, int] = {}
        taken = {name for name, own in clean.items() if name == own}
        for name, value in inner:
            own = clean[name]
            while own != name and own in taken:
                times[clean[name]] = number = times.get(clean[name], 1) + 1
                own = f"{clean[name]} {number}"
            taken.add(own)
            held[own] = value

    def _clean(self, text: str, found: dict[str, None]) -> str:
        for _ in range(_PASSES):  # what is taken out may set another one free, which had no bounds before
            clean = "".join(
                piece if place % 2 else self._clean_piece(piece, found)
                for place, piece in enumerate(self._marked.split(text) if _MARKED in text else (text,))
            )
            if clean == text:
                return text
            text = clean
        return marker(next(reversed(found)))  # so many, one behind the other, are put there to go on for ever

    def _clean_piece(self, text: str, found: dict[str, None]) -> str:
        lowered = text.lower()
        for pattern in self._patterns:
            if not pattern.may_match(lowered):
                continue
            text, times = pattern.regex.subn(partial(_replaced, pattern.name), text)
            if times:
                found[pattern.name] = None
                lowered = text.lower()
        return text


def _stand_in(value: object, found: dict[str, None]) -> object:
    """What a text or a number is replaced by because of the name that it has."""
    if value is None or isinstance(value, bool) or value in ("", marker(_NAMED)):
        return value
    found[_NAMED] = None
    return marker(_NAMED)


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


def _is_opaque(outer: Any, place: Any) -> bool:
    """Whether a text is not for people, and would be worth nothing if it were changed."""
    if not isinstance(outer, dict):
        return False
    return place in _OPAQUE or (place == "data" and cast("dict[str, Any]", outer).get("type") in _BINARY)


def _replaced(name: str, match: re.Match[str]) -> str:
    if not match.re.groups or match.group(1) is None:
        return marker(name)
    start, end = match.start(1) - match.start(), match.end(1) - match.start()
    return match.group()[:start] + marker(name) + match.group()[end:]


_ALL_ANCHORS: Final = {anchor.encode() for pattern in KNOWN for anchor in pattern.anchors or ()} | {*_NAMED_ANCHORS}
_RAREST_FIRST: Final = b"jxz_/-.wkb"


def _by_rare() -> tuple[tuple[bytes, tuple[bytes, ...]], ...]:
    """All anchors but those that another one finds, by a character that they have: one is found in no time."""
    groups: dict[bytes, list[bytes]] = {}
    for one in sorted(_ALL_ANCHORS):
        if not any(other in one for other in _ALL_ANCHORS - {one} if other.decode() not in _IN_NAMES):
            rare = next((place for place in _RAREST_FIRST if place in one), one[0])
            groups.setdefault(bytes((rare,)), []).append(one)
    return tuple((rare, tuple(anchors)) for rare, anchors in groups.items())


_ANCHORS: Final = _by_rare()

SECRETS: Final = Secrets()
"""What is taken out by default."""
