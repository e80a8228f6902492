"""The scripted API through the real SDK client, in process and as a loopback server: what the client makes of it."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import anthropic
import httpx2
import pytest
from anthropic.types import MessageParam

from looplatch.testing import (
    ScriptedAPI,
    cut,
    disconnected,
    error,
    failing,
    raw,
    redacted_thinking,
    reply,
    server_tool_use,
    stalled,
    text,
    thinking,
    tool_use,
)

HI: list[MessageParam] = [{"role": "user", "content": "hi"}]

Wiring = Callable[[ScriptedAPI], AbstractAsyncContextManager[anthropic.AsyncAnthropic]]


@asynccontextmanager
async def in_process(api: ScriptedAPI) -> AsyncGenerator[anthropic.AsyncAnthropic]:
    async with api.client(max_retries=0) as client:
        yield client


@asynccontextmanager
async def over_loopback(api: ScriptedAPI) -> AsyncGenerator[anthropic.AsyncAnthropic]:
    async with api.serve() as url, anthropic.AsyncAnthropic(api_key="k", base_url=url, max_retries=0) as client:
        yield client


@pytest.fixture(params=[in_process, over_loopback])
def wiring(request: pytest.FixtureRequest) -> Wiring:
    chosen: Wiring = request.param
    return chosen


def ask(wiring: Wiring, api: ScriptedAPI, use: Callable[[anthropic.AsyncAnthropic], Any]) -> Any:
    async def main() -> Any:
        async with wiring(api) as client:
            return await use(client)

    return asyncio.run(main())


async def streamed(client: anthropic.AsyncAnthropic) -> Any:
    async with client.messages.stream(model="claude", max_tokens=100, messages=HI) as stream:
        return (await stream.get_final_message()).to_dict()


async def created(client: anthropic.AsyncAnthropic, messages: list[MessageParam] = HI) -> Any:
    return (await client.messages.create(model="claude", max_tokens=100, messages=messages)).to_dict()


async def event_types(client: anthropic.AsyncAnthropic) -> Any:
    return [
        item.type
        async for item in await client.messages.create(model="claude", max_tokens=100, messages=HI, stream=True)
    ]


FULL = reply(
    thinking("I see.", "sig", 3),
    redacted_thinking("xyz"),
    text("Hello, world.", 4),
    server_tool_use("srv_1", "web_search", {"query": "q"}),
    tool_use("toolu_1", "read", {"path": "a", "n": [1, 2]}, 5, caller={"type": "direct"}),
    tool_use("toolu_2", "look", {}),
    usage={"output_tokens": 77},
    pings=[1, 5],
)
FULL_CONTENT: list[dict[str, Any]] = [
    {"type": "thinking", "thinking": "I see.", "signature": "sig"},
    {"type": "redacted_thinking", "data": "xyz"},
    {"type": "text", "text": "Hello, world."},
    {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "q"}},
    {
        "type": "tool_use",
        "id": "toolu_1",
        "name": "read",
        "input": {"path": "a", "n": [1, 2]},
        "caller": {"type": "direct"},
    },
    {"type": "tool_use", "id": "toolu_2", "name": "look", "input": {}},
]


@pytest.mark.parametrize("use", [streamed, created])
def test_a_reply_arrives_whole(wiring: Wiring, use: Any) -> None:
    message = ask(wiring, ScriptedAPI([FULL]), use)
    assert message["content"] == FULL_CONTENT
    assert (message["id"], message["model"], message["stop_reason"]) == ("msg_000001", "claude", "tool_use")
    assert message["usage"]["output_tokens"] == 77


def test_a_stream_arrives_event_by_event(wiring: Wiring) -> None:
    assert ask(wiring, ScriptedAPI([reply("a", pings=[2])]), event_types) == [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]


@pytest.mark.parametrize(
    "stop",
    [
        "end_turn",
        "max_tokens",
        "stop_sequence",
        "tool_use",
        "pause_turn",
        "refusal",
        "model_context_window_exceeded",
        "new",
    ],
)
def test_every_stop_reason_arrives(wiring: Wiring, stop: str) -> None:
    details = {"type": "refusal", "category": "cyber", "explanation": None} if stop == "refusal" else None
    message = ask(wiring, ScriptedAPI([reply("a", stop=stop, stop_details=details, stop_sequence="X")]), streamed)
    assert (message["stop_reason"], message["stop_sequence"]) == (stop, "X")
    assert message.get("stop_details") == details


def test_an_http_error_is_the_sdk_error_of_its_status(wiring: Wiring) -> None:
    api = ScriptedAPI([error(429, "rate_limit_error", "slow down", {"retry-after": "7"})])
    with pytest.raises(anthropic.RateLimitError) as caught:
        ask(wiring, api, streamed)
    assert caught.value.type == "rate_limit_error"
    assert caught.value.request_id == "req_000001"
    assert caught.value.response.headers["retry-after"] == "7"


def test_a_failure_in_the_stream_has_status_200(wiring: Wiring) -> None:
    with pytest.raises(anthropic.APIStatusError) as caught:
        ask(wiring, ScriptedAPI([failing(reply("Hi."), after=3)]), event_types)
    assert (caught.value.status_code, caught.value.type) == (200, "overloaded_error")


def test_a_clean_cut_raises_nothing_in_the_sdk(wiring: Wiring) -> None:
    assert ask(wiring, ScriptedAPI([cut(reply("Hi."), after=3)]), event_types) == [
        "message_start",
        "content_block_start",
        "content_block_delta",
    ]


def test_a_broken_connection_is_a_protocol_error(wiring: Wiring) -> None:
    with pytest.raises(httpx2.RemoteProtocolError, match="incomplete chunked read"):
        ask(wiring, ScriptedAPI([cut(reply("Hi."), after=3, clean=False)]), event_types)


def test_no_answer_at_all_is_a_connection_error(wiring: Wiring) -> None:
    with pytest.raises(anthropic.APIConnectionError) as caught:
        ask(wiring, ScriptedAPI([disconnected()]), streamed)
    assert "Server disconnected without sending a response." in str(caught.value.__cause__)


def test_the_sdk_retries_and_gets_the_next_answer() -> None:
    api = ScriptedAPI([error(500, "api_error", "", {"retry-after-ms": "1"}), reply("at last")])

    async def main() -> Any:
        async with api.client(max_retries=2) as client:
            return await streamed(client)

    assert asyncio.run(main())["content"] == [{"type": "text", "text": "at last"}]
    assert [request.number for request in api.requests] == [1, 2]


@pytest.mark.parametrize("after", [0, 3])
def test_a_stalled_answer_waits_for_its_gate(wiring: Wiring, after: int) -> None:
    async def use(client: anthropic.AsyncAnthropic) -> Any:
        answering = asyncio.ensure_future(event_types(client))
        exchange = await api.arrival(1)
        await exchange.stalled.wait()
        assert (answering.done(), exchange.events_sent, exchange.ended.is_set()) == (False, after, False)
        gate.set()
        return await answering

    gate = asyncio.Event()
    api = ScriptedAPI([stalled(reply("a"), after=after, gate=gate)])
    assert ask(wiring, api, use)[-1] == "message_stop"


def test_a_read_timeout_of_the_client_holds_while_the_script_stalls(wiring: Wiring) -> None:
    async def use(client: anthropic.AsyncAnthropic) -> Any:
        return await event_types(client.with_options(timeout=0.01))

    with pytest.raises(anthropic.APITimeoutError):
        ask(wiring, ScriptedAPI([stalled(reply("a"), after=0, gate=asyncio.Event())]), use)


def test_raw_bytes_arrive_as_they_are(wiring: Wiring) -> None:
    start: dict[str, Any] = {"type": "message_start", "message": {"id": "m", "content": [], "usage": {}}}
    pieces = raw(
        [start, b"event: message_st", b'op\ndata: {"type":"message_stop"}\n', b"\ndata: [DONE]\n\n", b": bye\n\n"]
    )
    assert ask(wiring, ScriptedAPI([pieces]), event_types) == ["message_start", "message_stop"]


def test_an_answer_that_nobody_reads_on_is_not_sent_on() -> None:
    """In process each event is made when it is pulled."""

    async def main() -> None:
        async with api.client() as client:
            stream = await client.messages.create(model="claude", max_tokens=100, messages=HI, stream=True)
            await anext(aiter(stream))
            (exchange,) = api.exchanges
            assert (exchange.events_sent, exchange.ended.is_set()) == (1, False)
            await stream.close()
            assert (exchange.events_sent, exchange.ended.is_set(), exchange.finished) == (1, True, False)

    api = ScriptedAPI([reply("a")])
    asyncio.run(main())
