"""Which messages of a history belong together, so that an edit leaves calls and results whole."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import attrs

from looplatch.recovery.closing import SERVER_CALLS
from looplatch.recovery.weights import Message

THINKING: Final = ("thinking", "redacted_thinking")

_COMPACTION: Final = "compaction"
_THOUGHTS: Final = frozenset(THINKING)
_TELLING: Final = _THOUGHTS.union(SERVER_CALLS, (_COMPACTION,))  # blocks by which messages belong together


class Exchange(NamedTuple):
    """An answer of the model and what the user's side says to it: `messages[start:stop]`.

    It begins with the assistant's messages, of which the API makes one turn; the user's follow from `answer` on. Where
    a tool of the server's own waits for our results, the exchange goes on until that tool has answered.
    `plain`: no message of the role system is among them.
    """

    start: int
    answer: int
    stop: int
    plain: bool


@attrs.frozen(kw_only=True)
class Outline:
    """The exchanges of a history, in order. From `pending` on, an answer stands that nothing was said to yet.

    That is a paused turn, or calls that wait for approval; `pending` is the number of messages where there is none.
    `thoughts`: the places of the messages that hold thinking. `compacted`: the place behind the last compaction that
    the API itself has signed; what stands before that is no longer read.
    """

    exchanges: tuple[Exchange, ...]
    pending: int
    count: int
    thoughts: tuple[int, ...]
    compacted: int

    @property
    def is_pending(self) -> bool:
        """Whether an answer waits at the end."""
        return self.pending < self.count

    def before_newest(self, keep: int) -> tuple[Exchange, ...]:
        """All exchanges but the newest `keep`."""
        return self.exchanges[:-keep] if keep else self.exchanges

    def thinks(self, places: range) -> bool:
        """Whether one of these messages holds thinking."""
        return any(place in places for place in self.thoughts)


def outline(messages: Sequence[Message]) -> Outline:
    """The exchanges of `messages`."""
    exchanges: list[Exchange] = []
    thoughts: list[int] = []
    compacted = 0
    start: int | None = None
    answer: int | None = None
    plain = True
    waiting: set[object] = set()  # tools of the server's own that this exchange has called and that go on after it
    for place, message in enumerate(messages):
        role = message["role"]
        if role == "assistant":
            if start is None:
                start, plain = place, True
            elif answer is not None:
                if not waiting:
                    exchanges.append(Exchange(start, answer, place, plain))
                    start, plain = place, True
                answer = None
            blocks = message["content"]
            if isinstance(blocks, str):
                continue
            kinds = [kind for block in blocks if (kind := block["type"]) in _TELLING]
            if not kinds and not waiting:
                continue
            _follow_answer(waiting, blocks)
            if not _THOUGHTS.isdisjoint(kinds):
                thoughts.append(place)
            if _COMPACTION in kinds:
                compacted = place + 1
        elif role == "user":
            if start is not None and answer is None:
                answer = place
            if waiting and any(block.get("type") != "tool_result" for block in blocks_of(message)):
                waiting.clear()  # they go on only if nothing but results is said to them
        else:
            plain = False
    pending = len(messages)
    if start is not None and answer is not None:
        exchanges.append(Exchange(start=start, answer=answer, stop=pending, plain=plain))
    elif start is not None:
        pending = start
    return Outline(
        exchanges=tuple(exchanges),
        pending=pending,
        count=len(messages),
        thoughts=tuple(thoughts),
        compacted=compacted,
    )


def _follow_answer(waiting: set[object], blocks: Iterable[Mapping[str, Any]]) -> None:
    """Note the calls among the blocks that the server answers, and its answers."""
    for block in blocks:
        if block.get("type") in SERVER_CALLS:
            waiting.add(block.get("id"))
        else:
            waiting.discard(block.get("tool_use_id"))


def blocks_of(message: Message) -> Sequence[Mapping[str, Any]]:
    """The content blocks of a message; a text alone is one block."""
    content: Sequence[Mapping[str, Any]] | str = message["content"]
    if isinstance(content, str):
        return ({"type": "text", "text": content},)
    return content


def has_results(message: Message) -> bool:
    """Whether a message answers calls."""
    return message["role"] == "user" and any(block.get("type") == "tool_result" for block in blocks_of(message))


def said(messages: Iterable[Message]) -> Iterator[Mapping[str, Any]]:
    """What the user's side says beside results: all other blocks of its messages."""
    for message in messages:
        if message["role"] == "user":
            yield from (block for block in blocks_of(message) if block.get("type") != "tool_result")
