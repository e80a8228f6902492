"""One connection of the server: HTTP/1.1, one request after the other, none of them with a content."""

import asyncio
from typing import Final

import h11

from looplatch.serving.site import Answer, Site

IDLE_S: Final = 60.0  # that a request may take to come
_READ_SIZE: Final = 16 * 1024
_HEADERS: Final = (
    ("cache-control", "no-store"),
    ("content-security-policy", "frame-ancestors 'none'"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("referrer-policy", "no-referrer"),
    ("x-content-type-options", "nosniff"),
)


async def converse(site: Site, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int) -> None:
    """Answer requests until the client leaves, says something that is no request, or is silent for a minute."""
    http = h11.Connection(h11.SERVER)
    try:
        while (request := await asyncio.wait_for(_request(http, reader), IDLE_S)) is not None:
            headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in request.headers}
            method, target = request.method.decode("ascii"), request.target.decode("latin-1")
            answer = await site.answer(method, target, headers.get("host", ""), port)
            writer.write(_encoded(http, answer, bare=method == "HEAD"))
            await writer.drain()
            if http.our_state is not h11.DONE or http.their_state is not h11.DONE:
                break
            http.start_next_cycle()
    except (h11.RemoteProtocolError, ConnectionError, TimeoutError):
        pass
    finally:
        writer.close()


async def _request(http: h11.Connection, reader: asyncio.StreamReader) -> h11.Request | None:
    request: h11.Request | None = None
    while True:
        event = http.next_event()
        match event:
            case h11.Request():
                request = event
            case h11.EndOfMessage():
                return request
            case h11.NEED_DATA:
                http.receive_data(await reader.read(_READ_SIZE))
            case _:  # a content, or the end
                return None


def _encoded(http: h11.Connection, answer: Answer, *, bare: bool) -> bytes:
    headers = [*_HEADERS, *answer.headers, ("content-type", answer.type), ("content-length", str(len(answer.content)))]
    if answer.status == 204:
        headers = [*_HEADERS, *answer.headers]
    parts = [http.send(h11.Response(status_code=answer.status, headers=headers))]
    if answer.content and not bare:
        parts.append(http.send(h11.Data(data=answer.content)))
    parts.append(http.send(h11.EndOfMessage()))
    return b"".join(part for part in parts if part)
