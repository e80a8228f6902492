"""What the API refuses in the tool definitions of a request."""

import re
from collections.abc import Iterator
from typing import Any

from looplatch.testing.block_rules import NAME_PATTERN
from looplatch.testing.shapes import is_list, is_object


def violations(tools: object) -> Iterator[str]:
    """Everything wrong with `tools`; tools of the API's own types are only checked for their names."""
    if tools is None:
        return
    if not is_list(tools):
        yield "tools: Input should be a valid list"
        return
    names: set[str] = set()
    for index, tool in enumerate(tools):
        if not is_object(tool):
            yield f"tools.{index}: Input does not match the expected shape."
        if tool.get("type") in (None, "custom"):
            yield from _custom(tool, f"tools.{index}.custom")
        if isinstance(name := tool.get("name"), str):
            if name in names:
                yield "tools: Tool names must be unique."
            names.add(name)


def _custom(tool: dict[str, Any], place: str) -> Iterator[str]:
    for field in ("name", "input_schema"):
        if field not in tool:
            yield f"{place}.{field}: Field required"
    name, schema = tool["name"], tool["input_schema"]
    if not isinstance(name, str):
        yield f"{place}.name: Input should be a valid string"
    elif not re.search(NAME_PATTERN.replace("$", r"\Z"), name):
        yield f"{place}.name: String should match pattern '{NAME_PATTERN}'"
    if not isinstance(tool.get("description", ""), str):
        yield f"{place}.description: Input should be a valid string"
    if not is_object(schema):
        yield f"{place}.input_schema: Input should be a valid dictionary"
    elif "type" not in schema:
        yield f"{place}.input_schema.type: Field required"
    elif schema["type"] != "object":
        yield f"{place}.input_schema.type: Input should be 'object'"
