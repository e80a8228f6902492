"""A run cut off after any of its records goes on to the same end, and does nothing twice."""

import asyncio
import os
from functools import cache
from typing import Any

import pytest

from looplatch import Log, LooplatchError, Run, ToolContext, ToolMessage
from looplatch.blocks import blocks_of
from looplatch.messages import Message
from looplatch.recovery.resume.errors import CannotResume
from looplatch.states.record import Kind, Record
from looplatch.testing import failing, reply, stalled, tool_use
from tests.playing import Play, play, rounds, tool_named
from tests.resuming import Resumed, answers_had, begun_and_ended, cut_after, resumed, started
from tests.tales import COMPACTED, CUT, HOOKS, SERVED, TALES, WRITES, Ran, Tale, noted

EVERY = 1 if "LOOPLATCH_WHOLE" in os.environ else 5
INTERRUPTED = "interrupted, effect unknown"


def told(tale: Tale) -> Play:
    script, watch = tale.script()
    return play(script, watch=watch, known=tale.known, **tale.options([]))


def taken_up(tale: Tale, log: Log, ran: Ran) -> Resumed:
    script, watch = tale.rest(answers_had(log))
    went_on = asyncio.run(resumed(log, script, watch=watch, known=tale.known, **tale.options(ran)))
    if went_on.error is not None:
        raise went_on.error
    return went_on


def check_end(before: Log, went_on: Resumed, whole: Play, ran: Ran) -> None:
    """The end is that of the `whole` run, but for what a cut answer and a write in flight leave open."""
    begun, ended = begun_and_ended(before.records)
    writes = {
        str(record["tool_use_id"])
        for record in before.records
        if record.kind is Kind.EFFECT_BEGIN and record["class"] == "tool" and record["access"] == "write"
    }
    puts = {str(record["tool_use_id"]) for record in before.records if record.get("name") == "put"}
    unknown = (begun - ended) & (writes - puts)
    assert not set(ran) & (ended | unknown), "what has ended, and what may have had an effect, does not run again"
    assert [one for one in ran if ran.count(one) > 1] == []
    assert went_on.run.log.lines[: len(before.lines)] == before.lines
    answered = {block["tool_use_id"]: block for block in results_in(went_on.run.messages)}
    for call in unknown:
        assert answered[call]["is_error"]
        assert answered[call]["content"].startswith(INTERRUPTED)
    again, _ = begun_and_ended(went_on.run.log.records[len(before) :])
    assert again >= (begun - ended) - unknown, "a read runs again, and a write that is idempotent"
    if not cut_midway(before) and not unknown:
        assert went_on.run.messages == whole.run.messages
        assert (went_on.result.terminal, went_on.result.result) == (whole.result.terminal, whole.result.result)
        assert went_on.result.num_turns == whole.result.num_turns
        assert said_by_hooks(went_on.run.log) == said_by_hooks(whole.log), "no hook is asked again of the same answer"
        if not any(effect.kind == "note" for effect in whole.log.effects):  # one in flight is lost, and its cost
            assert last(went_on.run.log) == last(whole.log)


def said_by_hooks(log: Log) -> list[tuple[str, str, str]]:
    """What the hooks said that are asked of an answer."""
    ended = [(effect.begin, effect.end) for effect in log.effects if effect.kind == "hook" and effect.end is not None]
    return [(begin["point"], begin["name"], end["outcome"]) for begin, end in ended]


def last(log: Log) -> list[Any]:
    """The last move, and the last estimate of a request."""
    ready = [move for move in log.transitions if move.event == "ContextReady"]
    return [(move.event, move["fields"]) for move in (ready[-1], log.transitions[-1])]


def results_in(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    blocks = [block for message in messages for block in blocks_of(message)]
    return [block for block in blocks if block["type"] == "tool_result"]


def cut_midway(log: Log) -> bool:
    """Whether an answer was cut in any epoch after a call of its had begun: the rest of it is lost, as in any cut."""
    open_ = begun = cut = False
    for record in log.records:
        if record.kind is Kind.EFFECT_BEGIN:
            open_ = open_ or record["class"] == "model"
            begun = begun or (open_ and record["class"] == "tool")
        elif record.kind is Kind.EFFECT_END and record["class"] == "model":
            open_ = begun = False
        elif record.kind is Kind.RESUMED:
            cut, open_, begun = cut or begun, False, False
    return cut or begun


@cache
def cuts() -> dict[str, list[int]]:
    """After how many records each tale is cut: after every fifth, and where its last four are of kinds met nowhere yet.

    All tales begin and end alike, and long ones go on as they went on before. `make soak` cuts after every one.
    """
    met: set[tuple[str, ...]] = set()
    places: dict[str, list[int]] = {}
    for tale in TALES:
        kinds = ["", "", "", *map(_kind_of, told(tale).log.records)]
        chosen: list[int] = []
        for count in range(1, len(kinds) - 3):
            latest = tuple(kinds[count - 1 : count + 3])
            if latest not in met or count % EVERY == 0:
                met.add(latest)
                chosen.append(count)
        places[tale.name] = chosen
    return places


def _kind_of(record: Record) -> str:
    """What a record is of, without what it says."""
    named = ("source", "target", "class", "op", "role", "outcome", "access", "name", "point")
    return " ".join([record.kind, record.event or "", *(str(record.get(name, "")) for name in named)])


@pytest.mark.parametrize("tale", TALES, ids=lambda tale: tale.name)
def test_a_run_cut_after_a_record_of_any_kind_comes_to_the_same_end(tale: Tale) -> None:
    whole = told(tale)
    for count in cuts()[tale.name]:
        before, ran = cut_after(whole.log, count), Ran()
        if not started(before.records):
            with pytest.raises(CannotResume, match="cut off before it began"):
                taken_up(tale, before, ran)
            continue
        check_end(before, taken_up(tale, before, ran), whole, ran)


@pytest.mark.parametrize("tale", [WRITES, SERVED, CUT, HOOKS], ids=lambda tale: tale.name)
@pytest.mark.parametrize("left", [1, 2, 3], ids=["at once", "after one message", "after two"])
def test_a_run_that_is_taken_up_only_to_be_stopped_leaves_a_right_history(tale: Tale, left: int) -> None:
    """`resumed` checks it: whatever was carried out is in the history, and every call has its result."""
    whole = told(tale)
    for count in range(started_after(whole.log), len(whole.log) - 2):
        before, seen = cut_after(whole.log, count), Ran()

        def watch(message: Message, run: Run) -> None:
            seen.append(type(message).__name__)  # noqa: B023 - it is called within this round
            if len(seen) == left:  # noqa: B023
                run.abort()

        script, _ = tale.rest(answers_had(before))
        went_on = asyncio.run(resumed(before, script, watch=watch, known=tale.known, **tale.options(Ran())))
        assert went_on.error is None
        begun, _ = begun_and_ended(before.records)
        answered = {block["tool_use_id"] for block in results_in(went_on.run.messages)}
        assert answered >= begun, "what was begun is in the history"


def test_a_read_that_was_in_flight_when_its_answer_failed_is_in_the_history_all_the_same() -> None:
    """It runs again once the run goes on, and has begun before that."""
    whole = reply(tool_use("t1", "read", {"n": 1}), "And then I will")
    gate = asyncio.Event()
    script = [stalled(failing(whole, after=5), after=4, gate=gate), reply("Done.")]

    def watch(message: Message, run: Run) -> None:
        if isinstance(message, ToolMessage):
            gate.set()

    async def slow(given: dict[str, Any], ctx: ToolContext) -> str:
        await rounds(100)
        return "read it"

    tools = [tool_named("read", answer=slow)]
    log = play(script, tools=tools, watch=watch).log
    [end] = [record.seq for record in log if record.kind is Kind.EFFECT_END and record["class"] == "model"][:1]
    before = cut_after(log, end + 1)
    assert begun_and_ended(before.records) == ({"t1"}, set())
    went_on = asyncio.run(resumed(before, script[1:], tools=tools))
    assert [block["content"] for block in results_in(went_on.run.messages)] == ["read it"]


def started_after(log: Log) -> int:
    """After how many records the run has begun."""
    return log.transitions[0].seq + 1


def test_a_tool_with_the_name_that_an_unknown_one_got_does_not_run_after_a_crash_either() -> None:
    def script() -> list[Any]:
        return [reply(tool_use("t1", "functions.read", {})), reply("Done.")]

    whole = play(script(), tools=[noted("functions_read", Ran())])
    for count in range(1, len(whole.log)):
        before, ran = cut_after(whole.log, count), Ran()
        if not started(before.records):
            continue
        went_on = asyncio.run(resumed(before, script()[answers_had(before) :], tools=[noted("functions_read", ran)]))
        assert went_on.run.messages == whole.run.messages
        assert not ran


@pytest.mark.parametrize("tale", TALES, ids=lambda tale: tale.name)
def test_a_run_may_be_cut_again_and_again(tale: Tale) -> None:
    """After each resumption it is cut once more, each time a record later than the time before, until it is over."""
    whole = told(tale)
    for first in (4, 9) if len(whole.log) < 30 else (9,):
        before = cut_after(whole.log, min(first, len(whole.log) - 1))
        for step in range(1, len(whole.log)):
            ran = Ran()
            went_on = taken_up(tale, before, ran)
            check_end(before, went_on, whole, ran)
            if len(before) + step >= len(went_on.run.log):
                break
            before = cut_after(went_on.run.log, len(before) + step)


def test_a_run_may_die_in_the_same_place_as_often_as_it_likes() -> None:
    """Each death in `prepare` comes after a level was tried; no counter of that visit runs out."""
    whole = told(COMPACTED)
    before = cut_after(whole.log, _after(whole.log, "SummaryDue", 0))
    went_on = taken_up(COMPACTED, before, [])
    for _ in range(9):
        before = cut_after(went_on.run.log, _after(went_on.run.log, "SummaryDue", len(before)))
        went_on = taken_up(COMPACTED, before, [])
    assert went_on.run.messages == whole.run.messages


def test_an_id_that_was_compressed_away_stays_taken() -> None:
    whole = told(COMPACTED)
    before = cut_after(whole.log, _after(whole.log, "HistoryCompressed", 0))
    script = [reply(tool_use("c0_0", "read", {"turn": 9})), reply("Done.")]
    went_on = asyncio.run(resumed(before, script, **COMPACTED.options(ran := Ran())))
    assert ran == ["c0_0_2"]
    assert went_on.result.terminal == "answered"


def _after(log: Log, event: str, start: int) -> int:
    """How many records there are up to the first move by `event` from `start` on."""
    return next(record.seq for record in log.records[start:] if record.event == event) + 1


def test_a_sealed_run_is_over() -> None:
    whole = told(TALES[0])
    with pytest.raises(CannotResume, match=r"has ended \(answered\)"):
        taken_up(TALES[0], whole.log, [])


def test_every_refusal_is_an_error_of_ours() -> None:
    assert issubclass(CannotResume, LooplatchError)
