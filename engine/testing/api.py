"""The scripted Messages API: what it is asked it keeps, what its script says it answers."""

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias
from urllib.parse import unquote

import orjson

from looplatch.states.brief import brief
from looplatch.testing.answers import Answer, ErrorAnswer, error, raw
from looplatch.testing.errors import ScriptError, check_count, check_kind
from looplatch.testing.exchange import Exchange, ReceivedRequest
from looplatch.testing.issued import Issued
from looplatch.testing.rules import refusal, undecodable
from looplatch.testing.wire import Setting, encode, wire

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

Item: TypeAlias = Answer | Callable[[dict[str, Any]], Answer]
"""One entry of a script: an answer, or a function that makes it from the decoded request."""

MESSAGES_PATH: Final = "/v1/messages"
COUNT_PATH: Final = "/v1/messages/count_tokens"
MODELS_PATH: Final = "/v1/models/"
MAX_REQUEST_BYTES: Final = 32 * 1024 * 1024
_FINAL: Final = {"x-should-retry": "false"}


def estimate(body: Mapping[str, Any]) -> int:
    """About how many tokens a request has: a quarter of its bytes, without what is no prompt."""
    prompt = {name: body[name] for name in ("messages", "system", "tools") if name in body}
    return len(encode(prompt)) // 4


def _checked_script(script: Any) -> list[Item]:
    """Raise ScriptError for what is no list of entries, naming the one that is none."""
    kind = type(script).__name__
    if isinstance(script, Answer):
        raise ScriptError(f"the script is one {kind}; put it into a list: ScriptedAPI([...])")
    if isinstance(script, str | bytes | Mapping) or not hasattr(script, "__iter__"):
        raise ScriptError(f"the script is a {kind}; use a list: ScriptedAPI([reply('hi')])")
    entries: list[Item] = list(script)
    for place, entry in enumerate(entries):
        _check_item(f"entry {place}", entry)
    return entries


def _check_item(name: str, entry: object) -> None:
    if isinstance(entry, Answer) or callable(entry):
        return
    kind, mend = type(entry).__name__, "use reply(...) with the text or the blocks of the answer"
    if isinstance(entry, str):
        mend = f"use reply({entry[:80]!r})"
    elif isinstance(entry, Mapping):
        mend = "a message is no answer: use reply(...) with its text or its blocks, or raw(...) for a whole response"
    raise ScriptError(f"{name} is a {kind}; {mend}")


class ScriptedAPI:
    """A Messages API that plays a script, in process (`client`) or as a loopback server (`serve`).

    `script` is a list with one entry for each request, or one function that answers every request. With `strict` (the
    default) a request that the API would refuse gets the API's own 400 and takes nothing from the script; it is kept
    in `refusals`. Without it that goes only for a body that is no JSON object. When the script is used up, `otherwise`
    answers if given, else a 500 that says which request found it so and that asks not to be retried.

    `count` says how many input tokens a request has. With a `window`, a prompt (or prompt and `max_tokens`) beyond it
    is refused as the API does. `known` are thinking blocks of an earlier conversation that count as this server's own.
    `counting` answers `/v1/messages/count_tokens` instead of `count`. `models` has the answers of `/v1/models/{name}`.

    Raises ScriptError for what is no script.

    `requests` are the calls of `/v1/messages` in order, `counted` those of `/v1/messages/count_tokens`, `asked` those
    of `/v1/models/`, `exchanges` the first with how far each answer was sent. `faults` are exceptions that functions of
    the script raised.
    """

    def __init__(
        self,
        script: Sequence[Item] | Callable[[dict[str, Any]], Answer],
        *,
        strict: bool = True,
        otherwise: Item | None = None,
        count: Callable[[Mapping[str, Any]], int] = estimate,
        window: int | None = None,
        known: Iterable[Mapping[str, Any]] = (),
        counting: Answer | None = None,
        models: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        if otherwise is not None:
            _check_item("otherwise", otherwise)
        check_kind("ScriptedAPI(strict)", strict, bool, "True or False")
        if not callable(count):
            raise ScriptError(f"ScriptedAPI(count) is {brief(count)}; give a function of a request that counts tokens")
        if window is not None:
            check_count("ScriptedAPI(window)", window, 1)
        check_kind("ScriptedAPI(known)", known, Iterable, "a list of thinking blocks")
        known = tuple(known)
        for one in known:
            check_kind("ScriptedAPI(known): one of them", one, Mapping, "thinking blocks as dicts")
        check_kind("ScriptedAPI(counting)", counting, Answer | None, "what raw(), error() … return, or None")
        check_kind("ScriptedAPI(models)", models, Mapping | None, "a dict of dicts by models' names, or None")
        self._script: list[Item] = [] if callable(script) else _checked_script(script)
        self._otherwise: Item | None = script if callable(script) else otherwise
        self._strict = strict
        self._count = count
        self._counting = counting
        self._models = models or {}
        self._window = window
        self._issued = Issued()
        self._issued.learn_blocks(known)
        self._used = 0
        self._awaited: dict[int, asyncio.Event] = {}
        self.exchanges: list[Exchange] = []
        self.counted: list[ReceivedRequest] = []
        self.asked: list[ReceivedRequest] = []
        self.faults: list[Exception] = []

    @classmethod
    def from_playbook(cls, path: str | os.PathLike[str], **options: Any) -> Self:
        """The API that plays what a `Recorder` recorded in the file `path`; `options` are those of the class.

        Raises ScriptError where the file is no playbook.
        """
        from looplatch.testing.playbook import read_playbook

        return cls(read_playbook(path), **options)

    @property
    def requests(self) -> list[ReceivedRequest]:
        """Every request for a message, refused ones too, in order."""
        return [exchange.request for exchange in self.exchanges]

    @property
    def refusals(self) -> list[str]:
        """The texts of the 400s that the rules gave, in order."""
        return [exchange.refusal for exchange in self.exchanges if exchange.refusal is not None]

    @property
    def unused(self) -> list[Item]:
        """The entries of the script that no request has asked for."""
        return self._script[self._used :]

    @property
    def bytes_sent(self) -> int:
        """The bytes of all bodies handed to the transport so far."""
        return sum(exchange.bytes_sent for exchange in self.exchanges)

    async def arrival(self, number: int) -> Exchange:
        """Wait for request `number` (from 1) and give its exchange; for the thread that serves."""
        if number > len(self.exchanges):
            await self._awaited.setdefault(number, asyncio.Event()).wait()
        return self.exchanges[number - 1]

    def check_played(self) -> None:
        """Raise ScriptError if part of the script was not asked for, or a request was refused or found no answer."""
        if self.faults:
            raise ScriptError(f"the script failed: {brief(self.faults[0])}") from self.faults[0]
        if self.refusals:
            raise ScriptError(f"the API refused a request: {self.refusals[0]}")
        if self.unused:
            raise ScriptError(
                f"{len(self.unused)} of {len(self._script)} answers were never asked for, the first of them "
                f"{self.unused[0]!r}; the loop ended early, or the script is too long"
            )

    def client(self, **options: Any) -> "AsyncAnthropic":
        """A real SDK client that is wired to this script in process; `options` go to `AsyncAnthropic`."""
        from looplatch.testing.transport import client

        return client(self, **options)

    def serve(self, host: str = "127.0.0.1", port: int = 0) -> AbstractAsyncContextManager[str]:
        """Serve over HTTP/1.1 in the running event loop; the value is the base URL."""
        from looplatch.testing.server import serve

        return serve(self, host, port)

    def serve_in_thread(self, host: str = "127.0.0.1", port: int = 0) -> AbstractContextManager[str]:
        """Serve from a thread of its own, for synchronous callers; the value is the base URL."""
        from looplatch.testing.background import serve_in_thread

        return serve_in_thread(self, host, port)

    def handle(self, method: str, target: str, headers: Mapping[str, str], content: bytes) -> Exchange:
        """Take one request in and decide its answer; `headers` have lower-case names. For transports."""
        path, _, query = target.partition("?")
        decoded = None if undecodable(content) else orjson.loads(content)
        request = ReceivedRequest(
            number=1 + len(self.counted if path == COUNT_PATH else self.exchanges),
            method=method,
            path=path,
            query=query,
            headers=dict(headers),
            content=content,
            body=decoded or {},
        )
        if path.startswith(MODELS_PATH) and method == "GET":
            return self._model(request)
        if path not in (MESSAGES_PATH, COUNT_PATH):
            return self._play(request, error(404, "not_found_error", "Not Found"))
        if method != "POST":
            return self._play(request, error(405, "invalid_request_error", "Method Not Allowed"))
        return self._count_tokens(request) if path == COUNT_PATH else self._message(request)

    def _message(self, request: ReceivedRequest) -> Exchange:
        refused = self._refusal(request, counting=False)
        answer = None if refused else self._next(request)
        exchange = self._play(request, refused or answer or self._silent(request))
        exchange.answer = answer
        exchange.refusal = refused.message if refused else None
        self.exchanges.append(exchange)
        if (awaited := self._awaited.pop(request.number, None)) is not None:
            awaited.set()
        return exchange

    def _count_tokens(self, request: ReceivedRequest) -> Exchange:
        self.counted.append(request)
        counted = _json({"input_tokens": self._count(request.body)})
        return self._play(request, self._refusal(request, counting=True) or self._counting or counted)

    def _model(self, request: ReceivedRequest) -> Exchange:
        self.asked.append(request)
        name = unquote(request.path.removeprefix(MODELS_PATH))
        if name not in self._models:
            return self._play(request, error(404, "not_found_error", f"model: {name}"))
        return self._play(request, _json({"type": "model", "id": name, **self._models[name]}))

    def _next(self, request: ReceivedRequest) -> Answer | None:
        item = self._otherwise
        if self._used < len(self._script):
            item = self._script[self._used]
            self._used += 1
        if not callable(item):
            return item
        try:
            return item(request.body)
        except Exception as fault:
            self.faults.append(fault)
            text = f"the script raised {brief(fault)} on request {request.number}"
            return error(500, "api_error", text, _FINAL)

    def _silent(self, request: ReceivedRequest) -> ErrorAnswer:
        used = "its only answer is" if len(self._script) == 1 else f"its {len(self._script)} answers are"
        text = f"the script has no answer for request {request.number}: {used} used up"
        self.faults.append(ScriptError(text))
        return error(500, "api_error", text, _FINAL)

    def _play(self, request: ReceivedRequest, answer: Answer) -> Exchange:
        self._issued.learn(answer)
        setting = Setting(
            number=request.number,
            model=str(request.body.get("model", "")),
            input_tokens=self._count(request.body),
            streamed=request.body.get("stream") is True,
        )
        return Exchange(request=request, wire=wire(answer, setting))

    def _refusal(self, request: ReceivedRequest, *, counting: bool) -> ErrorAnswer | None:
        if self._strict:
            if not {"x-api-key", "authorization"} & request.headers.keys():
                return error(401, "authentication_error", "x-api-key header is required")
            if len(request.content) > MAX_REQUEST_BYTES:
                return error(413, "request_too_large", "Request exceeds the maximum size")
            problem = (
                (None if "anthropic-version" in request.headers else "anthropic-version: header is required")
                or undecodable(request.content)
                or refusal(request.body, issued=self._issued, counting=counting)
            )
        else:
            problem = undecodable(request.content)
        if problem:
            return error(400, "invalid_request_error", problem)
        return None if counting or self._window is None else self._overflow(request.body, self._window)

    def _overflow(self, body: Mapping[str, Any], window: int) -> ErrorAnswer | None:
        prompt, output = self._count(body), body.get("max_tokens", 0)
        if prompt > window:
            return error(400, "invalid_request_error", f"prompt is too long: {prompt} tokens > {window} maximum")
        if isinstance(output, bool) or not isinstance(output, int):
            return error(400, "invalid_request_error", "max_tokens: Input should be a valid integer")
        if prompt + output > window:
            text = (
                f"input length and `max_tokens` exceed context limit: {prompt} + {output} > {window}, "
                "decrease input length or `max_tokens` and try again"
            )
            return error(400, "invalid_request_error", text)
        return None


def _json(value: Mapping[str, Any]) -> Answer:
    return raw(encode(value), headers={"content-type": "application/json"})
