"""Every streamed answer that was recorded, through the real client in random pieces, against an assembly of its own."""

import asyncio
import json
import os
import random
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import pytest

from looplatch.model import Assembly, SdkClient
from looplatch.ports import ModelRequest
from looplatch.recovery.failure import ModelCallFailed

pytestmark = pytest.mark.corpus

CORPUS = Path(os.environ.get("LOOPLATCH_CORPUS") or Path(__file__).parents[2] / "shared" / "corpus")
SOURCES = sorted(path.name for path in CORPUS.glob("*.jsonl")) or ["absent"]

Answer = dict[str, Any]


@pytest.fixture
def exchanges(request: pytest.FixtureRequest) -> list[dict[str, Any]]:
    path = CORPUS / request.param
    if not path.is_file():
        pytest.skip(f"the recordings are not at {CORPUS}")
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


each_source = pytest.mark.parametrize("exchanges", SOURCES, indirect=True)


# The second assembly: as short as it can be, over the whole text, with the standard library.


def events_of(body: str) -> Iterator[dict[str, Any]]:
    *blocks, _cut = body.replace("\r\n", "\n").split("\n\n")
    for block in blocks:
        data = "\n".join(line[5:].strip() for line in block.split("\n") if line.startswith("data:"))
        if data and data != "[DONE]":
            yield json.loads(data)


def input_of(raw: str, begun: Any) -> Any:
    if not raw:
        return begun
    try:
        return json.loads(raw)
    except ValueError:
        return {"INVALID_JSON": raw}


def expected_answer(body: str) -> Answer:
    message: dict[str, Any] = {}
    usage: dict[str, Any] = {}
    started: dict[int, Any] = {}
    content: list[Any] = []
    raw: dict[int, str] = {}
    for event in events_of(body):
        kind, delta = event["type"], event.get("delta", {})
        block: Any = started.get(event.get("index", -1))
        if kind == "error":
            return {"failed": event["error"]["type"]}
        if (kind == "message_start") == bool(message) and kind != "ping":
            return {"failed": "bad_stream"}  # quoted from the middle of an answer, or two answers spliced by hand
        if kind == "message_start":
            message = event["message"]
            content += message["content"]
            usage = dict(message["usage"])
        elif kind == "message_delta":
            message |= {key: value for key, value in delta.items() if value is not None}
            usage |= {key: value for key, value in event["usage"].items() if value is not None}
        elif kind == "content_block_start":
            started[event["index"]] = dict(event["content_block"])
            raw[event["index"]] = ""
        elif kind == "content_block_delta":
            match delta["type"]:
                case "text_delta":
                    block["text"] += delta["text"]
                case "thinking_delta":
                    block["thinking"] += delta["thinking"]
                case "signature_delta":
                    block["signature"] = delta["signature"]
                case "input_json_delta":
                    raw[event["index"]] += delta["partial_json"]
                case "citations_delta":
                    block["citations"] = [*(block.get("citations") or []), delta["citation"]]
                case "compaction_delta":
                    block |= {key: value for key, value in delta.items() if key != "type"}
                case other:
                    raise AssertionError(f"the recordings have a {other}; say here what it is")
        elif kind == "content_block_stop":
            if "input" in block:
                block["input"] = input_of(raw[event["index"]], block["input"])
            content.append(block)
            del started[event["index"]]
        elif kind == "message_stop":
            message["complete"] = True
    return {
        "content": [block for block in content if block.get("text") != ""],
        "id": message.get("id"),
        "stop_reason": message.get("stop_reason"),
        "stop_sequence": message.get("stop_sequence"),
        "usage": usage,
        "complete": message.get("complete", False),
        "open_text": [block["text"] for block in started.values() if block.get("text")],
    }


# The answer as the product reads it.


class Pieces(httpx2.AsyncByteStream):
    def __init__(self, body: bytes, cuts: random.Random) -> None:
        self.body = body
        self.cuts = cuts

    async def __aiter__(self) -> AsyncIterator[bytes]:
        rest = self.body
        while rest:
            size = self.cuts.choice([1, 2, 7, 50, 400, 5_000])
            yield rest[:size]
            rest = rest[size:]


async def read_answer(client: SdkClient) -> Answer:
    assembly = Assembly()
    try:
        stream = await client.open(ModelRequest(body=b"{}"))
        while events := await stream.read():
            for event in events:
                assembly.feed(event)
        await stream.close()
    except ModelCallFailed as error:
        return {"failed": error.failure.type}
    return {
        "content": assembly.content,
        "id": assembly.message_id,
        "stop_reason": assembly.stop_reason,
        "stop_sequence": assembly.stop_sequence,
        "usage": assembly.usage,
        "complete": assembly.complete,
        "open_text": [block["text"] for block in assembly.partial_text()],
    }


async def read_all(bodies: dict[str, str]) -> dict[str, Answer]:
    def answer(request: httpx2.Request) -> httpx2.Response:
        name = request.headers["x-name"]
        pieces = Pieces(bodies[name].encode(), random.Random(name))
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, stream=pieces, request=request)

    async with httpx2.AsyncClient(transport=httpx2.MockTransport(answer)) as http:
        plain = anthropic.AsyncAnthropic(api_key="k", http_client=http)
        named = {name: SdkClient(plain.with_options(default_headers={"x-name": name})) for name in bodies}
        return {name: await read_answer(client) for name, client in named.items()}


def streamed(exchanges: list[dict[str, Any]]) -> dict[str, str]:
    return {exchange["name"]: exchange["response"]["body"] for exchange in exchanges if is_streamed(exchange)}


def is_streamed(exchange: dict[str, Any]) -> bool:
    return (exchange["response"]["kind"], exchange["response"]["status"]) == ("sse", 200)


@each_source
def test_every_streamed_answer_is_assembled_as_recorded(exchanges: list[dict[str, Any]]) -> None:
    bodies = streamed(exchanges)
    assert asyncio.run(read_all(bodies)) == {name: expected_answer(body) for name, body in bodies.items()}


@each_source
def test_every_answer_in_json_is_the_same_when_it_is_streamed(exchanges: list[dict[str, Any]]) -> None:
    for exchange in exchanges:
        response = exchange["response"]
        if response["kind"] != "json" or response["status"] != 200:
            continue
        message = json.loads(response["body"])
        if message.get("type") != "message":
            continue
        content = [block for block in message["content"] if block.get("text") != ""]
        whole = Assembly()
        whole.feed({"type": "message_start", "message": message})
        assert whole.content == content, exchange["name"]
        assert (whole.stop_reason, whole.usage) == (message["stop_reason"], message["usage"])
        streamed = Assembly()
        for event in as_events(message):
            streamed.feed(event)
        assert streamed.content == content, exchange["name"]
        assert (streamed.stop_reason, streamed.usage) == (message["stop_reason"], message["usage"])
        assert streamed.complete


def as_events(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The events with which the API would have streamed a message."""
    yield {"type": "message_start", "message": message | {"content": [], "stop_reason": None, "stop_sequence": None}}
    for index, block in enumerate(message["content"]):
        match block["type"]:
            case "text":
                begun, deltas = block | {"text": ""}, [{"type": "text_delta", "text": char} for char in block["text"]]
            case "thinking":
                begun = block | {"thinking": "", "signature": ""}
                deltas = [{"type": "thinking_delta", "thinking": block["thinking"]}]
                deltas.append({"type": "signature_delta", "signature": block["signature"]})
            case "tool_use" | "server_tool_use" | "mcp_tool_use":
                raw = json.dumps(block["input"])
                begun = block | {"input": {}}
                deltas = [{"type": "input_json_delta", "partial_json": part} for part in (raw[:3], raw[3:])]
            case _:
                begun, deltas = block, []
        yield {"type": "content_block_start", "index": index, "content_block": begun}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    reasons = {"stop_reason": message["stop_reason"], "stop_sequence": message.get("stop_sequence")}
    yield {"type": "message_delta", "delta": reasons, "usage": message["usage"]}
    yield {"type": "message_stop"}


def test_the_recordings_hold_what_these_tests_are_for() -> None:
    if not CORPUS.is_dir():
        pytest.skip(f"the recordings are not at {CORPUS}")
    count = 0
    for path in CORPUS.glob("*.jsonl"):
        with path.open(encoding="utf-8") as lines:
            count += sum(is_streamed(json.loads(line)) for line in lines)
    assert count == 393
