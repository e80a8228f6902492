"""Halves of secrets: what is left of one at the place where the middle of a text was cut out."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from looplatch.states.secrets import Secrets, marker

_GAP: Final = re.compile(r"\n?\[… [^\]]* left out[^\]]*…\]\n?")  # what stands where something was cut out
_SHORTEST: Final = 4  # characters of a half: fewer tell nothing
_NEAR: Final = 64  # characters behind a gap where a secret may stand whose name, before it, is gone


def secrets_in(secrets: Secrets, value: object) -> dict[str, str]:
    """The secrets in the texts of a JSON value, with their kinds."""
    found: dict[str, str] = {}
    left = [value]
    while left:
        one = left.pop()
        if isinstance(one, str):
            found.update((one[secret.start : secret.end], secret.name) for secret in secrets.found(one))
        elif isinstance(one, dict):
            left.extend(cast("dict[str, object]", one).values())
        elif isinstance(one, list | tuple):
            left.extend(cast("Sequence[object]", one))
    return found


def without_halves(value: Any, whole: Mapping[str, str]) -> Any:
    """A JSON value whose texts were cut, without what is left of the secrets `whole` at each gap.

    What nothing is taken out of is the very same object.
    """
    if isinstance(value, str):
        return _mended(value, whole)
    if isinstance(value, dict):
        held = cast("dict[str, Any]", value)
        fields = {name: without_halves(inner, whole) for name, inner in held.items()}
        return fields if any(fields[name] is not inner for name, inner in held.items()) else held
    if isinstance(value, list | tuple):
        items = cast("Sequence[Any]", value)
        inside = [without_halves(inner, whole) for inner in items]
        return inside if any(new is not old for new, old in zip(inside, items, strict=True)) else items
    return value


def _mended(text: str, whole: Mapping[str, str]) -> str:
    for gap in reversed(list(_GAP.finditer(text))):
        head, tail = text[: gap.start()], text[gap.end() :]
        for secret, kind in whole.items():
            head, tail = _without_end(head, secret, kind), _without_start(tail, secret, kind)
        if (head, tail) != (text[: gap.start()], text[gap.end() :]):
            text = head + gap.group() + tail
    return text


def _without_end(head: str, secret: str, kind: str) -> str:
    for size in range(len(secret), _SHORTEST - 1, -1):
        if head.endswith(secret[:size]):
            return head[:-size] + marker(kind)
    return head


def _without_start(tail: str, secret: str, kind: str) -> str:
    near = tail.find(secret, 0, _NEAR + len(secret))
    if near >= 0:
        return tail[:near] + marker(kind) + tail[near + len(secret) :]
    for size in range(len(secret) - 1, _SHORTEST - 1, -1):
        if tail.startswith(secret[-size:]):
            return marker(kind) + tail[size:]
    return tail
