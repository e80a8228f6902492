"""`looplatch.model.assembly`: an answer out of its events, and nothing that the events do not say."""

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from looplatch.model import Assembly, FinishedBlock, ParsedCall
from tests.stream_events import STOP, Event, assembled, begin, change, end, start, stop, text, use


def the_call(*events: Event | list[Event]) -> ParsedCall:
    calls = [done.call for done in assembled(*events).finished if done.call is not None]
    assert len(calls) == 1
    return calls[0]


# What is assembled


def test_a_whole_answer_is_its_blocks_and_the_facts_of_its_message() -> None:
    assembly = assembled(start(), text(0, "Hel", "lo"), use(1, '{"path"', ':"a"}'), stop("tool_use"), STOP)
    called: Event = {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "a"}}
    call = ParsedCall(
        id="toolu_1", name="read", input={"path": "a"}, raw='{"path":"a"}', error=None, empty=False, direct=True
    )
    assert assembly.finished == [
        FinishedBlock(index=0, block={"type": "text", "text": "Hello"}, call=None, sendable=True),
        FinishedBlock(index=1, block=called, call=call, sendable=True),
    ]
    assert assembly.content == [{"type": "text", "text": "Hello"}, called]
    assert (assembly.message_id, assembly.model, assembly.stop_reason) == ("msg_1", "claude-x", "tool_use")
    assert assembly.usage == {"input_tokens": 7, "output_tokens": 9}
    assert assembly.complete


def test_a_block_is_returned_by_the_event_that_finishes_it() -> None:
    assembly = assembled(start(), text(0, "a")[:-1])
    assert assembly.feed(change(0, type="text_delta", text="b")) == ()
    (done,) = assembly.feed(end(0))
    assert done.block == {"type": "text", "text": "ab"}
    assert assembly.finished == [done]


def test_thinking_keeps_its_signature_and_redacted_thinking_its_data() -> None:
    assembly = assembled(
        start(),
        begin(0, type="thinking", thinking="", signature=""),
        change(0, type="thinking_delta", thinking="hm"),
        change(0, type="thinking_delta", thinking="m"),
        change(0, type="signature_delta", signature="c2ln"),
        end(0),
        begin(1, type="redacted_thinking", data="b3A="),
        end(1),
    )
    assert assembly.content == [
        {"type": "thinking", "thinking": "hmm", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "b3A="},
    ]


def test_thinking_that_is_only_a_signature_is_sent_back_and_unsigned_thinking_is_not() -> None:
    only = assembled(
        start(),
        begin(0, type="thinking", thinking="", signature=""),
        change(0, type="signature_delta", signature="c2ln"),
        end(0),
    )
    assert only.content == [{"type": "thinking", "thinking": "", "signature": "c2ln"}]
    unsigned = assembled(start(), begin(0, type="thinking", thinking="hm", signature=""), end(0))
    assert [done.sendable for done in unsigned.finished] == [False]
    assert unsigned.content == []


def test_a_signature_comes_whole_so_the_last_one_holds() -> None:
    assembly = assembled(
        start(),
        begin(0, type="thinking", thinking="", signature="old"),
        change(0, type="signature_delta", signature="bWlk"),
        change(0, type="signature_delta", signature="bmV3"),
        end(0),
    )
    assert assembly.content == [{"type": "thinking", "thinking": "", "signature": "bmV3"}]


def test_empty_text_is_not_sent_back_and_blank_text_is() -> None:
    assembly = assembled(start(), text(0), text(1, " "))
    assert [done.sendable for done in assembly.finished] == [False, True]
    assert assembly.content == [{"type": "text", "text": " "}]


def test_citations_are_collected_in_order_whether_the_block_starts_with_a_list_or_not() -> None:
    first, second = {"type": "char_location", "cited_text": "a"}, {"type": "char_location", "cited_text": "b"}
    beginnings: list[Event] = [{}, {"citations": None}, {"citations": []}]
    for begun in beginnings:
        assembly = assembled(
            start(),
            begin(0, type="text", text="", **begun),
            change(0, type="citations_delta", citation=first),
            change(0, type="text_delta", text="t"),
            change(0, type="citations_delta", citation=second),
            end(0),
        )
        assert assembly.content == [{"type": "text", "text": "t", "citations": [first, second]}]


def test_blocks_and_deltas_that_are_not_known_are_kept_and_merged() -> None:
    assembly = assembled(
        start(),
        begin(0, type="novel", parts=["a"], words="x", level=1, none=None),
        change(0, type="novel_delta", parts=["b"], words="y", level=2, none=None, more={"k": 1}),
        change(0, type="novel_delta", words="z", late="l"),
        change(0, type="text_delta", text="t"),
        end(0),
    )
    expected = {"type": "novel", "parts": ["a", "b"], "words": "xyz", "level": 2, "none": None, "more": {"k": 1}}
    assert assembly.content == [expected | {"late": "l", "text": "t"}]


def test_a_compaction_block_gets_its_content_from_its_delta() -> None:
    assembly = assembled(
        start(),
        begin(0, type="compaction", content=None, encrypted_content=None),
        change(0, type="compaction_delta", content="short", encrypted_content="EpwB"),
        end(0),
    )
    assert assembly.content == [{"type": "compaction", "content": "short", "encrypted_content": "EpwB"}]


def test_an_event_is_not_changed_by_what_is_made_of_it() -> None:
    opening = begin(0, type="text", text="", citations=[])
    assembled(start(), opening, change(0, type="citations_delta", citation={"a": 1}), end(0))
    assert opening == begin(0, type="text", text="", citations=[])


def test_a_fallback_block_names_the_model_that_went_on() -> None:
    block = {"type": "fallback", "from": {"model": "claude-x"}, "to": {"model": "claude-y"}}
    assembly = assembled(start(), begin(0, **block), end(0))
    assert assembly.model == "claude-y"
    assert assembly.content == [block]


def test_usage_is_overwritten_not_added_and_what_is_missing_is_kept() -> None:
    assembly = assembled(
        start(usage={"input_tokens": 7, "cache_read_input_tokens": 3, "output_tokens": 1}),
        stop("end_turn", {"output_tokens": 5, "cache_read_input_tokens": None, "server_tool_use": None}),
        stop("end_turn", {"output_tokens": 6}),
    )
    assert assembly.usage == {
        "input_tokens": 7,
        "cache_read_input_tokens": 3,
        "output_tokens": 6,
        "server_tool_use": None,
    }


def test_stop_details_and_unknown_fields_of_the_message_are_kept() -> None:
    ending = stop("refusal", context_management={"applied_edits": []}, unknown=None)
    ending["delta"] |= {"stop_details": {"category": "bio"}, "container": {"id": "c"}, "stop_sequence": "END"}
    assembly = assembled(start(provider="p", diagnostics=None), ending, STOP)
    assert (assembly.stop_reason, assembly.stop_sequence) == ("refusal", "END")
    assert assembly.stop_details == {"category": "bio"}
    assert assembly.extra == {"provider": "p", "context_management": {"applied_edits": []}, "container": {"id": "c"}}


def test_an_answer_may_be_whole_in_its_message_start() -> None:
    blocks: list[Event] = [
        {"type": "text", "text": "Hi"},
        {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"n": 1}},
    ]
    assembly = Assembly()
    done = assembly.feed(start(content=blocks, stop_reason="tool_use"))
    assert [block.block for block in done] == blocks
    assert list(done) == assembly.finished
    assert done[1].call is not None
    assert done[1].call.input == {"n": 1}
    assert (assembly.stop_reason, assembly.moved_on, assembly.complete) == ("tool_use", 2, False)
    assembly.feed(STOP)
    assert assembly.complete


# Tool calls


def test_an_input_that_is_no_json_is_a_call_that_cannot_run_and_is_sent_back_as_a_text() -> None:
    raw = '{"path":"a", "content":"hel'
    assembly = assembled(start(), use(0, raw), stop("max_tokens"), STOP)
    call = assembly.finished[0].call
    assert call is not None
    assert (call.input, call.raw, call.empty) == (None, raw, False)
    assert call.error is not None
    assert assembly.content[0]["input"] == {"INVALID_JSON": raw}


def test_an_escaped_lone_surrogate_does_not_end_the_turn_and_can_be_sent_back() -> None:
    assembly = assembled(start(), use(0, '{"a": "x\\ud83a', '"}'))
    call = assembly.finished[0].call
    assert call is not None
    assert (call.input, call.raw) == ({"a": "x\ufffd"}, '{"a": "x\\ud83a"}')
    assert assembly.content[0]["input"] == {"a": "x\ufffd"}


def test_a_character_torn_between_two_deltas_is_whole_again() -> None:
    assembly = assembled(start(), text(0, "a\ud83d", "\ude00b"), text(1, "lone \ud83d"))
    assert assembly.content == [{"type": "text", "text": "a😀b"}, {"type": "text", "text": "lone \ufffd"}]


@pytest.mark.parametrize("pieces", [(), ("",), ("", "")])
def test_an_empty_buffer_is_an_empty_input_and_says_so(pieces: tuple[str, ...]) -> None:
    call = the_call(start(), use(0, *pieces))
    assert (call.input, call.raw, call.error, call.empty) == ({}, "", None, True)


def test_an_input_that_the_block_starts_with_is_taken_as_it_is_unless_deltas_follow() -> None:
    taken = the_call(start(), use(0, input={"player": "p"}))
    assert (taken.input, taken.raw, taken.empty) == ({"player": "p"}, '{"player":"p"}', False)
    assert the_call(start(), use(0, '{"a":1}', input={"player": "p"})).input == {"a": 1}


@pytest.mark.parametrize(
    ("fields", "direct"),
    [
        ({}, True),
        ({"caller": None}, True),
        ({"caller": {"type": "direct"}}, True),
        ({"caller": {"type": "code_execution_20260120", "tool_id": "srvtoolu_1"}}, False),
    ],
)
def test_a_call_is_direct_unless_a_server_tool_is_its_caller(fields: Event, direct: bool) -> None:
    assert the_call(start(), use(0, "{}", **fields)).direct is direct


@pytest.mark.parametrize("kind", ["server_tool_use", "mcp_tool_use"])
def test_the_inputs_of_server_tools_are_read_as_strictly_but_are_no_calls(kind: str) -> None:
    assembly = assembled(start(), use(0, '{"q":', "1}", type=kind), use(1, '{"q":', type=kind))
    assert [done.call for done in assembly.finished] == [None, None]
    assert [block["input"] for block in assembly.content] == [{"q": 1}, {"INVALID_JSON": '{"q":'}]


# What is not finished


def test_a_block_without_its_stop_is_not_finished_even_if_the_message_is() -> None:
    assembly = assembled(start(), text(0, "a"), use(1, '{"a":1}')[:-1], stop("tool_use"), STOP)
    assert assembly.complete
    assert [done.index for done in assembly.finished] == [0]


def test_the_partial_text_is_that_of_the_unfinished_text_blocks() -> None:
    assembly = assembled(start(), text(0, "done"), text(1, "un", "finished")[:-1])
    assert assembly.partial_text() == [{"type": "text", "text": "unfinished"}]
    assembly.feed(change(1, type="text_delta", text="!"))
    assert assembly.partial_text() == [{"type": "text", "text": "unfinished!"}]
    assert assembled(start(), text(0)[:-1]).partial_text() == []
    assert assembled(start(), use(0, '{"a')[:-1]).partial_text() == []


def test_a_partial_text_is_not_changed_by_what_follows() -> None:
    assembly = assembled(start(), begin(0, type="text", text="a", citations=[]))
    (partial,) = assembly.partial_text()
    assembly.feed(change(0, type="citations_delta", citation={"cited_text": "b"}))
    assert partial == {"type": "text", "text": "a", "citations": []}


# Whatever is written, in whatever pieces


inputs = st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=9) | st.lists(st.integers()), max_size=3)
written = st.lists(st.tuples(st.just("text"), st.text(min_size=1)) | st.tuples(st.just("tool_use"), inputs), max_size=6)
places = st.lists(st.integers(0, 200), max_size=6)


def in_pieces(whole: str, cuts: list[int]) -> list[str]:
    bounds = sorted({0, len(whole), *(cut % (len(whole) + 1) for cut in cuts)})
    return [whole[first:last] for first, last in itertools.pairwise(bounds)]


@given(written, places)
def test_what_was_written_is_assembled_whatever_the_pieces(blocks: list[tuple[str, Any]], cuts: list[int]) -> None:
    events: list[Event] = [start()]
    expected: list[Event] = []
    for index, (kind, content) in enumerate(blocks):
        if kind == "text":
            events += text(index, *in_pieces(content, cuts))
            expected.append({"type": "text", "text": content})
        else:
            events += use(index, *in_pieces(json.dumps(content), cuts))
            expected.append({"type": "tool_use", "id": f"toolu_{index}", "name": "read", "input": content})
    assembly = assembled(events, stop("tool_use"), STOP)
    assert assembly.content == expected
    assert assembly.moved_on == len(blocks)


@given(inputs, st.integers(0, 400))
def test_an_input_that_was_cut_anywhere_is_never_usable(content: dict[str, Any], place: int) -> None:
    raw = json.dumps(content)
    call = the_call(start(), use(0, raw[: place % len(raw)]), stop("max_tokens"), STOP)
    assert call.empty or call.input is None
