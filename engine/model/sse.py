"""Server-sent events, cut out of a stream of bytes.

The SDK has a decoder of its own; this one does no I/O, hands out bytes rather than text, and bounds what one event may
grow to. It follows the same specification (the HTML standard, "event stream interpretation").
"""

import re
from typing import Final

from looplatch.recovery.failure import BadStream

EVENT_LIMIT: Final = 64 * 1024 * 1024  # bytes of one event

SseEvent = tuple[bytes, bytes]
"""The name of an event (empty where it has none) and its data."""

# What the API sends: one line of name, one of data, and the blank line that ends it.
_usual: Final = re.compile(rb"^event: ([^\n]*)\ndata: ([^\n]+)\n\n", re.MULTILINE)
_CR: Final = ord("\r")  # looking for a number is what bytes are fast at


class SseDecoder:
    """Turns the bytes of a response, in whatever pieces they come, into events."""

    __slots__ = ("_after_cr", "_begun", "_buffer", "_limit")

    def __init__(self, limit: int = EVENT_LIMIT) -> None:
        """`limit` bounds the bytes that one event may have."""
        self._limit = limit
        self._buffer = bytearray()
        self._begun = False
        self._after_cr = False  # the last byte was a carriage return: a line feed that follows belongs to it

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """Take the next bytes and return the events that they complete; events without data are left out.

        An event is complete with the blank line that ends it; one that the connection cuts is never returned. Raises
        BadStream when an event outgrows the limit.
        """
        if _CR in chunk or self._after_cr:
            chunk = self._with_line_feeds(chunk)
        buffer = self._buffer
        if not buffer and self._begun and chunk.endswith(b"\n\n"):  # what a server that flushes each event sends
            whole = chunk
        else:
            seen = max(len(buffer) - 1, 0)
            buffer += chunk
            end = buffer.rfind(b"\n\n", seen)
            if end < 0:
                if len(buffer) > self._limit:
                    raise BadStream(f"one event of the stream is larger than {self._limit:,} bytes")
                return []
            whole = bytes(buffer[: end + 2])
            del buffer[: end + 2]
            if not self._begun:
                self._begun = True
                whole = whole.removeprefix(b"\xef\xbb\xbf")  # a byte order mark may open the stream
        if (one := _usual.fullmatch(whole)) is not None:
            return [(one[1], one[2])]
        found: list[SseEvent] = _usual.findall(whole)
        return found if whole.count(b"\n") == 3 * len(found) else _events(whole)

    def _with_line_feeds(self, chunk: bytes) -> bytes:
        if self._after_cr and chunk.startswith(b"\n"):
            chunk = chunk[1:]
            self._after_cr = False
        if chunk:
            self._after_cr = chunk.endswith(b"\r")
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def _events(text: bytes) -> list[SseEvent]:
    """The events of a text that ends with a blank line, whatever lines they have."""
    found: list[SseEvent] = []
    name = b""
    data: list[bytes] = []
    for line in text.split(b"\n"):
        if line:
            field, _, value = line.partition(b":")
            if field == b"data":
                data.append(value.removeprefix(b" "))
            elif field == b"event":
                name = value.removeprefix(b" ")
        else:
            if whole := b"\n".join(data):
                found.append((name, whole))
            name = b""
            data.clear()
    return found
