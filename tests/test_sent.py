"""What is sent is what `run.messages` shows, byte for byte: at every request, whatever came before it."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from attrs import define, field
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from looplatch import Compression, Run
from looplatch.blocks import blocks_of
from looplatch.encoding import encode
from looplatch.testing import Answer, ScriptedAPI, reply, scripts, tool_use
from tests.playing import check, echo, scripted, tool_named, user

drawn = settings(
    deadline=None,
    max_examples=40,
    phases=[phase for phase in Phase if phase is not Phase.explain],  # which takes a minute for such scripts
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

Item = Answer | Callable[[dict[str, Any]], Answer]


@define
class Watched:
    """A script that notes, when a request for an answer comes, what the run shows then."""

    script: Sequence[Item]
    run: Run | None = None
    shown: list[list[dict[str, Any]] | None] = field(factory=list[list[dict[str, Any]] | None])

    def items(self) -> list[Item]:
        return [partial(self._answer, item) for item in self.script]

    def _answer(self, item: Item, body: Mapping[str, Any]) -> Answer:
        assert self.run is not None
        # Requests for summaries are made elsewhere, and of other messages.
        self.shown.append(self.run.messages if self.run.state == "stream" else None)
        return item(dict(body)) if callable(item) else item

    def compare(self, api: ScriptedAPI) -> int:
        """Check each request that was noted; returns how many were."""
        pairs = zip(self.shown, api.requests, strict=False)  # past its script, the API answers by itself
        noted = [(shown, request.content) for shown, request in pairs if shown is not None]
        for shown, content in noted:
            assert content.endswith(b',"messages":' + encode(shown) + b"}")
        return len(noted)


async def watched(script: Sequence[Item], prompt: Any = "Go.", **options: Any) -> tuple[Run, int]:
    watch = Watched(script)
    api = ScriptedAPI(watch.items())
    tools = [echo("read"), tool_named("write", read_only=False, answer=lambda given, ctx: {"wrote": dict(given)})]
    async with scripted(api, tools=tools, **options) as loop:
        run = watch.run = loop.run(prompt)
        await run
        check(run, api)
    return run, watch.compare(api)


@drawn
@given(scripts())
def test_every_request_is_what_the_run_shows(script: list[Any]) -> None:
    asyncio.run(watched(script))


SMALL = Compression(snip_at=0.3, micro_at=0.3, micro_frees=0.01, stage_at=None, collapse_at=None, compact_at=0.6)


@drawn
@given(st.lists(st.integers(1, 4_000), min_size=8, max_size=16))
def test_so_it_is_while_the_history_is_being_compressed(sizes: list[int]) -> None:
    """Results of all sizes in a small window: older ones are shortened, cleared, and summed up."""
    answers: list[Item] = [reply(tool_use(f"toolu_{place}", "long", {"n": n})) for place, n in enumerate(sizes)]
    watch = Watched([])

    def answer(body: dict[str, Any]) -> Answer:
        assert watch.run is not None
        streaming = watch.run.state == "stream"
        watch.shown.append(watch.run.messages if streaming else None)
        if not streaming:
            return reply("What was done so far.")
        item = answers.pop(0) if answers else reply("Done.")
        assert not callable(item)
        return item

    async def play() -> None:
        api = ScriptedAPI(answer)
        long = tool_named("long", answer=lambda given, ctx: "x " * int(given["n"]))
        async with scripted(api, tools=[long], window=16_000, max_tokens=500, compression=SMALL) as loop:
            run = watch.run = loop.run("Go.")
            result = await run
            assert result.terminal in ("answered", "context_blocked"), result.error
            check(run, api)
        assert watch.compare(api) > 0

    asyncio.run(play())


EDITS = st.sampled_from(["nothing", "a word", "the last exchange", "another beginning"])


def edited(messages: list[dict[str, Any]], edit: str) -> list[dict[str, Any]]:
    """What a caller may make of a history between two runs."""
    match edit:
        case "a word":
            return [user("Go, but slowly."), *messages[1:]]
        case "the last exchange":
            ends = [place for place, message in enumerate(messages) if message["role"] == "assistant"]
            return messages[: ends[-1]] if ends else messages
        case "another beginning":
            return [user("Begin.", "Really."), *messages[1:]]
        case _:
            return messages


@drawn
@given(scripts(), scripts(), EDITS)
def test_so_it_is_after_a_callers_edit_between_two_runs(first: list[Any], second: list[Any], edit: str) -> None:
    """And what the caller does to the messages once the second run has them changes nothing."""

    async def play() -> None:
        one, _ = await watched(first)
        given = [*edited(one.messages, edit), user("And then?")]
        watch = Watched(second)
        api = ScriptedAPI(watch.items(), known=[block for message in one.messages for block in blocks_of(message)])
        async with scripted(api, tools=[echo("read"), echo("write", read_only=False)]) as loop:
            run = watch.run = loop.run(given)
            given[0]["content"] = "Something else."
            given.clear()
            await run
            check(run, api)
        watch.compare(api)

    asyncio.run(play())


SECRET = "sk-ant-api03-" + "A1b2" * 8
TEXTS = st.sampled_from(["a plain text", f"the key is {SECRET}", f'{{"password": "{SECRET}"}}'])


@drawn
@given(st.lists(TEXTS, min_size=2, max_size=5))
def test_so_it_is_where_the_log_keeps_no_secrets(texts: list[str]) -> None:
    """The run itself knows them, and sends them; one that goes on from its log knows what the log has of them."""

    async def play() -> None:
        told = [reply(said, tool_use(f"t{n}", "read", {"said": said})) for n, said in enumerate(texts)]
        watch = Watched([*told, reply("Done.")])
        api = ScriptedAPI(watch.items())
        async with scripted(api, tools=[echo("read")]) as loop:
            first = watch.run = loop.run(texts[0], pause_after=["orchestrate"])
            await first
            assert (SECRET in str(first.messages)) is (SECRET in texts[0])
            run = watch.run = loop.resume(first.log, accept_changes=True)
            await run
            assert run.result is not None
            assert run.result.terminal == "answered", run.result.error
        assert watch.compare(api) == len(texts) + 1
        assert SECRET not in str(run.log.messages)

    asyncio.run(play())
