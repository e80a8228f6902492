"""The scripted API in process: an HTTP transport that streams, below the real SDK client."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any

import httpx2

from looplatch.testing.exchange import Exchange, Service
from looplatch.testing.wire import Drop, Send, Step, Wait

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic


class ScriptedTransport(httpx2.AsyncBaseTransport):
    """Streams each answer as it is pulled: an event that nobody reads is not sent."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Answer one request. The client's own read timeout holds while the script stalls."""
        content = await request.aread()
        headers = {name.lower(): value for name, value in request.headers.items()}
        exchange = self._service.handle(request.method, request.url.raw_path.decode("ascii"), headers, content)
        body = _Body(exchange, request)
        await body.open()
        return httpx2.Response(exchange.wire.status, headers=dict(exchange.wire.headers), stream=body, request=request)


class _Body(httpx2.AsyncByteStream):
    def __init__(self, exchange: Exchange, request: httpx2.Request) -> None:
        self._exchange = exchange
        self._request = request
        self._timeout: float | None = request.extensions.get("timeout", {}).get("read")
        self._steps: Sequence[Step] = exchange.wire.steps
        self._played = 0
        self._first: Send | None = None

    async def open(self) -> None:
        """Play what comes before the head."""
        try:
            self._first = await self._next()
        except httpx2.RemoteProtocolError:
            message = "Server disconnected without sending a response."
            raise httpx2.RemoteProtocolError(message, request=self._request) from None
        except BaseException:
            self._exchange.end(finished=False)  # the client has let go, or waits no longer
            raise

    async def __aiter__(self) -> AsyncIterator[bytes]:
        step = self._first
        while step is not None:
            self._exchange.sent(step.data)
            if self._played == len(self._steps):
                self._exchange.end(finished=True)
            yield step.data
            step = await self._next()
        self._exchange.end(finished=True)

    async def aclose(self) -> None:
        """The client has let go; later steps are not played."""
        self._exchange.end(finished=False)
        self._steps = ()

    async def _next(self) -> Send | None:
        while self._played < len(self._steps):
            self._played += 1
            match step := self._steps[self._played - 1]:
                case Send():
                    return step
                case Wait():
                    await self._wait(step.gate)
                case Drop():
                    self._exchange.end(finished=False)
                    message = "peer closed connection without sending complete message body (incomplete chunked read)"
                    raise httpx2.RemoteProtocolError(message, request=self._request)
        return None

    async def _wait(self, gate: asyncio.Event) -> None:
        self._exchange.stalled.set()
        try:
            async with asyncio.timeout(self._timeout):
                await gate.wait()
        except TimeoutError:
            raise httpx2.ReadTimeout("the script stalls", request=self._request) from None
        finally:
            self._exchange.stalled.clear()


def client(service: Service, **options: Any) -> "AsyncAnthropic":
    """An SDK client on this transport; `options` go to `AsyncAnthropic`."""
    from anthropic import AsyncAnthropic

    given: dict[str, Any] = {
        "api_key": "scripted",
        "base_url": "http://scripted.invalid",
        "http_client": httpx2.AsyncClient(transport=ScriptedTransport(service)),
        **options,
    }
    return AsyncAnthropic(**given)
