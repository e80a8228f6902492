"""Secrets: what must not stand in a payload store, how it is found in JSON values, and what takes its place."""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import attrs

from looplatch.states.brief import brief
from looplatch.states.errors import UsageError
from looplatch.states.given import is_switch
from looplatch.states.opaque import Place, inner_place, is_opaque
from looplatch.states.patterns import KNOWN, KNOWN_VERSION, NAMED, Pattern, is_named, may_be_in
from looplatch.states.words import WORDS

_MARKED: Final = "[redacted: "
_PASSES: Final = 16  # over a text; after these all of it is taken out


def marker(name: str) -> str:
    """What stands in the place of a secret of the kind `name`."""
    return f"{_MARKED}{name}]"


def is_marked(text: str) -> bool:
    """Whether something may have been taken out of a text."""
    return _MARKED in text


@attrs.frozen
class Found:
    """A secret in a text, from `start` to before `end`; what told that it is one, from `first` to before `last`."""

    start: int
    end: int
    name: str
    first: int
    last: int


def _compiled(own: Mapping[str, str | re.Pattern[str]]) -> dict[str, re.Pattern[str]]:
    if not isinstance(own, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError("secrets", f"own is a {type(own).__name__}", "Give a dict of regular expressions by names")
    found: dict[str, re.Pattern[str]] = {}
    for place, (name, regex) in enumerate(own.items(), 1):
        if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError("secrets", f"the name of pattern {place} is a {type(name).__name__}", "Give it as a text")
        text = regex.pattern if isinstance(regex, re.Pattern) else regex
        if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            problem = f"the pattern {brief(name)} is of the type {type(text).__name__}"
            raise UsageError("secrets", problem, "Give a regular expression for texts")
        try:
            found[name] = re.compile(regex) if isinstance(regex, str) else regex
        except re.error as error:  # without the pattern, which may be a secret itself
            problem = f"the pattern {brief(name)} is no regular expression ({error.msg})"
            raise UsageError("secrets", problem, "Mend it") from None
    return found


@attrs.frozen(kw_only=True)
class Secrets:
    """Which secrets are taken out of what is kept: of contents, and of the names and ids that a record has.

    own: patterns by names of your own, as regular expressions: the first group is the secret, or the whole match. Each
    is tried on every text that is kept, and Python sets them no time limit: let no repetition stand within another
    (or make the inner one possessive, `a++`), or a text can be made that holds up the run.
    known: whether those in `looplatch.states.patterns.KNOWN` are looked for too (API keys, tokens, headers, private
    keys …), and what stands under a name such as "password" or "authorization".

    A secret is found where it is spelled as it is, in one text. Not found is what is written in another way (in
    base64, percent-encoded, as `\\u0041` in a text that is JSON itself), and what is spelled over several texts.
    Raises UsageError for a pattern that is none, or that matches nothing at all, what takes a secret's place, or words
    of the API such as "tool_use".
    """

    own: Mapping[str, re.Pattern[str]] = attrs.field(factory=dict[str, re.Pattern[str]], converter=_compiled)
    known: bool = attrs.field(default=True, validator=is_switch)

    def __attrs_post_init__(self) -> None:
        for name, regex in self.own.items():
            if not re.fullmatch(r"[a-z0-9_-]{1,40}", name):
                raise UsageError("secrets", f"{brief(name)} is no name", "Use up to 40 of a-z, 0-9, _ and -")
            if regex.search("") or regex.search(marker(name)):
                problem = f"the pattern {brief(name)} also matches nothing, or what stands in the place of a secret"
                raise UsageError("secrets", problem, "Make it match secrets only")
            if word := next((word for word in WORDS if regex.search(word)), None):
                problem = f"the pattern {name!r} also matches {word!r}, which no request and no log is without"
                raise UsageError("secrets", problem, "Make it match secrets only")
        if leaking := [place for place, name in enumerate(self.own, 1) if self.found(name)]:
            raise UsageError("secrets", f"the name of pattern {leaking[0]} is a secret itself", "Give it another name")

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
        """Whether a text, or the JSON text of a value, is worth a closer look."""
        return bool(self.own) or (self.known and may_be_in(encoded))

    def taken_out(self, value: object) -> tuple[Any, tuple[str, ...]]:
        """A copy of any JSON value without secrets, and the kinds of those that were in it."""
        return self._taken_out(value, None)

    def taken_out_of_block(self, block: object) -> tuple[Any, tuple[str, ...]]:
        """The same for a content block of the API, of which what only the API can read stays as it is.

        That are signatures, encrypted texts and the data of pictures, at the places that the API has for them; fields
        of that name anywhere else, as in the input of a tool, are none.
        """
        return self._taken_out(block, "content")

    def with_those_of(self, other: "Secrets") -> "Secrets":
        """What is looked for here, and what is looked for there: of patterns of one name, the other's gets another."""
        own = dict(self.own)
        for name, regex in other.own.items():
            names = (name, *(f"{name[:36]}-{number}" for number in range(2, 100)))
            own[next(one for one in names if own.get(one, regex) == regex)] = regex
        return Secrets(own=own, known=self.known or other.known)

    def taken_out_of_pieces(self, pieces: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
        """A text that comes in pieces, without secrets: each piece keeps what is left of it."""
        found: dict[str, None] = {}
        left = list(pieces)
        for _ in range(_PASSES):
            secrets = list(self._beside_marks("".join(left)))
            if not secrets:
                return left, tuple(found)
            found |= dict.fromkeys(one.name for one in secrets)
            left = _without(left, secrets)
        return [marker(next(reversed(found))), *("" for _ in pieces[1:])], tuple(found)

    def _beside_marks(self, text: str) -> Iterator[Found]:
        start = 0
        for place, piece in enumerate(self._marked.split(text) if _MARKED in text else (text,)):
            if not place % 2:
                for one in self.found(piece):
                    yield attrs.evolve(one, start=start + one.start, end=start + one.end)
            start += len(piece)

    def found(self, text: str) -> list[Found]:
        """The secrets in a text, in order; of those that overlap, one for all."""
        merged: list[Found] = []
        for one in sorted(self._found(text), key=lambda one: one.start):
            if merged and one.start < merged[-1].end:
                merged[-1] = _both(merged[-1], one)
            else:
                merged.append(one)
        return merged

    def _found(self, text: str) -> Iterator[Found]:
        lowered = text.lower()
        for pattern in self._patterns:
            if not pattern.may_match(lowered):
                continue
            for match in pattern.regex.finditer(text):
                start, end = match.span(1) if match.re.groups and match.group(1) is not None else match.span()
                if start < end:  # nothing is no secret
                    yield Found(start, end, pattern.name, min(start, match.start()), max(end, match.end()))

    def _taken_out(self, value: object, place: Place) -> tuple[Any, tuple[str, ...]]:
        found: dict[str, None] = {}
        whole: list[Any] = [value]
        left: list[tuple[Any, bool, Place]] = [(whole, False, place)]  # whether a name like "password" is above it
        while left:
            outer, hidden, place = left.pop()
            named = _is_object(outer)
            if named:
                self._clean_names(outer, found)
            keys: list[Any] = list(outer) if named else list(range(len(outer)))
            for key in keys:
                inner: Any = outer[key]
                hide = hidden or (named and self.known and is_named(key) is not None)
                if _is_object(inner) or _is_list(inner):
                    outer[key] = own = dict(inner) if _is_object(inner) else list(inner)
                    left.append((own, hide, inner_place(place, outer, key) if named else place))
                elif hide:
                    outer[key] = _stand_in(inner, found)
                elif isinstance(inner, str) and not (named and is_opaque(place, outer, key)):
                    outer[key] = self._clean(inner, found)
        return whole[0], tuple(found)

    def _clean_names(self, held: dict[str, Any], found: dict[str, None]) -> None:
        """Take secrets out of the names in an object, which keeps all it has."""
        clean = {name: self._clean(name, found) for name in held}
        if all(name == own for name, own in clean.items()):
            return
        inner = list(held.items())
        held.clear()
        taken = {name for name, own in clean.items() if name == own}
        for name, value in inner:
            own = clean[name]
            while own != name and own in taken:
                own += marker(next(reversed(found)))  # nothing else is sure to be none itself
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
        """All patterns are tried on the text as it is: what one takes out may be a part of what another one finds."""
        pieces: list[str] = []
        done = 0
        for one in self.found(text):
            pieces += (text[done : one.start], marker(one.name))
            done = one.end
            found[one.name] = None
        return "".join((*pieces, text[done:])) if pieces else text


def _without(pieces: Sequence[str], secrets: Sequence[Found]) -> list[str]:
    """The pieces without these secrets, which are in order; what takes the place of each stands where it began."""
    left: list[str] = []
    start = place = 0
    for piece in pieces:
        end, done = start + len(piece), 0
        kept: list[str] = []
        while place < len(secrets) and secrets[place].start < end:
            one = secrets[place]
            if one.start >= start:
                kept += (piece[done : one.start - start], marker(one.name))
            done = min(one.end, end) - start
            if one.end > end:
                break
            place += 1
        left.append("".join((*kept, piece[done:])))
        start = end
    return left


def _both(one: Found, other: Found) -> Found:
    """Two secrets that overlap, under the name of the longer one; of two that are as long, the first that was found."""
    name = other.name if other.end - other.start > one.end - one.start else one.name
    return Found(one.start, max(one.end, other.end), name, min(one.first, other.first), max(one.last, other.last))


def _stand_in(value: object, found: dict[str, None]) -> object:
    """What a text or a number is replaced by because of the name that it has."""
    if value is None or isinstance(value, bool) or value in ("", marker(NAMED)):
        return value
    found[NAMED] = None
    return marker(NAMED)


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


SECRETS: Final = Secrets()
"""What is taken out by default."""
