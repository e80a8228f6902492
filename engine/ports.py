"""The Protocols behind which all awaiting happens: what the driver asks for, whoever provides it."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import attrs

from looplatch.recovery.windows import ModelSize


def _no_headers() -> Mapping[str, str]:
    return {}


def _no_query() -> Mapping[str, object]:
    return {}


@attrs.frozen(kw_only=True)
class ModelRequest:
    """One request to the Messages API.

    `body` is the whole JSON body, `"stream": true` in it. `headers` and `query` go beside what the client sends by
    itself (`{"beta": "true"}` selects the beta endpoint). `timeout_s` bounds each wait for the network, in seconds;
    None leaves it to the client.
    """

    body: bytes = attrs.field(repr=False)
    headers: Mapping[str, str] = attrs.field(factory=_no_headers, repr=False)
    query: Mapping[str, object] = attrs.field(factory=_no_query)
    timeout_s: float | None = None


class ModelStream(Protocol):
    """An answer that is being read, event by event; nothing is read from the network but by `read`."""

    @property
    def request_id(self) -> str | None:
        """The server's id of the request, where it gave one."""
        ...

    async def read(self) -> list[dict[str, Any]]:
        """Return the next event of the answer, decoded, in a list of its own; deltas of content blocks that have come
        together may be returned together. An empty list: the connection has ended.

        Pings are left out. Raises ModelCallFailed when the server reports an error, the connection breaks or what came
        cannot be decoded; the stream is closed then. A connection that just ends before `message_stop` raises nothing
        here: whoever reads knows whether the message was complete.
        """
        ...

    async def close(self) -> None:
        """Let go of the connection; a second call does nothing."""
        ...


class ModelClient(Protocol):
    """What sends requests to a model, and asks about them."""

    async def open(self, request: ModelRequest) -> ModelStream:
        """Send `request` and return its answer as soon as that begins; nothing is retried.

        Raises ModelCallFailed when there is no answer, or an error answer.
        """
        ...

    async def count(self, request: ModelRequest) -> int:
        """Return how many tokens the prompt of `request`, a body without max_tokens, has.

        Raises ModelCallFailed when that is not to be had.
        """
        ...

    async def size(self, model: str) -> ModelSize:
        """Return what the API says of the size of `model`. Raises ModelCallFailed when that is not to be had."""
        ...


class Timer(Protocol):
    """A callback that is to come."""

    def cancel(self) -> object:
        """Take it back; harmless once it has come."""
        ...


class Clock(Protocol):
    """Where a run has its time from: stamps of records, waits before retries, deadlines."""

    def now_ns(self) -> int:
        """Nanoseconds since the epoch of Unix."""
        ...

    def monotonic_ns(self) -> int:
        """Nanoseconds since some moment; never falls."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return after so many seconds."""
        ...

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        """Call `callback` in the running event loop after so many seconds."""
        ...
