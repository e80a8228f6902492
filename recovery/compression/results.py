"""The tool results of a history, each with the call that it answers, and the edits that give them other content."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from looplatch.recovery.compression.cutting import Content, content_tokens
from looplatch.recovery.compression.edits import Edit
from looplatch.recovery.compression.exchanges import Exchange, blocks_of
from looplatch.recovery.weights import Message


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


def results_of(messages: Sequence[Message], exchanges: Iterable[Exchange]) -> Iterator[Result]:
    """The results of the exchanges, in order."""
    for exchange in exchanges:
        calls: dict[str, Mapping[str, Any]] = {}
        for place in range(exchange.start, exchange.stop):
            message = messages[place]
            for index, block in enumerate(blocks_of(message)):
                kind = block.get("type")
                if kind == "tool_use":
                    calls[block["id"]] = block
                elif kind == "tool_result" and message["role"] == "user":
                    call = calls.get(block["tool_use_id"], {})
                    caller = call.get("caller")
                    yield Result(
                        place,
                        index,
                        call,
                        block.get("content") or "",
                        bool(block.get("is_error")),
                        not caller or caller.get("type") == "direct",
                    )


def saved_by(contents: Iterable[tuple[Result, Content]]) -> int:
    """How many tokens the new contents of results save."""
    return sum(content_tokens(result.content) - content_tokens(new) for result, new in contents)


def with_content(messages: Sequence[Message], contents: Iterable[tuple[Result, Content]]) -> tuple[Edit, ...]:
    """The edits that give each result its new content: one a message."""
    by_place: dict[int, dict[int, Content]] = {}
    for result, content in contents:
        by_place.setdefault(result.place, {})[result.block] = content
    return tuple(
        Edit(start=place, stop=place + 1, messages=(_refilled(messages[place], by_place[place]),))
        for place in sorted(by_place)
    )


def _refilled(message: Message, contents: Mapping[int, Content]) -> Message:
    blocks = [
        {**block, "content": contents[index]} if index in contents else block
        for index, block in enumerate(blocks_of(message))
    ]
    return {**message, "content": blocks}
