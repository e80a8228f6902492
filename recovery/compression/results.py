"""The tool results of a history, each with the call that it answers, and the edits that give them other content."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from looplatch.recovery.compression.cutting import Content
from looplatch.recovery.compression.edits import Edit
from looplatch.recovery.compression.exchanges import Exchange
from looplatch.recovery.weights import Message

_UNKNOWN: Final[Mapping[str, Any]] = {}


class Result(NamedTuple):
    """A tool_result: block number `block` of the message at `place`.

    `call` is the tool_use block that it answers, empty where that is not to be found. `direct`: the model made the call
    itself. What a tool of the server's own called for is not the model's to see.
    """

    place: int
    block: int
    call: Mapping[str, Any]
    content: Content
    is_error: bool
    direct: bool


def results_of(messages: Sequence[Message], exchanges: Iterable[Exchange]) -> list[Result]:
    """The results of the exchanges, in order."""
    results: list[Result] = []
    for exchange in exchanges:
        calls: dict[str, Mapping[str, Any]] = {}
        for place in range(exchange.start, exchange.stop):
            message = messages[place]
            content = message["content"]
            if isinstance(content, str):
                continue
            if message["role"] != "user":
                for block in content:
                    if block["type"] == "tool_use":
                        calls[block["id"]] = block
                continue
            for index, block in enumerate(content):
                if block["type"] == "tool_result":
                    call = calls.get(block["tool_use_id"], _UNKNOWN)
                    direct = "caller" not in call or _is_direct(call["caller"])
                    failed = "is_error" in block and bool(block["is_error"])
                    results.append(Result(place, index, call, block.get("content") or "", failed, direct))
    return results


def _is_direct(caller: Mapping[str, Any] | None) -> bool:
    return not caller or caller.get("type") == "direct"


def with_content(messages: Sequence[Message], contents: Iterable[tuple[Result, Content]]) -> tuple[Edit, ...]:
    """The edits that give each result its new content: one a message."""
    refilled: dict[int, list[Mapping[str, Any]]] = {}
    for (place, number, *_), content in contents:
        blocks = refilled.get(place)
        if blocks is None:
            blocks = refilled[place] = list(messages[place]["content"])
        blocks[number] = {**blocks[number], "content": content}
    return tuple(
        Edit(start=place, stop=place + 1, messages=({**messages[place], "content": refilled[place]},))
        for place in sorted(refilled)
    )
