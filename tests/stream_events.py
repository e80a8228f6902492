"""The events of a streamed answer, as the API sends them, and answers assembled of them."""

from typing import Any

from looplatch.model import Assembly

Event = dict[str, Any]


def start(**fields: Any) -> Event:
    message: Event = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x", "content": []}
    message |= {"stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 7, "output_tokens": 1}}
    return {"type": "message_start", "message": message | fields}


def begin(index: int, **block: Any) -> Event:
    return {"type": "content_block_start", "index": index, "content_block": block}


def change(index: int, **delta: Any) -> Event:
    return {"type": "content_block_delta", "index": index, "delta": delta}


def end(index: int) -> Event:
    return {"type": "content_block_stop", "index": index}


def stop(reason: str | None, usage: dict[str, Any] | None = None, **fields: Any) -> Event:
    delta = {"stop_reason": reason, "stop_sequence": None}
    return {"type": "message_delta", "delta": delta, "usage": usage or {"output_tokens": 9}} | fields


STOP: Event = {"type": "message_stop"}


def text(index: int, *pieces: str) -> list[Event]:
    deltas = [change(index, type="text_delta", text=piece) for piece in pieces]
    return [begin(index, type="text", text=""), *deltas, end(index)]


def use(index: int, *pieces: str, **fields: Any) -> list[Event]:
    block: Event = {"type": "tool_use", "id": f"toolu_{index}", "name": "read", "input": {}}
    block |= fields
    deltas = [change(index, type="input_json_delta", partial_json=piece) for piece in pieces]
    return [begin(index, **block), *deltas, end(index)]


def assembled(*events: Event | list[Event], limit: int | None = None) -> Assembly:
    assembly = Assembly() if limit is None else Assembly(limit=limit)
    for event in events:
        for one in event if isinstance(event, list) else [event]:
            assembly.feed(one)
    return assembly
