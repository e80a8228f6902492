"""The recorded agent sessions as histories of the Messages API: each format's own lines become messages."""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from looplatch.recovery.compression.exchanges import blocks_of
from tests.histories import Block, Message, result, text


def histories_in(corpus: Path) -> dict[str, list[Message]]:
    """Every session with tools in it, by file name."""
    found: dict[str, list[Message]] = {}
    for path in sorted((corpus / "transcripts").iterdir()):
        if path.name.endswith(".source.json"):
            continue
        read = _reader(path.name)
        if read is not None and (messages := joined(read(path))):
            found[path.name] = messages
    return found


def _reader(name: str) -> Callable[[Path], Iterator[Message]] | None:
    if name.startswith("claude-code") and name.endswith(".jsonl"):
        return _claude_code
    return _pi if name.startswith("pi") else None


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_text("utf-8").splitlines():
        yield json.loads(line)


def _claude_code(path: Path) -> Iterator[Message]:
    """One line a content block; thinking whose signature the source has blanked gets one."""
    for number, line in enumerate(_lines(path)):
        message = line.get("message")
        if line["type"] not in ("user", "assistant") or message is None:
            continue
        blocks = [dict(block) for block in blocks_of(message)]
        for block in blocks:
            if block["type"] == "thinking":
                block["signature"] = f"signature-{number}"
        yield {"role": message["role"], "content": blocks}


def _pi(path: Path) -> Iterator[Message]:
    for number, line in enumerate(_lines(path)):
        message = line.get("message")
        if line["type"] != "message" or message is None:
            continue
        if message["role"] == "toolResult":
            answer = result(message["toolCallId"], message["content"], is_error=message["isError"])
            yield {"role": "user", "content": [answer]}
        else:
            blocks = [_pi_block(block, number) for block in message["content"]]
            yield {"role": message["role"], "content": blocks}


def _pi_block(block: Mapping[str, Any], number: int) -> Block:
    match block:
        case {"type": "toolCall", "id": own, "name": name, "arguments": given}:
            return {"type": "tool_use", "id": own, "name": name, "input": given}
        case {"type": "thinking", "thinking": words}:
            return {"type": "thinking", "thinking": words, "signature": f"signature-{number}"}
        case {"type": "text", "text": words}:
            return text(words)
        case _:
            raise AssertionError(f"an unknown block: {block['type']}")


def joined(messages: Iterator[Message]) -> list[Message]:
    """The messages with neighbours of one role joined, and with what the API would refuse left out or answered.

    A session's file holds what happened, cut answers included; its client sent it mended, as it is done here.
    """
    talk: list[Message] = []
    for message in messages:
        blocks = [block for block in message["content"] if block["type"] != "text" or block["text"]]
        if not talk and message["role"] == "assistant":
            continue
        if talk and talk[-1]["role"] == message["role"]:
            talk[-1]["content"] += blocks
        elif blocks:
            talk.append({"role": message["role"], "content": blocks})
    for place in range(1, len(talk), 2):
        _mend(talk, place)
    return talk


def _mend(talk: list[Message], place: int) -> None:
    answer = talk[place]["content"]
    while answer and answer[-1]["type"] == "thinking":
        answer.pop()
    if not answer:
        answer.append(text("(interrupted)"))
    if place + 1 == len(talk):
        return
    said = talk[place + 1]["content"]
    results = {block["tool_use_id"]: block for block in said if block["type"] == "tool_result"}
    calls = [block["id"] for block in answer if block["type"] == "tool_use"]
    talk[place + 1]["content"] = [
        *(results.get(own) or result(own, "interrupted", is_error=True) for own in calls),
        *(block for block in said if block["type"] != "tool_result"),
    ] or [text("(nothing)")]
