"""The request: what every request of a run has in common, encoded once, and the messages behind it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

import attrs

from looplatch.encoding import EncodeError, copied, decode, encode
from looplatch.ports import ModelRequest
from looplatch.states.brief import brief
from looplatch.states.errors import UsageError
from looplatch.states.record import digest

# What `params` may not hold, and where it goes instead.
_OWN: Final = {
    "messages": "pass the messages to run()",
    "model": "pass it to Loop(model=...)",
    "max_tokens": "pass it to Loop(max_tokens=...)",
    "system": "pass it to Loop(system=...)",
    "tools": "pass them to Loop(tools=...)",
    "stream": "every answer is streamed; leave it out",
}
# What goes beside the body, by the SDK's names.
_BESIDE: Final = ("extra_headers", "extra_query", "extra_body", "timeout", "betas")
# What makes the prompt, by the fields that the API takes when it is to count tokens.
_COUNTED: Final = frozenset(
    {
        "cache_control",
        "context_management",
        "mcp_servers",
        "output_config",
        "system",
        "thinking",
        "tool_choice",
        "tools",
    }
)
_SHAPES_ANSWERS: Final = frozenset({"context_management", "output_format", "stop_sequences"})
_BETA_HEADER: Final = "anthropic-beta"
COMPACTION_BETA: Final = "compact-2026-09-04"


MAX_MARKS: Final = 4  # of blocks for prompt caching, the whole request counted: the API takes no more
CACHE_FIELD: Final = b',"cache_control":{"type":"ephemeral"}'


def marks_in(encoded: bytes) -> int:
    """How many blocks in this JSON text are marked for prompt caching."""
    return encoded.count(b'"cache_control":{')


@attrs.frozen(kw_only=True)
class RequestParts:
    """What all requests of a loop have in common.

    system: the system prompt, as a text or as content blocks. tools: definitions, as the API takes them. params: other
    fields of the body; `extra_headers`, `extra_query`, `extra_body`, `timeout` and `betas` mean what they mean in the
    SDK. cache: the whole request is marked for prompt caching, where nobody else has done so and the API's limit of
    four marks allows it. Raises UsageError for fields that have a place of their own, and for what is no JSON.
    """

    model: str
    system: str | Sequence[Mapping[str, Any]] | None
    tools: Sequence[Mapping[str, Any]]
    params: Mapping[str, Any]
    cache: bool = False
    weight: int = attrs.field(init=False)  # bytes of the system prompt and the tools
    _digests: dict[str, str | None] = attrs.field(init=False, repr=False)
    _fields: dict[str, Any] = attrs.field(init=False, repr=False)
    _cache: bytes = attrs.field(init=False, repr=False)
    _marks: int = attrs.field(init=False, repr=False)
    _rest: bytes = attrs.field(init=False, repr=False)
    _diagnostics: dict[str, Any] | None = attrs.field(init=False, repr=False)
    _headers: dict[str, str] = attrs.field(init=False, repr=False)
    _query: dict[str, object] = attrs.field(init=False, repr=False)
    _timeout_s: float | None = attrs.field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        fields: dict[str, Any] = {}
        if self.system is not None:
            fields["system"] = self.system if isinstance(self.system, str) else _blocks(self.system)
        if self.tools:
            fields["tools"] = [dict(tool) for tool in self.tools]
        fields.update((name, value) for name, value in self.params.items() if name not in _BESIDE)
        fields.update(self._mapping("extra_body"))
        for name in _OWN.keys() & (self.params.keys() | self._mapping("extra_body").keys()):
            raise UsageError(f"params[{brief(name)}]", "looplatch sets this field itself", _OWN[name].capitalize())
        headers = {str(name): str(value) for name, value in self._mapping("extra_headers").items()}
        query: dict[str, object] = dict(self._mapping("extra_query"))
        if betas := self.params.get("betas"):
            if isinstance(betas, str) or not isinstance(betas, Iterable):
                raise UsageError("params['betas']", f"{brief(betas)} is no list", "Put the names into a list")
            _add_betas(headers, query, map(str, cast("Iterable[object]", betas)))
        timeout = self.params.get("timeout")
        if timeout is not None and (
            isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout < 1e9
        ):
            raise UsageError("params['timeout']", f"{brief(timeout)} is not allowed", "Give seconds above 0")
        try:
            # What the caller does to its objects from here on is nothing to the requests, nor to what the log says.
            fields = decode(encode(fields))
            digests = _digests(fields, _betas_of(headers))
            diagnostics: object = fields.pop("diagnostics", None)
            rest = encode(fields)[1:-1]
            weight = sum(len(encode(fields[name])) for name in ("system", "tools") if name in fields)
        except EncodeError as error:
            raise UsageError(
                "params", f"a field of the request cannot be written as JSON: {error}", "Mend it"
            ) from error
        if not isinstance(diagnostics, dict | None):
            raise UsageError("params['diagnostics']", f"{brief(diagnostics)} is no dict", "Give a dict")
        beside = {name: value for name, value in self.params.items() if name in _BESIDE}
        own: dict[str, object] = {
            "system": fields.get("system"),
            "tools": fields.get("tools", []),
            "params": {**{name: value for name, value in fields.items() if name in self.params}, **copied(beside)},
            "weight": weight,
            "_digests": digests,
            "_fields": fields,
            "_diagnostics": diagnostics,
            "_cache": CACHE_FIELD if self.cache and "cache_control" not in fields else b"",
            "_marks": marks_in(rest),
            "_rest": rest,
            "_headers": headers,
            "_query": query,
            "_timeout_s": timeout,
        }
        for name, value in own.items():
            object.__setattr__(self, name, value)

    def _mapping(self, name: str) -> Mapping[str, Any]:
        given: object = self.params.get(name) or {}
        if not isinstance(given, Mapping):
            raise UsageError(f"params[{brief(name)}]", f"{brief(given)} is no dict", "Give a dict")
        return cast("Mapping[str, Any]", given)

    def request(
        self,
        messages: bytes | bytearray,
        *,
        max_tokens: int,
        model: str | None = None,
        marks: int = 0,
        changes: Mapping[str, Any] | None = None,
        betas: Iterable[str] = (),
        previous: str | None = None,
    ) -> ModelRequest:
        """The request for a history, given as the JSON text between the brackets of `messages`.

        marks: the blocks in it that are marked for prompt caching. changes: fields of the body that this request has
        otherwise. betas: more betas that it needs. previous: the id of the answer before, for the API's diagnostics of
        its prompt cache, where `params` asks for them.
        """
        head: dict[str, Any] = {"model": model or self.model, "max_tokens": max_tokens, "stream": True}
        if self._diagnostics is not None:
            asked = {"previous_message_id": previous} if previous is not None else {}
            head["diagnostics"] = {"previous_message_id": None, **self._diagnostics, **asked}
        rest = encode({**self._fields, **changes})[1:-1] if changes else self._rest
        return self._made(head, rest, messages, betas, cache=self._marks + marks < MAX_MARKS)

    def count_request(
        self,
        messages: bytes | bytearray,
        *,
        model: str | None = None,
        changes: Mapping[str, Any] | None = None,
        betas: Iterable[str] = (),
    ) -> ModelRequest:
        """The request that counts the tokens of a history: what of the body makes the prompt."""
        fields = {name: value for name, value in {**self._fields, **(changes or {})}.items() if name in _COUNTED}
        return self._made({"model": model or self.model}, encode(fields)[1:-1], messages, betas)

    def compaction_request(
        self, messages: bytes | bytearray, *, max_tokens: int, model: str | None = None
    ) -> ModelRequest:
        """The request that has the API compact a history, without what would only shape an answer."""
        fields = {name: value for name, value in self._fields.items() if name not in _SHAPES_ANSWERS}
        match fields.get("tool_choice"):
            case {"type": "any" | "tool"}:
                del fields["tool_choice"]
            case _:
                pass
        if isinstance(fields.get("output_config"), Mapping):
            fields["output_config"] = {name: v for name, v in fields["output_config"].items() if name != "format"}
        head: dict[str, Any] = {"model": model or self.model, "max_tokens": max_tokens, "stream": True}
        rest = encode({**fields, "compaction": {"type": "summarize"}})[1:-1]
        return self._made(head, rest, messages, [COMPACTION_BETA])

    def _made(
        self,
        head: Mapping[str, Any],
        rest: bytes,
        messages: bytes | bytearray,
        betas: Iterable[str],
        *,
        cache: bool = False,
    ) -> ModelRequest:
        headers, query = self._headers, self._query
        if more := list(betas):
            headers, query = dict(headers), dict(query)
            _add_betas(headers, query, more)
        rest = b"," + rest if rest else b""
        if cache:
            rest += self._cache
        return ModelRequest(
            body=b"".join((encode(head)[:-1], rest, b',"messages":[', messages, b"]}")),
            headers=headers,
            query=query,
            timeout_s=self._timeout_s,
        )

    @property
    def manages_context(self) -> bool:
        """Whether `params` ask the API to manage the context."""
        return self._fields.get("context_management") is not None

    @property
    def beside(self) -> dict[str, Any]:
        """What of `params` goes beside any request to the same API."""
        return {name: value for name, value in self.params.items() if name in ("extra_headers", "timeout")}

    def digests(self) -> dict[str, str | None]:
        """Digests of the system prompt, the tools and the other parameters, for the log's genesis.

        The other parameters are all that the body has beside these two, and the betas that are asked for.
        """
        return dict(self._digests)


def _digests(fields: dict[str, Any], betas: list[str]) -> dict[str, str | None]:
    system = fields.get("system")
    plain = {name: value for name, value in fields.items() if name not in ("system", "tools")}
    if betas:
        plain["betas"] = betas
    return {
        "system": None if system is None else digest(encode(system)),
        "tools": digest(encode(fields.get("tools", []))),
        "params": digest(encode(plain)),
    }


def _betas_of(headers: Mapping[str, str]) -> list[str]:
    """The betas that a request asks for."""
    asked = next((value for name, value in headers.items() if name.lower() == _BETA_HEADER), "")
    return [beta.strip() for beta in asked.split(",") if beta.strip()]


def _add_betas(headers: dict[str, str], query: dict[str, object], betas: Iterable[str]) -> None:
    """Ask for betas, beside those that are asked for already."""
    name = next((name for name in headers if name.lower() == _BETA_HEADER), _BETA_HEADER)
    headers[name] = ",".join(dict.fromkeys([*_betas_of(headers), *betas]))
    query["beta"] = "true"


def _blocks(system: object) -> list[dict[str, Any]]:
    given = list(cast("Sequence[object]", system)) if isinstance(system, list | tuple) else [None]
    if not all(isinstance(block, Mapping) for block in given):
        raise UsageError("system", f"{brief(system)} is not allowed", "Give a text, or a list of content blocks")
    return [dict(block) for block in cast("list[Mapping[str, Any]]", given)]
