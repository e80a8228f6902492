"""Thinking is bound to what stands before it: an edit there must take the thinking along, or not be made."""

from bisect import bisect_left
from collections.abc import Sequence

from looplatch.recovery.compression.edits import Edit, first_changed, in_order
from looplatch.recovery.compression.exchanges import THINKING, Outline, blocks_of, has_results
from looplatch.recovery.compression.settings import Compression
from looplatch.recovery.weights import Message


def editable_from(messages: Sequence[Message], parts: Outline, settings: Compression) -> int:
    """The index of the first message that may be edited in place.

    Nothing is edited before thinking that must stay, nor before a compaction that the API itself has signed.
    """
    match settings.thinking:
        case "drop_block":
            return parts.compacted
        case "keep":
            bound = range(len(messages))
        case "drop":
            bound = bound_turn(messages, parts)
    for place in reversed(parts.thoughts):
        if place in bound:
            return max(place + 1, parts.compacted)
    return parts.compacted


def bound_turn(messages: Sequence[Message], parts: Outline) -> range:
    """The messages of the last answer, where the API wants it back as it was.

    It does as long as the answer is pending, or its tools have just been answered; else the range is empty.
    """
    if parts.is_pending:
        return range(parts.pending, parts.count)
    if parts.exchanges:
        last = parts.exchanges[-1]
        if any(map(has_results, messages[last.answer : last.stop])):
            return range(last.start, last.stop)
    return range(0)


def with_thinking_dropped(
    messages: Sequence[Message], parts: Outline, edits: Sequence[Edit], settings: Compression
) -> tuple[Edit, ...]:
    """The edits, and with them the thinking behind the first of them. None where a turn would be left without content.

    Where thinking is kept, `editable_from` has ruled out edits before it, and there is none to drop.
    """
    if not (edits and parts.thoughts) or settings.thinking != "drop":
        return in_order(edits)
    replaced = {place for edit in edits for place in range(edit.start, edit.stop)}
    dropped: list[Edit] = []
    for place in parts.thoughts[bisect_left(parts.thoughts, first_changed(edits)) :]:
        if place not in replaced:
            left = without_thinking(messages[place])
            if left is None and not _has_neighbour(messages, place):
                return ()
            dropped.append(Edit(start=place, stop=place + 1, messages=() if left is None else (left,)))
    return in_order((*edits, *dropped))


def all_thinking_dropped(messages: Sequence[Message]) -> tuple[Edit, ...]:
    """The edits that leave no thinking: another model goes on, and it is bound to the one that wrote it."""
    edits: list[Edit] = []
    for place, message in enumerate(messages):
        left = without_thinking(message) if message["role"] == "assistant" else message
        if left is None or len(left["content"]) != len(message["content"]):
            edits.append(Edit(start=place, stop=place + 1, messages=() if left is None else (left,)))
    return tuple(edits)


def without_thinking(message: Message) -> Message | None:
    """A message without its thinking: itself if it has none, None where it holds nothing else."""
    if isinstance(message["content"], str):
        return message
    left = [block for block in blocks_of(message) if block.get("type") not in THINKING]
    return {**message, "content": left} if left else None


def _has_neighbour(messages: Sequence[Message], place: int) -> bool:
    """Whether the turn of a message has another one with more than thinking, so that the message can go."""
    for step in (-1, 1):
        other = place + step
        while 0 <= other < len(messages) and messages[other]["role"] == "assistant":
            if without_thinking(messages[other]) is not None:
                return True
            other += step
    return False
