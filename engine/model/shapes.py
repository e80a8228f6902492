"""What a decoded JSON value is, in types that the checkers follow."""

from typing import Any, TypeGuard


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    """Return whether `value` is a JSON object. (It comes from JSON, so its keys are strings.)"""
    return isinstance(value, dict)


def is_array(value: object) -> TypeGuard[list[Any]]:
    """Return whether `value` is a JSON array."""
    return isinstance(value, list)
