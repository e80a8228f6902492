"""`looplatch[fast]`: whole runs over the SDK's aiohttp transport, to a real server on the loopback interface."""

import asyncio
from typing import Any

import anthropic
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from looplatch import AssistantMessage, Loop, Run, StreamEvent
from looplatch.encoding import encode
from looplatch.model.sdk import reads_requests
from looplatch.testing import FakeClock, ScriptedAPI, error, reply, scripts, stalled, text, tool_use
from looplatch.testing.loopback import loopback_client
from tests.playing import MODEL, alone, check, echo, rounds


def fast_client(url: str) -> anthropic.AsyncAnthropic:
    http = anthropic.DefaultAioHttpClient(trust_env=False)
    return anthropic.AsyncAnthropic(base_url=url, api_key="k", http_client=http)


async def ran(script: list[Any], make: Any = fast_client) -> tuple[Run, ScriptedAPI]:
    api = ScriptedAPI(script)
    async with api.serve() as url, make(url) as client:
        assert not reads_requests(client), "requests go out as bytes, and answers come in as bytes"
        # Both only read: when a write begins, and so whether a cut answer has it, depends on when the reads before end.
        tools = [echo("read"), echo("write")]
        loop = Loop(model=MODEL, client=client, tools=tools, clock=FakeClock(), jitter=lambda: 0.0)
        run = loop.run("Go.", include_partial_messages=True)
        await run
        check(run, api)
    await rounds(5)
    assert alone()
    return run, api


drawn = settings(
    deadline=None,
    max_examples=15,
    phases=[phase for phase in Phase if phase is not Phase.explain],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@drawn
@given(scripts())
def test_any_script_goes_as_it_does_over_the_plain_transport(script: list[Any]) -> None:
    fast, _ = asyncio.run(ran(script))
    plain, _ = asyncio.run(ran(script, loopback_client))
    assert fast.messages == plain.messages
    assert fast.log.path == plain.log.path


def test_what_is_sent_is_what_the_run_shows() -> None:
    calls = [reply(text("I look.", pieces=3), tool_use(f"r{n}", "read", {"n": n})) for n in range(3)]
    run, api = asyncio.run(ran([*calls, error(529, "overloaded_error"), reply("Done.")]))
    assert [request.content for request in api.requests][-1].endswith(
        b',"messages":' + encode(run.messages[:-1]) + b"}"
    )
    assert run.result is not None
    assert run.result.terminal == "answered"


@pytest.mark.parametrize("way", ["abort", "aclose"])
def test_a_run_that_is_ended_midway_lets_its_connection_go(way: str) -> None:
    async def play() -> None:
        gate = asyncio.Event()
        api = ScriptedAPI([stalled(reply(text("One two three.", pieces=3)), after=4, gate=gate)])
        async with api.serve() as url, fast_client(url) as client:
            loop = Loop(model=MODEL, client=client)
            async with loop.run("Go.", include_partial_messages=True) as run:
                async for message in run:
                    if isinstance(message, StreamEvent) and message.event["type"] == "content_block_delta":
                        await (run.aclose() if way == "aclose" else aborted(run))
                    assert not isinstance(message, AssistantMessage), "its block never ends"
            assert run.result is not None
            assert run.result.terminal == ("closed" if way == "aclose" else "aborted")
            await api.exchanges[0].ended.wait()
            check(run, api)

    asyncio.run(play())


async def aborted(run: Run) -> None:
    run.abort()
