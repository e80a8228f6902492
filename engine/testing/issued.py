"""What the scripted API gave out, so that it can tell what was made up or changed on its way back."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

import orjson
from attrs import define, field

from looplatch.testing.answers import Answer, Cut, Disconnected, ErrorAnswer, Failing, Raw, Reply, Stalled
from looplatch.testing.shapes import is_object
from looplatch.testing.wire import event


@define(eq=False)
class Issued:
    """The thinking, the compactions, the block types and the calls of every answer so far."""

    thinking: dict[str, str] = field(factory=dict[str, str])
    redacted: set[str] = field(factory=set[str])
    types: set[str] = field(factory=set[str])
    thoughtful: set[str] = field(factory=set[str])
    compactions: dict[str, str] = field(factory=dict[str, str])

    def learn(self, answer: Answer) -> None:
        """Remember an answer that is about to be sent."""
        match answer:
            case Reply():
                self.learn_blocks(item.whole for item in answer.blocks)
            case Raw():
                self.learn_blocks(_raw_blocks(answer))
            case Failing() | Cut() | Stalled():
                self.learn(answer.answer)
            case ErrorAnswer() | Disconnected():
                pass

    def learn_blocks(self, blocks: Iterable[Mapping[str, Any]]) -> None:
        """Remember the blocks of one message; the ids of calls behind a leading thinking block are `thoughtful`."""
        led: bool | None = None
        for block in blocks:
            kind = block.get("type")
            led = kind in ("thinking", "redacted_thinking") if led is None else led
            self.types.add(str(kind))
            match kind:
                case "thinking":
                    self.thinking[str(block.get("signature"))] = str(block.get("thinking"))
                case "compaction":
                    self.compactions[str(block.get("signature"))] = str(block.get("content"))
                case "redacted_thinking":
                    self.redacted.add(str(block.get("data")))
                case "tool_use" if led:
                    self.thoughtful.add(str(block.get("id")))
                case _:
                    pass


def _raw_blocks(answer: Raw) -> list[Mapping[str, Any]]:
    """The blocks that a raw answer spells, as far as they can be read."""
    sent = b"".join(item if isinstance(item, bytes) else event(item) for item in answer.items)
    whole: list[Mapping[str, Any]] = []
    started: dict[int, dict[str, Any]] = {}
    for item in filter(is_object, _data(sent)):
        with suppress(LookupError, TypeError, AttributeError):  # raw answers may be malformed on purpose
            _read(item, whole, started)
    return [*filter(is_object, whole), *started.values()]


def _read(item: Mapping[str, Any], whole: list[Mapping[str, Any]], started: dict[int, dict[str, Any]]) -> None:
    match item.get("type"):
        case "message":
            whole += item["content"]
        case "message_start":
            whole += item["message"].get("content") or ()
        case "content_block_start":
            started[item["index"]] = dict(item["content_block"])
        case "content_block_delta":
            block = started.setdefault(item["index"], {})
            for name in ("thinking", "signature"):
                if name in item["delta"]:
                    block[name] = f"{block.get(name, '')}{item['delta'][name]}"
        case _:
            pass


def _data(sent: bytes) -> Iterator[Any]:
    """The data of each server-sent event, or the one JSON document; what is neither is passed over."""
    lines = [line[5:] for line in sent.splitlines() if line.startswith(b"data:")]
    for text in lines or [sent]:
        try:
            yield orjson.loads(text)
        except orjson.JSONDecodeError:
            continue
