"""What the Messages API refuses, in its own words.

An independent second opinion on what a client sends: written from the API's recorded and quoted 400s, sharing nothing
with the code that builds requests. Shapes are checked first, as the API does (`block_rules`, `tool_rules`), then what
the messages say together (`history_rules`, `thinking_rules`).

Each rule is a generator of texts, and only the first text is ever asked for: what stands behind a `yield` may rely on
what was checked before it.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import orjson

from looplatch.testing import block_rules, compaction_rules, history_rules, thinking_rules, tool_rules
from looplatch.testing.issued import Issued
from looplatch.testing.shapes import is_list, is_object

CACHE_BREAKPOINTS: Final = 4
"""How many blocks may carry `cache_control`."""

COUNTED: Final = frozenset(
    {
        "cache_control",
        "compaction",
        "context_management",
        "mcp_servers",
        "messages",
        "model",
        "output_config",
        "speed",
        "system",
        "thinking",
        "tool_choice",
        "tools",
    }
)
"""The fields that `/v1/messages/count_tokens` takes."""

_THINKING_PAGE = (
    "https://docs.claude.com/en/docs/build-with-claude/extended-thinking#max-tokens-and-context-window-size"
)
_NO_OBJECT: Final = "The request body is not a JSON object"


def undecodable(content: bytes) -> str | None:
    """The API's 400 text for a body that is no JSON object (a lone surrogate is none), or None."""
    try:
        body = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        return f"The request body is not valid JSON: {error}"
    return None if is_object(body) else _NO_OBJECT


def refusal(body: Mapping[str, Any], *, issued: Issued | None = None, counting: bool = False) -> str | None:
    """The text of the 400 that the API answers `body` with, or None where it accepts it.

    `issued` is what the server gave out: with it, thinking that the server did not write is refused, and unknown block
    types are accepted if it wrote them. `counting` is for `/v1/messages/count_tokens`, which needs no `max_tokens`.
    """
    if not isinstance(body, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        return _NO_OBJECT
    return next(_violations(body, issued, counting), None)


def _violations(body: Mapping[str, Any], issued: Issued | None, counting: bool) -> Iterator[str]:
    yield from _fields(body, counting)
    messages: list[Any] = body["messages"]
    yield from block_rules.violations(messages, frozenset() if issued is None else issued.types)
    yield from tool_rules.violations(body.get("tools"))
    yield from _cache_control(body)
    yield from history_rules.violations(messages)
    yield from thinking_rules.violations(body, issued)
    yield from compaction_rules.violations(body, issued)


def _fields(body: Mapping[str, Any], counting: bool) -> Iterator[str]:
    for name in ("model", "messages") if counting else ("max_tokens", "messages", "model"):
        if name not in body:
            yield f"{name}: Field required"
    if counting and (unknown := sorted(body.keys() - COUNTED)):
        yield f"{unknown[0]}: Extra inputs are not permitted"
    model, messages = body["model"], body["messages"]
    if not isinstance(model, str):
        yield "model: Input should be a valid string"
    elif not model:
        yield "model: String should have at least 1 character"
    if not is_list(messages):
        yield "messages: Input should be a valid list"
    if not messages:
        yield "messages: at least one message is required"
    if not counting:
        yield from _max_tokens(body)
    yield from _system(body.get("system"))
    match body.get("temperature"):
        case None:
            pass
        case int() | float() as temperature if 0 <= temperature <= 1:
            pass
        case _:
            yield "temperature: range: 0..1"
    if not isinstance(body.get("stream", False), bool):
        yield "stream: Input should be a valid boolean"


def _max_tokens(body: Mapping[str, Any]) -> Iterator[str]:
    limit = body["max_tokens"]
    if isinstance(limit, bool) or not isinstance(limit, int):
        yield "max_tokens: Input should be a valid integer"
    elif limit < 1:
        yield "max_tokens: must be greater than or equal to 1"
    match body.get("thinking"):
        case None:
            pass
        case {"type": "enabled", "budget_tokens": int(budget)} if budget >= limit:
            yield (
                "`max_tokens` must be greater than `thinking.budget_tokens`. "
                f"Please consult our documentation at {_THINKING_PAGE}"
            )
        case {"type": str()}:
            pass
        case _:
            yield "thinking: Input does not match the expected shape."


def _system(system: object) -> Iterator[str]:
    if is_list(system):
        for index, block in enumerate(system):
            match block:
                case {"type": "text", "text": ""}:
                    yield "system: text content blocks must be non-empty"
                case {"type": "text", "text": str()}:
                    pass
                case _:
                    yield f"system.{index}: Input does not match the expected shape."
    elif not isinstance(system, str | None):
        yield "system: Input should be a valid list"


def _cache_control(body: Mapping[str, Any]) -> Iterator[str]:
    found = sum(isinstance(place.get("cache_control"), dict) for place in _cacheable(body))
    if found > CACHE_BREAKPOINTS:
        yield f"A maximum of {CACHE_BREAKPOINTS} blocks with cache_control may be provided. Found {found}."


def _cacheable(body: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield body
    for holder in (body, *_blocks(body["messages"])):
        for name in ("tools", "system", "content"):
            if is_list(held := holder.get(name)):
                yield from filter(is_object, held)
    yield from _blocks(body["messages"])


def _blocks(messages: list[dict[str, Any]]) -> Iterator[Mapping[str, Any]]:
    for message in messages:
        if is_list(content := message["content"]):
            yield from content
