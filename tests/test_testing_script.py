"""The scripted API keeps what it is asked, plays its script in order, and says what was not as it should be."""

import asyncio
from collections.abc import Callable
from typing import Any

import anthropic
import pytest
from anthropic.types import MessageParam, ThinkingBlockParam

from looplatch.testing import Answer, ScriptedAPI, ScriptError, reply

HI: list[MessageParam] = [{"role": "user", "content": "hi"}]


def ask(api: ScriptedAPI, use: Callable[[anthropic.AsyncAnthropic], Any]) -> Any:
    async def main() -> Any:
        async with api.client(max_retries=0) as client:
            return await use(client)

    return asyncio.run(main())


async def created(client: anthropic.AsyncAnthropic, messages: list[MessageParam] = HI) -> Any:
    return (await client.messages.create(model="claude", max_tokens=100, messages=messages)).to_dict()


def test_requests_are_kept_decoded_with_their_headers() -> None:
    api = ScriptedAPI([reply("a")])

    async def use(client: anthropic.AsyncAnthropic) -> Any:
        return await client.messages.create(
            model="claude", max_tokens=100, messages=HI, extra_headers={"X-Mine": "1"}, extra_query={"beta": "true"}
        )

    ask(api, use)
    (request,) = api.requests
    assert request.body == {"model": "claude", "max_tokens": 100, "messages": HI}
    assert request.messages == HI
    assert (request.method, request.path, request.query) == ("POST", "/v1/messages", "beta=true")
    assert (request.headers["x-mine"], "anthropic-version" in request.headers) == ("1", True)


def test_a_function_answers_from_the_request() -> None:
    def echo(body: dict[str, Any]) -> Answer:
        return reply(f"you said {body['messages'][-1]['content']}")

    for api in (ScriptedAPI(echo), ScriptedAPI([echo])):
        assert ask(api, created)["content"][0]["text"] == "you said hi"


def test_a_function_that_raises_is_a_fault_that_is_not_retried() -> None:
    def broken(body: dict[str, Any]) -> Answer:
        raise KeyError(body["model"])

    api = ScriptedAPI([broken])
    with pytest.raises(
        anthropic.InternalServerError, match=r"the script raised KeyError\('claude'\) on request 1"
    ) as caught:
        ask(api, created)
    assert caught.value.response.headers["x-should-retry"] == "false"
    with pytest.raises(ScriptError, match=r"the script failed: KeyError\('claude'\)"):
        api.check_played()


def test_a_script_used_up_says_so_and_asks_not_to_be_retried() -> None:
    async def use(client: anthropic.AsyncAnthropic) -> Any:
        await created(client)
        return await created(client)

    api = ScriptedAPI([reply("a")])
    message = "the script has no answer for request 2: its only answer is used up"
    with pytest.raises(anthropic.InternalServerError, match=message) as caught:
        ask(api, use)
    assert caught.value.response.headers["x-should-retry"] == "false"
    with pytest.raises(ScriptError, match=message):
        api.check_played()


def test_otherwise_answers_when_the_script_is_used_up() -> None:
    assert ask(ScriptedAPI([], otherwise=reply("again")), created)["content"][0]["text"] == "again"


@pytest.mark.parametrize(
    ("script", "complaint"),
    [
        (["hi"], r"entry 0 is a str; use reply\('hi'\)"),
        ([reply("a"), {"role": "assistant", "content": "hi"}], r"entry 1 is a dict; .* use reply\(\.\.\.\)"),
        ([None], r"entry 0 is a NoneType; use reply"),
        (reply("x"), r"the script is one Reply; put it into a list"),
        ("hi", r"the script is a str; use a list"),
        ({"role": "assistant"}, r"the script is a dict; use a list"),
        (7, r"the script is a int; use a list"),
    ],
)
def test_what_is_no_script_is_refused_at_once(script: Any, complaint: str) -> None:
    with pytest.raises(ScriptError, match=complaint):
        ScriptedAPI(script)


def test_an_otherwise_that_is_no_answer_is_refused_at_once() -> None:
    answer: Any = "again"
    with pytest.raises(ScriptError, match=r"otherwise is a str; use reply\('again'\)"):
        ScriptedAPI([], otherwise=answer)


def test_answers_never_asked_for_are_listed() -> None:
    rest = [reply("b"), reply("c")]
    api = ScriptedAPI([reply("a"), *rest])
    ask(api, created)
    assert api.unused == rest
    with pytest.raises(ScriptError, match="2 of 3 answers were never asked for"):
        api.check_played()


def test_a_script_played_to_its_end_passes_the_check() -> None:
    api = ScriptedAPI([reply("a")])
    ask(api, created)
    api.check_played()
    (exchange,) = api.exchanges
    assert (exchange.finished, exchange.ended.is_set(), exchange.answer) == (True, True, reply("a"))


def test_a_request_that_the_api_would_refuse_takes_nothing_from_the_script() -> None:
    async def use(client: anthropic.AsyncAnthropic) -> Any:
        with pytest.raises(anthropic.BadRequestError, match="messages: at least one message is required"):
            await created(client, [])
        return await created(client)

    api = ScriptedAPI([reply("a")])
    assert ask(api, use)["content"][0]["text"] == "a"
    assert api.refusals == ["messages: at least one message is required"]
    assert [exchange.answer for exchange in api.exchanges] == [None, reply("a")]
    with pytest.raises(ScriptError, match="the API refused a request: messages: at least one message is required"):
        api.check_played()


def test_a_lax_api_takes_anything() -> None:
    api = ScriptedAPI([reply("a")], strict=False)
    assert api.handle("POST", "/v1/messages", {}, b'{"messages": []}').wire.status == 200


@pytest.mark.parametrize("target", ["/v1/messages", "/v1/messages/count_tokens"])
@pytest.mark.parametrize("content", [b"[]", b"[1]", b'"text"', b"5", b"null", b"{", b"", b'{"a": "\xff"}'])
def test_a_lax_api_takes_no_body_that_is_no_object(target: str, content: bytes) -> None:
    api = ScriptedAPI([reply("a")], strict=False, window=1_000)
    assert api.handle("POST", target, {}, content).wire.status == 400
    assert api.handle("POST", "/v1/messages", {}, b"{}").wire.status == 200, "it took nothing from the script"


@pytest.mark.parametrize("limit", [b'"5"', b"[1]", b"null", b"{}", b"1.5", b"true"])
def test_a_lax_api_with_a_window_takes_no_limit_that_is_no_number(limit: bytes) -> None:
    body = b'{"max_tokens": ' + limit + b"}"
    api = ScriptedAPI([reply("a"), reply("b")], strict=False, window=1_000)
    assert api.handle("POST", "/v1/messages", {}, body).wire.status == 400
    assert api.refusals == ["max_tokens: Input should be a valid integer"]
    lax = ScriptedAPI([reply("a")], strict=False)
    assert lax.handle("POST", "/v1/messages", {}, body).wire.status == 200


@pytest.mark.parametrize("messages", [b"5", b"null", b"{}", b'"text"', b"[]"])
def test_messages_that_are_no_list_are_none(messages: bytes) -> None:
    api = ScriptedAPI([reply("a")], strict=False)
    assert api.handle("POST", "/v1/messages", {}, b'{"messages": ' + messages + b"}").request.messages == []


@pytest.mark.parametrize(
    ("target", "method", "headers", "content", "status", "message"),
    [
        ("/v1/messages", "POST", {}, b"{}", 401, "x-api-key header is required"),
        ("/v1/messages", "POST", {"x-api-key": "k"}, b"{}", 400, "anthropic-version: header is required"),
        ("/v1/messages", "GET", {}, b"", 405, "Method Not Allowed"),
        ("/v1/nothing", "POST", {}, b"{}", 404, "Not Found"),
        ("/v1/messages", "POST", {"x-api-key": "k"}, b" " * (32 * 1024 * 1024 + 1), 413, "exceeds the maximum size"),
        ("/v1/messages", "POST", {"x-api-key": "k", "anthropic-version": "1"}, b"{", 400, "body is not valid JSON"),
    ],
)
def test_what_is_wrong_before_the_body_is_refused_too(
    target: str, method: str, headers: dict[str, str], content: bytes, status: int, message: str
) -> None:
    wired = ScriptedAPI([]).handle(method, target, headers, content).wire
    assert wired.status == status
    assert message in str(wired.steps[0])


def test_tokens_are_counted() -> None:
    async def use(client: anthropic.AsyncAnthropic) -> Any:
        return (await client.messages.count_tokens(model="claude", messages=HI)).input_tokens

    api = ScriptedAPI([], count=lambda body: 10 * len(body["messages"]))
    assert ask(api, use) == 10
    assert ([request.path for request in api.counted], api.requests) == (["/v1/messages/count_tokens"], [])


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (901, "input length and `max_tokens` exceed context limit: 901 \\+ 100 > 1000, decrease input length or"),
        (1_001, "prompt is too long: 1001 tokens > 1000 maximum"),
    ],
)
def test_a_window_is_enforced(tokens: int, message: str) -> None:
    with pytest.raises(anthropic.BadRequestError, match=message):
        ask(ScriptedAPI([], count=lambda body: tokens, window=1_000), created)


def test_known_thinking_is_taken_for_its_own() -> None:
    thought: ThinkingBlockParam = {"type": "thinking", "thinking": "x", "signature": "earlier"}
    answered: MessageParam = {"role": "assistant", "content": [thought, {"type": "text", "text": "y"}]}

    async def use(client: anthropic.AsyncAnthropic) -> Any:
        return await created(client, [*HI, answered, *HI])

    assert ask(ScriptedAPI([reply("ok")], known=[thought]), use)["content"][0]["text"] == "ok"
    with pytest.raises(anthropic.BadRequestError, match="Invalid `signature`"):
        ask(ScriptedAPI([reply("ok")]), use)


def test_a_request_can_be_awaited_before_and_after_it_comes() -> None:
    async def use(client: anthropic.AsyncAnthropic) -> Any:
        second = asyncio.ensure_future(api.arrival(2))
        await created(client)
        assert (await api.arrival(1)).request.number == 1
        assert not second.done()
        await created(client)
        return (await second).request.number

    api = ScriptedAPI([reply("a"), reply("b")])
    assert ask(api, use) == 2
