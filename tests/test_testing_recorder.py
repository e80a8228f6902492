"""The recorder between a real client and another scripted API over real HTTP, and the playbooks that it writes."""

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from looplatch import Loop, Run, Tool
from looplatch.testing import (
    Answer,
    FakeClock,
    Recorder,
    ScriptedAPI,
    ScriptError,
    cut,
    disconnected,
    error,
    failing,
    raw,
    read_playbook,
    reply,
    scripts,
    stalled,
    text,
    thinking,
    tool_use,
)
from looplatch.testing.answers import Cut, event_count
from looplatch.testing.playbook import HEAD
from tests.playing import MODEL, echo

KEY = "sk-ant-api03-this-is-the-key-of-the-caller"


@asynccontextmanager
async def recording(path: Path, api: ScriptedAPI, **options: Any) -> AsyncGenerator[Recorder]:
    async with (
        api.serve() as upstream,
        httpx2.AsyncClient(trust_env=False, timeout=20) as http,
        Recorder(path, upstream=upstream, http_client=http, **options) as recorder,
    ):
        yield recorder


def tools() -> list[Tool]:
    return [echo("read"), echo("write", read_only=False)]


async def ran(client: anthropic.AsyncAnthropic) -> Run:
    loop = Loop(model=MODEL, client=client, clock=FakeClock(), jitter=lambda: 0.0, tools=tools())
    run = loop.run("Go.")
    await run
    return run


async def recorded(path: Path, script: Sequence[Answer], *, served: bool = False) -> Run:
    api = ScriptedAPI(script)
    async with recording(path, api) as recorder:
        if not served:
            async with recorder.client(api_key=KEY) as client:
                run = await ran(client)
        else:
            direct = anthropic.DefaultAsyncHttpxClient(trust_env=False)
            async with (
                recorder.serve() as url,
                anthropic.AsyncAnthropic(api_key=KEY, base_url=url, http_client=direct) as client,
            ):
                run = await ran(client)
    assert all(KEY in (request.headers["authorization"]) for request in api.requests)
    return run


async def played(path: Path) -> tuple[Run, ScriptedAPI]:
    api = ScriptedAPI.from_playbook(path)
    async with api.client() as client:
        return await ran(client), api


EVERYTHING: list[Answer] = [
    error(529, "overloaded_error", "Overloaded", {"retry-after": "2"}),
    disconnected(),
    cut(reply("I lo"), after=3, clean=False),
    failing(reply("I look"), after=2),
    reply(thinking("hm"), "I look.", tool_use("toolu_1", "read", {"n": 1}), tool_use("toolu_2", "write", {"é": "\n"})),
    reply("Done.", pings=[1]),
]


@pytest.mark.parametrize("served", [False, True], ids=["in process", "served"])
def test_what_was_recorded_plays_again(tmp_path: Path, served: bool) -> None:
    async def main() -> None:
        path = tmp_path / "talk.jsonl"
        live = await recorded(path, EVERYTHING, served=served)
        again, api = await played(path)
        api.check_played()
        assert again.messages == live.messages
        assert [move["event"] for move in again.log.transitions] == [move["event"] for move in live.log.transitions]
        assert len(api.requests) == 6

    asyncio.run(main())


def test_a_playbook_reads_as_a_script(tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"
    asyncio.run(recorded(path, EVERYTHING))
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    told = [
        (line["answer"], line["messages"], line.get("status"), line.get("ends"))
        if "answer" in line
        else line["event"]["type"]
        if "event" in line
        else line
        for line in lines
    ]
    start, delta, stop = "content_block_start", "content_block_delta", "content_block_stop"
    assert told == [
        {"playbook": 1},
        (1, 1, 529, None),
        {"body": {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"},
                  "request_id": "req_000001"}},
        (2, 1, None, "disconnected"),
        (3, 1, 200, None),
        *("message_start", start, delta),
        {"ends": "cut"},
        (4, 1, 200, None),
        *("message_start", start, "error"),
        (5, 1, 200, None),
        *("message_start", start, delta, delta, stop, start, delta, stop, start, delta, stop, start, delta, stop),
        *("message_delta", "message_stop"),
        (6, 3, 200, None),
        *("message_start", "ping", start, delta, stop, "message_delta", "message_stop"),
    ]  # fmt: skip
    assert lines[1]["headers"] == {"content-type": "application/json", "request-id": "req_000001", "retry-after": "2"}
    assert path.stat().st_mode & 0o777 == 0o600


def test_each_event_goes_on_as_it_comes(tmp_path: Path) -> None:
    async def main() -> None:
        gate = asyncio.Event()
        api = ScriptedAPI([stalled(reply("Hello.", pings=[2]), after=3, gate=gate)])
        async with recording(tmp_path / "talk.jsonl", api) as recorder, recorder.client(api_key=KEY) as client:
            seen: list[str] = []
            asked: Any = {"model": "claude", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi."}]}
            async with client.messages.stream(**asked) as stream:
                async for one in stream:
                    seen.append(one.type)
                    if one.type == "content_block_start":
                        assert not gate.is_set()
                        gate.set()  # the rest is not sent before the client has seen this
            assert seen[-1] == "message_stop"

    asyncio.run(main())


def test_neither_keys_nor_what_looks_like_one_is_written(tmp_path: Path) -> None:
    token = "ghp_" + "a1B2" * 10

    async def main() -> None:
        api = ScriptedAPI(
            [
                raw(json.dumps({"error": f"your key {KEY} is bad"}), status=401,
                    headers={"content-type": "application/json", "set-cookie": "session=me", "x-own": "mine"}),
                reply(f"The token is {token}."),
            ]
        )  # fmt: skip
        async with recording(tmp_path / "talk.jsonl", api) as recorder:
            for headers in ({"api_key": KEY}, {"auth_token": "plain-words", "api_key": None}):
                async with recorder.client(**headers, max_retries=0) as client:
                    asked: Any = {"model": "claude", "max_tokens": 9, "messages": [{"role": "user", "content": "SAID"}]}
                    with suppress(anthropic.AuthenticationError):
                        await client.messages.create(**asked)

    asyncio.run(main())
    written = (tmp_path / "talk.jsonl").read_text("utf-8")
    assert not [one for one in (KEY, token, "session", "mine", "SAID", "plain-words") if one in written]
    assert written.count("redacted") == 2


TOKEN = "ghp_" + "a1B2" * 9


def spelling(answer: Answer, path: Path) -> list[Answer]:
    """What a playbook has of an answer."""

    async def main() -> None:
        async with recording(path, ScriptedAPI([answer])) as recorder, recorder.client(api_key=KEY) as client:
            asked: Any = {"model": "claude", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi."}]}
            with suppress(anthropic.APIError, httpx2.HTTPError):
                async with client.messages.stream(**asked) as stream:
                    async for _ in stream:
                        pass

    path.unlink(missing_ok=True)
    asyncio.run(main())
    return read_playbook(path)


@given(
    st.lists(st.integers(0, 80), max_size=6),
    st.sampled_from(["%s", "It is %s.", "%s and %s", f"{KEY} is mine", "authorization: Basic %s"]),
)
@settings(
    deadline=None,
    max_examples=8,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
def test_a_secret_that_deltas_spell_is_not_written(tmp_path: Path, cuts: list[int], around: str) -> None:
    """Wherever it is cut: in a text, in thinking, in the JSON of an input, whole or not, under a telling name."""
    path = tmp_path / "talk.jsonl"
    said = around.replace("%s", TOKEN)
    given_ = json.dumps({"say": said, "password": "hunter22", "n": 1}).replace("ghp", "\\u0067hp")
    answer = reply(
        thinking(said, pieces=cut_at(said, cuts)),
        text(said, pieces=cut_at(said, cuts)),
        tool_use("toolu_1", "read", given_, pieces=cut_at(given_, cuts)),
    )
    marked = around.replace("%s", "[redacted: github_token]").replace(KEY, "[redacted: api_key]")
    for one in (answer, cut(answer, after=event_count(answer) - 4, clean=False)):
        spelling(one, path)
        events = [json.loads(line).get("event", {}) for line in path.read_text("utf-8").splitlines()]
        deltas = [one["delta"] for one in events if one.get("type") == "content_block_delta"]
        thought, told, asked = (
            "".join(str(delta.get(name, "")) for delta in deltas) for name in ("thinking", "text", "partial_json")
        )
        assert (thought, told) == (marked, marked)
        for hidden in (TOKEN, TOKEN[1:], KEY, "hunter22"):
            assert hidden not in path.read_text("utf-8")
        if one is answer:
            assert json.loads(asked) == {"say": marked, "password": "[redacted: named_secret]", "n": 1}


def cut_at(value: str, cuts: list[int]) -> list[str]:
    places = sorted({0, len(value), *(place for place in cuts if place < len(value))})
    return [value[start:end] for start, end in pairwise(places)]


def test_what_only_the_api_can_read_is_written_as_it_is(tmp_path: Path) -> None:
    made = thinking("I see.", signature=TOKEN)
    assert "".join(str(one) for one in spelling(reply(made, "Hello."), tmp_path / "talk.jsonl")).count(TOKEN) == 1


def test_a_client_that_leaves_ends_the_request_and_what_came_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"

    async def main() -> None:
        never = asyncio.Event()
        api = ScriptedAPI([stalled(reply("Hello."), after=2, gate=never), reply("Second.")])
        async with recording(path, api) as recorder, recorder.client(api_key=KEY) as client:
            asked: Any = {"model": "claude", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi."}]}
            async with client.messages.stream(**asked) as stream:
                async for one in stream:
                    if one.type == "content_block_start":
                        break
            await api.exchanges[0].ended.wait()
            await client.messages.create(**asked)

    asyncio.run(main())
    first, second = read_playbook(path)
    assert isinstance(first, Cut)
    assert (first.after, first.clean) == (2, False)
    assert "Second." in str(second)


def test_counting_is_passed_on_and_not_recorded(tmp_path: Path) -> None:
    async def main() -> int:
        async with (
            recording(tmp_path / "talk.jsonl", ScriptedAPI([], count=lambda body: 77)) as recorder,
            recorder.client(api_key=KEY) as client,
        ):
            return (
                await client.messages.count_tokens(model="claude", messages=[{"role": "user", "content": "Hi."}])
            ).input_tokens

    assert asyncio.run(main()) == 77
    assert (tmp_path / "talk.jsonl").read_bytes() == HEAD


def test_answers_stand_in_the_order_of_their_requests(tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"

    async def main() -> None:
        gate = asyncio.Event()
        api = ScriptedAPI([stalled(reply("First."), after=0, gate=gate), reply("Second.")])
        async with recording(path, api) as recorder, recorder.client(api_key=KEY) as client:
            asked: Any = {"model": "claude", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi."}]}
            create: Any = client.messages.create
            first: asyncio.Task[Any] = asyncio.create_task(create(**asked))
            await api.arrival(1)
            await create(**asked)
            gate.set()
            await first

    asyncio.run(main())
    assert ["First." in str(one) for one in read_playbook(path)] == [True, False]


@settings(
    deadline=None,
    max_examples=5,
    phases=[phase for phase in Phase if phase is not Phase.explain],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
)
@given(scripts())
def test_whatever_was_recorded_plays_again(tmp_path: Path, script: list[Answer]) -> None:
    async def main() -> None:
        path = tmp_path / "talk.jsonl"
        path.unlink(missing_ok=True)
        live = await recorded(path, script)
        again, api = await played(path)
        assert again.messages == live.messages
        assert [move["event"] for move in again.log.transitions] == [move["event"] for move in live.log.transitions]
        assert len(api.requests) >= len(read_playbook(path))

    asyncio.run(main())


# --- what is refused


def test_an_existing_file_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"
    path.write_text("mine")

    async def main() -> None:
        async with Recorder(path):
            pass

    with pytest.raises(ScriptError, match=r"talk.jsonl exists already"):
        asyncio.run(main())
    assert path.read_text() == "mine"


def test_an_upstream_that_is_no_address_and_a_recorder_that_is_not_open_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ScriptError, match="begins with http"):
        Recorder(tmp_path / "talk.jsonl", upstream="api.anthropic.com")
    with pytest.raises(ScriptError, match="not open"):
        Recorder(tmp_path / "talk.jsonl").handle("POST", "/v1/messages", {}, b"{}")


HEADED = '{"playbook": 1}\n'
ANSWER = '{"answer": 1, "status": 200}\n'


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "line 1: a playbook begins with"),
        ('{"playbook": 2}\n', "line 1: a playbook begins with"),
        (HEADED + "{", "line 2: this is no JSON"),
        (HEADED + "[]", "line 2: this is no JSON object"),
        (HEADED + '{"event": {}}', "line 2: an answer begins with"),
        (HEADED + ANSWER + '{"sound": 1}', "line 3: a piece of an answer has"),
        (HEADED + ANSWER + '{"ends": "cut"}\n{"text": ""}', "line 4: the answer has ended before"),
        (HEADED + '{"answer": 1}', 'line 2: an answer has a "status"'),
        (HEADED + '{"answer": 1, "status": 200, "headers": []}', 'line 2: "headers" are an object'),
    ],
)
def test_what_is_no_playbook_is_told_with_its_line(tmp_path: Path, content: str, told: str) -> None:
    path = tmp_path / "talk.jsonl"
    path.write_text(content)
    with pytest.raises(ScriptError, match=told):
        read_playbook(path)


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ScriptError, match="cannot be read"):
        ScriptedAPI.from_playbook(tmp_path / "none.jsonl")
