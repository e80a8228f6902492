"""Where a run stands, as its records tell it: compared with the machine, and with the history that readers rebuild."""

import asyncio
from functools import cache
from pathlib import Path
from typing import Any

import attrs
import pytest

from looplatch import Log, read
from looplatch.machine import Machine
from looplatch.recovery.resume.errors import CannotResume
from looplatch.recovery.resume.fold import snapshot_of
from looplatch.recovery.resume.settings import SettingChange
from looplatch.resuming.contents import Contents
from looplatch.states.context import Context
from looplatch.states.events import EVENTS
from looplatch.states.limits import Limits
from looplatch.states.record import Kind
from looplatch.states.state import State
from tests.playing import play
from tests.resuming import answers_had, cut_after, resumed, started
from tests.tales import COLLAPSED, COMPACTED, CUT, FALLBACK, HOOKS, OVERFLOWN, TALES, TARGET, WRITES, Tale

GOLDEN = Path(__file__).parent / "golden"
EVENT = {event.__name__: event for event in EVENTS}


@cache
def log_of(tale: Tale) -> Log:
    script, watch = tale.script()
    return play(script, watch=watch, known=tale.known, **tale.options([])).log


def machine_at(log: Log) -> tuple[str, Context]:
    """The state and the context to which the machine comes by the events of a log."""
    assert log.genesis is not None
    machine = Machine()
    cursor = machine.start(Context(limits=Limits.read(log.genesis["limits"])))
    for move in log.transitions:
        machine.send(cursor, EVENT[str(move.event)].read(move["fields"]))
    return cursor.state, cursor.context


@pytest.mark.parametrize("tale", TALES, ids=lambda tale: tale.name)
def test_the_snapshot_is_where_the_machine_stands_after_every_record(tale: Tale) -> None:
    whole = log_of(tale)
    for count in range(1, len(whole)):
        log = cut_after(whole, count)
        if started(log.records):
            snapshot = snapshot_of(log.records)
            assert (snapshot.state, snapshot.context) == machine_at(log)
            assert Contents(log.payloads).history(snapshot.entries).messages() == log.messages


def at(tale: Tale, event: str, number: int = -1, more: int = 0) -> Log:
    """The log cut right after a move by `event`, or some records later."""
    whole = log_of(tale)
    moves = [record.seq for record in whole.records if record.event == event]
    return cut_after(whole, moves[number] + 1 + more)


def test_what_a_move_ordered_to_be_done_at_once_is_pending_until_it_is_done() -> None:
    def pending(tale: Tale, more: int, number: int = -1) -> list[str]:
        return [one.name for one in snapshot_of(at(tale, "TroubleNamed", number, more).records).pending]

    assert pending(CUT, 0, 0) == []  # the higher limit: nothing but the request is to be made
    assert pending(CUT, 0, 1) == ["AskToGoOn"]
    assert pending(CUT, 1, 1) == ["AskToGoOn"]  # the text of the cut answer has joined
    assert pending(CUT, 2, 1) == []
    assert pending(HOOKS, 0) == ["InjectHookError"]
    assert pending(HOOKS, 1) == []
    assert pending(TARGET, 0) == ["InjectBudgetPrompt"]
    assert pending(TARGET, 1) == []
    assert pending(OVERFLOWN, 0, 0) == ["DrainCollapses"]
    assert pending(OVERFLOWN, 1, 0) == ["DrainCollapses"]  # the history is edited, and no move tells it yet
    assert pending(OVERFLOWN, 2, 0) == []


def test_a_compression_that_was_cut_leaves_the_history_before_it_as_the_base() -> None:
    whole = log_of(COMPACTED)
    done = next(record.seq for record in whole.records if record.event == "HistoryCompressed")
    first = next(record.seq for record in whole.records if record.get("op") == "edit")
    before = snapshot_of(whole.records[:first])
    assert before.base is None
    for count in range(first + 1, done + 1):
        assert snapshot_of(whole.records[:count]).base == before.entries
    assert snapshot_of(whole.records[: done + 1]).base is None


def test_a_summary_is_known_from_its_end_to_its_use() -> None:
    whole = log_of(COMPACTED)
    ends = [r.seq for r in whole.records if r.kind is Kind.EFFECT_END and r["class"] == "summary"]
    used = next(record.seq for record in whole.records if record.event == "HistoryCompressed")
    assert snapshot_of(whole.records[: ends[0]]).summary is None
    known = snapshot_of(whole.records[: ends[0] + 1]).summary
    assert known is not None
    assert (known.level, known.spent["input_tokens"]) == ("compact", 50)
    assert snapshot_of(whole.records[:used]).summary == known
    assert snapshot_of(whole.records[: used + 1]).summary is None


def test_staged_summaries_wait_until_they_are_applied() -> None:
    staged = snapshot_of(at(COLLAPSED, "CollapseStaged", 0).records).staged
    assert [(one.start, one.stop) for one in staged] == [(1, 5)]
    assert snapshot_of(at(COLLAPSED, "HistoryCompressed", 0).records).staged == ()


def test_the_last_answer_is_told_until_the_next_call() -> None:
    whole = log_of(WRITES)
    begin = next(record.seq for record in whole.records if record.get("class") == "tool")
    cut = snapshot_of(whole.records[: begin + 1]).answer
    assert cut is not None
    assert (cut.begun, cut.ended, cut.joined, cut.responded) == (1, False, None, False)
    assert [block["type"] for block in cut.blocks] == ["text", "tool_use"]
    whole_answer = snapshot_of(at(WRITES, "ModelResponded", 0).records).answer
    assert whole_answer is not None
    assert (whole_answer.ended, whole_answer.failed, whole_answer.responded) == (True, False, True)
    assert [block.get("id") for block in whole_answer.blocks] == [None, "r1", "w1", "r2", "u1", "w2", "b1"]
    assert snapshot_of(at(WRITES, "ContextReady", 1).records).answer is None


def test_what_takes_the_place_of_other_messages_is_no_answer() -> None:
    whole = log_of(OVERFLOWN)
    told = next(record.seq for record in whole.records if record.event == "HistorySummarised")
    answer = snapshot_of(whole.records[:told]).answer
    assert answer is not None
    assert (answer.failed, answer.joined, answer.blocks, answer.results) == (True, None, (), {})


def test_what_a_stop_hook_said_is_told() -> None:
    log = at(HOOKS, "StopHooksBlocked")
    snapshot = snapshot_of(log.records)
    assert snapshot.block_reason is not None
    assert Contents(log.payloads).value(snapshot.block_reason) == "Say more."
    assert snapshot.answer is not None
    said = [(hook.point, hook.name, hook.outcome) for hook in snapshot.answer.hooks]
    assert said == [("after_response", "see", "ok"), ("stop", "content", "Pass"), ("stop", "demand", "Block")]


def test_the_output_is_counted_from_the_last_continuation() -> None:
    assert snapshot_of(at(TARGET, "StopHooksPassed", 0).records).outputs == 0
    assert snapshot_of(at(TARGET, "TroubleNamed", 0).records).outputs == 600
    assert snapshot_of(at(TARGET, "TroubleNamed", 1).records).outputs == 630


def test_thinking_is_taken_out_once_for_the_fallback_model() -> None:
    named = at(FALLBACK, "TroubleNamed", 1)
    assert snapshot_of(named.records).context.fallback
    assert not snapshot_of(named.records).fell_back
    assert snapshot_of(at(FALLBACK, "BackoffElapsed").records).fell_back


def test_the_ids_of_all_calls_are_known_compressed_or_not() -> None:
    log = log_of(COMPACTED)
    assert snapshot_of(log.records[:-1]).tool_use_ids == {f"c{turn}_0" for turn in range(6)}


def test_time_runs_in_an_epoch_and_rests_between_two() -> None:
    records = list(log_of(WRITES).records)
    genesis = attrs.evolve(records[0], data={**records[0].data, "deadline_ms": 5_000})
    late = [
        attrs.evolve(record, data={**record.data, "mono_ns": 1_000_000 * place})
        for place, record in enumerate(records[1:10], 1)
    ]
    assert snapshot_of([genesis, *late]).left_ms == 5_000 - 9


def test_what_was_accepted_belongs_to_the_run() -> None:
    log = at(WRITES, "ToolsAnswered", 0)
    script, _ = WRITES.rest(answers_had(log))
    changed: dict[str, Any] = {**WRITES.options([]), "limits": Limits(max_turns=7)}
    went_on = asyncio.run(resumed(log, script, accept_changes=True, **changed))
    snapshot = snapshot_of(went_on.run.log.records[:-1])
    assert snapshot.context.limits.max_turns == 7
    assert snapshot.changes(snapshot.settings) == ()
    other = {**snapshot.settings, "model": "m", "limits": Limits(max_turns=8).fields()}
    told = [str(difference) for difference in snapshot.changes(other)]
    assert told == ["model (was claude-sonnet-4-5, is m)", "limits.max_turns (was 7, is 8)"]
    assert snapshot.changes(other)[0] == SettingChange(name="model", was="claude-sonnet-4-5", now="m")


def test_a_record_that_makes_no_sense_is_no_surprise() -> None:
    records = list(at(WRITES, "ModelResponded", 0).records)
    for place, record in enumerate(records[1:], 1):
        for name in record.data:
            bent = {**record.data, name: ["?"]}
            try:
                snapshot_of([*records[:place], attrs.evolve(record, data=bent), *records[place + 1 :]])
            except CannotResume:
                continue
    assert snapshot_of(records).state is State.DECIDE


def test_a_compression_that_a_log_of_schema_2_holds_in_part_is_made_anew() -> None:
    """There, messages leave and join one by one, and a crash could come between them."""
    whole = read(GOLDEN / "v2" / "overflow.jsonl")
    first = next(record.seq for record in whole.records if record.get("op") == "leave")
    done = next(move.seq for move in whole.transitions if move.seq > first)
    before = snapshot_of(whole.records[:first])
    assert done > first + 1
    for count in range(first + 1, done + 1):
        assert snapshot_of(whole.records[:count]).base == before.entries
    assert snapshot_of(whole.records[: done + 1]).base is None
