"""The recorder: a proxy that passes requests on to a real API, and writes down its answers as a playbook."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import attrs
import httpx2
import orjson

from looplatch.states.brief import brief
from looplatch.states.secrets import SECRETS, Secrets
from looplatch.testing.api import MESSAGES_PATH
from looplatch.testing.errors import ScriptError, check_kind
from looplatch.testing.exchange import Exchange, ReceivedRequest
from looplatch.testing.playbook import HEAD, Heard, spelled
from looplatch.testing.redacting import Redacting
from looplatch.testing.shapes import is_object
from looplatch.testing.wire import Drop, Send, Step, Wait, Wire, encode

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

API: Final = "https://api.anthropic.com"
_NOT_PASSED_ON: Final = frozenset(
    {"accept-encoding", "connection", "content-length", "expect", "host", "keep-alive", "te", "trailer"}
    | {"proxy-authorization", "proxy-connection", "transfer-encoding", "upgrade"}
)
_NOT_PASSED_BACK: Final = frozenset({"connection", "content-encoding", "content-length", "transfer-encoding"})


class Recorder:
    """Stands between a client and the API at `upstream`, and writes each answer of `/v1/messages` into `path`.

    `client` is an SDK client on it in process, `serve` makes it a loopback server for any client. Each event goes on as
    it comes; errors, broken connections and retries are recorded as answers of their own, in the order of the requests.
    `ScriptedAPI.from_playbook(path)` plays the file. Other requests (counting, models) are passed on, not recorded.

    What a request says is not written, nor are its headers; what looks like a secret is taken out of the answers
    (`secrets`; None: nothing but the caller's own key), also where several deltas spell it together: an input that
    holds one is then one delta, and of one that was cut only the beginning stays. The file is for its owner alone
    (0600). `http_client`: talks to `upstream`, and stays the caller's to close; None: one that waits up to ten minutes
    for each piece of an answer, and goes by the proxy that the environment names.

    Use it as an async context manager; leaving it ends what still runs and writes it down as far as it came. Raises
    ScriptError where `path` exists already, or `upstream` is no http address; OSError where it cannot be written.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        upstream: str = API,
        secrets: Secrets | None = SECRETS,
        http_client: httpx2.AsyncClient | None = None,
    ) -> None:
        check_kind("Recorder(secrets)", secrets, Secrets | None, "Secrets(...), or None")
        check_kind("Recorder(http_client)", http_client, httpx2.AsyncClient | None, "an httpx2.AsyncClient, or None")
        check_kind("Recorder(path)", path, str | os.PathLike, "the path of a file")
        check_kind("Recorder(upstream)", upstream, str, "an address")
        if not upstream.startswith(("http://", "https://")):
            raise ScriptError(
                f"Recorder(upstream={brief(upstream)}): give an address that begins with http:// or https://"
            )
        self.path = Path(path)
        self._upstream = upstream.rstrip("/")
        self._secrets = Secrets(known=False) if secrets is None else secrets
        self._given = http_client
        self._http = http_client
        self._file: int | None = None
        self._recorded: list[_Passed] = []
        self._written = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        try:
            self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError as error:
            text = f"{self.path} exists already; give the path of a new file, or delete this playbook first"
            raise ScriptError(text) from error
        os.write(self._file, HEAD)
        if self._given is None:
            self._http = httpx2.AsyncClient(timeout=httpx2.Timeout(600, connect=30))
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._given is None and self._http is not None:
            await self._http.aclose()
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def client(self, **options: Any) -> "AsyncAnthropic":
        """A real SDK client that goes by way of this recorder; `options` go to `AsyncAnthropic`, whose key it needs."""
        from anthropic import AsyncAnthropic

        from looplatch.testing.transport import ScriptedTransport

        transport = httpx2.AsyncClient(transport=ScriptedTransport(self))
        given: dict[str, Any] = {"base_url": self._upstream, "http_client": transport, **options}
        return AsyncAnthropic(**given)

    def serve(self, host: str = "127.0.0.1", port: int = 0) -> AbstractAsyncContextManager[str]:
        """Serve over HTTP/1.1 in the running event loop; the value is the base URL."""
        from looplatch.testing.server import serve

        return serve(self, host, port)

    def handle(self, method: str, target: str, headers: Mapping[str, str], content: bytes) -> Exchange:
        """Take one request in and pass it on; `headers` have lower-case names. For transports."""
        if self._file is None:
            raise ScriptError("the recorder is not open; use it inside `async with Recorder(...) as recorder:`")
        path, _, query = target.partition("?")
        steps: list[Step] = [Wait(asyncio.Event())]
        exchange = Exchange(
            request=ReceivedRequest(
                number=1 + len(self._recorded),
                method=method,
                path=path,
                query=query,
                headers=dict(headers),
                content=content,
                body=_object(content),
            ),
            wire=Wire(status=502, headers={"content-type": "application/json"}, steps=steps),
        )
        passed = _Passed(exchange=exchange, steps=steps)
        if path == MESSAGES_PATH and method == "POST":
            self._recorded.append(passed)
        task = asyncio.get_running_loop().create_task(self._pass_on(passed))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return exchange

    async def _pass_on(self, passed: "_Passed") -> None:
        """Hear the answer to its end, or until the client has left."""
        hearing = asyncio.ensure_future(self._hear(passed))
        left = asyncio.ensure_future(passed.exchange.ended.wait())
        try:
            await asyncio.wait((hearing, left), return_when=asyncio.FIRST_COMPLETED)
        finally:
            left.cancel()
            hearing.cancel()
            try:
                await asyncio.gather(hearing, left, return_exceptions=True)
            finally:
                passed.over = True
                self._write()

    async def _hear(self, passed: "_Passed") -> None:
        request = passed.exchange.request
        target = f"{self._upstream}{request.path}" + (f"?{request.query}" if request.query else "")
        headers = {name: value for name, value in request.headers.items() if name not in _NOT_PASSED_ON}
        headers["accept-encoding"] = "identity"
        assert self._http is not None
        try:
            async with self._http.stream(request.method, target, headers=headers, content=request.content) as response:
                passed.begin(response.status_code, {name.lower(): value for name, value in response.headers.items()})
                async for piece in _pieces(response):
                    passed.add(piece)
            passed.whole = True
            passed.end()
        except httpx2.TransportError:
            passed.end(Drop())

    def _write(self) -> None:
        """Write the answers that are over, in the order of their requests."""
        while self._written < len(self._recorded) and self._recorded[self._written].over:
            passed = self._recorded[self._written]
            self._written += 1
            if self._file is not None:
                content = b"".join(self._lines(passed, passed.lines(self._written)))
                while content:
                    content = content[os.write(self._file, content) :]

    def _lines(self, passed: "_Passed", lines: list[dict[str, Any]]) -> Iterator[bytes]:
        headers = passed.exchange.request.headers
        keys = [headers.get(name, "").rpartition(" ")[2] for name in ("x-api-key", "authorization")]
        for line in Redacting(self._secrets, keys).lines(lines):
            written = encode(line)
            for key in filter(None, keys):
                written = written.replace(encode(key)[1:-1], b"[redacted: api_key]")
            yield written + b"\n"


@attrs.define(kw_only=True, eq=False)
class _Passed:
    """A request that is passed on, and what was heard of its answer."""

    exchange: Exchange
    steps: list[Step]
    status: int | None = None
    pieces: list[bytes] = attrs.field(factory=list[bytes])
    whole: bool = False
    over: bool = False

    def begin(self, status: int, headers: Mapping[str, str]) -> None:
        self.status = status
        back = {name: value for name, value in headers.items() if name not in _NOT_PASSED_BACK}
        self.exchange.wire = Wire(
            status=status, headers={"content-type": "application/octet-stream", **back}, steps=self.steps
        )

    def add(self, piece: bytes) -> None:
        self.pieces.append(piece)
        self._next(Send(piece), Wait(asyncio.Event()))

    def end(self, *last: Step) -> None:
        self._next(*last)

    def _next(self, *steps: Step) -> None:
        """Put these behind the gate that the answer waits at, and open it."""
        gate = self.steps[-1]
        assert isinstance(gate, Wait)
        self.steps.extend(steps)
        gate.gate.set()

    def lines(self, number: int) -> list[dict[str, Any]]:
        ended = bool(self.pieces) and self.pieces[-1].startswith(b"event: message_stop\n")  # many read no further
        headers = self.exchange.wire.headers
        heard = Heard(status=self.status, headers=headers, pieces=self.pieces, whole=self.whole or ended)
        return spelled(number, self.exchange.request.body, heard)


def _object(content: bytes) -> dict[str, Any]:
    try:
        value: object = orjson.loads(content)
    except orjson.JSONDecodeError:
        return {}
    return dict(value) if is_object(value) else {}


async def _pieces(response: httpx2.Response) -> AsyncIterator[bytes]:
    """A stream event by event, each with the empty line behind it; any other body as a whole."""
    streamed = response.headers.get("content-type", "").startswith("text/event-stream")
    held = b""
    async for content in response.aiter_bytes():
        held += content
        while streamed and (end := held.find(b"\n\n")) >= 0:
            yield held[: end + 2]
            held = held[end + 2 :]
    if held:
        yield held
