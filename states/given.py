"""What a caller gave: looked at before anything is done with it, so that the error names it and not what came of it."""

from collections.abc import Callable
from typing import Any

from looplatch.states.brief import brief
from looplatch.states.errors import UsageError
from looplatch.states.record import MAX_INT


def check_kind(what: str, given: object, kind: Any, mend: str) -> None:
    """Raise UsageError where `given` is no `kind` (a class, or a union of classes); `mend` says what to give."""
    if not isinstance(given, kind):
        raise UsageError(what, f"{brief(given)} is not allowed", mend)


def check_switch(what: str, given: object) -> None:
    """Raise UsageError where `given` is no bool: a text such as "no" would count as True."""
    check_kind(what, given, bool, "Give True or False")


def check_count(what: str, given: object, least: int = 1, otherwise: str = "") -> None:
    """Raise UsageError where `given` is no whole number from `least` to the greatest that a record can hold.

    `otherwise` says what else may be given.
    """
    if isinstance(given, bool) or not isinstance(given, int) or not least <= given <= MAX_INT:
        too_much = isinstance(given, int) and given > MAX_INT
        wanted = f"at most {MAX_INT:,}" if too_much else f"at least {least:,}"
        raise UsageError(what, f"{brief(given)} is not allowed", f"Give a whole number of {wanted}{otherwise}")


def check_function(what: str, given: object, mend: str) -> None:
    """Raise UsageError where `given` cannot be called; `mend` says what it is to be."""
    if not callable(given):
        raise UsageError(what, f"{brief(given)} is no function", mend)


def check_methods(what: str, given: object, names: tuple[str, ...], mend: str) -> None:
    """Raise UsageError where `given` lacks one of the methods `names`, as a class in the place of its object does."""
    missing = [name for name in names if not callable(getattr(given, name, None))]
    if isinstance(given, type) or missing:
        problem = "it is a class" if isinstance(given, type) else f"it has no {', '.join(missing)}"
        raise UsageError(what, f"{brief(given)} is not allowed: {problem}", mend)


def is_count(least: int, otherwise: str = "") -> Callable[[object, Any, object], None]:
    """The check of a count, as a validator of attrs."""

    def check(owner: object, attribute: Any, given: object) -> None:
        if type(given) is not int or not least <= given <= MAX_INT:  # a name is made for what is refused alone
            check_count(f"{type(owner).__name__}.{attribute.name}", given, least, otherwise)

    return check


def is_switch(owner: object, attribute: Any, given: object) -> None:
    """The check of a bool, as a validator of attrs."""
    check_switch(f"{type(owner).__name__}.{attribute.name}", given)
