"""An answer, read event by event from what the SDK opened.

A read that is cancelled closes the response: the HTTP client's own iterator does so on its way out.
"""

import asyncio
import contextlib
from collections import deque
from typing import TYPE_CHECKING, Any, Final

from looplatch.encoding import DecodeError, decode
from looplatch.model.failures import failure_of, failure_of_body, request_id_of
from looplatch.model.shapes import is_object
from looplatch.model.sse import SseDecoder, SseEvent
from looplatch.recovery.failure import BadStream, ModelCallFailed

if TYPE_CHECKING:
    import anthropic
    import httpx2

DRAIN_S: Final = 0.5  # how long a finished answer's connection may take to end, so that it can be used again

_PING: Final = b"ping"
_ERROR: Final = b"error"
_DELTA: Final = "content_block_delta"


class ByteStream:
    """The events of a response whose body is server-sent events: cut and decoded here, without the SDK's models."""

    __slots__ = (
        "_chunks",
        "_decoder",
        "_drain_s",
        "_ended",
        "_finished",
        "_pull",
        "_reading",
        "_ready",
        "_response",
        "request_id",
    )

    def __init__(self, response: "httpx2.Response", *, drain_s: float = DRAIN_S) -> None:
        """`drain_s` bounds, in seconds, how long `close` waits for the end of an answer that is complete."""
        self._response = response
        # What is not compressed needs no decoder, and each layer around it costs a fraction of every event.
        self._chunks = response.aiter_bytes() if "content-encoding" in response.headers else response.aiter_raw()
        self._pull = self._chunks.__anext__
        self._decoder = SseDecoder()
        self._ready: deque[SseEvent] = deque()
        self._drain_s = drain_s
        self._ended = False
        self._finished = False  # message_stop was read: nothing of interest follows
        self._reading = False
        self.request_id = request_id_of(response.headers)

    async def read(self) -> dict[str, Any] | None:
        """See `ModelStream.read`."""
        ready = self._ready
        while True:
            while not ready:
                if self._ended:
                    return None
                try:
                    self._reading = True
                    try:
                        chunk = await self._pull()
                    finally:
                        self._reading = False
                    ready.extend(self._decoder.feed(chunk))
                except StopAsyncIteration:
                    await self._release()
                except ModelCallFailed:
                    await self._release()
                    raise
                except Exception as error:
                    if self._ended:  # closed by another task
                        return None
                    await self._release()
                    raise ModelCallFailed(failure_of(error, request_id=self.request_id)) from error
            if (delta := self.take_delta()) is not None:
                return delta
            name, data = ready.popleft()
            if name == _PING or data == b"[DONE]":
                continue
            try:
                event = self._decoded(name, data)
            except ModelCallFailed:
                await self._release()
                raise
            kind = event.get("type")
            if kind == "ping":
                continue
            if kind == "message_stop":
                self._finished = True
            return event

    def take_delta(self) -> dict[str, Any] | None:
        """See `ModelStream.take_delta`."""
        ready = self._ready
        if not ready or ready[0][0] != b"content_block_delta":
            return None
        try:
            event: object = decode(ready[0][1])
        except DecodeError:
            return None
        if not is_object(event) or event.get("type") != _DELTA:
            return None
        ready.popleft()
        return event

    async def close(self) -> None:
        """See `ModelStream.close`. An answer that is complete is read to its end first, for at most `drain_s`."""
        if self._finished and not self._ended and not self._reading:
            with contextlib.suppress(Exception):  # the answer is whole; a connection that fails now is just not kept
                async with asyncio.timeout(self._drain_s):
                    async for _ in self._chunks:
                        pass
        await self._release()

    async def _release(self) -> None:
        if self._ended:
            return
        self._ended = True
        self._ready.clear()
        with contextlib.suppress(Exception):  # it is being dropped; how that goes is of no interest
            if not self._reading:
                await self._chunks.aclose()
            await self._response.aclose()

    def _decoded(self, name: bytes, data: bytes) -> dict[str, Any]:
        try:
            event = decode(data)
        except DecodeError as error:
            if name != _ERROR:
                raise BadStream(f"an event of the stream is {error}", request_id=self.request_id) from None
            event = data.decode(errors="replace")
        if is_object(event) and name != _ERROR and event.get("type") != "error":
            return event
        if is_object(event) or name == _ERROR:
            status = self._response.status_code
            raise ModelCallFailed(failure_of_body(event, status=status, request_id=self.request_id))
        raise BadStream("an event of the stream is no JSON object", request_id=self.request_id)


class ItemStream:
    """The events as the SDK's own stream gives them: slower, but it follows whatever the client puts around it."""

    __slots__ = ("_closed", "_stream", "request_id")

    def __init__(self, stream: "anthropic.AsyncStream[object]") -> None:
        self._stream = stream
        self._closed = False
        self.request_id = request_id_of(stream.response.headers)

    async def read(self) -> dict[str, Any] | None:
        """See `ModelStream.read`."""
        if self._closed:
            return None
        try:
            event = await anext(self._stream)
            if not is_object(event):
                raise BadStream("an event of the stream is no JSON object", request_id=self.request_id)
        except StopAsyncIteration:
            await self.close()
            return None
        except Exception as error:
            if self._closed:
                return None
            await self.close()
            if isinstance(error, ModelCallFailed):
                raise
            raise ModelCallFailed(failure_of(error, request_id=self.request_id)) from error
        return event

    def take_delta(self) -> dict[str, Any] | None:
        """See `ModelStream.take_delta`: what the SDK's stream has at hand cannot be told."""
        return None

    async def close(self) -> None:
        """See `ModelStream.close`."""
        if not self._closed:
            self._closed = True
            with contextlib.suppress(Exception):  # it is being dropped; how that goes is of no interest
                await self._stream.close()
