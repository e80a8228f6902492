"""Whole runs through the SDK's own Bedrock and Vertex clients, which rewrite each request: the fall-back path.

A cloud stands between client and scripted server as the real ones do: it takes requests at its own paths, fills the
fields in that travel in the path, and (Bedrock) sends the events in frames of its own.
"""

import asyncio
import base64
import json
import re
import struct
import zlib
from collections.abc import AsyncIterator, Callable
from typing import Any
from urllib.parse import unquote

import httpx2
import pytest
from anthropic.lib.bedrock import AsyncAnthropicBedrock
from anthropic.lib.vertex import AsyncAnthropicVertex
from attrs import define, field
from hypothesis import HealthCheck, Phase, given, settings

from looplatch import Loop
from looplatch.encoding import encode
from looplatch.model.sdk import AsyncClient, reads_requests
from looplatch.testing import FakeClock, ScriptedAPI, error, reply, scripts, text, tool_use
from tests.playing import MODEL, check, echo

PATHS = {
    "bedrock": r"/model/(?P<model>[^/]+)/invoke-with-response-stream",
    "vertex": r"/v1/projects/p/locations/eu/publishers/anthropic/models/(?P<model>[^/]+):streamRawPredict",
}


@define
class Cloud(httpx2.AsyncBaseTransport):
    """Passes what a client sends to the scripted server at `url`, over a real connection, and its answer back."""

    name: str
    url: str
    sent: list[dict[str, Any]] = field(factory=list[dict[str, Any]])
    signed: list[str] = field(factory=list[str])
    _onward: httpx2.AsyncHTTPTransport = field(factory=httpx2.AsyncHTTPTransport)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        named = re.fullmatch(PATHS[self.name], request.url.raw_path.decode().partition("?")[0])
        if named is None:
            return httpx2.Response(404, json={"message": "there is nothing of that name"}, request=request)
        body = json.loads(await request.aread())
        assert body.pop("anthropic_version")
        assert "model" not in body
        self.signed.append(request.headers["authorization"])
        self.sent.append(body)
        body = {**body, "model": unquote(named["model"]), "stream": True}
        headers = {"x-api-key": "k", "anthropic-version": "2023-06-01", "content-type": "application/json"}
        onward = httpx2.Request("POST", f"{self.url}/v1/messages", headers=headers, content=encode(body))
        answer = await self._onward.handle_async_request(onward)
        if self.name == "vertex" or answer.status_code != 200:
            return answer
        framed = {"content-type": "application/vnd.amazon.eventstream", "request-id": answer.headers["request-id"]}
        return httpx2.Response(200, headers=framed, stream=Framed(answer), request=request)

    async def aclose(self) -> None:
        await self._onward.aclose()


@define
class Framed(httpx2.AsyncByteStream):
    """Server-sent events as Bedrock sends them: each in a binary frame, with its lengths and checksums."""

    answer: httpx2.Response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        rest = b""
        async for piece in self.answer.aiter_bytes():
            *events, rest = (rest + piece).split(b"\n\n")
            for event in events:
                data = event.partition(b"data: ")[2]
                if data:
                    yield frame(encode({"bytes": base64.b64encode(data).decode()}))

    async def aclose(self) -> None:
        await self.answer.aclose()


def frame(payload: bytes) -> bytes:
    fields = {":event-type": "chunk", ":content-type": "application/json", ":message-type": "event"}
    headers = b"".join(
        struct.pack(f">B{len(name)}sBH{len(value)}s", len(name), name.encode(), 7, len(value), value.encode())
        for name, value in fields.items()
    )
    prelude = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
    whole = prelude + struct.pack(">I", zlib.crc32(prelude)) + headers + payload
    return whole + struct.pack(">I", zlib.crc32(whole))


def bedrock(http: httpx2.AsyncClient) -> AsyncClient:
    return AsyncAnthropicBedrock(
        aws_access_key="AKIDEXAMPLE", aws_secret_key="example", aws_region="eu-west-1", http_client=http
    )


def bedrock_by_token(http: httpx2.AsyncClient) -> AsyncClient:
    return AsyncAnthropicBedrock(api_key="token", aws_region="eu-west-1", http_client=http)


def vertex(http: httpx2.AsyncClient) -> AsyncClient:
    return AsyncAnthropicVertex(region="eu", project_id="p", access_token="token", http_client=http)


CLIENTS: dict[str, Callable[[httpx2.AsyncClient], AsyncClient]] = {
    "bedrock": bedrock,
    "bedrock, by token": bedrock_by_token,
    "vertex": vertex,
}
SIGNED = {
    "bedrock": "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/",
    "bedrock, by token": "Bearer token",
    "vertex": "Bearer token",
}


async def ran(name: str, script: list[Any]) -> tuple[str, Cloud]:
    """A whole run, checked; why it ended, and the cloud that it went through."""
    api = ScriptedAPI(script)
    async with api.serve() as url:
        cloud = Cloud(name.partition(",")[0], url)
        async with httpx2.AsyncClient(transport=cloud) as http:
            client = CLIENTS[name](http)
            assert reads_requests(client)
            tools = [echo("read"), echo("write", read_only=False)]
            loop = Loop(model=MODEL, client=client, tools=tools, clock=FakeClock(), jitter=lambda: 0.0)
            run = loop.run("Go.")
            result = await run
            check(run, api)
            return str(result.terminal), cloud


@pytest.mark.parametrize("name", CLIENTS)
def test_a_run_goes_its_whole_way_through_a_client_that_rewrites_requests(name: str) -> None:
    """Two tools, an overload that is retried, and an answer that is cut: each as with the plain client."""
    script = [
        reply(text("I look.", pieces=3), tool_use("r1", "read", {"n": 1}), tool_use("w1", "write", {"n": 2})),
        error(529, "overloaded_error"),
        reply("It is", stop="max_tokens"),
        reply("It is a long answer."),
    ]
    terminal, cloud = asyncio.run(ran(name, script))
    assert terminal == "answered"
    assert len(cloud.sent) == 4
    assert all(signed.startswith(SIGNED[name]) for signed in cloud.signed)
    first, second, again, third = cloud.sent
    assert first["messages"] == [{"role": "user", "content": "Go."}]
    assert [block["type"] for block in second["messages"][2]["content"]] == ["tool_result", "tool_result"]
    assert second["messages"][2]["content"][1]["content"] == 'write {"n":2}'
    assert again["messages"] == second["messages"] == third["messages"]
    assert (again["max_tokens"], third["max_tokens"]) == (8_000, 64_000)


@pytest.mark.parametrize("name", ["bedrock, by token", "vertex"])
@settings(
    deadline=None,
    max_examples=10,
    phases=[phase for phase in Phase if phase is not Phase.explain],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(scripts())
def test_any_script_ends_well_through_such_a_client(name: str, script: list[Any]) -> None:
    asyncio.run(ran(name, script))
