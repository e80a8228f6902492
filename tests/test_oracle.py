"""Recorded conversations as an oracle: answered by the recording, a loop sends the requests that were recorded."""

import asyncio
import json
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import pytest

from looplatch import Loop, Tool, ToolContext, ToolResult
from looplatch.testing import Answer, FakeClock, ScriptedAPI, raw, recorded, reply
from tests.playing import check_log

pytestmark = pytest.mark.corpus

CORPUS = Path(os.environ.get("LOOPLATCH_CORPUS") or Path(__file__).parents[2] / "shared" / "corpus")
ORACLE = CORPUS / "oracle.txt"
NAMES = ORACLE.read_text("utf-8").split("\n") if ORACLE.is_file() else ["absent"]
CONVERSATIONS = [name for name in NAMES if name]

Exchange = dict[str, Any]
Message = dict[str, Any]


@cache
def exchanges_by_conversation() -> Mapping[str, list[Exchange]]:
    wanted = set(CONVERSATIONS)
    found: dict[str, list[Exchange]] = defaultdict(list)
    for path in sorted(CORPUS.glob("*.jsonl")):
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                exchange = json.loads(line)
                if exchange["conversation"] in wanted and "count_tokens" not in exchange["endpoint"]:
                    found[exchange["conversation"]].append(exchange)
    return {name: sorted(found[name], key=lambda exchange: int(exchange["index"])) for name in wanted}


def exchanges_of(name: str) -> list[Exchange]:
    if name == "absent":
        pytest.skip(f"the recordings are not at {CORPUS}")
    return exchanges_by_conversation()[name]


def answer_of(exchange: Exchange) -> Answer:
    """The recorded answer: a stream as it was, a JSON message as a stream, an error as it was."""
    response = exchange["response"]
    if response["kind"] == "sse":
        return raw(response["body"].encode(), headers={"content-type": "text/event-stream"})
    if response["status"] == 200:
        return recorded(json.loads(response["body"]))
    return raw(response["body"].encode(), status=response["status"], headers={"content-type": "application/json"})


def blocks_of(messages: list[Message]) -> Iterator[Mapping[str, Any]]:
    for message in messages:
        if not isinstance(message["content"], str):
            yield from message["content"]


def recorded_results(exchanges: list[Exchange]) -> dict[str, ToolResult]:
    return {
        block["tool_use_id"]: ToolResult(block.get("content") or "", is_error=block.get("is_error") is True)
        for exchange in exchanges
        for block in blocks_of(exchange["request"]["messages"])
        if block["type"] == "tool_result"
    }


def tools_of(exchanges: list[Exchange], *, read_only: bool) -> list[Tool | dict[str, Any]]:
    results = recorded_results(exchanges)

    async def call(given: dict[str, Any], ctx: ToolContext) -> ToolResult:
        # A recording may end on a call: what is sent after its last answer does not count.
        return results.get(ctx.tool_use_id, ToolResult("not recorded"))

    return [
        definition
        if definition.get("type", "custom") != "custom"
        else Tool(definition["name"], definition.get("description") or "", definition["input_schema"], call, read_only)
        for definition in exchanges[0]["request"].get("tools") or ()
    ]


IGNORED = ("cache_control", "citations", "caller")


def plain(value: Any) -> Any:
    """A value without what does not count: the fields ignored, nulls, and `is_error` where it is false."""
    if isinstance(value, list):
        return [plain(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    if not isinstance(value, dict):
        return value
    return {
        key: plain(item)
        for key, item in value.items()  # pyright: ignore[reportUnknownVariableType]
        if key not in IGNORED and item is not None and not (key == "is_error" and item is False)
    }


def plain_messages(messages: list[Message]) -> list[Message]:
    """Messages whose contents are lists of blocks: a text alone is the same as one text block."""
    made: list[Message] = []
    for message in messages:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        made.append({"role": message["role"], "content": [plain(block) for block in blocks]})
    return made


async def replayed(exchanges: list[Exchange], *, read_only: bool) -> list[list[Message]]:
    """The messages of every request that a loop sends when the recorded answers come."""
    asked = [exchange["request"]["messages"] for exchange in exchanges]
    api = ScriptedAPI(
        [answer_of(exchange) for exchange in exchanges],
        otherwise=reply("The recording ends here."),
        known=list(blocks_of(asked[0])),
    )
    first = exchanges[0]["request"]
    async with (
        api.serve() as url,
        httpx2.AsyncClient(verify=False) as http,  # loading certificates takes longer than a conversation
        anthropic.AsyncAnthropic(api_key="k", base_url=url, http_client=http) as client,
    ):
        loop = Loop(
            model=first["model"],
            system=first.get("system"),
            max_tokens=first.get("max_tokens", 4096),
            tools=tools_of(exchanges, read_only=read_only),
            client=client,
            clock=FakeClock(),
        )
        messages = asked[0]
        while True:
            run = loop.run(messages)
            result = await run
            assert result.terminal == "answered", result.error
            check_log(run)
            if len(api.requests) >= len(exchanges):
                break
            following = asked[len(api.requests)]
            assert plain_messages(following[: len(run.messages)]) == plain_messages(run.messages)
            messages = [*run.messages, *following[len(run.messages) :]]
    assert api.refusals == []
    return [request.messages for request in api.requests[: len(exchanges)]]


@pytest.mark.parametrize("read_only", [True, False], ids=["reads", "writes"])
@pytest.mark.parametrize("name", CONVERSATIONS)
def test_the_recorded_answers_lead_to_the_recorded_requests(name: str, read_only: bool) -> None:
    exchanges = exchanges_of(name)
    sent = asyncio.run(replayed(exchanges, read_only=read_only))
    for request, exchange in zip(sent, exchanges, strict=True):
        assert plain_messages(request) == plain_messages(exchange["request"]["messages"])


def test_the_oracle_has_all_its_conversations() -> None:
    if CONVERSATIONS == ["absent"]:
        pytest.skip(f"the recordings are not at {CORPUS}")
    assert len(CONVERSATIONS) == len(set(CONVERSATIONS)) == 188
    assert sum(len(exchanges_of(name)) > 1 for name in CONVERSATIONS) == 185  # the others count tokens in between
