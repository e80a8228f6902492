"""`looplatch.model.sdk` and its streams, through the real clients of the SDK over a transport in memory."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from typing import Any

import anthropic
import httpx2
import pytest
from anthropic.lib.vertex import AsyncAnthropicVertex

from looplatch.model import SdkClient, default_client
from looplatch.model.sdk import reads_requests
from looplatch.ports import ModelClient, ModelRequest, ModelStream
from looplatch.recovery.failure import Failure, ModelCallFailed
from looplatch.states.errors import UsageError

BODY = b'{"model":"claude-x","max_tokens":10,"stream":true,"messages":[{"role":"user","content":"\xc3\xbc"}]}'
STARTED: dict[str, Any] = {"type": "message_start", "message": {"id": "msg_1", "content": []}}
STOPPED: dict[str, Any] = {"type": "message_stop"}


def wire(*events: dict[str, Any]) -> bytes:
    return b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events)


class Body(httpx2.AsyncByteStream):
    """A response body that tells whether it was closed."""

    def __init__(self, content: bytes = b"") -> None:
        self.content = content
        self.closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self.content

    async def aclose(self) -> None:
        self.closed = True


class Server(httpx2.AsyncBaseTransport):
    """Answers every request with one response, and remembers the requests."""

    def __init__(self, body: Body | Exception, *, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        self.body = body
        self.status = status
        self.headers = {"content-type": "text/event-stream", "request-id": "req_1"} | dict(headers or {})
        self.requests: list[httpx2.Request] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        await request.aread()
        self.requests.append(request)
        if isinstance(self.body, Exception):
            raise self.body
        return httpx2.Response(self.status, headers=self.headers, stream=self.body, request=request)

    @property
    def http(self) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(transport=self)


Make = Callable[[Server], ModelClient]


def plain(server: Server) -> ModelClient:
    return SdkClient(anthropic.AsyncAnthropic(api_key="k", http_client=server.http))


async def passed_on(request: anthropic.APIRequest, call_next: anthropic.AsyncCallNext) -> Any:
    return await call_next(request)


def with_middleware(server: Server) -> ModelClient:
    return SdkClient(anthropic.AsyncAnthropic(api_key="k", http_client=server.http, middleware=[passed_on]))


both = pytest.mark.parametrize("make", [plain, with_middleware])


async def opened(make: Make, server: Server, **fields: Any) -> ModelStream:
    return await make(server).open(ModelRequest(body=BODY, **fields))


def failure(attempt: Coroutine[Any, Any, Any]) -> Failure:
    with pytest.raises(ModelCallFailed) as caught:
        asyncio.run(attempt)
    return caught.value.failure


# What is sent


def test_the_body_goes_out_byte_for_byte_with_what_the_sdk_adds() -> None:
    server = Server(Body(wire(STARTED, STOPPED)))
    asyncio.run(opened(plain, server, headers={"anthropic-beta": "b1,b2"}, query={"q": "1"}))
    (request,) = server.requests
    assert request.content == BODY
    assert request.url == "https://api.anthropic.com/v1/messages?q=1"
    assert request.headers["authorization"] == "Bearer k"
    assert request.headers["anthropic-beta"] == "b1,b2"
    assert request.headers["content-type"] == "application/json"
    assert "anthropic-version" in request.headers


@both
def test_the_beta_endpoint_is_a_query(make: Make) -> None:
    server = Server(Body())
    asyncio.run(opened(make, server, query={"beta": "true", "q": "1"}))
    assert dict(server.requests[0].url.params) == {"beta": "true", "q": "1"}


@both
def test_a_timeout_of_the_request_bounds_each_wait(make: Make) -> None:
    server = Server(Body())
    asyncio.run(opened(make, server, timeout_s=12.5))
    assert server.requests[0].extensions["timeout"]["read"] == 12.5


def test_a_client_that_reads_requests_gets_the_same_body_as_a_dict() -> None:
    server = Server(Body())
    asyncio.run(opened(with_middleware, server))
    assert json.loads(server.requests[0].content) == json.loads(BODY)


def test_a_client_that_rewrites_requests_can_do_so() -> None:
    server = Server(Body(wire(STARTED, STOPPED)))
    vertex = AsyncAnthropicVertex(region="eu", project_id="p", access_token="t", http_client=server.http)

    async def run() -> list[list[dict[str, Any]]]:
        stream = await SdkClient(vertex).open(ModelRequest(body=BODY, query={"beta": "true"}))
        return [await stream.read() for _ in range(3)]

    assert asyncio.run(run()) == [[STARTED], [STOPPED], []]
    (request,) = server.requests
    assert request.url.path == "/v1/projects/p/locations/eu/publishers/anthropic/models/claude-x:streamRawPredict"
    sent = json.loads(request.content)
    assert "model" not in sent
    assert "anthropic_version" in sent


class Rewriting(anthropic.AsyncAnthropic):
    async def _prepare_options(self, options: Any) -> Any:
        return await super()._prepare_options(options)


class Redirecting(anthropic.AsyncAnthropic):
    def _prepare_url(self, url: str) -> httpx2.URL:
        return super()._prepare_url(f"/v2{url}")


def test_a_client_that_changes_the_path_gets_the_path() -> None:
    server = Server(Body(wire(STARTED)))
    asyncio.run(SdkClient(Redirecting(api_key="k", http_client=server.http)).open(ModelRequest(body=BODY)))
    assert server.requests[0].url.path == "/v2/v1/messages"


@pytest.mark.parametrize(
    "base_url",
    [
        "https://h",
        "https://h/",
        "https://h/p",
        "https://h/p//",
        "https://h/p#f",
        "https://h/#f/",
        "https://h/a%2Fb",
        "http://u:p@h:81/p",
    ],
)
def test_requests_go_to_the_address_that_the_sdk_makes(base_url: str) -> None:
    server = Server(Body(wire(STARTED)))
    client = anthropic.AsyncAnthropic(api_key="k", base_url=base_url, http_client=server.http)

    async def both() -> None:
        await SdkClient(client).open(ModelRequest(body=BODY))
        await client.post(
            "/v1/messages", cast_to=object, content=BODY, stream=True, stream_cls=anthropic.AsyncStream[object]
        )

    asyncio.run(both())
    ours, theirs = (str(request.url) for request in server.requests)
    assert ours == theirs


def test_only_a_client_that_leaves_bodies_alone_gets_bytes() -> None:
    http = Server(Body()).http
    assert not reads_requests(anthropic.AsyncAnthropic(api_key="k", http_client=http))
    assert reads_requests(anthropic.AsyncAnthropic(api_key="k", http_client=http, middleware=[passed_on]))
    assert reads_requests(AsyncAnthropicVertex(region="eu", project_id="p", access_token="t", http_client=http))
    assert reads_requests(Rewriting(api_key="k", http_client=http))


@both
def test_nothing_is_retried(make: Make) -> None:
    server = Server(Body(b"{}"), status=529, headers={"content-type": "application/json"})
    failure(opened(make, server))
    assert len(server.requests) == 1


# What fails


@both
@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (httpx2.ConnectTimeout("slow"), "timeout_error"),
        (httpx2.ConnectError("no route"), "connection_error"),
        (ConnectionResetError("reset"), "connection_error"),
    ],
)
def test_a_server_that_is_not_reached_is_a_failure_that_tells_the_cause(
    make: Make, error: Exception, kind: str
) -> None:
    found = failure(opened(make, Server(error)))
    assert (found.type, found.status) == (kind, None)
    assert str(error) in found.message


@both
def test_an_error_answer_is_a_failure_with_all_that_it_says(make: Make) -> None:
    error = {
        "type": "error",
        "error": {"type": "rate_limit_error", "message": "slow down", "details": {"error_code": "ramp_limit_exceeded"}},
    }
    headers = {"content-type": "application/json", "retry-after": "7", "x-should-retry": "true"}
    server = Server(Body(json.dumps(error).encode()), status=429, headers=headers)
    assert failure(opened(make, server)) == Failure(
        type="rate_limit_error",
        status=429,
        message="slow down",
        retry_after_ms=7_000,
        request_id="req_1",
        code="ramp_limit_exceeded",
        should_retry=True,
    )


@pytest.mark.parametrize("content_type", ["application/json", "text/html; charset=utf-8"])
def test_an_answer_that_is_no_stream_is_refused_with_its_type(content_type: str) -> None:
    body = Body(b"{}")
    found = failure(opened(plain, Server(body, headers={"content-type": content_type})))
    assert found.type == "bad_stream"
    assert content_type in found.message
    assert body.closed


def test_middleware_that_answers_without_a_stream_is_a_failure() -> None:
    async def answer(request: Any, call_next: Any) -> Any:
        return {"a": 1}

    client = anthropic.AsyncAnthropic(api_key="k", http_client=Server(Body()).http, middleware=[answer])
    found = failure(SdkClient(client).open(ModelRequest(body=BODY)))
    assert (found.type, found.message) == (
        "client_error",
        "the client's middleware answered with dict, not with a stream",
    )


def test_a_client_without_credentials_fails_without_a_request() -> None:
    server = Server(Body())
    client = anthropic.AsyncAnthropic(api_key="k", http_client=server.http)
    client.api_key = None
    found = failure(SdkClient(client).open(ModelRequest(body=BODY)))
    assert found.type == "client_error"
    assert "authentication" in found.message
    assert server.requests == []


def test_a_client_that_is_not_async_is_refused_at_once() -> None:
    with pytest.raises(UsageError, match="Anthropic is no async client") as caught:
        SdkClient(anthropic.Anthropic(api_key="k"))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    assert caught.value.what == "client"


# The client that is made from the environment


@pytest.fixture
def bare_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> pytest.MonkeyPatch:
    for name in [name for name in os.environ if name.startswith("ANTHROPIC_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))  # no profile of whoever runs this
    return monkeypatch


def test_without_key_and_token_there_is_no_client_and_the_error_says_what_to_set(
    bare_environment: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(UsageError, match="ANTHROPIC_API_KEY") as caught:
        default_client()
    assert caught.value.problem == "no API key and no token was found, so nothing was sent"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ANTHROPIC_API_KEY", "k"),
        ("ANTHROPIC_AUTH_TOKEN", "t"),
        ("ANTHROPIC_CUSTOM_HEADERS", "X-Api-Key: k"),
    ],
)
def test_a_key_a_token_or_a_header_is_enough(bare_environment: pytest.MonkeyPatch, name: str, value: str) -> None:
    bare_environment.setenv(name, value)
    assert isinstance(default_client(), anthropic.AsyncAnthropic)


def test_a_profile_that_cannot_be_loaded_is_told(bare_environment: pytest.MonkeyPatch) -> None:
    bare_environment.setenv("ANTHROPIC_PROFILE", "nowhere")
    with pytest.raises(UsageError, match="cannot be loaded"):
        default_client()
