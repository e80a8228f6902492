"""The SDK's classes of tools, looked at without loading the SDK: an object of one can only come from a loaded SDK."""

import sys
from typing import Any

__all__ = ["is_one", "sdk_class"]


def sdk_class(name: str) -> Any:
    """The class of this name, or None where the SDK is not loaded, or has none."""
    return getattr(sys.modules.get("anthropic.lib.tools"), name, None)


def is_one(value: object, *names: str) -> bool:
    """Whether `value` is of one of the classes."""
    return any(isinstance(known := sdk_class(name), type) and isinstance(value, known) for name in names)
