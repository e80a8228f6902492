"""Is this decoded JSON value an object, or a list? Typed, so that what is inside stays `Any`."""

from typing import Any, TypeGuard


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    """Whether `value` is a JSON object."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Whether `value` is a JSON array."""
    return isinstance(value, list)
