"""What waits to be handed to the consumer, and the one signal that wakes the driver."""

import asyncio
from collections import deque

import attrs

from looplatch.messages import Message, ToolMessage, ToolPhase

MAX_PROGRESS = 64  # reports of one call that wait; then the newest replaces the last one, and counts what it replaced


class Outbox:
    """Messages in order. Bounded: all but a tool's progress come from the driver's steps, which wait for the pull."""

    def __init__(self) -> None:
        self._messages: deque[Message] = deque()
        self._progress: dict[str, int] = {}  # the reports that wait, by call
        self.changed = asyncio.Event()  # set by whatever the driver may be waiting for

    def __bool__(self) -> bool:
        return bool(self._messages)

    def push(self, message: Message) -> None:
        """Add a message at the end and wake the driver."""
        if isinstance(message, ToolMessage) and message.phase is ToolPhase.PROGRESS:
            message = self._bounded(message)
        self._messages.append(message)
        self.changed.set()

    def pop(self) -> Message | None:
        """Take the first message; None where there is none."""
        if not self._messages:
            return None
        message = self._messages.popleft()
        if isinstance(message, ToolMessage) and message.phase is ToolPhase.PROGRESS:
            self._progress[message.tool_use_id] -= 1
        return message

    def _bounded(self, message: ToolMessage) -> ToolMessage:
        waiting = self._progress.get(message.tool_use_id, 0)
        if waiting < MAX_PROGRESS:
            self._progress[message.tool_use_id] = waiting + 1
            return message
        for place in range(len(self._messages) - 1, -1, -1):
            older = self._messages[place]
            if isinstance(older, ToolMessage) and older.tool_use_id == message.tool_use_id:
                del self._messages[place]
                return attrs.evolve(message, skipped=older.skipped + 1)
        return message
