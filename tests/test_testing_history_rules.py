"""The scripted API refuses a history that does not fit together, in the words of the Messages API, and nothing else."""

from typing import Any

import pytest

from looplatch.testing import refusal

USER: dict[str, Any] = {"role": "user", "content": "hi"}
SAID: dict[str, Any] = {"role": "assistant", "content": [{"type": "text", "text": "Hello."}]}
CALL: dict[str, Any] = {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {}}
OTHER: dict[str, Any] = {"type": "tool_use", "id": "toolu_2", "name": "read", "input": {}}
SEARCH: dict[str, Any] = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}}
RESULT: dict[str, Any] = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "ok"}
NO_RESULT = (
    "`tool_use` ids were found without `tool_result` blocks immediately after: toolu_1. "
    "Each `tool_use` block must have a corresponding `tool_result` block in the next message."
)


def request(*messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"model": "claude", "max_tokens": 100, "messages": list(messages), **fields}


def assistant(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def user(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


ACCEPTED = {
    "a question": request(USER),
    "a talk": request(USER, SAID, USER),
    "a call and its result": request(USER, assistant(CALL), user(RESULT)),
    "two calls, results in another order": request(
        USER, assistant(CALL, OTHER), user({**RESULT, "tool_use_id": "toolu_2"}, RESULT)
    ),
    "results, then text": request(USER, assistant(CALL), user(RESULT, {"type": "text", "text": "go on"})),
    "results over two neighbouring messages": request(
        USER, assistant(CALL, OTHER), user(RESULT), user({**RESULT, "tool_use_id": "toolu_2"})
    ),
    "one id in two turns": request(USER, assistant(CALL), user(RESULT), assistant(CALL), user(RESULT)),
    "neighbours of one role": request(USER, USER, SAID, SAID, USER),
    "text that is white space": request(USER, assistant({"type": "text", "text": " "}, CALL), user(RESULT)),
    "an answer to go on with": request(USER, SAID),
    "an empty answer at the end": request(USER, assistant()),
    "a system message on the way": request(
        USER, assistant(CALL), {"role": "system", "content": "be brief"}, user(RESULT)
    ),
    "a result without content": request(USER, assistant(CALL), user({"type": "tool_result", "tool_use_id": "toolu_1"})),
    "an error result": request(USER, assistant(CALL), user({**RESULT, "is_error": True})),
    "a paused turn": request(USER, assistant(SEARCH)),
    "a server tool that waits for results alone": request(
        USER,
        assistant(SEARCH, CALL),
        user(RESULT),
    ),
    "four cache breakpoints": request(
        USER,
        system=[{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}] * 4,
    ),
    "tools": request(
        USER, tools=[{"name": "read", "input_schema": {"type": "object"}}, {"type": "bash_1", "name": "bash"}]
    ),
}

BROKEN_HISTORIES = {
    "a call without a result": (request(USER, assistant(CALL), USER), f"messages.1: {NO_RESULT}"),
    "a call at the end": (request(USER, assistant(CALL)), f"messages.1: {NO_RESULT}"),
    "one of two calls without a result": (
        request(USER, assistant(CALL, OTHER), user({**RESULT, "tool_use_id": "toolu_2"})),
        f"messages.1: {NO_RESULT}",
    ),
    "a result behind a text": (
        request(USER, assistant(CALL), user({"type": "text", "text": "here"}, RESULT)),
        f"messages.1: {NO_RESULT}",
    ),
    "a result in the second of two first messages": (
        request(USER, user(RESULT), SAID, USER),
        (
            "messages.0.content.1: unexpected `tool_use_id` found in `tool_result` blocks: toolu_1. "
            "Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
        ),
    ),
    "a result one turn late": (request(USER, assistant(CALL), USER, SAID, user(RESULT)), f"messages.1: {NO_RESULT}"),
    "a result without a call": (
        request(USER, SAID, user(RESULT)),
        (
            "messages.2.content.0: unexpected `tool_use_id` found in `tool_result` blocks: toolu_1. "
            "Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
        ),
    ),
    "a result in the first message": (
        request(user({"type": "text", "text": "hi"}, RESULT)),
        (
            "messages.0.content.1: unexpected `tool_use_id` found in `tool_result` blocks: toolu_1. "
            "Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
        ),
    ),
    "two results of one call": (
        request(USER, assistant(CALL), user(RESULT, RESULT)),
        (
            "messages.2.content.1: each tool_use must have a single result. "
            "Found multiple `tool_result` blocks with id: toolu_1"
        ),
    ),
    "one id twice in a message": (
        request(USER, assistant(CALL, CALL), user(RESULT)),
        "messages.1.content.1: `tool_use` ids must be unique",
    ),
    "one id twice in neighbouring messages": (
        request(USER, assistant(OTHER, CALL), assistant(CALL), user(RESULT)),
        "messages.1.content.2: `tool_use` ids must be unique",
    ),
    "a call by the user": (
        request(user(CALL)),
        "messages.0: `tool_use` blocks can only be in `assistant` messages",
    ),
    "a result by the assistant": (
        request(USER, assistant(RESULT), USER),
        "messages.1: `tool_result` blocks can only be in `user` messages",
    ),
    "an input that is a string": (
        request(USER, assistant({**CALL, "input": "{}"}), user(RESULT)),
        "messages.1.content.0.tool_use.input: Input should be a valid dictionary",
    ),
    "a call without an input": (
        request(USER, assistant({"type": "tool_use", "id": "toolu_1", "name": "read"}), user(RESULT)),
        "messages.1.content.0.tool_use.input: Field required",
    ),
    "an id with a colon": (
        request(USER, assistant({**CALL, "id": "functions.Bash:0"}), user(RESULT)),
        "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
    ),
    "an id that ends a line": (
        request(USER, assistant({**CALL, "id": "toolu_1\n"}), user(RESULT)),
        "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
    ),
    "a result for an id with a space": (
        request(user({**RESULT, "tool_use_id": "a b"})),
        "messages.0.content.0.tool_result.tool_use_id: String should match pattern '^[a-zA-Z0-9_-]+$'",
    ),
    "a result without an id": (
        request(user({"type": "tool_result"})),
        "messages.0.content.0.tool_result.tool_use_id: Field required",
    ),
    "an empty error result": (
        request(USER, assistant(CALL), user({**RESULT, "content": "", "is_error": True})),
        "messages.2.content.0.tool_result: content cannot be empty if `is_error` is true",
    ),
    "an error result with an image": (
        request(
            USER, assistant(CALL), user({**RESULT, "is_error": True, "content": [{"type": "image", "source": {}}]})
        ),
        "messages.2.content.0.tool_result: all content must be type `text` if `is_error` is true",
    ),
    "a result that is an object": (
        request(USER, assistant(CALL), user({**RESULT, "content": {"a": 1}})),
        "messages.2.content.0.tool_result.content: Input should be a valid list",
    ),
    "is_error as a word": (
        request(USER, assistant(CALL), user({**RESULT, "is_error": "no"})),
        "messages.2.content.0.tool_result.is_error: Input should be a valid boolean",
    ),
    "white space at the end of a prefill": (
        request(USER, assistant({"type": "text", "text": "The answer is "})),
        "messages: final assistant content cannot end with trailing whitespace",
    ),
    "white space at the end of a paused turn": (
        request(USER, assistant(SEARCH, {"type": "text", "text": "I found "})),
        "messages: final assistant content cannot end with trailing whitespace",
    ),
    "white space at the end of a prefilled string": (
        request(USER, {"role": "assistant", "content": "The answer is\n"}),
        "messages: final assistant content cannot end with trailing whitespace",
    ),
    "unsigned thinking": (
        request(USER, assistant({"type": "thinking", "thinking": "x"}, {"type": "text", "text": "y"}), USER),
        "messages.1.content.0.thinking.signature: Field required",
    ),
    "nothing but thinking": (
        request(USER, assistant({"type": "thinking", "thinking": "x", "signature": "s"}), USER),
        "messages.1: The final block in an assistant message cannot be `thinking`.",
    ),
    "a server tool that waits while the user talks": (
        request(
            USER,
            assistant(SEARCH, CALL),
            user(RESULT, {"type": "text", "text": "go on"}),
        ),
        (
            "messages.1: `web_search` tool use with id `srv_1` was found without a corresponding "
            "`web_search_tool_result` block"
        ),
    ),
}


@pytest.mark.parametrize("body", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_what_the_api_accepts_is_accepted(body: dict[str, Any]) -> None:
    assert refusal(body) is None


@pytest.mark.parametrize(("body", "message"), BROKEN_HISTORIES.values(), ids=BROKEN_HISTORIES.keys())
def test_a_broken_history_is_refused_in_the_words_of_the_api(body: dict[str, Any], message: str) -> None:
    assert refusal(body) == message
