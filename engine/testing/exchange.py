"""What the scripted API saw and did: one `Exchange` for each request."""

import asyncio
from collections.abc import Mapping
from typing import Any, Protocol

from attrs import define, field, frozen

from looplatch.testing.answers import Answer
from looplatch.testing.shapes import is_list
from looplatch.testing.wire import Wire


@frozen(kw_only=True)
class ReceivedRequest:
    """A request as it came in. `number` counts from 1; `body` is the decoded JSON, {} where it is no JSON object."""

    number: int
    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    content: bytes
    body: dict[str, Any]

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The `messages` of the body; [] where they are no list."""
        messages: object = self.body.get("messages")
        return list(messages) if is_list(messages) else []


@define(kw_only=True, eq=False)
class Exchange:
    """One request and how far its answer has been sent.

    `answer` is what the script said, None where the request was refused (`refusal` is the text) or found no answer.
    `stalled` is set while the answer waits at a gate, `blocked` while the loopback server waits for the client to read,
    `ended` when all was sent (`finished`) or no more will be, as the client has let go or the script breaks off.
    """

    request: ReceivedRequest
    wire: Wire
    answer: Answer | None = None
    refusal: str | None = None
    events_sent: int = 0
    bytes_sent: int = 0
    finished: bool = False
    stalled: asyncio.Event = field(factory=asyncio.Event)
    blocked: asyncio.Event = field(factory=asyncio.Event)
    ended: asyncio.Event = field(factory=asyncio.Event)

    def sent(self, data: bytes) -> None:
        """Count one event."""
        self.events_sent += 1
        self.bytes_sent += len(data)

    def end(self, *, finished: bool) -> None:
        """Nothing more is sent."""
        self.finished = self.finished or finished
        self.ended.set()


class Service(Protocol):
    """What a transport serves: it is handed each request and plays the answer."""

    def handle(self, method: str, target: str, headers: Mapping[str, str], content: bytes) -> Exchange:
        """Decide the answer to one request; `headers` have lower-case names."""
        ...
