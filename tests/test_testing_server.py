"""The loopback server on the wire: chunks, keep-alive, back-pressure, and clients that leave."""

import asyncio
import json
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anthropic
import pytest

from looplatch.testing import ScriptedAPI, cut, error, reply, serve_in_process, stalled, text
from looplatch.testing.wire import Send

ASK: dict[str, Any] = {"model": "claude", "max_tokens": 100, "messages": [{"role": "user", "content": "hi"}]}
LARGE = reply(text("x" * 16_000_000, 1_000))

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def posted(*, streamed: bool = True, extra: str = "") -> bytes:
    body = json.dumps({**ASK, "stream": streamed}).encode()
    head = f"POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: k\r\nanthropic-version: 1\r\n{extra}"
    return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body


@asynccontextmanager
async def connected(url: str) -> AsyncGenerator[Streams]:
    host, port = url.removeprefix("http://").split(":")
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 * 1024)
    client.setblocking(False)
    await asyncio.get_running_loop().sock_connect(client, (host, int(port)))
    reader, writer = await asyncio.open_connection(sock=client, limit=16 * 1024)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


def talk(api: ScriptedAPI, use: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        async with api.serve() as url, connected(url) as streams:
            return await use(*streams)

    return asyncio.run(main())


async def head_of(reader: asyncio.StreamReader) -> list[str]:
    status, *fields = (await reader.readuntil(b"\r\n\r\n")).decode().removesuffix("\r\n\r\n").split("\r\n")
    return [status, *(field.lower() for field in fields)]


async def chunk_of(reader: asyncio.StreamReader) -> bytes:
    size = int(await reader.readline(), 16)
    return (await reader.readexactly(size + 2))[:-2]


async def chunks_of(reader: asyncio.StreamReader) -> list[bytes]:
    """All chunks up to the end of the response."""
    chunks: list[bytes] = []
    while chunk := await chunk_of(reader):
        chunks.append(chunk)
    return chunks


def test_each_event_is_one_chunk() -> None:
    async def use(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Any:
        writer.write(posted())
        return await head_of(reader), await chunks_of(reader)

    api = ScriptedAPI([reply("Hi.")])
    head, chunks = talk(api, use)
    assert head[0] == "HTTP/1.1 200 "
    assert "content-type: text/event-stream; charset=utf-8" in head
    assert "transfer-encoding: chunked" in head
    assert chunks == [step.data for step in api.exchanges[0].wire.steps if isinstance(step, Send)]
    assert len(chunks) == 6


def test_one_connection_serves_request_after_request() -> None:
    async def use(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(2):
            writer.write(posted())
            await head_of(reader)
            assert len(await chunks_of(reader)) == 3
        writer.write(posted())
        head = await head_of(reader)
        body = b'{"type":"error","error":{"type":"api_error","message":"no"},"request_id":"req_000003"}'
        assert f"content-length: {len(body)}" in head
        assert await reader.readexactly(len(body)) == body
        writer.write(posted(streamed=False, extra="connection: close\r\n"))
        await head_of(reader)
        assert json.loads(await reader.read())["content"] == []

    talk(ScriptedAPI([reply(), reply(), error(500, "api_error", "no"), reply()]), use)


def test_a_client_that_does_not_read_stops_the_server() -> None:
    async def use(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(posted())
        await head_of(reader)
        (exchange,) = api.exchanges
        waits = [asyncio.ensure_future(event.wait()) for event in (exchange.blocked, exchange.ended)]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        waits[1].cancel()
        assert not exchange.ended.is_set()
        stopped_at = exchange.bytes_sent
        for _ in range(100):
            await asyncio.sleep(0)
        assert api.bytes_sent == stopped_at < 1_000_000
        assert sum(len(chunk) for chunk in await chunks_of(reader)) == exchange.bytes_sent > 16_000_000
        assert not exchange.blocked.is_set()

    api = ScriptedAPI([LARGE])
    talk(api, use)


@pytest.mark.parametrize("answer", [LARGE, stalled(reply("a"), after=2, gate=asyncio.Event())])
def test_a_client_that_leaves_ends_its_answer(answer: Any) -> None:
    async def use(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(posted())
        await head_of(reader)
        await chunk_of(reader)
        writer.transport.abort()
        (exchange,) = api.exchanges
        await exchange.ended.wait()
        assert not exchange.finished

    api = ScriptedAPI([answer])
    talk(api, use)


def test_a_request_sent_while_the_first_stalls_is_answered_after_it() -> None:
    async def use(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(posted())
        await head_of(reader)
        writer.write(posted())
        await writer.drain()
        gate.set()
        assert len(await chunks_of(reader)) == 3
        await head_of(reader)
        assert len(await chunks_of(reader)) == 6

    gate = asyncio.Event()
    talk(ScriptedAPI([stalled(reply(), after=1, gate=gate), reply("a")]), use)


def test_a_broken_answer_closes_the_connection_without_a_last_chunk() -> None:
    async def use(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(posted())
        await head_of(reader)
        await chunk_of(reader)
        return await reader.read()

    assert talk(ScriptedAPI([cut(reply(), after=1, clean=False)]), use) == b""


def test_a_client_that_asks_first_is_told_to_go_on() -> None:
    async def use(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head, _, body = posted(extra="expect: 100-continue\r\n").partition(b"\r\n\r\n")
        writer.write(head + b"\r\n\r\n")
        assert await head_of(reader) == ["HTTP/1.1 100 "]
        writer.write(body)
        assert (await head_of(reader))[0] == "HTTP/1.1 200 "

    talk(ScriptedAPI([reply()]), use)


def test_what_is_no_http_is_refused() -> None:
    async def use(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(b"hello\r\n\r\n")
        return await reader.read()

    assert talk(ScriptedAPI([]), use).startswith(b"HTTP/1.1 400 \r\n")


def test_leaving_the_server_cuts_what_is_open() -> None:
    async def main() -> bytes:
        async with ScriptedAPI([stalled(reply(), after=1, gate=asyncio.Event())]).serve() as url:
            host, port = url.removeprefix("http://").split(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(posted())
            await head_of(reader)
            await chunk_of(reader)
        rest = await reader.read()
        writer.close()
        return rest

    assert asyncio.run(main()) == b""


def test_many_connections_are_served_at_once() -> None:
    """All answers stall behind one gate, so none can end before all have begun."""

    async def main() -> list[int]:
        async def one(url: str) -> int:
            async with connected(url) as (reader, writer):
                writer.write(posted())
                await head_of(reader)
                if len(api.exchanges) == 50:
                    gate.set()
                return len(await chunks_of(reader))

        async with api.serve() as url:
            return await asyncio.gather(*(one(url) for _ in range(50)))

    gate = asyncio.Event()
    api = ScriptedAPI([], otherwise=stalled(reply(), after=1, gate=gate))
    assert asyncio.run(main()) == [3] * 50


def test_a_thread_serves_synchronous_clients() -> None:
    api = ScriptedAPI([reply("from the thread")])
    with api.serve_in_thread() as url, anthropic.Anthropic(api_key="k", base_url=url) as client:
        message = client.messages.create(model="claude", max_tokens=100, messages=[{"role": "user", "content": "hi"}])
    assert message.to_dict()["content"] == [{"type": "text", "text": "from the thread"}]
    api.check_played()


def test_a_thread_that_cannot_serve_says_why() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match="Address already in use"), ScriptedAPI([]).serve_in_thread(port=port):
            pass


def test_a_process_serves_too() -> None:
    make = partial(ScriptedAPI, [reply("from the process")])
    with serve_in_process(make) as url, anthropic.Anthropic(api_key="k", base_url=url) as client:
        message = client.messages.create(model="claude", max_tokens=100, messages=[{"role": "user", "content": "hi"}])
    assert message.to_dict()["content"] == [{"type": "text", "text": "from the process"}]
