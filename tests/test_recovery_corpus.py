"""The recorded agent sessions played through a loop, at windows from 8,000 to 200,000 tokens."""

import asyncio
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from looplatch import Compression, Limits, Loop, Run, Tool, ToolContext
from looplatch.recovery.compression.cutting import cut_content
from looplatch.recovery.weights import weigh_all
from looplatch.states.level import Level
from looplatch.testing import Answer, FakeClock, ScriptedAPI, reply
from tests import transcripts
from tests.playing import ANYTHING, check_log
from tests.recovering import SUMMARY, too_long, transcript_in

pytestmark = pytest.mark.corpus

WHOLE = "LOOPLATCH_WHOLE" in os.environ
WINDOWS = (8_000, 20_000, 200_000)
STRICTLY = 20_000  # up to here the server looks at every request with all its rules, which takes most of the time
Message = dict[str, Any]


@pytest.fixture(scope="module")
def sessions(corpus: Path) -> dict[str, list[Message]]:
    return transcripts.histories_in(corpus)


class Session:
    """Plays a session again: its model says what it said, and its tools bring what they brought.

    earlier: how it began, up to 45 % of the window: that is given to the first run, since nothing would be due. Where
    the window is wide, which makes each run dear, no more than twenty things that the user said are played. `make soak`
    plays all of it from the start.
    """

    def __init__(self, messages: list[Message], window: int) -> None:
        prompts = [place for place, message in enumerate(messages) if is_prompt(message)]
        given = [place for place in prompts if weigh_all(messages[:place]) <= 0.45 * window]
        start = given[0 if WHOLE else -1]
        self.earlier = messages[:start]
        self._prompts = [place for place in prompts if place >= start][: None if WHOLE else max(20, 600_000 // window)]
        self._messages = messages
        self._answers = iter([message for message in messages[start:] if message["role"] == "assistant"])
        blocks = [block for message in messages for block in message["content"]]
        self._results = {block["tool_use_id"]: block for block in blocks if block["type"] == "tool_result"}
        self.names = {block["name"] for block in blocks if block["type"] == "tool_use"}
        self.summaries = 0

    def __call__(self, body: dict[str, Any]) -> Answer:
        if transcript_in(body) is not None:
            self.summaries += 1
            return reply(SUMMARY * 8)
        answer = next(self._answers, None)
        return reply("That is all.") if answer is None else reply(*answer["content"])

    def tools(self) -> list[Tool]:
        async def call(given: dict[str, Any], ctx: ToolContext) -> Any:
            return self._results[ctx.tool_use_id].get("content") or "ok"

        return [Tool(name, "", ANYTHING, call, True) for name in sorted(self.names)]

    def said(self) -> Iterator[list[dict[str, Any]]]:
        """What the user said, turn by turn."""
        for place in self._prompts:
            yield [block for block in self._messages[place]["content"] if block["type"] != "tool_result"]


def bounded(message: Message, window: int) -> Message:
    """A message whose results have no more than the quarter of the window that a tool may bring."""
    content = [
        {**block, "content": cut_content(block.get("content") or "", window // 4)}
        if block["type"] == "tool_result"
        else block
        for block in message["content"]
    ]
    return {**message, "content": content}


def is_prompt(message: Message) -> bool:
    """Whether a message is the user's own, and no answer to calls."""
    return message["role"] == "user" and all(block["type"] != "tool_result" for block in message["content"])


async def replayed(messages: list[Message], window: int) -> tuple[Session, ScriptedAPI, list[Run]]:
    """The session as one run after the other, each of which goes on from where the one before it ended."""
    session = Session(messages, window)
    thoughts = [block for message in session.earlier for block in message["content"] if block["type"] == "thinking"]
    api = ScriptedAPI(session, window=window, strict=window <= STRICTLY, known=thoughts)
    runs: list[Run] = []
    async with api.client() as client:
        loop = Loop(
            model="claude-sonnet-4-5",
            client=client,
            tools=session.tools(),
            window=window,
            max_tokens=window // 8,
            clock=FakeClock(),
            limits=Limits(max_turns=2_000),
            compression=Compression(span_exchanges=4),
        )
        history = session.earlier
        for said in session.said():
            run = loop.run([*history, {"role": "user", "content": said}])
            await run
            check_log(run)
            runs.append(run)
            history = run.messages
            if run.result is not None and run.result.is_error:
                break
    assert api.faults == []
    assert [text for text in api.refusals if not too_long(text)] == []
    return session, api, runs


@pytest.mark.parametrize("window", WINDOWS)
def test_each_session_is_kept_under_the_window(sessions: dict[str, list[Message]], window: int) -> None:
    used: set[str] = set()
    for name, messages in sessions.items():
        session, api, runs = asyncio.run(replayed(messages, window))
        changed = [move for run in runs for move in run.log.transitions if move.event == "HistoryCompressed"]
        used |= {move["fields"]["level"] for move in changed}
        for move in changed:
            assert move["fields"]["tokens_after"] < move["fields"]["tokens_before"], name
        if weigh_all(messages) + window // 8 < 0.6 * window:
            assert changed == [], f"{name} was never due"
            assert session.summaries == 0
        if weigh_all(map(partial(bounded, window=window), messages)) > window:
            assert changed, f"{name} would have overflowed"
        for run in runs:
            assert run.result is not None
            if run.result.is_error:
                assert run.result.terminal == "context_blocked", f"{name}: {run.result.error}"
                assert blocked_rightly(run, window), f"{name} at {window}"
        assert len(api.refusals) <= 0.05 * len(api.requests) + 1, name
    if window <= 20_000:
        assert used == {str(level) for level in Level}


def blocked_rightly(run: Run, window: int) -> bool:
    """Whether what cannot be made shorter is too much by itself: the user's own words, and the latest answer."""
    words = [
        block
        for message in run.messages
        for block in ([{"text": message["content"]}] if isinstance(message["content"], str) else message["content"])
        if message["role"] == "user" and block.get("type") != "tool_result"
    ]
    return weigh_all([{"content": words}, *run.messages[-2:]]) > window // 4
