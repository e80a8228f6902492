"""A run of 300 turns in a window of 20,000 tokens: the server counts for itself, and refuses what is above it.

It ends by itself. All six reasons and all four levels occur, and the API takes every request but for those that are
too long; what it measures then holds. The loop is told nothing of the window in one case, and all of it in the other.
"""

import asyncio
from collections import Counter
from functools import cache
from typing import Any

import orjson
import pytest

from looplatch import Block, Hooks, Limits, Pass, ToolContext
from looplatch.hooks import StopContext
from looplatch.recovery.validity import history_problems
from looplatch.states.level import Level
from looplatch.states.reasons import Continue, Strategy
from looplatch.testing import Answer, ScriptedAPI, reply, thinking, tool_use
from tests.playing import Play, tool_named
from tests.recovering import WINDOW, met, moves, strategies, transcript_in

TURNS = 300
PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo" * 60}}
SUMMARY = (
    "Files were read and written as was asked; what they hold is known, and the rest of them is still to be read. "
)


def count(body: Any) -> int:
    """What the server counts: between three and four bytes a token, by what it is; of dense text two."""
    prompt = orjson.dumps({name: body[name] for name in ("messages", "system", "tools") if name in body})
    dense = prompt.count(b"0x")
    return int(len(prompt) / 3.4) + 3 * dense


class Worker:
    """A model that reads and writes files for 300 turns, is cut now and then, and is sometimes done too soon."""

    def __init__(self) -> None:
        self.turn = 0
        self.asked = 0

    def __call__(self, body: dict[str, Any]) -> Answer:
        if transcript_in(body) is not None:
            self.asked += 1
            return reply(SUMMARY * 4)
        if self.turn >= TURNS:
            return reply("All is done.", usage={"output_tokens": 60_000})
        self.turn += 1
        number = self.turn
        match number:
            case _ if number % 45 == 20:
                return reply(thinking(f"thought {number}"), f"Part {number}", stop="max_tokens")
            case _ if number % 45 == 21:
                return reply(
                    f"Part {number} of it,", tool_use(f"cut{number}", "read", '{"path": "x'), stop="max_tokens"
                )
            case _ if number % 80 == 40:
                return reply("I think that is all.")
            case _ if number % 90 == 50:
                return reply("A part is done.", usage={"output_tokens": 900})
            case _ if number % 30 == 15:
                return reply(*(self._read(number, part) for part in range(4)))
            case _ if number % 7 == 3:
                return reply(thinking(f"thought {number}"), f"Step {number}.", self._read(number))
            case _:
                return reply(f"Step {number}.", self._read(number))

    @staticmethod
    def _read(number: int, part: int = 0) -> Any:
        name = "write" if number % 11 == 5 else "read"
        return tool_use(f"t{number}_{part}", name, {"path": f"f{(number * 7 + part) % 19}"})


def read(given: dict[str, Any], ctx: ToolContext) -> Any:
    """Most files are short, some are long, some dense, and some are pictures."""
    number = int(ctx.tool_use_id[1:].partition("_")[0])
    line = f"line of {given['path']} at {number}\n"
    if number % 25 == 12:
        return line * 700
    if number % 60 == 35:
        return " ".join(f"0x{n:04x}" for n in range(2_600))
    if number % 50 == 33:
        return [{"type": "text", "text": line}, PICTURE]
    return line * (20 + number % 9 * 10)


async def check(context: StopContext) -> Pass | Block:
    return Block("Read the rest of the files.") if context.text == "I think that is all." else Pass()


@cache
def worked(known: bool) -> tuple[Worker, Play]:
    worker = Worker()
    api = ScriptedAPI(worker, count=count, window=WINDOW)
    options: dict[str, Any] = {"window": WINDOW} if known else {}
    told = asyncio.run(
        met(
            api,
            prompt="Read every file, and write down what is in them. Leave none out. " * 5,
            tools=[tool_named("read", answer=read), tool_named("write", read_only=False, answer=read)],
            limits=Limits(max_turns=TURNS + 1, output_target=60_000),
            hooks=Hooks(stop=[check]),
            **options,
        )
    )
    return worker, told


either = pytest.mark.parametrize("known", [True, False], ids=["the window is known", "the window is measured"])


@either
def test_the_run_ends_by_itself(known: bool) -> None:
    worker, told = worked(known)
    assert told.result.terminal == "answered", told.result.error
    assert told.result.result == "All is done."
    assert worker.turn == TURNS
    assert told.result.num_turns > 250


@either
def test_every_reason_to_go_on_and_every_strategy_occurs(known: bool) -> None:
    _, told = worked(known)
    assert set(told.log.reasons) == {str(reason) for reason in Continue}
    assert set(strategies(told)) == {str(strategy) for strategy in Strategy}


@either
def test_every_level_shortens_the_history(known: bool) -> None:
    _, told = worked(known)
    done = Counter(move["fields"]["level"] for move in moves(told, "HistoryCompressed"))
    assert set(done) == {str(level) for level in Level}


@either
def test_the_history_is_valid_before_every_request_and_the_window_holds(known: bool) -> None:
    """What was refused was too long, which nobody could know before: dense text, or the window itself."""
    _, told = worked(known)
    for request in told.api.requests:
        assert list(history_problems(request.messages)) == []
    assert len(told.api.refusals) < 0.05 * len(told.api.requests)
    for exchange in told.api.exchanges:
        if exchange.refusal is None:
            assert count(exchange.request.body) + exchange.request.body["max_tokens"] <= WINDOW


@either
def test_summaries_are_few_and_the_tokens_that_were_sent_are_far_fewer_than_without_them(known: bool) -> None:
    worker, told = worked(known)
    assert worker.asked < TURNS / 4
    sent = sum(count(exchange.request.body) for exchange in told.api.exchanges if exchange.refusal is None)
    assert sent < TURNS * 0.6 * WINDOW
