"""Notes of what tools did, taken beside the run: who is asked, what the consumer gets, and what is not harmed."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from looplatch import Hooks, Limits, SystemMessage, UsageError
from looplatch.hooks import ToolsContext
from looplatch.hooks.notes import ToolNotes
from looplatch.hooks.noting import MOST_AT_ONCE
from looplatch.testing import Answer, ScriptedAPI, error, reply, run, stalled, tool_use
from tests.playing import Play, echo, saying, tool_named, transition
from tests.recovering import Model, effects, files, meet, met, moves, reads

CHEAP = "claude-haiku-4-5"
BOTH = [
    reply("I look.", tool_use("t1", "read", {"path": "a"}), tool_use("t2", "read", {"path": "b"})),
    reply("Done."),
]

Taken = Callable[[ToolsContext], Awaitable[str | None]]


class Noting(Model):
    """A model that says `note` when it is asked for the progress line."""

    note: Answer = reply("Read two files.")

    def __call__(self, body: dict[str, Any]) -> Answer:
        if body["model"] != CHEAP:
            return super().__call__(body)
        self.asked.append(str(body["messages"][0]["content"]))
        return self.note


def notes(play: Play) -> list[dict[str, Any]]:
    return [one.data for one in play.seen if isinstance(one, SystemMessage) and one.subtype == "tool_note"]


def noted(hook: Taken, script: Any = BOTH, **options: Any) -> Play:
    given: dict[str, Any] = {"tools": [echo()], **options}
    return meet(Noting(script), hooks=Hooks(after_tools=hook), **given)


# --- the ready one


def test_a_cheap_model_writes_a_line_of_each_turn_with_tools() -> None:
    model = Noting(BOTH)
    told = meet(model, tools=[echo()], hooks=Hooks(after_tools=ToolNotes(model=CHEAP)))
    assert notes(told) == [{"text": "Read two files.", "turn": 1, "tool_use_ids": ["t1", "t2"]}]
    [shown] = model.asked
    for part in ("I look.", "It used read", '{"path": "a"}', '{"path": "b"}', 'read {"path":"a"}'):
        assert part in shown


def test_long_inputs_and_results_are_shown_in_part() -> None:
    model = Noting([reply(tool_use("t1", "read", {"path": "x" * 50_000})), reply("Done.")])
    meet(model, tools=[saying("read", "y" * 100_000)], hooks=Hooks(after_tools=ToolNotes(model=CHEAP)))
    [shown] = model.asked
    assert len(shown) < 6_000
    assert "tokens left out" in shown


def test_a_failed_tool_is_called_so() -> None:
    def failing(given: Any, ctx: Any) -> str:
        raise OSError("no such file")

    model = Noting([reply(tool_use("t1", "read", {})), reply("Done.")])
    meet(model, tools=[tool_named("read", answer=failing)], hooks=Hooks(after_tools=ToolNotes(model=CHEAP)))
    assert "The result (an error):\nfailed: OSError: no such file" in model.asked[0]


@pytest.mark.parametrize("wrong", [{"model": ""}, {"model": 1}, {"model": CHEAP, "max_tokens": 0}])
def test_notes_that_cannot_be_taken_are_refused_by_name(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"ToolNotes\.(model|max_tokens)"):
        ToolNotes(**wrong)


# --- what a hook sees


def test_the_hook_sees_the_turn_and_its_calls_in_order() -> None:
    seen: list[ToolsContext] = []

    async def hook(context: ToolsContext) -> str:
        seen.append(context)
        return "noted"

    told = noted(hook)
    [context] = seen
    assert (context.run_id, context.turn, context.text) == (told.run.id, 1, "I look.")
    assert [(call.tool_use_id, call.name, call.input) for call in context.calls] == [
        ("t1", "read", {"path": "a"}),
        ("t2", "read", {"path": "b"}),
    ]
    assert context.calls[0].content == 'read {"path":"a"}'
    assert not context.calls[0].is_error


def test_a_turn_without_tools_leaves_no_note() -> None:
    async def hook(context: ToolsContext) -> str:
        raise AssertionError("not to be asked")

    told = noted(hook, [reply("Done.")])
    assert effects(told, "note") == []


@pytest.mark.parametrize("said", [None, "", 7])
def test_what_is_no_text_is_no_note(said: Any) -> None:
    async def hook(context: ToolsContext) -> Any:
        return said

    told = noted(hook)
    assert notes(told) == []
    assert told.result.terminal == "answered"


# --- beside the run


def test_the_note_is_written_while_the_model_is_asked_on() -> None:
    """The hook waits for the second request, which so does not wait for it; the answer waits for the note."""

    async def main() -> None:
        gate = asyncio.Event()
        api = ScriptedAPI([BOTH[0], stalled(reply("Done."), after=1, gate=gate)])

        async def hook(context: ToolsContext) -> str:
            await api.arrival(2)
            return "noted"

        def watch(message: Any, run: Any) -> None:
            if isinstance(message, SystemMessage) and message.subtype == "tool_note":
                gate.set()

        async def open_later() -> None:
            await api.arrival(2)
            for _ in range(50):
                await asyncio.sleep(0)
            gate.set()

        opening = asyncio.ensure_future(open_later())
        told = await met(api, tools=[echo()], hooks=Hooks(after_tools=hook), watch=watch)
        await opening
        assert notes(told) == [{"text": "noted", "turn": 1, "tool_use_ids": ["t1", "t2"]}]
        [(begin, end)] = effects(told, "note")
        [_, (second, ended)] = effects(told, "model")
        assert end is not None
        assert ended is not None
        assert begin.seq < second.seq < end.seq < ended.seq

    asyncio.run(main())


def test_a_note_that_is_not_there_in_time_ends_with_the_run() -> None:
    ended: list[str] = []

    async def hook(context: ToolsContext) -> str:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")
        return "never"

    told = noted(hook)
    assert told.result.terminal == "answered"
    assert ended == ["cancelled"]
    [(_, end)] = effects(told, "note")
    assert end is not None
    assert end["outcome"] == "interrupted"
    assert notes(told) == []


@pytest.mark.parametrize("state", ["prepare", "stream"])
def test_a_note_ends_with_a_run_that_is_aborted(state: str) -> None:
    async def hook(context: ToolsContext) -> str:
        await asyncio.Event().wait()
        return "never"

    def watch(message: Any, run: Any) -> None:
        move = transition(message)
        if move is not None and move.target == state != move.source and run.log.reasons:
            run.abort()

    told = asyncio.run(met(ScriptedAPI(Noting(BOTH)), tools=[echo()], hooks=Hooks(after_tools=hook), watch=watch))
    assert told.result.terminal == "aborted"
    [(_, end)] = effects(told, "note")
    assert end is not None
    assert end["outcome"] == "interrupted"


@pytest.mark.parametrize("seed", [None, *range(8)])  # an order of the tasks that are ready
def test_a_note_that_had_no_time_to_begin_has_its_end(seed: int | None) -> None:
    asked: list[str] = []

    async def hook(context: ToolsContext) -> str:
        asked.append("asked")
        await asyncio.Event().wait()
        return "never"

    limits = Limits(max_total_tokens=1)
    ran = met(ScriptedAPI(Noting(BOTH)), tools=[echo()], hooks=Hooks(after_tools=hook), limits=limits)
    told = run(ran, seed=seed)
    assert told.result.terminal == "budget_spent"
    [(_, end)] = effects(told, "note")
    assert end is not None
    assert end["outcome"] == "interrupted"
    assert len(asked) <= 1


@pytest.mark.parametrize("raised", [ValueError("no"), KeyError("x"), asyncio.CancelledError()])
def test_a_hook_that_raises_leaves_no_note_and_the_run_alone(raised: BaseException) -> None:
    async def hook(context: ToolsContext) -> str:
        raise raised

    told = noted(hook)
    assert (told.result.terminal, notes(told)) == ("answered", [])
    [(_, end)] = effects(told, "note")
    assert end is not None
    assert end["outcome"] == ("interrupted" if isinstance(raised, asyncio.CancelledError) else type(raised).__name__)


@pytest.mark.parametrize(
    "answer", [error(529, "overloaded_error", ""), reply("A line", stop="max_tokens"), reply(stop="refusal"), reply("")]
)
def test_a_model_that_writes_no_note_leaves_the_run_alone(answer: Answer) -> None:
    model = Noting(BOTH)
    model.note = answer
    told = meet(model, tools=[echo()], hooks=Hooks(after_tools=ToolNotes(model=CHEAP)))
    assert (told.result.terminal, notes(told)) == ("answered", [])
    [(_, end)] = effects(told, "note")
    assert end is not None
    assert end["outcome"] == "ModelCallFailed"


def test_only_so_many_notes_are_written_at_once() -> None:
    async def hook(context: ToolsContext) -> str:
        await asyncio.Event().wait()
        return "never"

    told = noted(hook, [*reads(MOST_AT_ONCE + 3), reply("Done.")], tools=[files(100)])
    assert len(effects(told, "note")) == MOST_AT_ONCE


# --- what it costs


def test_what_a_note_cost_is_in_its_record_and_in_the_totals_of_the_run() -> None:
    model = Noting([*BOTH[:1], *reads(1, first=5), reply("Done.", usage={"input_tokens": 1, "output_tokens": 1})])
    model.note = reply("Noted.", usage={"input_tokens": 5_000, "output_tokens": 70})
    told = meet(model, tools=[echo()], hooks=Hooks(after_tools=ToolNotes(model=CHEAP)))
    spent = [end["usage"]["input_tokens"] for _, end in effects(told, "note") if end is not None]
    assert spent == [5_000, 5_000]
    asked = [end["usage"]["input_tokens"] for _, end in effects(told, "model") if end is not None]
    assert told.result.usage["input_tokens"] == sum(asked) + sum(spent)


def test_notes_are_held_against_the_limits_of_the_run() -> None:
    model = Noting([*reads(3), reply("Done.")])
    model.note = reply("Noted.", usage={"input_tokens": 50_000, "output_tokens": 70})
    told = asyncio.run(
        met(
            ScriptedAPI(model),
            tools=[files(50)],
            hooks=Hooks(after_tools=ToolNotes(model=CHEAP)),
            limits=Limits(max_total_tokens=60_000),
        )
    )
    assert told.result.terminal == "budget_spent"


def test_what_a_note_cost_does_not_count_for_the_size_of_the_history() -> None:
    model = Noting([*reads(4), reply("Done.")])
    model.note = reply("Noted.", usage={"input_tokens": 100_000, "output_tokens": 70})
    told = meet(model, tools=[files(50)], hooks=Hooks(after_tools=ToolNotes(model=CHEAP)), window=50_000)
    assert max(move["fields"]["tokens"] for move in moves(told, "ContextReady")) < 10_000
