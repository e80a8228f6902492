"""The scripted API on compaction, on counting, and on models: what it refuses, and what it tells."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import anthropic
import pytest

from looplatch.testing import ScriptedAPI, block, error, refusal, reply
from looplatch.testing.issued import Issued

T = TypeVar("T")

MADE = {"type": "compaction", "content": "It was done.", "signature": "signed-1"}
USER: dict[str, Any] = {"role": "user", "content": "Go on."}
ANSWER: dict[str, Any] = {"role": "assistant", "content": "Well."}


def compacted(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks or [MADE])}


def request(*messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"model": "m", "max_tokens": 10, "messages": list(messages), **fields}


def issued() -> Issued:
    known = Issued()
    known.learn(reply(block(MADE), stop="compaction"))
    return known


@pytest.mark.parametrize(
    "body",
    [
        request(compacted()),
        request(compacted(), USER),
        request(compacted(), ANSWER, USER),
        request(compacted(MADE, {"type": "text", "text": "Well."}), USER),
        request(compacted(), USER, compaction={"type": "summarize"}),
        request(USER, compacted({**MADE, "content": None}), USER),
    ],
)
def test_a_compaction_may_stand_first_instead_of_a_user(body: dict[str, Any]) -> None:
    assert refusal(body, issued=issued()) is None


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (request(USER, compacted(), USER), "messages.1.content.0: the `compaction` block is not the first block"),
        (request(compacted(), USER, compacted(), USER), "more than one `compaction` block"),
        (request(compacted({**MADE, "content": "Else."}), USER), "`signature` does not verify"),
        (request(compacted({**MADE, "signature": "forged"}), USER), "`signature` does not verify"),
        (request(ANSWER, USER), 'first message must use the "user" role'),
        (
            request(USER, compaction={}, context_management={"edits": []}),
            "cannot be combined with `context_management`",
        ),
        (request(USER, compaction={}, stop_sequences=["x"]), "cannot be combined with `stop_sequences`"),
        (request(USER, ANSWER, compaction={}), "ends on an `assistant` turn that is not finished"),
    ],
)
def test_a_compaction_out_of_place_is_refused(body: dict[str, Any], told: str) -> None:
    assert told in str(refusal(body, issued=issued()))


# --- counting


@pytest.mark.parametrize("name", ["max_tokens", "stream", "temperature", "stop_sequences", "metadata"])
def test_a_count_takes_only_what_makes_the_prompt(name: str) -> None:
    body = {"model": "m", "messages": [USER], name: None}
    assert refusal(body, counting=True) == f"{name}: Extra inputs are not permitted"


def ask(api: ScriptedAPI, question: Callable[[anthropic.AsyncAnthropic], Awaitable[T]]) -> T:
    async def main() -> T:
        async with api.client(max_retries=0) as client:
            return await question(client)

    return asyncio.run(main())


def test_another_answer_than_a_count_may_be_given() -> None:
    api = ScriptedAPI([], counting=error(404, "not_found_error", "no counting here"))
    with pytest.raises(anthropic.NotFoundError, match="no counting here"):
        ask(
            api,
            lambda client: client.messages.count_tokens(model="m", messages=[{"role": "user", "content": "Go on."}]),
        )
    assert len(api.counted) == 1


# --- models


def test_the_sdk_is_told_what_a_model_takes() -> None:
    api = ScriptedAPI([], models={"m-1": {"max_input_tokens": 9, "max_tokens": 3, "display_name": "M"}})
    told = ask(api, lambda client: client.models.retrieve("m-1"))
    assert (told.id, told.max_input_tokens, told.max_tokens) == ("m-1", 9, 3)
    assert [one.path for one in api.asked] == ["/v1/models/m-1"]
    assert api.requests == []


def test_a_model_that_is_not_there_is_not_found() -> None:
    with pytest.raises(anthropic.NotFoundError, match="model: m-2"):
        ask(ScriptedAPI([]), lambda client: client.models.retrieve("m-2"))
