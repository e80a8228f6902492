"""The conversation that a log tells of, rebuilt from its message records and the kept payloads."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, assert_never, cast

from looplatch.audit.errors import LogDamaged
from looplatch.audit.protocol import PayloadSource
from looplatch.encoding import decode
from looplatch.recovery.compression.edits import replaced
from looplatch.states.brief import brief
from looplatch.states.record import Kind, Record, commitment
from looplatch.states.vocabulary import Op

Message = dict[str, Any]
Skeleton = dict[str, Any]


def rebuild(records: Iterable[Record], payloads: PayloadSource, file: Path | None = None) -> list[Message]:
    """The messages as plain API dicts, as they stood after the last of `records`.

    A block whose payload is not kept any more says so in its text, and keeps its ids. Raises LogDamaged where a record
    does not fit the history before it, or a payload is not the one that the record names.
    """
    messages: list[Message] = []
    for record in records:
        if record.kind is Kind.MESSAGE:
            try:
                _apply(record, messages, payloads)
            except (KeyError, IndexError, TypeError, ValueError) as error:
                problem = f"the message record does not fit the history before it ({brief(error)})"
                raise LogDamaged(file, record.seq + 1, problem) from error
    return messages


def _apply(record: Record, messages: list[Message], payloads: PayloadSource) -> None:
    op = Op(record["op"])
    if op is Op.EDIT:
        messages[:] = replaced(messages, [_edited(edit, payloads) for edit in record["edits"]])
        return
    index: int = record["index"]
    match op:
        case Op.JOIN:
            if not 0 <= index <= len(messages):
                raise IndexError(f"index {index} of {len(messages)}")
            messages.insert(index, _message(record, payloads))
        case Op.EXTEND:
            if index != len(messages) - 1:
                raise IndexError(f"index {index} of {len(messages)}")
            content = messages[index]["content"]
            if isinstance(content, str):
                content = [{"type": "text", "text": content}]
            messages[index]["content"] = content + [_block(skeleton, payloads) for skeleton in record["blocks"]]
        case Op.LEAVE:
            stop = index + record.get("count", 1)
            if not 0 <= index < stop <= len(messages):
                raise IndexError(f"index {index} to {stop} of {len(messages)}")
            del messages[index:stop]
        case _:
            assert_never(op)


def _edited(edit: Mapping[str, Any], payloads: PayloadSource) -> tuple[int, int, list[Message]]:
    return edit["start"], edit["stop"], [_message(one, payloads) for one in edit["messages"]]


def _message(told: Record | Mapping[str, Any], payloads: PayloadSource) -> Message:
    """The message that a record, or one of an edit's, tells of."""
    blocks = [_block(skeleton, payloads) for skeleton in told["blocks"]]
    if told["form"] == "text":
        (block,) = blocks
        return {"role": told["role"], "content": block["text"]}
    return {"role": told["role"], "content": blocks}


def _block(skeleton: Skeleton, payloads: PayloadSource) -> Message:
    wanted: str = skeleton["commitment"]
    found = payloads.find(wanted)
    if found is None:
        return _stand_in(skeleton)
    if commitment(*found) != wanted:
        raise ValueError(f"the payload kept for commitment {wanted} is another one")
    block: object = decode(found[1])
    if isinstance(block, str):  # the content of a message that was one string
        return {"type": "text", "text": block}
    if not isinstance(block, dict):
        raise TypeError(f"the payload kept for commitment {wanted} is no block")
    return cast("Message", block)


def _stand_in(skeleton: Skeleton) -> Message:
    """What takes the place of a block that is not kept: calls and results stay, so that each still has the other."""
    kind: str = skeleton["type"]
    text = f"[{kind} of {skeleton['bytes']} bytes, no longer kept; commitment {skeleton['commitment']}]"
    match kind:
        case "tool_use":
            return {"type": kind, "id": skeleton["id"], "name": skeleton["name"], "input": {"not_kept": text}}
        case "tool_result":
            result: Message = {"type": kind, "tool_use_id": skeleton["tool_use_id"], "content": text}
            return {**result, "is_error": True} if skeleton.get("is_error") else result
        case _:
            return {"type": "text", "text": text}
