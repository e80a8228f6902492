"""`looplatch.model.assembly`: when a block is certain, and which events break the protocol."""

from typing import Any

import pytest

from looplatch.encoding import encode
from looplatch.model import Assembly
from looplatch.model.shapes import is_object
from looplatch.recovery.failure import BadStream
from tests.stream_events import STOP, Event, assembled, begin, change, end, start, stop, text, use


def nested(levels: int) -> Any:
    """A list in a list, and so on."""
    value: Any = []
    for _ in range(levels - 1):
        value = [value]
    return value


# What is certain


def test_the_model_has_moved_on_from_a_block_when_the_next_begins() -> None:
    assembly = assembled(start(), use(0, "{}"))
    assert assembly.moved_on == 0
    assembly.feed(begin(1, type="text", text=""))
    assert assembly.moved_on == 1


@pytest.mark.parametrize("reason", ["end_turn", "tool_use", "stop_sequence", "pause_turn"])
def test_the_model_has_moved_on_from_all_when_it_stops_of_itself(reason: str) -> None:
    assert assembled(start(), use(0, "{}"), use(1), stop(reason)).moved_on == 2


@pytest.mark.parametrize("reason", ["max_tokens", "model_context_window_exceeded", "refusal", "never_heard_of", None])
def test_the_last_block_may_be_cut_after_a_truncation_or_a_reason_that_nobody_knows(reason: str | None) -> None:
    assert assembled(start(), use(0, "{}"), use(1), stop(reason), STOP).moved_on == 1


# What breaks the protocol, and what does not


def test_blocks_that_are_open_side_by_side_are_finished_in_the_order_of_their_indexes() -> None:
    assembly = assembled(start(), text(0, "a")[:-1], text(1, "b"), change(0, type="text_delta", text="c"), end(0))
    assert [done.block["text"] for done in assembly.finished] == ["ac", "b"]


@pytest.mark.parametrize("block", [{"type": "redacted_thinking"}, {"type": "text"}, {"type": "thinking"}], ids=str)
def test_what_lacks_what_the_api_asks_for_is_not_sent_back(block: Event) -> None:
    assembly = assembled(start(), begin(0, **block), end(0))
    assert assembly.content == []
    assert len(assembly.finished) == 1


def test_nothing_of_an_answer_is_shared_with_its_events() -> None:
    events = [
        start(usage={"server_tool_use": {"web_search_requests": 1}}, container={"ids": ["c"]}),
        begin(0, type="novel", content=[{"inner": ["a"]}]),
        change(0, type="novel_delta", content=[{"inner": ["b"]}], more={"inner": ["c"]}),
        end(0),
        begin(1, type="text", text="a"),
        change(1, type="citations_delta", citation={"where": ["here"]}),
        end(1),
        stop("refusal", {"iterations": [{"type": "message"}]}, stop_details={"a": {"b": "c"}}),
    ]
    assembly = assembled(*events)
    before = told(assembly)
    for event in events:
        spoil(event)
    assert told(assembly) == before


def told(assembly: Assembly) -> bytes:
    """All that an assembly holds, as it is now."""
    return encode([assembly.content, assembly.usage, assembly.extra, assembly.stop_details])


def spoil(value: Any) -> None:
    """Change every dict and list in it."""
    items: list[Any] = [*value.values()] if is_object(value) else [*value]
    for inner in items:
        if isinstance(inner, dict | list):
            spoil(inner)
    value.clear()


def test_pings_and_unknown_events_change_nothing() -> None:
    assembly = assembled({"type": "ping"}, start(), {"type": "novel", "index": 0}, {}, text(0, "a"), {"type": "ping"})
    assert assembly.content == [{"type": "text", "text": "a"}]


@pytest.mark.parametrize("fields", [{"id": None}, {"id": ""}, {"name": 3}, {"name": ""}])
def test_a_call_without_id_or_name_breaks_the_protocol(fields: Event) -> None:
    with pytest.raises(BadStream, match="without id or name"):
        assembled(start(), use(0, "{}", **fields))


@pytest.mark.parametrize(
    ("events", "words"),
    [
        ([start(), start()], "a second message_start"),
        ([begin(0, type="text", text="")], "content_block_start came before message_start"),
        ([change(0, type="text_delta", text="a")], "content_block_delta came before message_start"),
        ([stop("end_turn")], "message_delta came before message_start"),
        ([STOP], "message_stop came before message_start"),
        ([start(), STOP, begin(0, type="text", text="")], "content_block_start came after message_stop"),
        ([start(), STOP, STOP], "message_stop came after message_stop"),
        ([start(), change(0, type="text_delta", text="a")], "content block 0, which is not open"),
        ([start(), end(0)], "content_block_stop came for content block 0, which is not open"),
        ([start(), *text(0, "a"), end(0)], "content block 0, which is not open"),
        ([start(), *text(0, "a"), change(0, type="text_delta", text="a")], "content block 0, which is not open"),
        ([start(), *text(0, "a"), *text(0, "b")], "content block 0 began after content block 0"),
        ([start(), *text(1, "a"), *text(0, "b")], "content block 0 began after content block 1"),
        ([start(), begin(-1, type="text")], "content block -1 began"),
        ([start(), begin(False, type="text")], "content block False began"),
        ([start(), {"type": "content_block_start", "index": 0}], "content block 0 has no content"),
        ([start(), {"type": "content_block_start", "content_block": {"type": "text"}}], "content block None began"),
        ([start(), {"type": "content_block_delta", "index": [0], "delta": {}}], "content block [0], which is not open"),
        ([start(), begin(0, text="")], "content block 0 has no type"),
        (
            [start(), begin(0, type="text", text=""), change(0, type="text_delta", text=None)],
            "text of a delta is no text",
        ),
        (
            [start(), begin(0, type="text", text=""), change(0, type="input_json_delta", partial_json="")],
            "does not fit",
        ),
        ([start(), begin(0, type="text", text=""), {"type": "content_block_delta", "index": 0}], "has no content"),
        ([{"type": "message_start"}], "message_start has no message"),
        ([start(id=3)], "the message id is no text"),
        ([start(content={"type": "text"})], "content of message_start is no list"),
        ([start(content=["text"])], "content block 0 has no content"),
        ([start(), stop(3)], "the stop_reason is no text"),  # type: ignore[arg-type]
        ([start(), begin(0, type="text", text=5), end(0)], "a text block whose text is no text"),
        ([start(), begin(0, type="text", text=["a"]), end(0)], "a text block whose text is no text"),
        ([start(), begin(0, type="text", text="a", citations=["b"]), end(0)], "whose citations are no list of objects"),
        ([start(), begin(0, type="thinking", thinking="a", signature=5), end(0)], "whose signature is no text"),
        ([start(), begin(0, type="redacted_thinking", data=5), end(0)], "whose data is no text"),
        ([start(), begin(0, type="tool_result", tool_use_id="t"), end(0)], "not the model's to write"),
        ([start(), *use(0, "{}", caller=5)], "whose caller is no object"),
        ([start(), *use(0, "{}", toolset_name=5)], "whose toolset_name is no text"),
        ([start(), begin(0, type="server_tool_use", id="s", input={}), end(0)], "without id or name"),
        ([start(), begin(0, type="text", text=""), change(0, type="novel", id="a")], "novel does not fit"),
        ([start(), begin(0, type="tool_use", id="t"), change(0, type="novel", citations=[])], "novel does not fit"),
        (
            [start(), begin(0, type="tool_use", id="t"), change(0, type="citations_delta", citation={})],
            "citations_delta does not fit",
        ),
        (
            [start(), begin(0, type="text", text=""), change(0, type="signature_delta", signature="a")],
            "signature_delta does not fit",
        ),
        ([start(), begin(0, type="novel", n=[10**400]), end(0)], "cannot be sent back: it has an integer"),
        ([start(content=[{"type": "novel", "n": nested(201)}])], "cannot be sent back: it is nested deeper"),
    ],
)
def test_events_out_of_protocol_are_a_bad_stream(events: list[Event], words: str) -> None:
    with pytest.raises(BadStream) as caught:
        assembled(events)
    assert words in str(caught.value)
    assert caught.value.failure.type == "bad_stream"


def test_an_answer_is_refused_when_it_outgrows_its_limit() -> None:
    size = len('{"type":"text","text":""}')
    assembly = assembled(start(), text(0, "x" * 10, "x" * 10)[:-1], limit=size + 20)
    with pytest.raises(BadStream, match=f"larger than {size + 20} characters"):
        assembly.feed(change(0, type="text_delta", text="x"))
    with pytest.raises(BadStream, match="larger than 50"):
        assembled(start(), begin(0, type="novel", data="x" * 50), limit=50)
    with pytest.raises(BadStream, match="larger than 100"):
        assembled(
            start(),
            begin(0, type="text", text=""),
            change(0, type="citations_delta", citation={"cited_text": "x" * 100}),
            limit=100,
        )
