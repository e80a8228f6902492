"""An answer, read event by event from what the SDK opened. A read that is cancelled closes the response."""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from looplatch.encoding import DecodeError, decode, decode_some
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
_DELTA: Final = b"content_block_delta"
_STOP: Final = b"message_stop"
# The events that the API has always had: nearly all that come are of these, and as they should be.
_USUAL: Final[Mapping[bytes, str]] = {
    name: name.decode()
    for name in (_DELTA, b"content_block_start", b"content_block_stop", b"message_start", b"message_delta", _STOP)
}
_AT_ONCE: Final = 64  # deltas that are taken at once: so many messages wait for the consumer then


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
        self._chunks = _chunks_of(response)
        self._pull = self._chunks.__anext__
        self._decoder = SseDecoder()
        self._ready: deque[SseEvent] = deque()
        self._drain_s = drain_s
        self._ended = False
        self._finished = False  # message_stop was read: nothing of interest follows
        self._reading = False
        self.request_id = request_id_of(response.headers)

    async def read(self) -> list[dict[str, Any]]:
        """See `ModelStream.read`."""
        ready = self._ready
        while True:
            while not ready:
                if self._ended:
                    return []
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
                        return []
                    await self._release()
                    raise ModelCallFailed(failure_of(error, request_id=self.request_id)) from error
                except BaseException:
                    await self._release()
                    raise
            name, data = ready.popleft()
            if (usual := _USUAL.get(name)) is not None:
                try:
                    event = decode(data)
                    if event["type"] == usual:
                        if ready and name == _DELTA:
                            return [event, *self._more_deltas()]
                        if name == _STOP:
                            self._finished = True
                        return [event]
                except (DecodeError, KeyError, TypeError):
                    pass  # what is amiss with it is told below
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
            return [event]

    def _more_deltas(self) -> list[dict[str, Any]]:
        """The deltas that stand next; whatever is amiss with one is left to the next read."""
        ready = self._ready
        texts: list[bytes] = []
        for name, data in ready:
            if name != _DELTA or len(texts) == _AT_ONCE:
                break
            texts.append(data)
        events = decode_some(texts)
        for place, event in enumerate(events):
            if not is_object(event) or event.get("type") != "content_block_delta":
                del events[place:]
                break
        for _ in events:
            ready.popleft()
        return events

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
            if not self._reading and (close := getattr(self._chunks, "aclose", None)) is not None:
                await close()
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


def _chunks_of(response: "httpx2.Response") -> AsyncIterator[bytes]:
    """The body of a response, piece by piece.

    What is neither compressed nor read already comes from the response's own stream: each layer around that costs a
    fraction of every event.
    """
    stream = response.stream
    worked_on = "content-encoding" in response.headers or response.is_stream_consumed or response.is_closed
    return response.aiter_bytes() if worked_on or not isinstance(stream, AsyncIterable) else aiter(stream)


class ItemStream:
    """The events as the SDK's own stream gives them: slower, but it follows whatever the client puts around it."""

    __slots__ = ("_closed", "_stream", "request_id")

    def __init__(self, stream: "anthropic.AsyncStream[object]") -> None:
        self._stream = stream
        self._closed = False
        self.request_id = request_id_of(stream.response.headers)

    async def read(self) -> list[dict[str, Any]]:
        """See `ModelStream.read`. What else is at hand cannot be told, so that each event comes alone."""
        if self._closed:
            return []
        try:
            event = await anext(self._stream)
            if not is_object(event):
                raise BadStream("an event of the stream is no JSON object", request_id=self.request_id)
        except StopAsyncIteration:
            await self.close()
            return []
        except Exception as error:
            if self._closed:
                return []
            await self.close()
            if isinstance(error, ModelCallFailed):
                raise
            raise ModelCallFailed(failure_of(error, request_id=self.request_id)) from error
        return [event]

    async def close(self) -> None:
        """See `ModelStream.close`."""
        if not self._closed:
            self._closed = True
            with contextlib.suppress(Exception):  # it is being dropped; how that goes is of no interest
                await self._stream.close()
