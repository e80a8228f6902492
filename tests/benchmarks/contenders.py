"""The loops that are compared. Each reads every text delta, as a user interface would, and keeps the whole history."""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final

import anthropic
import attrs
import orjson

import looplatch
from tests.benchmarks.scenario import MAX_TOKENS, MODEL, PROMPT, TOOL, TOOL_ABOUT, TOOL_SCHEMA

Work = Callable[[dict[str, Any]], Awaitable[str]]
"""What the tool does with its input."""


@attrs.define
class Heard:
    """What a loop heard of the model's text."""

    deltas: int = 0
    characters: int = 0

    def hear(self, text: str) -> None:
        """Take a delta."""
        self.deltas += 1
        self.characters += len(text)


Contender = Callable[[anthropic.AsyncAnthropic, Work], Awaitable[Heard]]
"""A whole loop, from the prompt to the last answer."""

_DEFINITION: Final[dict[str, Any]] = {"name": TOOL, "description": TOOL_ABOUT, "input_schema": TOOL_SCHEMA}


async def sdk_loop(client: anthropic.AsyncAnthropic, work: Work) -> Heard:
    """The loop that one writes by hand over `client.messages.stream()`."""
    heard = Heard()
    messages: list[Any] = [{"role": "user", "content": PROMPT}]
    tools: list[Any] = [_DEFINITION]
    while True:
        async with client.messages.stream(model=MODEL, max_tokens=MAX_TOKENS, messages=messages, tools=tools) as stream:
            async for event in stream:
                if event.type == "text":
                    heard.hear(event.text)
            message = await stream.get_final_message()
        messages.append({"role": "assistant", "content": [block.to_dict() for block in message.content]})
        if message.stop_reason != "tool_use":
            return heard
        calls = [block for block in message.content if block.type == "tool_use"]
        results = await asyncio.gather(*(work(call.input) for call in calls))
        messages.append({"role": "user", "content": [_result(c.id, r) for c, r in zip(calls, results, strict=True)]})


async def bytes_floor(client: anthropic.AsyncAnthropic, work: Work) -> Heard:
    """The least that a loop over the same SDK client can cost: kept request bytes, its own split, one parse."""
    heard = Heard()
    fields = {"model": MODEL, "max_tokens": MAX_TOKENS, "stream": True, "tools": [_DEFINITION]}
    body = bytearray(orjson.dumps(fields)[:-1] + b',"messages":[' + orjson.dumps({"role": "user", "content": PROMPT}))
    while True:
        stream = await client.post(
            "/v1/messages",
            cast_to=object,
            content=bytes(body) + b"]}",
            options={"headers": {"content-type": "application/json"}},
            stream=True,
            stream_cls=anthropic.AsyncStream[object],
        )
        reading = _Reading(heard)
        try:
            rest = b""
            async for chunk in stream.response.aiter_bytes():
                whole, found, rest = (rest + chunk if rest else chunk).rpartition(b"\n\n")
                if found:
                    for event in whole.split(b"\n\n"):
                        reading.feed(orjson.loads(event[event.find(b"data: ") + 6 :]))
        finally:
            await stream.close()
        body += b"," + orjson.dumps({"role": "assistant", "content": reading.blocks})
        if reading.stop_reason != "tool_use":
            return heard
        calls = [block for block in reading.blocks if block["type"] == "tool_use"]
        results = await asyncio.gather(*(work(call["input"]) for call in calls))
        content = [_result(call["id"], result) for call, result in zip(calls, results, strict=True)]
        body += b"," + orjson.dumps({"role": "user", "content": content})


class _Reading:
    """Raw events to content blocks."""

    def __init__(self, heard: Heard) -> None:
        self.blocks: list[dict[str, Any]] = []
        self.stop_reason: str | None = None
        self._pieces: list[str] = []
        self._heard = heard

    def feed(self, event: Mapping[str, Any]) -> None:
        match event["type"]:
            case "content_block_delta":
                delta = event["delta"]
                if delta["type"] == "text_delta":
                    self._pieces.append(delta["text"])
                    self._heard.hear(delta["text"])
                else:
                    self._pieces.append(delta["partial_json"])
            case "content_block_start":
                self.blocks.append(event["content_block"])
                self._pieces = []
            case "content_block_stop":
                block, written = self.blocks[-1], "".join(self._pieces)
                if block["type"] == "text":
                    block["text"] = written
                else:
                    block["input"] = orjson.loads(written)
            case "message_delta":
                self.stop_reason = event["delta"]["stop_reason"]
            case _:
                pass


LOGS: Final = tempfile.TemporaryDirectory(prefix="looplatch-bench-")


def looplatch_of(client: anthropic.AsyncAnthropic, work: Work) -> looplatch.Loop:
    """looplatch with its defaults on: the log on the disk, group commit."""

    async def call(given: dict[str, Any], ctx: looplatch.ToolContext) -> str:
        return await work(given)

    return looplatch.Loop(
        model=MODEL,
        tools=[looplatch.Tool(TOOL, TOOL_ABOUT, TOOL_SCHEMA, call, read_only=True)],
        client=client,
        max_tokens=MAX_TOKENS,
        limits=looplatch.Limits(max_turns=1_000_000),
        log_dir=Path(LOGS.name),
    )


async def looplatch_loop(client: anthropic.AsyncAnthropic, work: Work) -> Heard:
    """A run of that, every message handed to a consumer."""
    heard = Heard()
    async with looplatch_of(client, work).run(PROMPT, include_partial_messages=True) as run:
        async for message in run:
            if isinstance(message, looplatch.StreamEvent) and message.event["type"] == "content_block_delta":
                delta = message.event["delta"]
                if delta["type"] == "text_delta":
                    heard.hear(delta["text"])
    if run.result is None or run.result.is_error:
        raise AssertionError(f"the run failed: {run.result}")
    return heard


def _result(id_: str, content: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id_, "content": content}


@attrs.frozen
class Entrant:
    """A contender and the HTTP client that it runs over."""

    name: str
    about: str
    contender: Contender
    fast: bool = False

    def client(self, base_url: str) -> anthropic.AsyncAnthropic:
        """A client of the SDK for it, one for all loops of a process."""
        http = anthropic.DefaultAioHttpClient() if self.fast else None
        return anthropic.AsyncAnthropic(base_url=base_url, api_key="bench", max_retries=0, http_client=http)


ENTRANTS: Final = (
    Entrant("sdk", "hand-written loop over messages.stream()", sdk_loop),
    Entrant("floor", "client.post(content=bytes), own split", bytes_floor),
    Entrant("looplatch", "looplatch, log on disk, defaults", looplatch_loop),
    Entrant("floor-fast", "the floor over the SDK's aiohttp client", bytes_floor, fast=True),
    Entrant("looplatch-fast", "looplatch over the SDK's aiohttp client", looplatch_loop, fast=True),
)
