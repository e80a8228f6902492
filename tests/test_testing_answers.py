"""Answers as the wire carries them: hand-written events and bytes."""

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from looplatch.testing import (
    Answer,
    ScriptError,
    block,
    cut,
    disconnected,
    error,
    event_count,
    failing,
    raw,
    recorded,
    redacted_thinking,
    reply,
    server_tool_use,
    stalled,
    text,
    thinking,
    tool_use,
)
from looplatch.testing.wire import Drop, Send, Setting, Wait, Wire, event, wire

START = {"type": "text", "text": ""}


def setting(*, streamed: bool = True) -> Setting:
    return Setting(number=7, model="claude", input_tokens=11, streamed=streamed)


def events(answer: Answer) -> list[dict[str, Any]]:
    """The data of each event that the answer sends, checking that the event line names its type."""
    found: list[dict[str, Any]] = []
    for step in wire(answer, setting()).steps:
        assert isinstance(step, Send)
        name, data, *rest = step.data.decode().split("\n")
        found.append(json.loads(data.removeprefix("data: ")))
        assert (name, rest) == (f"event: {found[-1]['type']}", ["", ""])
    return found


def sent(wired: Wire) -> list[Any]:
    return [step.data if isinstance(step, Send) else type(step) for step in wired.steps]


def test_a_reply_is_the_events_of_the_api() -> None:
    usage = {"cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    assert events(reply("Hi.", usage={"input_tokens": 3, "output_tokens": 9})) == [
        {
            "type": "message_start",
            "message": {
                "id": "msg_000007",
                "type": "message",
                "role": "assistant",
                "model": "claude",
                "content": [],
                "stop_reason": None,
                "stop_sequence": None,
                "usage": {**usage, "input_tokens": 3, "output_tokens": 1},
            },
        },
        {"type": "content_block_start", "index": 0, "content_block": START},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi."}},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn", "stop_sequence": None},
            "usage": {**usage, "input_tokens": 3, "output_tokens": 9},
        },
        {"type": "message_stop"},
    ]


def test_what_a_reply_leaves_open_is_estimated_and_what_it_says_is_kept() -> None:
    start, end, _ = events(reply(stop="refusal", stop_details={"type": "refusal"}, id="msg_x", model="other"))
    assert (start["message"]["id"], start["message"]["model"]) == ("msg_x", "other")
    assert start["message"]["usage"]["input_tokens"] == 11
    assert end["delta"] == {"stop_reason": "refusal", "stop_sequence": None, "stop_details": {"type": "refusal"}}
    assert end["usage"]["output_tokens"] == 1


@pytest.mark.parametrize(
    ("answer", "stop"),
    [
        (reply("done"), "end_turn"),
        (reply(), "end_turn"),
        (reply("so", tool_use("a", "read")), "tool_use"),
        (reply(server_tool_use("a", "web_search")), "end_turn"),
        (reply(tool_use("a", "read"), stop="end_turn"), "end_turn"),
        (reply("x", stop="stop_sequence", stop_sequence="END"), "stop_sequence"),
    ],
)
def test_without_a_stop_reason_the_blocks_decide(answer: Any, stop: str) -> None:
    assert answer.stop_reason == stop


@pytest.mark.parametrize(
    ("made", "start", "deltas"),
    [
        (text(""), START, []),
        (text("abcde", 2), START, [{"type": "text_delta", "text": "abc"}, {"type": "text_delta", "text": "de"}]),
        (text("ab", ["", "ab"]), START, [{"type": "text_delta", "text": ""}, {"type": "text_delta", "text": "ab"}]),
        (
            text("a", citations=[{"type": "page_location"}]),
            {**START, "citations": []},
            [
                {"type": "citations_delta", "citation": {"type": "page_location"}},
                {"type": "text_delta", "text": "a"},
            ],
        ),
        (
            thinking("hm", "sig"),
            {"type": "thinking", "thinking": "", "signature": ""},
            [{"type": "thinking_delta", "thinking": "hm"}, {"type": "signature_delta", "signature": "sig"}],
        ),
        (
            thinking("", "sig"),
            {"type": "thinking", "thinking": "", "signature": ""},
            [{"type": "signature_delta", "signature": "sig"}],
        ),
        (
            thinking("hm", ""),
            {"type": "thinking", "thinking": "", "signature": ""},
            [{"type": "thinking_delta", "thinking": "hm"}],
        ),
        (redacted_thinking("xyz"), {"type": "redacted_thinking", "data": "xyz"}, []),
        (
            tool_use("a", "read", {"p": "é"}, ['{"p": ', '"é"}']),
            {"type": "tool_use", "id": "a", "name": "read", "input": {}},
            [
                {"type": "input_json_delta", "partial_json": '{"p": '},
                {"type": "input_json_delta", "partial_json": '"é"}'},
            ],
        ),
        (
            tool_use("a", "read", {}),
            {"type": "tool_use", "id": "a", "name": "read", "input": {}},
            [{"type": "input_json_delta", "partial_json": ""}],
        ),
        (tool_use("a", "read"), {"type": "tool_use", "id": "a", "name": "read", "input": {}}, []),
        (tool_use("a", "read", ""), {"type": "tool_use", "id": "a", "name": "read", "input": {}}, []),
        (
            tool_use("a", "read", '{"p', caller={"type": "direct"}),
            {"type": "tool_use", "id": "a", "name": "read", "input": {}, "caller": {"type": "direct"}},
            [{"type": "input_json_delta", "partial_json": '{"p'}],
        ),
        (
            server_tool_use("s", "web_search", {"q": 1}),
            {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
            [{"type": "input_json_delta", "partial_json": '{"q": 1}'}],
        ),
        (
            block({"type": "novel"}, [{"type": "novel_delta"}]),
            {"type": "novel"},
            [{"type": "novel_delta"}],
        ),
    ],
)
def test_a_block_is_its_start_its_deltas_and_its_stop(made: Any, start: Any, deltas: Any) -> None:
    assert events(reply(made))[1:-2] == [
        {"type": "content_block_start", "index": 0, "content_block": start},
        *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": 0},
    ]


def test_a_block_left_open_has_no_stop() -> None:
    kinds = [item["type"] for item in events(reply("a", tool_use("a", "read", '{"p', closed=False), stop="max_tokens"))]
    assert kinds[-4:] == ["content_block_start", "content_block_delta", "message_delta", "message_stop"]


def test_thinking_without_a_given_signature_gets_one_of_its_own() -> None:
    assert thinking("a") == thinking("a") != thinking("b")
    assert thinking("a").whole["signature"].startswith("sig_")


def test_pings_stand_where_they_are_told() -> None:
    kinds = [item["type"] for item in events(reply(pings=[3, 0, 1]))]
    assert kinds == ["ping", "message_start", "ping", "message_delta", "message_stop", "ping"]


def test_half_a_surrogate_pair_is_sent_as_its_escape() -> None:
    assert event({"type": "x", "text": "\ud83d"}) == b'event: x\ndata: {"type":"x","text":"\\ud83d"}\n\n'


def test_an_error_is_the_body_of_the_api() -> None:
    wired = wire(error(529, "overloaded_error", "Overloaded", {"Retry-After": "2"}), setting())
    assert wired.status == 529
    assert wired.headers == {"request-id": "req_000007", "content-type": "application/json", "retry-after": "2"}
    assert sent(wired) == [
        b'{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_000007"}'
    ]


def test_a_failing_answer_ends_in_an_error_event() -> None:
    kinds = [item["type"] for item in events(failing(reply("Hi."), after=2))]
    assert kinds == ["message_start", "content_block_start", "error"]
    assert events(failing(reply(), after=0, error_type="api_error", message="x")) == [
        {"type": "error", "error": {"type": "api_error", "message": "x"}}
    ]


def test_a_cut_answer_just_ends_or_breaks_the_connection() -> None:
    whole = sent(wire(reply("Hi."), setting()))
    assert sent(wire(cut(reply("Hi."), after=4), setting())) == whole[:4]
    assert sent(wire(cut(reply("Hi."), after=1, clean=False), setting())) == [whole[0], Drop]
    assert sent(wire(disconnected(), setting())) == [Drop]


def test_wrappers_stack() -> None:
    gate = asyncio.Event()
    whole = sent(wire(reply("Hi."), setting()))
    stacked = cut(stalled(reply("Hi."), after=1, gate=gate), after=3, clean=False)
    assert sent(wire(stacked, setting())) == [whole[0], Wait, *whole[1:3], Drop]
    assert sent(wire(stalled(error(500, "api_error"), after=0, gate=gate), setting()))[0] is Wait


def test_raw_items_go_out_one_by_one() -> None:
    wired = wire(raw([{"type": "ping"}, b"data: [DO", "NE]\n\n"]), setting())
    assert sent(wired) == [b'event: ping\ndata: {"type":"ping"}\n\n', b"data: [DO", b"NE]\n\n"]
    assert wired.headers["content-type"] == "text/event-stream; charset=utf-8"


def test_recorded_headers_keep_what_describes_the_answer_alone() -> None:
    headers = {"Content-Type": "application/json", "Content-Length": "9", "Transfer-Encoding": "chunked", "X-A": "b"}
    wired = wire(raw(b"{}", status=418, headers={**headers, "content-encoding": "gzip"}), setting())
    assert wired.status == 418
    assert wired.headers == {"request-id": "req_000007", "content-type": "application/json", "x-a": "b"}


def test_an_unstreamed_answer_is_one_json_document() -> None:
    answer = reply(thinking("hm", "sig"), tool_use("a", "read", '{"p": 1}', 3), usage={"output_tokens": 5})
    wired = wire(answer, setting(streamed=False))
    (body,) = sent(wired)
    assert json.loads(body) == {
        "id": "msg_000007",
        "type": "message",
        "role": "assistant",
        "model": "claude",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "sig"},
            {"type": "tool_use", "id": "a", "name": "read", "input": {"p": 1}},
        ],
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {
            "input_tokens": 11,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": 5,
        },
    }


def test_what_breaks_a_stream_is_an_http_error_where_nothing_is_streamed() -> None:
    unstreamed = setting(streamed=False)
    assert wire(failing(reply(), after=1), unstreamed).status == 529
    assert wire(cut(failing(reply(), after=1), after=1), unstreamed).status == 529
    assert sent(wire(cut(reply(), after=1), unstreamed)) == [Drop]


MESSAGE: dict[str, Any] = {
    "id": "msg_rec",
    "model": "claude-rec",
    "content": [
        {"type": "thinking", "thinking": "hm", "signature": "sig"},
        {"type": "text", "text": "see", "citations": [{"type": "page_location", "cited_text": "x"}]},
        {"type": "text", "text": "plain", "citations": None},
        {"type": "tool_use", "id": "a", "name": "read", "input": {"p": 1}, "caller": {"type": "direct"}},
        {"type": "web_search_tool_result", "tool_use_id": "s", "content": []},
    ],
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": {"input_tokens": 1, "output_tokens": 2},
}


def test_a_recorded_message_is_served_again_unstreamed_as_it_was() -> None:
    (body,) = sent(wire(recorded(MESSAGE), setting(streamed=False)))
    served = json.loads(body)
    assert (served["content"], served["id"], served["model"]) == (MESSAGE["content"], "msg_rec", "claude-rec")


def test_a_recorded_message_is_streamed_in_deltas() -> None:
    deltas = [item["delta"] for item in events(recorded(MESSAGE)) if item["type"] == "content_block_delta"]
    assert deltas == [
        {"type": "thinking_delta", "thinking": "hm"},
        {"type": "signature_delta", "signature": "sig"},
        {"type": "citations_delta", "citation": {"type": "page_location", "cited_text": "x"}},
        {"type": "text_delta", "text": "see"},
        {"type": "text_delta", "text": "plain"},
        {"type": "input_json_delta", "partial_json": '{"p": 1}'},
    ]
    starts = [item["content_block"] for item in events(recorded(MESSAGE)) if item["type"] == "content_block_start"]
    assert starts[3:] == [
        {"type": "tool_use", "id": "a", "name": "read", "input": {}, "caller": {"type": "direct"}},
        MESSAGE["content"][4],
    ]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: error(200, "api_error"), r"error\(\): 200 is no error status; use raw\(..., status=200\)"),
        (lambda: text("ab", 3), "pieces=3: a text of 2 characters cannot be cut into that many"),
        (lambda: text("ab", ["a"]), r"pieces=\['a'\] do not join to 'ab'"),
        (lambda: cut(reply(), after=4), r"cut\(after=4\): the answer has 3 events; choose 0 to 3"),
        (lambda: failing(reply("x"), after=-1), r"failing\(after=-1\): the answer has 6 events; choose 0 to 6"),
    ],
)
def test_an_impossible_answer_is_refused_where_it_is_written(wrong: Any, message: str) -> None:
    with pytest.raises(ScriptError, match=message):
        wrong()


@given(st.text(max_size=40), st.integers(1, 40))
def test_a_text_in_pieces_is_the_text(value: str, pieces: int) -> None:
    made = text(value, min(pieces, max(1, len(value))))
    assert "".join(delta["text"] for delta in made.deltas) == value


@pytest.mark.parametrize(
    "answer",
    [reply(), reply("a", pings=[0, 2]), failing(reply("a"), after=2), cut(reply("a"), after=3), raw([b"a", b"b"])],
)
def test_the_count_of_events_is_what_is_sent(answer: Answer) -> None:
    assert event_count(answer) == len(wire(answer, setting()).steps)
