"""Every row of the table is walked by a run, from each of its states, but for those that have no driver yet."""

import asyncio
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from looplatch import Allow, Block, Deny, Halt, Hooks, Limits, Log, Pass, Rule, Run
from looplatch.hooks import StopContext, ToolCallContext
from looplatch.messages import Message
from looplatch.states.record import Record
from looplatch.states.table import TABLE
from looplatch.testing import FakeClock, error, failing, reply, tool_use
from tests.compressing import compressed
from tests.nesting import spending_siblings
from tests.playing import Play, Watch, echo, play, rows_of, tool_named, transition
from tests.stories import STORIES
from tests.suspending import Stay, resumed

WORKING = ("prepare", "stream", "decide", "orchestrate", "recover")

# What no run does yet. What a run does has no place here: a row that is walked all the same fails its test.
NOT_DRIVEN_ROWS = {
    ("stream", "stream --RunResumed[call_begun]--> orchestrate"),  # the death of a process
    # All levels together never do so much: the table holds the loop to that.
    ("prepare", "prepare --HistoryCompressed[levels_spent]--> failed"),
    ("prepare", "prepare --SummaryDue[levels_spent]--> failed"),
}

EVERY = {(str(source), row.name) for row in TABLE for source in row.sources}
LISTED = EVERY & NOT_DRIVEN_ROWS

ASK = (Rule("ask"),)

# A run that is in each working state at some time: overloaded, with a tool, and an answer.
ROUND_TRIP = (error(529, "overloaded_error"), reply(tool_use("t1", "read", {})), reply("Done."))


def told() -> list[Play]:
    return [play(script, watch=watch, **story.options) for story in STORIES for script, watch in [story.script()]]


def limited(**limits: Any) -> Limits:
    return Limits(**limits)


def verdict(*said: Pass | Block | Halt) -> Hooks:
    left = iter(said)

    async def hook(context: StopContext) -> Pass | Block | Halt:
        return next(left, Pass())

    return Hooks(stop=[hook])


def ends_of_all_kinds() -> list[Play]:
    tools = [echo()]
    much, little = {"output_tokens": 600}, {"output_tokens": 10}
    return [
        play([reply("A " * 50, usage=much)], limits=limited(max_total_tokens=1, output_target=9_000)),
        play([reply(tool_use("t1", "read", {}), usage=much)], tools=tools, limits=limited(max_total_tokens=1)),
        play([], window=1),
        play([reply("Too", stop="model_context_window_exceeded")]),
        play([reply(tool_use("t1", "read", {"n": 1}), "More", stop="model_context_window_exceeded")], tools=tools),
        play([reply(tool_use("t1", "read", {"n": 1}), "More", stop="refusal")], tools=tools),
        play(
            [failing(reply(tool_use("t1", "read", {"n": 1}), "More"), after=6)],
            tools=tools,
            limits=limited(max_turns=1),
        ),
        play([error(400, "invalid_request_error", "no")]),
        play([error(400, "invalid_request_error", "prompt is too long: 3 tokens > 2 maximum")]),
        play([reply("One", stop="max_tokens")] * 2, limits=limited(max_output_recoveries=0)),
        play([reply("One", stop="pause_turn")] * 2, limits=limited(max_pauses=1)),
        play([reply("One", stop="pause_turn")], limits=limited(max_turns=1)),
        play([reply("One"), reply("Two")], hooks=verdict(Block("More."))),
        play([reply("One")], hooks=verdict(Block("More.")), limits=limited(max_blocks=1)),
        play([reply("One")], hooks=verdict(Halt("Enough."))),
        play(
            [reply("A", usage=much), reply("B", usage=much), reply("C", usage=little), reply("D", usage=little)],
            limits=limited(output_target=9_000, max_low_progress=2),
        ),
        play(ROUND_TRIP, tools=tools, watch=on_entering("orchestrate", lambda run, clock: run.stop())),
    ]


def on_entering(state: str, act: Callable[[Run, FakeClock], Any], clock: FakeClock | None = None) -> Watch:
    """Act once, when the consumer is told that the run has entered `state`."""
    acted = False

    async def watch(message: Message, run: Run) -> None:
        nonlocal acted
        move = transition(message)
        if move is not None and move.target == state and not acted:
            acted = True
            done = act(run, clock or FakeClock())
            if done is not None:
                await done

    return watch


def abort(run: Run, clock: FakeClock) -> None:
    run.abort()


def deadline(run: Run, clock: FakeClock) -> None:
    clock.advance(1_000)


def close(run: Run, clock: FakeClock) -> Any:
    return run.aclose()


def interrupted(state: str, act: Callable[[Run, FakeClock], Any]) -> Play:
    """A run that something from outside ends in `state`; its tool never ends by itself."""
    clock = FakeClock()

    async def hang(given: dict[str, Any], ctx: Any) -> None:
        await asyncio.Event().wait()

    # In `decide` a consumer sees the run only while a stop hook is about to be asked.
    script = [reply("Done.")] if state == "decide" else ROUND_TRIP
    return play(
        script,
        rules=ASK if state == "suspended" else (),
        tools=[tool_named("read", answer=hang) if state == "orchestrate" else echo()],
        watch=on_entering(state, act, clock),
        clock=clock,
        deadline_s=1_000,
    )


class Broken(Exception):
    """A hook's own exception."""


def broken_in(state: str) -> Play:
    """A hook raises when the run has entered `state`."""
    raised = False

    def on_transition(record: Record) -> None:
        nonlocal raised
        if record.target == state and record.event != "RunStarted" and not raised:
            raised = True
            raise Broken

    rules = ASK if state == "suspended" else ()
    return play(ROUND_TRIP, tools=[echo()], hooks=Hooks(on_transition=on_transition), rules=rules)


def from_outside() -> list[Play]:
    ways = (abort, deadline, close)
    states = (*WORKING, "suspended")
    plays = [interrupted(state, act) for state in states for act in ways]
    return plays + [broken_in(state) for state in states]


def taken_up_again() -> list[Stay]:
    """Runs that were suspended or rested, and went on."""
    tools, two = [echo()], reply(tool_use("t1", "read", {"n": 1}), tool_use("t2", "read", {"n": 2}))
    in_part: list[dict[str, Allow | Deny]] = [{"t1": Allow()}, {"t2": Deny("no")}]
    never: dict[str, Allow | Deny] = {"t1": Deny("never", interrupt=True)}
    stays = [
        resumed([two, reply("Done.")], *in_part, tools=tools, rules=ASK),
        resumed([two], never, tools=tools, rules=ASK),
        *(resumed(ROUND_TRIP, {}, tools=tools, pause_before=[state]) for state in WORKING),
    ]
    return [some[-1] for some, _ in stays]


def denied() -> Play:
    async def before_tool(call: ToolCallContext) -> Deny:
        return Deny("never", interrupt=True)

    return play([reply(tool_use("t1", "read", {}))], tools=[echo()], hooks=Hooks(before_tool=before_tool))


def withdrawn() -> list[Log]:
    """The logs of sub-agents whose parent's budget their siblings have spent with them."""

    async def main() -> list[Log]:
        async with spending_siblings() as agents:
            run = agents.loop.run("Go.")
            await run
            return list(run.log.children.values())

    return asyncio.run(main())


@cache
def walked() -> frozenset[tuple[str, str]]:
    plays: list[Play | Stay] = [*told(), *ends_of_all_kinds(), *from_outside(), *taken_up_again(), denied()]
    plays += compressed()
    return frozenset(row for log in (*(one.log for one in plays), *withdrawn()) for row in rows_of(log))


@pytest.mark.parametrize(("source", "name"), sorted(EVERY - LISTED), ids=lambda part: str(part))
def test_a_run_walks_the_row(source: str, name: str) -> None:
    assert (source, name) in walked()


@pytest.mark.parametrize(("source", "name"), sorted(LISTED), ids=lambda part: str(part))
def test_a_row_that_is_said_to_have_no_driver_is_not_walked(source: str, name: str) -> None:
    assert (source, name) not in walked(), "a run walks this row now: take it off the list"


def test_the_list_names_what_the_table_has() -> None:
    assert EVERY >= NOT_DRIVEN_ROWS
