"""The one error of the testing kit."""

from typing import Any

from looplatch.states.brief import brief
from looplatch.states.errors import LooplatchError


class ScriptError(LooplatchError):
    """A script that cannot be played, or was not played to its end; the text says where, and how to mend it."""


def check_kind(what: str, given: object, kind: Any, wanted: str) -> None:
    """Raise ScriptError where `given` is no `kind` (a class, or a union of classes); `wanted` says what to give."""
    if not isinstance(given, kind):
        raise ScriptError(f"{what} is {brief(given)}; give {wanted}")


def check_count(what: str, given: object, least: int = 0) -> None:
    """Raise ScriptError where `given` is no whole number from `least` on."""
    if isinstance(given, bool) or not isinstance(given, int) or given < least:
        raise ScriptError(f"{what} is {brief(given)}; give a whole number from {least} on")
