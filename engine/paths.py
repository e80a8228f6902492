"""Paths, as callers give them."""

import os
from pathlib import Path
from typing import cast

from looplatch.states.brief import brief
from looplatch.states.errors import UsageError


def path_of(what: str, given: object, wanted: str = "the path of a file") -> Path:
    """The path that the caller gave as `what`. Raises UsageError where it is none, and says what is `wanted`."""
    spelled: object = os.fspath(cast("os.PathLike[str]", given)) if isinstance(given, str | os.PathLike) else None
    if not isinstance(spelled, str):
        raise UsageError(what, f"{brief(given)} is not allowed", f"Give {wanted}")
    return Path(spelled)
