"""`looplatch.model.streams`: an answer, event by event, over a response in memory."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import anthropic
import httpx2
import pytest

from looplatch.model.streams import ByteStream, ItemStream
from looplatch.ports import ModelStream
from looplatch.recovery.failure import Failure, ModelCallFailed

REQUEST = httpx2.Request("POST", "http://x")
STARTED: dict[str, Any] = {"type": "message_start", "message": {"id": "msg_1", "content": []}}
STOPPED: dict[str, Any] = {"type": "message_stop"}


def wire(*events: dict[str, Any]) -> bytes:
    return b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events)


class Body(httpx2.AsyncByteStream):
    """A response body in pieces; an exception among them is raised, an asyncio.Event is waited for."""

    def __init__(self, *pieces: bytes | Exception | asyncio.Event) -> None:
        self.pieces = pieces
        self.given = 0
        self.closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self.pieces:
            if isinstance(piece, Exception):
                raise piece
            if isinstance(piece, asyncio.Event):
                await piece.wait()
                continue
            self.given += 1
            yield piece

    async def aclose(self) -> None:
        self.closed = True


Make = Callable[..., ModelStream]


def response(body: Body, **headers: str) -> httpx2.Response:
    sent = {"request-id": "req_1"} | {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx2.Response(200, headers=sent, stream=body, request=REQUEST)


def by_bytes(body: Body, **headers: str) -> ModelStream:
    return ByteStream(response(body, **headers))


def by_items(body: Body, **headers: str) -> ModelStream:
    client = anthropic.AsyncAnthropic(api_key="k", http_client=httpx2.AsyncClient())
    return ItemStream(anthropic.AsyncStream[object](cast_to=object, response=response(body, **headers), client=client))


both = pytest.mark.parametrize("make", [by_bytes, by_items])


async def all_events(stream: ModelStream) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    while read := await stream.read():
        events += read
    return events


def failure(attempt: Coroutine[Any, Any, Any]) -> Failure:
    with pytest.raises(ModelCallFailed) as caught:
        asyncio.run(attempt)
    return caught.value.failure


# What is read


@both
def test_events_are_read_one_by_one_and_then_none(make: Make) -> None:
    body = Body(wire(STARTED), wire(STOPPED))

    async def run() -> tuple[list[list[Any]], str | None]:
        stream = make(body)
        return [await stream.read() for _ in range(4)], stream.request_id

    assert asyncio.run(run()) == ([[STARTED], [STOPPED], [], []], "req_1")
    assert body.closed


@both
def test_pings_comments_empty_data_and_the_done_of_gateways_are_left_out(make: Make) -> None:
    noise = b': c\n\nevent: ping\ndata: {"type":"ping"}\n\nevent: x\ndata:\n\n'
    body = Body(noise + wire(STARTED) + noise + wire(STOPPED) + b"data: [DONE]\n\n")

    async def run() -> list[dict[str, Any]]:
        return await all_events(make(body))

    assert asyncio.run(run()) == [STARTED, STOPPED]


@both
def test_a_connection_that_ends_early_is_just_an_end(make: Make) -> None:
    body = Body(wire(STARTED) + b'event: message_stop\ndata: {"type":"mess')

    async def run() -> list[dict[str, Any]]:
        return await all_events(make(body))

    assert asyncio.run(run()) == [STARTED]


def test_nothing_is_read_ahead_of_the_reader() -> None:
    body = Body(wire(STARTED), wire(STOPPED), b"more")

    async def run() -> list[int]:
        stream = by_bytes(body)
        given = [body.given]
        await stream.read()
        given.append(body.given)
        await stream.close()
        return given

    assert asyncio.run(run()) == [0, 1]
    assert body.closed


def delta(text: str, **more: object) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}, **more}


def test_deltas_that_have_come_together_are_read_together_and_nothing_else_is() -> None:
    told = [delta("a"), delta("b", n=12345678901234567890123), delta("\ud83a")]
    body = Body(wire(STARTED, *told, STOPPED), wire(delta("c")), wire(delta("d")))

    async def run() -> list[list[dict[str, Any]]]:
        stream = by_bytes(body)
        return [await stream.read() for _ in range(6)]

    assert asyncio.run(run()) == [[STARTED], told, [STOPPED], [delta("c")], [delta("d")], []]


def test_no_more_than_so_many_deltas_are_read_at_once() -> None:
    body = Body(wire(STARTED, *[delta("a")] * 200))

    async def run() -> list[int]:
        stream = by_bytes(body)
        return [len(await stream.read()) for _ in range(6)]

    assert asyncio.run(run()) == [1, 65, 65, 65, 5, 0]


@pytest.mark.parametrize("broken", [b"{", b"3", b"[1]", b'{"type":"error","error":{"type":"api_error","message":""}}'])
def test_the_deltas_before_one_that_cannot_be_read_are_read(broken: bytes) -> None:
    sent = b"event: content_block_delta\ndata: " + broken + b"\n\n"
    body = Body(wire(STARTED, delta("a"), delta("b")) + sent + wire(delta("c")))

    async def run() -> list[list[dict[str, Any]]]:
        stream = by_bytes(body)
        events = [await stream.read() for _ in range(2)]
        with pytest.raises(ModelCallFailed):
            await stream.read()
        return [*events, await stream.read()]

    assert asyncio.run(run()) == [[STARTED], [delta("a"), delta("b")], []]


def test_lone_surrogates_and_large_integers_of_an_event_are_read() -> None:
    body = Body(b'data: {"type":"x","text":"\\ud83a","n":12345678901234567890123}\n\n')

    async def run() -> list[dict[str, Any]]:
        return await by_bytes(body).read()

    assert asyncio.run(run()) == [{"type": "x", "text": "\ud83a", "n": 12345678901234567890123}]


# What fails

OVERLOADED: dict[str, Any] = {
    "type": "error",
    "error": {"type": "overloaded_error", "message": "Overloaded", "details": None},
}


@both
@pytest.mark.parametrize("id_of_event", [None, "req_2"])
def test_an_error_event_is_a_failure_of_its_own_type(make: Make, id_of_event: str | None) -> None:
    error = OVERLOADED if id_of_event is None else OVERLOADED | {"request_id": id_of_event}
    body = Body(wire(STARTED, error), wire(STOPPED))

    async def run() -> None:
        stream = make(body, retry_after="5", x_should_retry="false")
        await all_events(stream)

    assert failure(run()) == Failure(type="overloaded_error", status=200, message="Overloaded", request_id="req_1")
    assert body.closed


@both
def test_the_request_id_of_an_error_event_counts_where_no_header_has_one(make: Make) -> None:
    body = Body(wire(OVERLOADED | {"request_id": "req_2"}))

    async def run() -> None:
        await all_events(make(body, request_id=""))

    assert failure(run()).request_id == "req_2"


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        (b"event: error\ndata: upstream gave up\n\n", "upstream gave up"),
        (b'event: error\ndata: {"message":"gone"}\n\n', "gone"),
        (b"event: error\ndata: [1]\n\n", ""),
        (b'event: x\ndata: {"a":\n\n', "an event of the stream is not valid JSON: "),
        (b"event: x\ndata: \xff\n\n", "an event of the stream is not valid JSON: "),
        (b"event: x\ndata: NaN\n\n", "an event of the stream is not valid JSON: "),
        (b"event: x\ndata: 3\n\n", "an event of the stream is no JSON object"),
    ],
)
def test_what_cannot_be_read_is_a_bad_stream(sent: bytes, message: str) -> None:
    body = Body(wire(STARTED) + sent + wire(STOPPED))

    async def run() -> None:
        await all_events(by_bytes(body))

    found = failure(run())
    assert (found.type, found.status, found.request_id) == ("bad_stream", 200, "req_1")
    assert found.message.startswith(message)
    assert body.closed


@pytest.mark.parametrize("sent", [b"event: x\ndata: {\n\n", b"event: x\ndata: 3\n\n", b"event: x\ndata: \xff\n\n"])
def test_what_the_sdk_cannot_read_is_a_bad_stream_as_well(sent: bytes) -> None:
    async def run() -> None:
        await all_events(by_items(Body(sent)))

    assert failure(run()).type == "bad_stream"


@both
@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (httpx2.ReadTimeout("slow"), "timeout_error"),
        (httpx2.RemoteProtocolError("peer closed connection"), "connection_error"),
        (httpx2.ReadError("reset"), "connection_error"),
        (ConnectionResetError("reset"), "connection_error"),
    ],
)
def test_a_connection_that_breaks_in_an_answer_is_a_failure(make: Make, error: Exception, kind: str) -> None:
    body = Body(wire(STARTED), error)

    async def run() -> None:
        await all_events(make(body))

    in_answer = failure(run())
    assert (in_answer.type, in_answer.request_id) == (kind, "req_1")
    assert str(error) in in_answer.message
    assert body.closed


# How it ends


@both
def test_cancelling_a_read_passes_through_and_closes_the_response(make: Make) -> None:
    body = Body(wire(STARTED), asyncio.Event())

    async def run() -> None:
        stream = make(body)
        await stream.read()
        reading = asyncio.create_task(stream.read())
        await asyncio.sleep(0)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        assert body.closed
        assert await stream.read() == []

    asyncio.run(run())


@both
def test_closing_twice_is_closing_once_and_nothing_is_read_afterwards(make: Make) -> None:
    body = Body(wire(STARTED, STOPPED))

    async def run() -> None:
        stream = make(body)
        await stream.close()
        assert body.closed
        await stream.close()
        assert await stream.read() == []

    asyncio.run(run())
    assert body.given == 0


def test_closing_a_whole_answer_reads_to_its_end_so_that_the_connection_can_be_used_again() -> None:
    body = Body(wire(STARTED, STOPPED), b"", b": the end\n\n")

    async def run() -> None:
        stream = by_bytes(body)
        await stream.read()
        await stream.read()
        await stream.close()

    asyncio.run(run())
    assert (body.given, body.closed) == (3, True)


def test_closing_a_whole_answer_does_not_wait_for_a_server_that_never_ends_it() -> None:
    body = Body(wire(STARTED, STOPPED), asyncio.Event(), b"late")

    async def run() -> None:
        stream = ByteStream(response(body), drain_s=0)
        await stream.read()
        await stream.read()
        await stream.close()

    asyncio.run(run())
    assert (body.given, body.closed) == (1, True)


def test_closing_an_answer_midway_drops_the_rest() -> None:
    body = Body(wire(STARTED), asyncio.Event())

    async def run() -> None:
        stream = by_bytes(body)
        await stream.read()
        await stream.close()

    asyncio.run(run())
    assert (body.given, body.closed) == (1, True)


def test_closing_from_another_task_ends_a_read_that_waits() -> None:
    gate = asyncio.Event()

    class Broken(Body):
        async def aclose(self) -> None:
            await super().aclose()
            gate.set()

    body = Broken(wire(STARTED), gate, httpx2.ReadError("closed"))

    async def run() -> list[dict[str, Any]]:
        stream = by_bytes(body)
        await stream.read()
        reading = asyncio.create_task(stream.read())
        await asyncio.sleep(0)
        await stream.close()
        return await reading

    assert asyncio.run(run()) == []
    assert body.closed
