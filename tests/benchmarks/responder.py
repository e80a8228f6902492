"""The server of the benchmarks: it counts the results in a request and writes a rendered answer, and nothing else.

The testing kit's server checks every request as the API would, and keeps it; at 1,000 turns, or with 200 loops, it
would be slower than what is measured here.
"""

import asyncio
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any, cast
from urllib.request import urlopen

import attrs
import orjson

from tests.benchmarks.rendering import rendered
from tests.benchmarks.scenario import Scenario, tool_use_id

_ONE_CALL = b'"tool_use_id"'


@attrs.define
class Seen:
    """What the server saw since it was last asked."""

    requests: int = 0
    problems: list[str] = attrs.field(factory=list[str])
    sent_ns: int = 0
    """When the calls of the last answer that is held back were written, by `time.perf_counter_ns`."""


@contextmanager
def responder() -> Generator[str]:
    """Serve from a process of its own; the value is the base URL."""
    spawn = get_context("spawn")
    ours, theirs = spawn.Pipe()
    process = spawn.Process(target=_main, args=(theirs, list(sys.path)), daemon=True)
    process.start()
    theirs.close()
    try:
        yield ours.recv()
    finally:
        ours.close()
        process.join()


def seen(server: str) -> Seen:
    """What the server saw since the last call of this."""
    with urlopen(f"{server}/seen") as answer:
        return Seen(**orjson.loads(answer.read()))


def _main(parent: "Connection[str, None]", path: list[str]) -> None:
    sys.path[:] = path
    asyncio.run(serve(parent))


async def serve(parent: "Connection[str, None]") -> None:
    """Serve until the parent has closed its end of the pipe, or has died; it is sent the base URL first."""
    counted = [Seen()]
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Exchange(counted), "127.0.0.1", 0, backlog=4096)
    host, port = server.sockets[0].getsockname()[:2]
    parent.send(f"http://{host}:{port}")
    with suppress(EOFError):
        await asyncio.to_thread(parent.recv)
    server.close()


class _Exchange(asyncio.Protocol):
    """One connection. Requests have a content-length, and come one after the other."""

    def __init__(self, counted: list[Seen]) -> None:
        self._counted = counted
        self._buffer = bytearray()
        self._body_at = 0  # where the body begins; 0: the head is not complete
        self._whole = 0  # the length of the request
        self._target = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if not self._body_at:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            self._read_head(bytes(self._buffer[:end]), end + 4)
        if len(self._buffer) >= self._whole:
            body = bytes(self._buffer[self._body_at : self._whole])
            del self._buffer[: self._whole]
            self._body_at = 0
            self._answer(body)

    def _read_head(self, head: bytes, body_at: int) -> None:
        lines = head.lower().split(b"\r\n")
        length = next((line[15:] for line in lines if line.startswith(b"content-length:")), b"0")
        self._target = lines[0].split(b" ")[1]
        self._body_at = body_at
        self._whole = body_at + int(length)

    def _answer(self, body: bytes) -> None:
        path = self._target.partition(b"?")[0]
        if path == b"/seen":
            self._write_json(b"200 OK", attrs.asdict(self._counted[0]))
            self._counted[0] = Seen()
            return
        if not path.endswith(b"/v1/messages"):  # a question about the model, or about the size of a request
            error = {"type": "not_found_error", "message": "the responder knows nothing of that"}
            self._write_json(b"404 Not Found", {"type": "error", "error": error})
            return
        scenario = Scenario.read(path.split(b"/")[1].decode())
        counted = self._counted[0]
        counted.requests += 1
        turn, rest = divmod(body.count(_ONE_CALL), scenario.calls)
        if rest or not _answers_last(body, turn, scenario) or b'"is_error":true' in body:
            counted.problems.append(f"the request of turn {turn} does not answer the calls of the one before")
        answer = rendered(scenario, last=turn >= scenario.turns)
        self._write(answer.of_turn(turn))
        if answer.rest:
            counted.sent_ns = time.perf_counter_ns()
            asyncio.get_running_loop().call_later(scenario.hold_ms / 1000, self._write, answer.rest)

    def _write_json(self, status: bytes, value: Any) -> None:
        data = orjson.dumps(value)
        head = b"HTTP/1.1 %b\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % (status, len(data))
        self._write(head + data)

    def _write(self, data: bytes) -> None:
        assert self._transport is not None
        self._transport.write(data)


def _answers_last(body: bytes, turn: int, scenario: Scenario) -> bool:
    """Whether every call of the turn before stands in the request twice, as the call and as its result."""
    ids = [tool_use_id(turn - 1, place).encode() for place in range(scenario.calls)] if turn else []
    return all(body.find(id_, body.find(id_) + 1) > 0 for id_ in ids)
