"""Histories to compress: a few words to write them by hand, and what must hold of them."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from looplatch.recovery.validity import history_problems
from looplatch.testing import refusal
from looplatch.testing.issued import Issued

Message = dict[str, Any]
Block = dict[str, Any]

PIXELS = "A" * 512  # base64, long enough to weigh as a picture


def text(words: str) -> Block:
    return {"type": "text", "text": words}


def thinking(words: str, signature: str | None = None) -> Block:
    return {"type": "thinking", "thinking": words, "signature": signature or f"signed-{words}"}


def call(own: str, name: str = "read", /, **given: Any) -> Block:
    return {"type": "tool_use", "id": own, "name": name, "input": given}


def result(answers: str, content: Any = "done", *, is_error: bool = False) -> Block:
    block = {"type": "tool_result", "tool_use_id": answers, "content": content}
    return {**block, "is_error": True} if is_error else block


def picture() -> Block:
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXELS}}


def user(*blocks: Block | str) -> Message:
    return _message("user", blocks)


def assistant(*blocks: Block | str) -> Message:
    return _message("assistant", blocks)


def system(words: str) -> Message:
    return {"role": "system", "content": words}


def _message(role: str, blocks: Sequence[Block | str]) -> Message:
    if len(blocks) == 1 and isinstance(blocks[0], str):
        return {"role": role, "content": blocks[0]}
    return {"role": role, "content": [text(block) if isinstance(block, str) else block for block in blocks]}


def step(number: int, content: Any = None, name: str = "read", /, **given: Any) -> list[Message]:
    """A call and its result, of some 500 tokens unless `content` is given."""
    own = f"toolu_{number}"
    filled = f"result {number} " * 200 if content is None else content
    return [assistant(call(own, name, **(given or {"path": f"file-{number}"}))), user(result(own, filled))]


def steps(count: int, first: int = 1) -> list[Message]:
    return [message for number in range(first, first + count) for message in step(number)]


# --- what must hold


def blocks_of(message: Mapping[str, Any]) -> list[Block]:
    content = message["content"]
    return [text(content)] if isinstance(content, str) else content


def all_blocks(messages: Iterable[Message], role: str | None = None) -> Iterator[Block]:
    for message in messages:
        if role in (None, message["role"]):
            yield from blocks_of(message)


def of_type(messages: Iterable[Message], *kinds: str) -> list[Block]:
    return [block for block in all_blocks(messages) if block["type"] in kinds]


def problems(messages: list[Message], issued_by: list[Message] | None = None) -> list[str]:
    """What the validator and the scripted API have against a history, with thinking on and awaited calls answered.

    `issued_by`: the history whose answers the API gave out; None: this one.
    """
    messages = [*messages, *_answers(messages)]
    issued = Issued()
    for turn in _turns(messages if issued_by is None else issued_by):
        if turn[0]["role"] == "assistant":
            issued.learn_blocks(all_blocks(turn))
    thinking_on = {"type": "enabled", "budget_tokens": 1_024}
    body = {"model": "m", "max_tokens": 2_000, "thinking": thinking_on, "messages": messages}
    refused = refusal(body, issued=issued)
    return [*history_problems(messages), *([] if refused is None else [refused])]


def _answers(messages: list[Message]) -> list[Message]:
    """The message that answers the calls of the last turn, where it waits for one."""
    if not messages or messages[-1]["role"] != "assistant":
        return []
    awaited = of_type(list(_turns(messages))[-1], "tool_use")
    return [user(*(result(block["id"]) for block in awaited))] if awaited else []


def _turns(messages: Iterable[Message]) -> Iterator[list[Message]]:
    spoken = (message for message in messages if message["role"] != "system")
    for _, turn in itertools.groupby(spoken, key=lambda message: message["role"]):
        yield list(turn)
