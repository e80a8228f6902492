"""`looplatch.model.sse`: events out of bytes, however the bytes are cut."""

import itertools

import pytest
from anthropic._streaming import SSEDecoder
from hypothesis import example, given
from hypothesis import strategies as st

from looplatch.model.sse import SseDecoder
from looplatch.recovery.failure import BadStream

lines = st.sampled_from(
    [
        *(b"event: message_stop", b'data: {"type":"ping"}', b"data:x", b"data:  two", b"data", b"data: "),
        *("data: ü😀".encode(), b": comment", b"id: 3", b"retry: 5", b"event", b"event:y", b"unknown: z"),
        *(b"", b"", b"", b""),
    ]
)
ends = st.sampled_from([b"\n", b"\n", b"\r\n", b"\r"])
wires = st.lists(st.tuples(lines, ends)).map(lambda parts: b"".join(line + end for line, end in parts))


def cut(wire: bytes, places: list[int]) -> list[bytes]:
    bounds = sorted({0, len(wire), *(place % (len(wire) + 1) for place in places)})
    return [wire[start:end] for start, end in itertools.pairwise(bounds)]


def decoded(pieces: list[bytes]) -> list[tuple[str, str]]:
    decoder = SseDecoder()
    return [(name.decode(), data.decode()) for piece in pieces for name, data in decoder.feed(piece)]


def sdk_decoded(wire: bytes) -> list[tuple[str, str]]:
    return [(event.event or "", event.data) for event in SSEDecoder().iter_bytes(iter([wire])) if event.data]


@given(wires, st.lists(st.integers(0, 10_000), max_size=20))
@example(b"data: a\r\n\r\ndata: b\r\n\r\n", [8, 10])
@example(b"event: x\r\ndata: y\r\n\r\n", [9])
@example(b"data: a\r\r\n\ndata: b\n\n", [8])
def test_any_wire_in_any_pieces_gives_the_events_that_the_sdk_reads(wire: bytes, places: list[int]) -> None:
    assert decoded(cut(wire, places)) == sdk_decoded(wire)


def test_an_event_is_its_name_and_its_data() -> None:
    wire = b'event: message_stop\ndata: {"type":"message_stop"}\n\ndata: [DONE]\n\n'
    assert SseDecoder().feed(wire) == [(b"message_stop", b'{"type":"message_stop"}'), (b"", b"[DONE]")]


def test_an_event_that_the_connection_cuts_never_shows() -> None:
    decoder = SseDecoder()
    assert decoder.feed(b"event: a\ndata: 1") == []
    assert decoder.feed(b"\n") == []
    assert decoder.feed(b"\n") == [(b"a", b"1")]


def test_a_byte_order_mark_at_the_beginning_is_no_content() -> None:
    assert SseDecoder().feed(b"\xef\xbb\xbfdata: 1\n\ndata: \xef\xbb\xbf\n\n") == [(b"", b"1"), (b"", b"\xef\xbb\xbf")]


def test_an_event_without_end_is_refused_at_the_limit() -> None:
    decoder = SseDecoder(limit=100)
    decoder.feed(b"data: " + b"x" * 94)
    with pytest.raises(BadStream, match="larger than 100 bytes") as caught:
        decoder.feed(b"x")
    assert caught.value.failure.type == "bad_stream"


def test_many_events_together_may_be_larger_than_the_limit() -> None:
    decoder = SseDecoder(limit=100)
    assert len(decoder.feed(b"data: x\n\n" * 1_000)) == 1_000
