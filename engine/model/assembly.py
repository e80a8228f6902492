"""The assembly of an answer from its stream events, without any I/O.

Content is what the events say and nothing else: a block is finished with its `content_block_stop`, a message with its
`message_stop`. What the API adds later is kept as it comes, so that it can be sent back.
"""

from collections.abc import Iterable
from typing import Any, Final

import attrs

from looplatch.encoding import copied
from looplatch.model.blocks import FinishedBlock, OpenBlock, size_of
from looplatch.model.shapes import is_array, is_object
from looplatch.recovery.failure import BadStream
from looplatch.states.brief import brief
from looplatch.states.table import DECISIONS

ANSWER_LIMIT: Final = 64 * 1024 * 1024  # characters of one answer

_NOTHING: Final[tuple[FinishedBlock, ...]] = ()
_STOP_FIELDS: Final = frozenset({"stop_reason", "stop_sequence", "stop_details"})
_STARTED_FIELDS: Final = frozenset({"id", "type", "role", "content", "model", "usage", *_STOP_FIELDS})
_CHANGED_FIELDS: Final = frozenset({"type", "delta", "usage"})


class Assembly:
    """An answer that grows event by event.

    message_id, model: as `message_start` gives them (a fallback block names the model that went on).
    stop_reason, stop_sequence, stop_details: why the model stopped; None until it says so.
    usage: token counts so far. They are cumulative, so later ones replace earlier ones; a field that is missing later
        keeps its value.
    extra: every other field of the message that is not null (`container`, `context_management` ...).
    finished: the finished blocks, by index.
    moved_on: the model has moved on from every block whose index is below this: a later block has begun, or the model
        stopped for a reason that is no truncation.
    complete: `message_stop` has come.

    Nothing of it is shared with the events: whoever else has them may change them.
    """

    __slots__ = (
        "_begun",
        "_last_index",
        "_left",
        "_limit",
        "_open",
        "complete",
        "extra",
        "finished",
        "message_id",
        "model",
        "moved_on",
        "stop_details",
        "stop_reason",
        "stop_sequence",
        "usage",
    )

    def __init__(self, *, limit: int = ANSWER_LIMIT) -> None:
        """`limit` bounds the characters of text and JSON that the answer may have."""
        self.message_id: str | None = None
        self.model: str | None = None
        self.stop_reason: str | None = None
        self.stop_sequence: str | None = None
        self.stop_details: dict[str, Any] | None = None
        self.usage: dict[str, Any] = {}
        self.extra: dict[str, Any] = {}
        self.finished: list[FinishedBlock] = []
        self.moved_on = 0
        self.complete = False
        self._open: dict[int, OpenBlock] = {}
        self._begun = False
        self._last_index = -1
        self._limit = limit
        self._left = limit

    def feed(self, event: dict[str, Any]) -> tuple[FinishedBlock, ...]:
        """Take the next event and return the blocks that it finished.

        Events of an unknown type, and pings, change nothing. Raises BadStream for an event that breaks the protocol (a
        delta for no open block, a second `message_start` ...), and when the answer outgrows its limit.
        """
        kind = event.get("type")
        if kind == "content_block_delta":
            self.feed_deltas((event,))
            return _NOTHING
        match kind:
            case "content_block_start":
                self._start_block(event)
            case "content_block_stop":
                return self._stop_block(event)
            case "message_start":
                return self._start_message(event)
            case "message_delta":
                self._change_message(event)
            case "message_stop":
                self._expect_message("message_stop")
                self.complete = True
            case _:
                pass
        return _NOTHING

    def feed_deltas(self, events: Iterable[dict[str, Any]]) -> None:
        """Take the next events, which are all `content_block_delta`. Raises BadStream as `feed` does."""
        open_blocks = self._open
        for event in events:
            # The one hot path: a lookup and an append. Whatever is unusual here is told apart in `_unusual_delta`.
            try:
                delta: Any = event["delta"]
                field, pieces = open_blocks[event["index"]].sinks[delta["type"]]
                piece: object = delta[field]
            except (KeyError, TypeError):
                self._unusual_delta(event)
                continue
            if not isinstance(piece, str):
                raise BadStream(f"the {field} of a delta is no text")
            pieces.append(piece)
            self._left -= len(piece)
        if self._left < 0:
            self._refuse_size()

    @property
    def content(self) -> list[dict[str, Any]]:
        """The finished blocks that can be sent back, in order."""
        return [done.block for done in self.finished if done.sendable]

    def partial_text(self) -> list[dict[str, Any]]:
        """Return what there is of the text blocks that are not finished, as text blocks; without empty ones."""
        unfinished = (block.finish() for block in self._open.values() if block.type == "text")
        return [copied(done.block) for done in unfinished if done.sendable]

    def trim(self) -> list[FinishedBlock]:
        """Take the white space from the end of what can be sent back; a text that is nothing else cannot be any more.

        Returns the blocks that are others now.
        """
        changed: list[FinishedBlock] = []
        for place, done in reversed(list(enumerate(self.finished))):
            if not done.sendable:
                continue
            said = str(done.block["text"]) if done.block.get("type") == "text" else ""
            if said == (left := said.rstrip()):
                break
            self.finished[place] = attrs.evolve(done, block={**done.block, "text": left}, sendable=bool(left))
            changed.append(self.finished[place])
            if left:
                break
        return changed

    def _start_message(self, event: dict[str, Any]) -> tuple[FinishedBlock, ...]:
        message = event.get("message")
        if self._begun:
            raise BadStream("a second message_start came within one answer")
        if not is_object(message):
            raise BadStream("message_start has no message")
        self._begun = True
        self.message_id = _text_or_none(message.get("id"), "message id")
        self.model = _text_or_none(message.get("model"), "model")
        self._merge_usage(message.get("usage"))
        self._keep(message, _STARTED_FIELDS)
        content: object = message.get("content") or []
        if not is_array(content):
            raise BadStream("the content of message_start is no list")
        # An answer may come whole in its message_start, without any other block or delta.
        done = tuple(self._open_block(place, block).finish() for place, block in enumerate(content))
        self.finished.extend(done)
        self._merge_stop(message)
        return done

    def _change_message(self, event: dict[str, Any]) -> None:
        self._expect_message("message_delta")
        delta = event.get("delta")
        changes = delta if is_object(delta) else {}
        self._merge_usage(event.get("usage"))
        self._keep(event, _CHANGED_FIELDS)
        self._keep(changes, _STOP_FIELDS)
        self._merge_stop(changes)

    def _merge_stop(self, changes: dict[str, Any]) -> None:
        if is_object(details := changes.get("stop_details")):
            self.stop_details = copied(details)
        if (sequence := _text_or_none(changes.get("stop_sequence"), "stop_sequence")) is not None:
            self.stop_sequence = sequence
        if (reason := _text_or_none(changes.get("stop_reason"), "stop_reason")) is not None:
            self.stop_reason = reason
            if DECISIONS.is_whole(reason):  # after any other reason the last block may be cut
                self.moved_on = self._last_index + 1

    def _merge_usage(self, usage: object) -> None:
        if is_object(usage):
            for field, value in usage.items():
                if value is not None or field not in self.usage:
                    self.usage[field] = copied(value)

    def _keep(self, fields: dict[str, Any], known: frozenset[str]) -> None:
        if not fields.keys() <= known:
            for field, value in fields.items():
                if value is not None and field not in known:
                    self.extra[field] = copied(value)

    def _start_block(self, event: dict[str, Any]) -> None:
        self._expect_message("content_block_start")
        block = self._open_block(event.get("index"), event.get("content_block"))
        self._open[block.index] = block

    def _open_block(self, index: object, start: object) -> OpenBlock:
        if not isinstance(index, int) or isinstance(index, bool) or index <= self._last_index:
            raise BadStream(f"content block {brief(index)} began after content block {self._last_index}")
        if not is_object(start):
            raise BadStream(f"content block {index} has no content")
        block = OpenBlock(index, start)
        self._last_index = self.moved_on = index
        self._count(size_of(start))
        match start:
            case {"type": "fallback", "to": {"model": str(model)}}:
                self.model = model
            case _:
                pass
        return block

    def _stop_block(self, event: dict[str, Any]) -> tuple[FinishedBlock, ...]:
        self._expect_message("content_block_stop")
        block = self._open_at(event)
        del self._open[block.index]
        done = block.finish()
        self.finished.append(done)
        if len(self.finished) > 1 and self.finished[-2].index > done.index:  # blocks that were open side by side
            self.finished.sort(key=lambda finished: finished.index)
        return (done,)

    def _unusual_delta(self, event: dict[str, Any]) -> None:
        self._expect_message("content_block_delta")
        block = self._open_at(event)
        delta = event.get("delta")
        if not is_object(delta):
            raise BadStream(f"a delta of content block {block.index} has no content")
        self._count(block.merge(delta))

    def _open_at(self, event: dict[str, Any]) -> OpenBlock:
        index = event.get("index")
        block = self._open.get(index) if isinstance(index, int) else None
        if block is None:
            raise BadStream(f"a {event['type']} came for content block {brief(index)}, which is not open")
        return block

    def _expect_message(self, kind: str) -> None:
        if not self._begun:
            raise BadStream(f"a {kind} came before message_start")
        if self.complete:
            raise BadStream(f"a {kind} came after message_stop")

    def _count(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            self._refuse_size()

    def _refuse_size(self) -> None:
        raise BadStream(f"the answer is larger than {self._limit:,} characters")


def _text_or_none(value: object, name: str) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise BadStream(f"the {name} is no text")
