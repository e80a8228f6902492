"""The scripted API as a loopback server: HTTP/1.1 with keep-alive, one chunk for each event.

The next event is written when the client has taken the one before: a client that stops reading stops the server, but
for what the sockets' buffers hold.
"""

import asyncio
import socket
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import h11

from looplatch.testing.exchange import Exchange, Service
from looplatch.testing.wire import Drop, Send, Wait

SEND_BUFFER: Final = 64 * 1024
"""The bytes that the kernel is asked to buffer for each connection."""

_READ_SIZE: Final = 64 * 1024


@asynccontextmanager
async def serve(service: Service, host: str = "127.0.0.1", port: int = 0) -> AsyncGenerator[str]:
    """Serve `service` in the running loop; the value is the base URL. On leaving, open connections are cut."""
    tasks: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(_Connection(service, reader, writer).run())
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(accept, sock=_listening(host, port))
    bound_host, bound_port = server.sockets[0].getsockname()[:2]
    shown = f"[{bound_host}]" if ":" in bound_host else bound_host
    try:
        yield f"http://{shown}:{bound_port}"
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.create_server((host, port), family=family, backlog=1024)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
    listening.setblocking(False)
    return listening


class _Left(Exception):
    """The client has gone."""


class _Connection:
    def __init__(self, service: Service, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._service = service
        self._reader = reader
        self._writer = writer
        self._http = h11.Connection(h11.SERVER)
        writer.transport.set_write_buffer_limits(high=0)

    async def run(self) -> None:
        """Answer requests until the client leaves, or an answer breaks the connection."""
        try:
            while (exchange := await self._receive()) is not None:
                await self._answer(exchange)
                if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
                    break
                self._http.start_next_cycle()
            self._writer.close()
            await self._writer.wait_closed()
        except (_Left, ConnectionError):
            pass
        except h11.RemoteProtocolError as error:
            await self._complain(error)
        finally:
            self._writer.transport.abort()

    async def _receive(self) -> Exchange | None:
        request: h11.Request | None = None
        content: list[bytes] = []
        while True:
            event = self._http.next_event()
            match event:
                case h11.Request():
                    request = event
                case h11.Data():
                    content.append(bytes(event.data))
                case h11.EndOfMessage() if request is not None:
                    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in request.headers}
                    method, target = request.method.decode("ascii"), request.target.decode("latin-1")
                    return self._service.handle(method, target, headers, b"".join(content))
                case h11.NEED_DATA:
                    if self._http.they_are_waiting_for_100_continue:
                        await self._write(self._http.send(h11.InformationalResponse(status_code=100, headers=[])))
                    self._http.receive_data(await self._reader.read(_READ_SIZE))
                case _:
                    return None

    async def _answer(self, exchange: Exchange) -> None:
        started = False
        try:
            for step in exchange.wire.steps:
                match step:
                    case Wait():
                        exchange.stalled.set()
                        await self._unless_left(step.gate.wait())
                        exchange.stalled.clear()
                    case Drop():
                        return
                    case Send():
                        if not started:
                            await self._head(exchange)
                            started = True
                        exchange.sent(step.data)
                        await self._write(self._http.send(h11.Data(data=step.data)), exchange)
            if not started:
                await self._head(exchange)
            await self._write(self._http.send(h11.EndOfMessage()))
            exchange.end(finished=True)
        finally:
            exchange.end(finished=False)

    async def _head(self, exchange: Exchange) -> None:
        """A JSON body is announced with its length, a stream comes in chunks."""
        headers = dict(exchange.wire.headers)
        steps = exchange.wire.steps
        if headers["content-type"] == "application/json" and all(isinstance(step, Send) for step in steps):
            headers["content-length"] = str(sum(len(step.data) for step in steps if isinstance(step, Send)))
        else:
            headers["transfer-encoding"] = "chunked"
        head = h11.Response(status_code=exchange.wire.status, headers=list(headers.items()))
        await self._write(self._http.send(head))

    async def _write(self, data: bytes | None, exchange: Exchange | None = None) -> None:
        self._writer.write(data or b"")
        if exchange is not None and self._writer.transport.get_write_buffer_size():
            exchange.blocked.set()
        await self._writer.drain()
        if exchange is not None:
            exchange.blocked.clear()

    async def _unless_left(self, waiting: Coroutine[Any, Any, object]) -> None:
        """Wait, but not for a client that has gone; what it sends meanwhile is kept for later."""
        tasks = {asyncio.ensure_future(waiting), asyncio.ensure_future(self._departure())}
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
        if any(isinstance(item, _Left) for item in ended):
            raise _Left

    async def _departure(self) -> None:
        while data := await self._reader.read(_READ_SIZE):
            self._http.receive_data(data)
        raise _Left

    async def _complain(self, error: h11.RemoteProtocolError) -> None:
        """Tell a client that does not speak HTTP so, if the answer has not begun."""
        if self._http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            text = str(error).encode()
            headers = [("content-type", "text/plain"), ("content-length", str(len(text))), ("connection", "close")]
            with suppress(ConnectionError):
                for event in (h11.Response(status_code=400, headers=headers), h11.Data(data=text), h11.EndOfMessage()):
                    await self._write(self._http.send(event))
