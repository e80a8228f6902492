"""What the API refuses in a single message or block: roles, fields, types, empty content."""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from looplatch.testing.shapes import is_list, is_object

ROLES: Final = ("user", "assistant", "system")
"""The roles of a message; `system` only after the first message."""

REQUIRED: Final[Mapping[str, Mapping[str, tuple[type, str]]]] = {
    "text": {"text": (str, "string")},
    "thinking": {"thinking": (str, "string"), "signature": (str, "string")},
    "redacted_thinking": {"data": (str, "string")},
    "tool_use": {"id": (str, "string"), "name": (str, "string"), "input": (dict, "dictionary")},
    "server_tool_use": {"id": (str, "string"), "name": (str, "string"), "input": (dict, "dictionary")},
    "mcp_tool_use": {"id": (str, "string"), "name": (str, "string"), "input": (dict, "dictionary")},
    "tool_result": {"tool_use_id": (str, "string")},
    "image": {"source": (dict, "dictionary")},
    "document": {"source": (dict, "dictionary")},
}
"""The fields that a block of a type must have, with the type of each and the API's word for it."""

ALLOWED: Final[Mapping[str, frozenset[str]]] = {
    "text": frozenset({"type", "text", "cache_control", "citations"}),
    "thinking": frozenset({"type", "thinking", "signature"}),
    "redacted_thinking": frozenset({"type", "data"}),
    "tool_use": frozenset({"type", "id", "name", "input", "cache_control", "caller", "toolset_name"}),
    "tool_result": frozenset({"type", "tool_use_id", "content", "is_error", "cache_control", "toolset_name"}),
}
"""All fields that a block of a type may have, for the types where a client adds fields of its own by mistake."""

KNOWN: Final = frozenset(REQUIRED) | {
    "advisor_tool_result",
    "bash_code_execution_tool_result",
    "code_execution_tool_result",
    "compaction",
    "connector_text",
    "container_upload",
    "fallback",
    "mcp_tool_listing",
    "mcp_tool_result",
    "mid_conv_system",
    "search_result",
    "text_editor_code_execution_tool_result",
    "tool_addition",
    "tool_removal",
    "tool_search_tool_result",
    "web_fetch_tool_result",
    "web_search_tool_result",
}
"""Every block type that a request may hold, betas included."""

RESULT_TYPES: Final = frozenset({"text", "image", "document", "search_result", "tool_reference", "browser_state"})
"""The block types that the content of a tool result may hold."""

ID_PATTERN: Final = "^[a-zA-Z0-9_-]+$"
NAME_PATTERN: Final = "^[a-zA-Z0-9_-]{1,128}$"
_PATTERNS: Final = {
    ("tool_use", "id"): ID_PATTERN,
    ("tool_use", "name"): NAME_PATTERN,
    ("tool_result", "tool_use_id"): ID_PATTERN,
}


def violations(messages: list[Any], issued: Collection[str]) -> Iterator[str]:
    """Everything wrong with each message alone; `issued` are block types that the server itself has sent."""
    for index, message in enumerate(messages):
        place = f"messages.{index}"
        match message:
            case {"role": role, "content": content}:
                yield from _role(role, index)
                yield from _content(content, place, KNOWN | set(issued))
            case dict():
                missing = "role" if "role" not in message else "content"
                yield f"{place}.{missing}: Field required"
            case _:
                yield f"{place}: Input does not match the expected shape."
    yield from _empty(messages)


def _role(role: object, index: int) -> Iterator[str]:
    if role not in ROLES:
        yield f'messages: Unexpected role "{role}". Allowed roles are "user" or "assistant".'
    if index == 0 and role == "system":
        yield (
            'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter, '
            'not "system" as an input message role.'
        )


def _content(content: Any, place: str, known: Collection[str]) -> Iterator[str]:
    if is_list(content):
        for number, block in enumerate(content):
            yield from _block(block, f"{place}.content.{number}", known)
    elif not isinstance(content, str):
        yield f"{place}.content: Input should be a valid list"


def _block(block: Any, place: str, known: Collection[str]) -> Iterator[str]:
    if not is_object(block):
        yield f"{place}: Input does not match the expected shape."
        return
    if "type" not in block:
        yield f"{place}.type: Field required"
    kind = block["type"]
    if not isinstance(kind, str):
        yield f"{place}.type: Input should be a valid string"
    if kind not in known:
        tags = ", ".join(f"'{tag}'" for tag in sorted(known))
        yield f"{place}: Input tag '{kind}' found using 'type' does not match any of the expected tags: {tags}"
    for name, (expected, word) in REQUIRED.get(kind, {}).items():
        if name not in block:
            yield f"{place}.{kind}.{name}: Field required"
        if not isinstance(block[name], expected):
            yield f"{place}.{kind}.{name}: Input should be a valid {word}"
        pattern = _PATTERNS.get((kind, name))
        if pattern is not None and not re.search(pattern.replace("$", r"\Z"), block[name]):
            yield f"{place}.{kind}.{name}: String should match pattern '{pattern}'"
    if kind in ALLOWED:
        for name in block.keys() - ALLOWED[kind]:
            yield f"{place}.{kind}.{name}: Extra inputs are not permitted"
    match block.get("caller"):
        case None | {"type": str()}:
            pass
        case _:
            yield f"{place}.{kind}.caller: Input does not match the expected shape."
    if kind == "tool_result":
        yield from _tool_result(block, f"{place}.tool_result")


def _tool_result(block: Mapping[str, Any], place: str) -> Iterator[str]:
    is_error, content = block.get("is_error"), block.get("content")
    if not isinstance(is_error, bool | None):
        yield f"{place}.is_error: Input should be a valid boolean"
    if is_error and not content:
        yield f"{place}: content cannot be empty if `is_error` is true"
    if is_list(content):
        for number, item in enumerate(content):
            yield from _block(item, f"{place}.content.{number}", RESULT_TYPES)
            if is_error and item["type"] != "text":
                yield f"{place}: all content must be type `text` if `is_error` is true"
    elif not isinstance(content, str | None):
        yield f"{place}.content: Input should be a valid list"


def _empty(messages: list[Any]) -> Iterator[str]:
    last = len(messages) - 1
    for index, message in enumerate(messages):
        role, content = message["role"], message["content"]
        if not content and not (index == last and role == "assistant"):
            yield (
                f"messages.{index}: all messages must have non-empty content "
                "except for the optional final assistant message"
            )
        for block in content if is_list(content) else ():
            nested = block.get("content") if block["type"] == "tool_result" else None
            for item in (block, *(nested if is_list(nested) else ())):
                if item["type"] == "text" and not item["text"]:
                    yield "messages: text content blocks must be non-empty"
