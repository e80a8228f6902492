"""Edits: how a compression level says what is to become of a history. Nothing is changed in place."""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, TypeVar

from looplatch.recovery.weights import Message, weigh_all

T = TypeVar("T")

Weights = Sequence[int] | None
"""What `weigh` says of each message, where that is known; None: it is asked."""

LEAST_SAVING: Final = 16  # tokens below which no edit is worth the prompt cache behind it


class Edit(NamedTuple):
    """`messages[start:stop]` of a history are replaced by `messages`; all edits of a level count in the old history."""

    start: int
    stop: int
    messages: tuple[Message, ...]

    @property
    def is_of_one(self) -> bool:
        """Whether one message takes the place of one."""
        return self.stop - self.start == 1 == len(self.messages)


def apply(messages: Sequence[Message], edits: Iterable[Edit]) -> list[Message]:
    """The edited history. Messages that no edit names are the same objects, the others are new ones."""
    return replaced(messages, ((edit.start, edit.stop, edit.messages) for edit in in_order(edits)))


def replaced(items: Sequence[T], changes: Iterable[tuple[int, int, Iterable[T]]]) -> list[T]:
    """`items` with others in the place of some: each change is `items[start:stop]` and what comes there, in order.

    Raises IndexError where a change is not behind the one before it, or not within `items`.
    """
    edited: list[T] = []
    place = 0
    for start, stop, new in changes:
        if not place <= start <= stop <= len(items):
            raise IndexError(f"{start} to {stop} of {len(items)}, from {place} on")
        edited += items[place:start]
        edited += new
        place = stop
    edited += items[place:]
    return edited


def in_order(edits: Iterable[Edit]) -> tuple[Edit, ...]:
    """The edits by their place in the history."""
    return tuple(sorted(edits, key=lambda edit: edit.start))


def first_changed(edits: Sequence[Edit]) -> int:
    """The index of the first message that an edit changes: from there on, the prompt cache is lost.

    Raises ValueError where there are no edits.
    """
    return min(edit.start for edit in edits)


def saving(messages: Sequence[Message], edits: Iterable[Edit], weights: Weights = None) -> int:
    """How many tokens the edits save together; below 0 where they make the history longer."""
    gone, new = 0, list[Message]()
    for edit in edits:
        gone += _weight(messages, edit, weights)
        new += edit.messages
    return gone - weigh_all(new)


def is_worth_it(messages: Sequence[Message], edits: Iterable[Edit]) -> bool:
    """Whether the edits save enough to give up the prompt cache behind them. What saves less shortens nothing."""
    return saving(messages, edits) >= LEAST_SAVING


def lowering(messages: Sequence[Message], edits: Iterable[Edit], weights: Weights = None) -> tuple[Edit, ...]:
    """The edits among these that make the history shorter, each by itself."""
    return tuple(edit for edit in edits if _weight(messages, edit, weights) > weigh_all(edit.messages))


def _weight(messages: Sequence[Message], edit: Edit, weights: Weights) -> int:
    """What those messages weigh that an edit takes out."""
    if weights is None:
        return weigh_all(messages[edit.start : edit.stop])
    return sum(weights[edit.start : edit.stop])
