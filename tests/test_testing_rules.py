"""The scripted API refuses a request whose own shape is wrong, in the words of the Messages API."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from looplatch.testing import redacted_thinking, refusal, reply, thinking
from looplatch.testing.issued import Issued
from looplatch.testing.rules import undecodable
from looplatch.testing.shapes import is_list, is_object

USER: dict[str, Any] = {"role": "user", "content": "hi"}
SAID: dict[str, Any] = {"role": "assistant", "content": [{"type": "text", "text": "Hello."}]}
CALL: dict[str, Any] = {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {}}
RESULT: dict[str, Any] = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "ok"}


def request(*messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"model": "claude", "max_tokens": 100, "messages": list(messages), **fields}


def assistant(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def user(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in request(USER).items() if key != name}


WRONG_SHAPES = {
    "no model": (without("model"), "model: Field required"),
    "no messages": (without("messages"), "messages: Field required"),
    "no max_tokens": (without("max_tokens"), "max_tokens: Field required"),
    "an empty model": (request(USER, model=""), "model: String should have at least 1 character"),
    "a model that is no string": (request(USER, model=1), "model: Input should be a valid string"),
    "messages that are no list": (request(messages={}), "messages: Input should be a valid list"),
    "an empty history": (request(), "messages: at least one message is required"),
    "max_tokens 0": (request(USER, max_tokens=0), "max_tokens: must be greater than or equal to 1"),
    "max_tokens true": (request(USER, max_tokens=True), "max_tokens: Input should be a valid integer"),
    "too hot": (request(USER, temperature=1.1), "temperature: range: 0..1"),
    "a stream that is no boolean": (request(USER, stream="yes"), "stream: Input should be a valid boolean"),
    "an empty system block": (
        request(USER, system=[{"type": "text", "text": ""}]),
        "system: text content blocks must be non-empty",
    ),
    "a system block that is no text": (
        request(USER, system=[{"type": "image"}]),
        "system.0: Input does not match the expected shape.",
    ),
    "a system prompt that is a number": (request(USER, system=1), "system: Input should be a valid list"),
    "more thinking than output": (
        request(USER, thinking={"type": "enabled", "budget_tokens": 100}),
        (
            "`max_tokens` must be greater than `thinking.budget_tokens`. Please consult our documentation at https://docs."
            "claude.com/en/docs/build-with-claude/extended-thinking#max-tokens-and-context-window-size"
        ),
    ),
    "five cache breakpoints": (
        request(
            user({"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}),
            system=[{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}] * 2,
            tools=[{"name": "read", "input_schema": {"type": "object"}, "cache_control": {"type": "ephemeral"}}],
            cache_control={"type": "ephemeral"},
        ),
        "A maximum of 4 blocks with cache_control may be provided. Found 5.",
    ),
    "the assistant first": (request(SAID, USER), 'messages: first message must use the "user" role'),
    "the system first": (
        request({"role": "system", "content": "be brief"}, USER),
        (
            'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter, '
            'not "system" as an input message role.'
        ),
    ),
    "an unknown role": (
        request(USER, {"role": "tool", "content": "x"}),
        'messages: Unexpected role "tool". Allowed roles are "user" or "assistant".',
    ),
    "a message without content": (request({"role": "user"}), "messages.0.content: Field required"),
    "a message without a role": (request({"content": "x"}), "messages.0.role: Field required"),
    "a message that is a string": (
        {**request(), "messages": ["Invalid content"]},
        "messages.0: Input does not match the expected shape.",
    ),
    "content that is a number": (
        request({"role": "user", "content": 1}),
        "messages.0.content: Input should be a valid list",
    ),
    "a block that is a string": (
        {**request(), "messages": [{"role": "user", "content": ["x"]}]},
        "messages.0.content.0: Input does not match the expected shape.",
    ),
    "a block without a type": (request(user({"text": "x"})), "messages.0.content.0.type: Field required"),
    "empty content": (
        request(USER, assistant(), USER),
        "messages.1: all messages must have non-empty content except for the optional final assistant message",
    ),
    "an empty prompt": (
        request({"role": "user", "content": ""}),
        "messages.0: all messages must have non-empty content except for the optional final assistant message",
    ),
    "an empty text": (
        request(USER, assistant({"type": "text", "text": ""}), USER),
        "messages: text content blocks must be non-empty",
    ),
    "an empty text in a result": (
        request(USER, assistant(CALL), user({**RESULT, "content": [{"type": "text", "text": ""}]})),
        "messages: text content blocks must be non-empty",
    ),
    "a text that is no string": (
        request(user({"type": "text", "text": None})),
        "messages.0.content.0.text.text: Input should be a valid string",
    ),
    "a field that the API does not know": (
        request(USER, assistant({**CALL, "partial_json": ""}), user(RESULT)),
        "messages.1.content.0.tool_use.partial_json: Extra inputs are not permitted",
    ),
    "cache_control on thinking": (
        request(USER, assistant({"type": "thinking", "thinking": "x", "signature": "s", "cache_control": {}}), USER),
        "messages.1.content.0.thinking.cache_control: Extra inputs are not permitted",
    ),
    "two tools of one name": (
        request(USER, tools=[{"name": "read", "input_schema": {"type": "object"}}, {"type": "bash_1", "name": "read"}]),
        "tools: Tool names must be unique.",
    ),
    "tools that are no list": (request(USER, tools={}), "tools: Input should be a valid list"),
    "a tool that is a string": (request(USER, tools=["read"]), "tools.0: Input does not match the expected shape."),
    "a tool without a name": (
        request(USER, tools=[{"input_schema": {"type": "object"}}]),
        "tools.0.custom.name: Field required",
    ),
    "a tool with a bad name": (
        request(USER, tools=[{"name": "read file", "input_schema": {"type": "object"}}]),
        "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
    ),
    "a description that is no string": (
        request(USER, tools=[{"name": "read", "description": None, "input_schema": {"type": "object"}}]),
        "tools.0.custom.description: Input should be a valid string",
    ),
    "a tool without a schema": (request(USER, tools=[{"name": "read"}]), "tools.0.custom.input_schema: Field required"),
    "a schema that is a list": (
        request(USER, tools=[{"name": "read", "input_schema": []}]),
        "tools.0.custom.input_schema: Input should be a valid dictionary",
    ),
    "a schema without a type": (
        request(USER, tools=[{"name": "read", "input_schema": {}}]),
        "tools.0.custom.input_schema.type: Field required",
    ),
    "a schema of another type": (
        request(USER, tools=[{"type": "custom", "name": "read", "input_schema": {"type": "string"}}]),
        "tools.0.custom.input_schema.type: Input should be 'object'",
    ),
}


@pytest.mark.parametrize(("body", "message"), WRONG_SHAPES.values(), ids=WRONG_SHAPES.keys())
def test_a_wrong_shape_is_refused_in_the_words_of_the_api(body: dict[str, Any], message: str) -> None:
    assert refusal(body) == message


def test_an_unknown_block_type_is_refused_with_the_list_of_known_ones() -> None:
    message = refusal(request(USER, assistant({"type": "novel"}), USER))
    assert message is not None
    assert message.startswith(
        "messages.1.content.0: Input tag 'novel' found using 'type' does not match any of the expected tags: "
        "'advisor_tool_result', 'bash_code_execution_tool_result', "
    )


def test_counting_tokens_needs_no_max_tokens() -> None:
    assert refusal(without("max_tokens"), counting=True) is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "The request body is not valid JSON: Input is a zero-length, empty document: line 1 column 1 (char 0)"),
        (
            b'{"a": "\\ud83d"}',
            "The request body is not valid JSON: no low surrogate in string: line 1 column 8 (char 7)",
        ),
        (b"[]", "The request body is not a JSON object"),
    ],
)
def test_a_body_that_is_no_json_object_is_refused(content: bytes, message: str) -> None:
    assert undecodable(content) == message


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
WHOLE: dict[str, Any] = request(
    USER,
    assistant({"type": "text", "text": "so"}, CALL, {"type": "server_tool_use", "id": "s", "name": "n", "input": {}}),
    user(
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "x"}], "is_error": True},
        {"type": "text", "text": "go on", "cache_control": {"type": "ephemeral"}},
    ),
    assistant(
        {"type": "thinking", "thinking": "x", "signature": "s"},
        {"type": "redacted_thinking", "data": "x"},
        {**CALL, "id": "toolu_2", "caller": {"type": "direct"}},
    ),
    user({"type": "tool_result", "tool_use_id": "toolu_2"}),
    system=[{"type": "text", "text": "s"}],
    tools=[{"name": "read", "description": "d", "input_schema": {"type": "object"}}],
    thinking={"type": "enabled", "budget_tokens": 10},
    temperature=1,
)


def items(value: object) -> list[tuple[Any, Any]]:
    """The keys, or places, of a container and what they hold."""
    if is_object(value):
        return list(value.items())
    return list(enumerate(value)) if is_list(value) else []


def places(value: object, way: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to every value inside."""
    return [place for key, inner in items(value) for place in ((*way, key), *places(inner, (*way, key)))]


@given(st.lists(st.tuples(st.sampled_from(places(WHOLE)), JSON), min_size=1, max_size=2))
def test_whatever_the_body_the_rules_answer(changes: list[tuple[tuple[Any, ...], Any]]) -> None:
    body = copy.deepcopy(WHOLE)
    for (*way, last), value in changes:
        holder: Any = body
        for key in way:
            holder = dict(items(holder)).get(key)
        if last in dict(items(holder)):
            holder[last] = value
    issued = Issued()
    issued.learn(reply(thinking("x", "s"), redacted_thinking("x")))
    assert isinstance(refusal(body, issued=issued), str | None)
