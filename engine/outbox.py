"""What waits to be handed to the consumer, and the one signal that wakes the driver."""

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Any

import attrs

from looplatch.messages import Message, StreamEvent, ToolMessage, ToolPhase

MAX_PROGRESS = 64  # reports of one call that wait; then the newest replaces the last one, and counts what it replaced
MAX_OFFERED = 16  # messages that wait before sub-agents do


class Outbox:
    """Messages in order. Bounded: steps of the driver wait for the pull, progress replaces itself, offers wait."""

    def __init__(self) -> None:
        self.waiting: deque[Message] = deque()  # what has not been taken, for those who ask often
        self._progress: dict[str, int] = {}  # the reports that wait, by call
        self._offers = 0  # messages that wait for room
        self._room = asyncio.Event()
        self.changed = asyncio.Event()  # set by whatever the driver may be waiting for

    def __bool__(self) -> bool:
        return bool(self.waiting)

    def push(self, message: Message) -> None:
        """Add a message at the end and wake the driver."""
        if isinstance(message, ToolMessage) and message.phase is ToolPhase.PROGRESS:
            message = self._bounded(message)
        self.waiting.append(message)
        self.changed.set()

    def extend(self, events: Sequence[dict[str, Any]]) -> None:
        """Add raw events of the stream that came together. The driver, which has read them, needs no waking."""
        for event in events:
            self.waiting.append(StreamEvent(event=event))

    async def offer(self, message: Message) -> None:
        """Add a message that comes from beside the driver, once fewer than `MAX_OFFERED` wait for the consumer."""
        while len(self.waiting) >= MAX_OFFERED:
            self._room.clear()
            self._offers += 1
            try:
                await self._room.wait()
            finally:
                self._offers -= 1
        self.push(message)

    def pop(self) -> Message | None:
        """Take the first message; None where there is none."""
        if not self.waiting:
            return None
        message = self.waiting.popleft()
        if self._offers or self._progress:
            self._make_room(message)
        return message

    def _make_room(self, taken: Message) -> None:
        """A message was taken: others may be offered, and another report of its call may wait."""
        if self._offers and len(self.waiting) < MAX_OFFERED:
            self._room.set()
        if self._progress and isinstance(taken, ToolMessage) and taken.phase is ToolPhase.PROGRESS:
            left = self._progress[taken.tool_use_id] - 1
            if left:
                self._progress[taken.tool_use_id] = left
            else:
                del self._progress[taken.tool_use_id]

    def _bounded(self, message: ToolMessage) -> ToolMessage:
        waiting = self._progress.get(message.tool_use_id, 0)
        if waiting < MAX_PROGRESS:
            self._progress[message.tool_use_id] = waiting + 1
            return message
        for place in range(len(self.waiting) - 1, -1, -1):
            older = self.waiting[place]
            if isinstance(older, ToolMessage) and older.tool_use_id == message.tool_use_id:
                del self.waiting[place]
                return attrs.evolve(message, skipped=older.skipped + 1)
        return message
