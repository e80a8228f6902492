"""Answers as the bytes of an HTTP response, rendered once per scenario: one chunk for each event, as the API sends."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import attrs
import orjson

from tests.benchmarks.scenario import MODEL, TOOL, Scenario, tool_use_id

_HEAD: Final = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
    b"cache-control: no-cache\r\ntransfer-encoding: chunked\r\nrequest-id: req_bench\r\n\r\n"
)
_END: Final = b"0\r\n\r\n"
_TURN: Final = b"toolu_000000_"  # stands in a rendered answer for the turn, which is of the same length


@attrs.frozen
class Rendered:
    """An answer: what is written at once, and what after the scenario's `hold_ms`."""

    first: bytes
    rest: bytes

    def of_turn(self, turn: int) -> bytes:
        """What is written at once in this turn."""
        return self.first.replace(_TURN, b"toolu_%06d_" % turn)


@lru_cache
def rendered(scenario: Scenario, *, last: bool) -> Rendered:
    """The answer of every turn but the last, or that of the last one."""
    blocks = [_text(0, scenario.pieces(scenario.final if last else scenario.text))]
    if not last:
        blocks += [_call(1 + place, tool_use_id(0, place), scenario) for place in range(scenario.calls)]
    first = [_message_start(), *(event for block in blocks for event in block)]
    stop = "end_turn" if last else "tool_use"
    rest: list[Mapping[str, Any]] = [
        {
            "type": "message_delta",
            "delta": {"stop_reason": stop, "stop_sequence": None},
            "usage": {"input_tokens": 10, "output_tokens": 10},
        },
        {"type": "message_stop"},
    ]
    begun, ended = _HEAD + b"".join(map(_chunk, first)), b"".join(map(_chunk, rest)) + _END
    return Rendered(begun, ended) if scenario.hold_ms and not last else Rendered(begun + ended, b"")


def _message_start() -> Mapping[str, Any]:
    message: dict[str, Any] = {
        "id": "msg_bench",
        "type": "message",
        "role": "assistant",
        "model": MODEL,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 1},
    }
    return {"type": "message_start", "message": message}


def _text(index: int, pieces: list[str]) -> list[Mapping[str, Any]]:
    deltas = [{"type": "text_delta", "text": piece} for piece in pieces]
    return _block(index, {"type": "text", "text": ""}, deltas) if pieces else []


def _call(index: int, id_: str, scenario: Scenario) -> list[Mapping[str, Any]]:
    written, size = scenario.input_json(), scenario.input_piece
    pieces = ["", *(written[place : place + size] for place in range(0, len(written), size))]
    deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    return _block(index, {"type": "tool_use", "id": id_, "name": TOOL, "input": {}}, deltas)


def _block(index: int, start: Mapping[str, Any], deltas: list[dict[str, str]]) -> list[Mapping[str, Any]]:
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def _chunk(event: Mapping[str, Any]) -> bytes:
    data = b"event: %b\ndata: %b\n\n" % (str(event["type"]).encode(), orjson.dumps(event))
    return b"%x\r\n%b\r\n" % (len(data), data)
