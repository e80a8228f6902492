"""What a value decoded from JSON is; a forged log may hold anything anywhere."""

from typing import Any, TypeGuard, cast


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    """Whether `value` is a JSON object."""
    return type(value) is dict


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Whether `value` is a JSON array."""
    return type(value) is list


def is_texts(value: object) -> TypeGuard[list[str]]:
    """Whether `value` is an array of texts."""
    if type(value) is not list:
        return False
    for item in cast("list[object]", value):  # noqa: SIM110  # asked of every call and every answer
        if type(item) is not str:
            return False
    return True
