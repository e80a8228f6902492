"""Whole runs in windows that are far too small, with everything in them that compression must not touch or split.

Each ends by itself, whatever the model says and the tools bring; every request on the way is a history that the API
takes, and the log verifies.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, event, given, settings
from hypothesis import strategies as st

from looplatch import Block, Compression, Hooks, Limits, Pass, ToolContext
from looplatch.hooks import StopContext
from looplatch.recovery.validity import history_problems
from looplatch.states.reasons import Strategy
from looplatch.states.record import Record
from looplatch.testing import Answer, ScriptedAPI, block, error, redacted_thinking, reply, server_tool_use, tool_use
from looplatch.testing import thinking as thought
from tests.playing import Play, tool_named
from tests.recovering import SUMMARY, met, moves, strategies, too_long, transcript_in

PIXELS = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo" * 600}
PICTURE = {"type": "image", "source": PIXELS}
DOCUMENT = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "A page.\n" * 2_000}}
SEARCH = {"type": "web_search_20250305", "name": "web_search"}
FOUND = {"type": "web_search_tool_result", "content": [{"type": "web_search_result", "encrypted_content": "e" * 6_000}]}

# What a tool brings, by what it is asked for.
BROUGHT: dict[str, Any] = {
    "little": "ok",
    "much": "a line of output, much like the others\n" * 300,
    "far too much": "é中\U0001f600" * 60_000,
    "a picture": [{"type": "text", "text": "see"}, PICTURE],
    "pictures": [PICTURE] * 4,
    "a document": [DOCUMENT],
    "half a character": "\ud800 and more " * 500,
}
DEEDS = ["answer", "cut", "cut call", "pause", "refused once", "think", "serve", *BROUGHT, "parallel", "parallel"]

PROMPTS: dict[str, Any] = {
    "a word": "Go.",
    "a long text": "Read every file, and write down what is in them. " * 300,
    "a giant text": "Read every file, and write down what is in them. " * 4_000,
    "pictures": [{"role": "user", "content": [PICTURE, PICTURE, {"type": "text", "text": "Go."}]}],
}
ENDS = ("answered", "context_blocked", "output_truncated", "max_turns", "pause_limit", "stop_hook_limit")


class Model:
    """Does one deed after the other, and is then done."""

    def __init__(self, deeds: Sequence[str], *, thinks: bool) -> None:
        self._deeds = list(deeds)
        self._thinks = thinks
        self._number = 0
        self._open: str | None = None  # a call of the server's own in a turn that is paused

    def __call__(self, body: dict[str, Any]) -> Answer:
        if transcript_in(body) is not None:
            return reply(SUMMARY)
        if self._open is not None and body["messages"][-1]["role"] == "assistant":
            served, self._open = self._open, None
            self._number += 1
            found = block({**FOUND, "tool_use_id": served})
            return reply(found, "That was found.", self._use(self._number, "little"))
        self._open = None
        if not self._deeds:
            return reply("All is done.")
        self._number += 1
        return self._done(self._deeds.pop(0), self._number)

    def _done(self, deed: str, number: int) -> Answer:
        first = [thought(f"thought {number} " * 60), redacted_thinking(f"r{number}")] if self._thinks else []
        match deed:
            case "answer":
                return reply(*first, "I think that is all.")
            case "cut":
                return reply(*first, f"Part {number}", stop="max_tokens")
            case "cut call":
                cut = tool_use(f"cut{number}", "read", '{"what": "mu')
                return reply(*first, self._use(number, "much"), cut, stop="max_tokens")
            case "pause":
                self._open = f"srvtoolu_{number}"
                return reply(*first, server_tool_use(self._open, "web_search", {"query": "q"}), stop="pause_turn")
            case "serve":
                served = server_tool_use(f"srvtoolu_{number}", "web_search", {"query": "q"})
                found = block({**FOUND, "tool_use_id": f"srvtoolu_{number}"})
                return reply(*first, served, found, "Found.", self._use(number, "much"))
            case "refused once":
                return error(400, "invalid_request_error", "prompt is too long")
            case "think":
                return reply(*first, self._use(number, "little"))
            case "parallel":
                uses = [self._use(number, what, part) for part, what in enumerate(["much", "a picture", "much"])]
                return reply(*first, "All at once.", *uses)
            case _:
                return reply(*first, self._use(number, deed))

    def _use(self, number: int, what: str, part: int = 0) -> Any:
        name = "write" if number % 3 == 0 else "read"
        return tool_use(f"t{number}_{part}", name, {"path": f"f{number % 4}", "what": what})


def bring(given: dict[str, Any], ctx: ToolContext) -> Any:
    return BROUGHT[given["what"]]


async def stop(context: StopContext) -> Pass | Block:
    return Block("Not yet.") if context.text == "I think that is all." else Pass()


def run(deeds: Sequence[str], window: int, prompt: Any, compression: Compression, *, thinks: bool) -> Play:
    api = ScriptedAPI(Model(deeds, thinks=thinks), window=window)
    params = {"thinking": {"type": "enabled", "budget_tokens": 1_024}} if thinks else {}
    tools = [tool_named("read", answer=bring), tool_named("write", read_only=False, answer=bring), SEARCH]
    return asyncio.run(
        met(
            api,
            prompt=prompt,
            tools=tools,
            window=window,
            max_tokens=1_500,
            params=params,
            limits=Limits(max_turns=60),
            hooks=Hooks(stop=[stop]),
            compression=compression,
        )
    )


def hold(told: Play) -> None:
    assert told.result.terminal in ENDS, told.result.error
    for request in told.api.requests:
        assert list(history_problems(request.messages)) == []
    assert [text for text in told.api.refusals if not too_long(text)] == []
    for move in moves(told, "HistoryCompressed"):
        assert move["fields"]["tokens_after"] < move["fields"]["tokens_before"]


def level_of(move: Record) -> str:
    return str(move["fields"]["level"])


hostile = settings(
    deadline=None,
    max_examples=12,
    phases=[phase for phase in Phase if phase is not Phase.explain],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@pytest.mark.parametrize("thinks", [False, True], ids=["plain", "thinking"])
@hostile
@given(
    deeds=st.one_of(
        st.lists(st.sampled_from(DEEDS), min_size=12, max_size=30),
        st.lists(st.sampled_from(DEEDS[1:]).filter(lambda deed: deed != "refused once"), min_size=12, max_size=30),
    ),
    window=st.sampled_from([8_000, 12_000, 20_000]),
    prompt=st.sampled_from(["a word", "a long text", "pictures"]),
    api_writes=st.booleans(),
)
def test_a_run_that_is_made_hard_ends_by_itself(
    thinks: bool, deeds: list[str], window: int, prompt: str, api_writes: bool
) -> None:
    compression = Compression(api_compaction=api_writes, span_exchanges=2)
    told = run(deeds, window, PROMPTS[prompt], compression, thinks=thinks)
    hold(told)
    if "answer" not in deeds and "refused once" not in deeds:  # no hook and no server that is wrong about the size
        tried = Strategy.REACTIVE_COMPACT_RETRY in strategies(told)
        assert told.result.terminal in ("answered", "output_truncated") or tried
    event(str(told.result.terminal))
    event(f"levels: {sorted({level_of(move) for move in moves(told, 'HistoryCompressed')})}")


@pytest.mark.parametrize("thinks", [False, True], ids=["plain", "thinking"])
@pytest.mark.parametrize("prompt", ["a word", "pictures"])
def test_what_can_be_made_to_fit_is_brought_to_its_end(prompt: str, thinks: bool) -> None:
    deeds = ["parallel", "think", "serve", "much", "pictures", "pause", "much", "a document", "far too much", "cut"]
    told = run([*deeds, *deeds, "half a character", "little"], 16_000, PROMPTS[prompt], Compression(), thinks=thinks)
    hold(told)
    assert told.result.terminal == "answered", told.result.error
    assert told.result.result == "All is done."


def test_a_prompt_that_no_window_holds_ends_the_run_and_is_never_cut() -> None:
    told = run(["much"] * 4, 8_000, PROMPTS["a giant text"], Compression(), thinks=False)
    hold(told)
    assert told.result.terminal == "context_blocked"
    assert told.run.messages[0]["content"] == PROMPTS["a giant text"]
