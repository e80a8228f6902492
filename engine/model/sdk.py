"""The model client over the Anthropic SDK, whichever of its async clients that is.

The SDK gives authentication, headers, connection pool, timeouts and typed errors. Neither its request models, nor its
event models, nor its retries are used: a request is bytes, an event is a dict, and a retry is a move of the machine.
`anthropic` is imported on first use, since that takes a second.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Literal, Protocol, Self, overload
from urllib.parse import quote

from looplatch.encoding import decode
from looplatch.model.failures import failure_of, request_id_of
from looplatch.model.shapes import is_object
from looplatch.model.spending import MOST_TOKENS
from looplatch.model.streams import ByteStream, ItemStream
from looplatch.ports import ModelRequest, ModelStream
from looplatch.recovery.failure import CLIENT_ERROR, BadStream, Failure, ModelCallFailed
from looplatch.recovery.windows import ModelSize
from looplatch.states.brief import brief
from looplatch.states.errors import UsageError

if TYPE_CHECKING:
    import anthropic
    import httpx2

_PATH: Final = "/v1/messages"
_COUNT_PATH: Final = "/v1/messages/count_tokens"
_MODEL_PATH: Final = "/v1/models/"
_ASIDE_TIMEOUT_S: Final = 30.0  # for what is asked beside the talk: the run goes on without it
_BETA_PATH: Final = "/v1/messages?beta=true"  # written so, since clients that rewrite the path compare it
# The methods in which a client may look into a request's body or path, or choose how its stream is read.
_HOOKS: Final = ("request", "post", "_prepare_options", "_build_request", "_prepare_url", "_make_sse_decoder")
_NO_STREAMS: Final = ("application/json", "text/html")


class AsyncClient(Protocol):
    """What is used of an async client of the SDK; all of them fit (plain, Bedrock, Vertex, Foundry ...)."""

    @property
    def base_url(self) -> object:
        """The address of the API."""
        ...

    @property
    def timeout(self) -> "float | httpx2.Timeout | None":
        """How long its requests wait."""
        ...

    @property
    def middleware(self) -> Sequence[object]:
        """What the client runs around each request."""
        ...

    def with_options(self, *, max_retries: int) -> Self:
        """Return a copy of the client with other options."""
        ...

    async def get(self, path: str, *, cast_to: type[object], options: "anthropic.RequestOptions" = ...) -> object:
        """Send a GET request and return its answer, decoded."""
        ...

    @overload
    async def post(
        self,
        path: str,
        *,
        cast_to: type[object],
        body: object | None = None,
        options: "anthropic.RequestOptions" = ...,
    ) -> object:
        """Send a POST request and return its answer, decoded."""
        ...

    @overload
    async def post(
        self,
        path: str,
        *,
        cast_to: type[object],
        body: object | None = None,
        content: bytes | None = None,
        options: "anthropic.RequestOptions" = ...,
        stream: Literal[True],
        stream_cls: "type[anthropic.AsyncStream[object]]",
    ) -> "anthropic.AsyncStream[object]":
        """Send a POST request and return the stream of its answer."""
        ...


def check_client(client: object) -> None:
    """Raise UsageError for what is no async client; the SDK is not imported for that.

    Told by its shape, which wrappers of a client keep: it posts, and is not entered by a plain `with`.
    """
    entered = hasattr(client, "__enter__") and not hasattr(client, "__aenter__")
    if entered or not callable(getattr(client, "post", None)):
        name = type(client).__name__
        raise UsageError("client", f"{name} is no async client of the anthropic SDK", "Pass anthropic.AsyncAnthropic()")


class SdkClient:
    """A ModelClient over an async client of the SDK."""

    def __init__(self, client: AsyncClient) -> None:
        """`client` is used through a copy without retries; it stays the caller's to close.

        Raises UsageError for a client that is not async.
        """
        check_client(client)
        import anthropic

        self.client = client.with_options(max_retries=0)
        self._reads_requests = reads_requests(self.client)
        base_url = "" if self._reads_requests else str(self.client.base_url)
        self._address, self._beta_address = _whole(base_url, _PATH), _whole(base_url, _BETA_PATH)
        self._stream_cls = anthropic.AsyncStream[object]

    async def open(self, request: ModelRequest) -> ModelStream:
        """See `ModelClient.open`."""
        try:
            stream = await self._post(request)
        except Exception as error:
            raise ModelCallFailed(failure_of(error)) from error
        if self._reads_requests:
            _check_stream(stream)
        response = stream.response
        content_type = response.headers.get("content-type", "")
        if content_type.startswith(_NO_STREAMS):
            await response.aclose()
            problem = f"the answer is {content_type}, not a stream of events; does what stands before the API stream?"
            raise BadStream(problem, request_id=request_id_of(response.headers))
        return ItemStream(stream) if self._reads_requests else ByteStream(response)

    async def count(self, request: ModelRequest) -> int:
        """See `ModelClient.count`."""
        options, beta = _options(request, _ASIDE_TIMEOUT_S)
        try:
            counted = await self.client.post(
                f"{_COUNT_PATH}?beta=true" if beta else _COUNT_PATH,
                cast_to=object,
                body=decode(request.body),
                options=options,
            )
        except Exception as error:
            raise ModelCallFailed(failure_of(error)) from error
        tokens = _number(counted, "input_tokens")
        if tokens is None:
            raise BadStream(f"the answer counts no tokens: {brief(counted)}")
        return tokens

    async def size(self, model: str) -> ModelSize:
        """See `ModelClient.size`."""
        try:
            told = await self.client.get(
                _MODEL_PATH + quote(model, safe=""), cast_to=object, options={"timeout": _ASIDE_TIMEOUT_S}
            )
        except Exception as error:
            raise ModelCallFailed(failure_of(error)) from error
        return ModelSize(window=_number(told, "max_input_tokens"), output=_number(told, "max_tokens"))

    async def _post(self, request: ModelRequest) -> "anthropic.AsyncStream[object]":
        options, beta = _options(request, self.client.timeout)
        address = self._beta_address if beta else self._address
        if self._reads_requests:
            return await self.client.post(
                address,
                cast_to=object,
                body=decode(request.body),
                options=options,
                stream=True,
                stream_cls=self._stream_cls,
            )
        return await self.client.post(
            address,
            cast_to=object,
            content=request.body,
            options=options,
            stream=True,
            stream_cls=self._stream_cls,
        )


def _whole(base_url: str, path: str) -> str:
    """The whole address, where it is plain: the SDK takes a path apart, and the address that it makes of it again."""
    return base_url + path.removeprefix("/") if base_url.endswith("/") and "#" not in base_url else path


def _check_stream(answered: object) -> None:
    """Middleware may answer by itself, with anything."""
    import anthropic

    if not isinstance(answered, anthropic.AsyncStream):
        told = f"the client's middleware answered with {type(answered).__name__}, not with a stream"
        raise ModelCallFailed(Failure(type=CLIENT_ERROR, message=told))


def _options(
    request: ModelRequest, timeout: "float | httpx2.Timeout | None"
) -> "tuple[anthropic.RequestOptions, bool]":
    """What goes beside the body, and whether it is a request to the beta of the API.

    All of it is given, what is the client's own as well: for each that is not, the SDK copies a default deeply.
    """
    query = dict(request.query)
    beta = query.pop("beta", None) in ("true", True)
    return {
        "headers": request.headers,
        "params": query,
        "timeout": timeout if request.timeout_s is None else request.timeout_s,
        "max_retries": 0,
    }, beta


def _number(answer: object, name: str) -> int | None:
    """A number of tokens in an answer, above 0 and sensible."""
    value = answer.get(name) if is_object(answer) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= MOST_TOKENS else None


def reads_requests(client: AsyncClient) -> bool:
    """Return whether `client` may look into the bodies of requests, or reads another kind of stream.

    Bedrock and Vertex move fields of the body into the path, middleware may do anything, and so may a subclass of the
    caller's. Such a client gets the request as a dict and its stream is read through the SDK; only one that leaves both
    alone, as AsyncAnthropic does, gets bytes and is read as bytes.
    """
    import anthropic

    if client.middleware:
        return True
    plain = anthropic.AsyncAnthropic
    return any(getattr(getattr(client, hook), "__func__", None) is not getattr(plain, hook) for hook in _HOOKS)


def default_client() -> "anthropic.AsyncAnthropic":
    """Return a client made from the environment, as the SDK resolves it (key, token, profile, workload identity).

    Raises UsageError where that gives nothing to authenticate with.
    """
    import anthropic

    mend = "Set ANTHROPIC_API_KEY (or ANTHROPIC_AUTH_TOKEN), or pass client="
    try:
        client = anthropic.AsyncAnthropic()
    except anthropic.AnthropicError as error:
        problem = f"the environment's credentials cannot be loaded: {str(error).rstrip('.')}"
        raise UsageError("client", problem, mend) from error
    sent = {name.lower() for name in client.default_headers}
    if client.credentials is None and not sent & {"authorization", "x-api-key"}:
        raise UsageError("client", "no API key and no token was found, so nothing was sent", mend)
    return client
