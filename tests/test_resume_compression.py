"""What a run knows of its compression is known after a resume: what waits, what was in vain, when it failed."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from looplatch import Compression, Limits, Log, Loop
from looplatch.audit import MemoryLog
from looplatch.compressing.compressor import Compressor, PastCompression
from looplatch.compressing.gauge import Gauge
from looplatch.journal import Journal
from looplatch.outbox import Outbox
from looplatch.recovery.compression.collapse import Staged, span_at
from looplatch.requests.history import History
from looplatch.requests.next_request import NextRequest
from looplatch.testing import FakeClock, ScriptedAPI, error, reply, thinking, tool_use
from looplatch.workplace import Workplace
from tests import histories
from tests.playing import Play, tool_named
from tests.recovering import SUMMARY, WINDOW, Model, files, levels, meet, moves, reads, transcript_in
from tests.resuming import Resumed, cut_after, resumed
from tests.test_api_compaction import COMPACTING, Compacting

MANY = Limits(max_turns=400)
NO = error(400, "invalid_request_error", "no")
ONLY_COMPACT = Compression(snip_at=None, micro_at=None, stage_at=None, collapse_at=None, compact_at=0.6)
OPTIONS: dict[str, Any] = {"tools": [files(4_000)], "window": WINDOW, "compression": ONLY_COMPACT, "limits": MANY}
START = datetime(2026, 1, 1, tzinfo=UTC)


def after(log: Log, event: str, nth: int) -> Log:
    """The log as it is after the move by the nth of these events."""
    found = [record.seq for record in log.records if record.event == event]
    return cut_after(log, found[nth] + 1)


def last_ready(log: Log, before: str, nth: int) -> Log:
    """The log as it is after the first `ContextReady` behind the nth of the events."""
    start = len(after(log, before, nth))
    return cut_after(log, next(record.seq for record in log.records[start:] if record.event == "ContextReady") + 1)


def withheld(went_on: Resumed, since: Log) -> list[bool]:
    due = [move for move in went_on.run.log.transitions if move.event == "SummaryDue" and move.seq >= len(since)]
    return [["summary_withheld", True] in move["guards"] for move in due]


def three_failed() -> Log:
    """A run whose breaker has opened: three summaries failed, in as many turns."""
    told = meet(Model([*reads(11), reply("Done.")], [NO]), **OPTIONS)
    return last_ready(told.log, "SummaryFailed", 2)


@pytest.mark.parametrize(("seconds", "first_withheld"), [(0, True), (59, True), (61, False)])
def test_the_breaker_cools_down_from_the_last_failure_on_whatever_process_has_the_run(
    seconds: float, first_withheld: bool
) -> None:
    before = three_failed()
    had = sum(1 for effect in before.effects if effect.begin["class"] == "model" and effect.end is not None)
    model = Model([*reads(11 - had, first=had), reply("Done.")], [SUMMARY])
    clock = FakeClock(START + timedelta(seconds=seconds))
    went_on = asyncio.run(resumed(before, model, clock=clock, **OPTIONS))
    assert went_on.result.terminal == "answered"
    assert withheld(went_on, before)[0] is first_withheld


def test_a_summary_that_was_of_no_use_is_not_asked_for_again_before_enough_is_new() -> None:
    """One failed; the next turn brings 50 tokens, and 400 are two percent of the window."""
    small = tool_named("read", answer=lambda given, ctx: "line\n" * (10 if ctx.tool_use_id == "small" else 800))
    options: dict[str, Any] = {**OPTIONS, "tools": [small]}
    script = [*reads(6), reply(tool_use("small", "read", {"path": "s"})), reply("Done.")]
    told = meet(Model(script, [NO]), **options)
    before = last_ready(told.log, "SummaryFailed", 0)
    had = sum(1 for effect in before.effects if effect.begin["class"] == "model" and effect.end is not None)
    model = Model([reply(tool_use("small", "read", {"path": "s"})), reply("Done.")], [NO])
    went_on = asyncio.run(resumed(before, model, **options))
    assert had > 0
    assert withheld(went_on, before) == []
    assert model.asked == []


def test_a_compaction_that_the_api_refuses_is_not_asked_of_it_again() -> None:
    options: dict[str, Any] = {**OPTIONS, "compression": COMPACTING}
    model = Compacting([*reads(24), reply("Done.")], [NO])
    told = meet(model, **options)
    assert len(model.bodies) == 1
    before = last_ready(told.log, "HistoryCompressed", 0)
    had = sum(1 for effect in before.effects if effect.begin["class"] == "model" and effect.end is not None)
    rest = Compacting([*reads(24 - had, first=had), reply("Done.")], [NO])
    went_on = asyncio.run(resumed(before, rest, **options))
    assert went_on.result.terminal == "answered"
    assert rest.asked, "the model writes them"
    assert rest.bodies == []


def test_the_next_request_names_the_answer_before_it_after_a_resume_too() -> None:
    script = [reply(tool_use("t1", "read", {"path": "a"}), id="msg_a"), reply("Done.")]
    options: dict[str, Any] = {"tools": [files(100)], "params": {"diagnostics": {}}}
    told = meet(script, **options)
    went_on = asyncio.run(resumed(after(told.log, "ToolsAnswered", 0), [reply("Done.")], **options))
    assert [request.body["diagnostics"]["previous_message_id"] for request in went_on.api.requests] == ["msg_a"]


# --- what waits


def test_draining_keeps_what_could_not_be_applied_yet() -> None:
    """Of two staged spans the second is among the newest exchanges, which stay; it is applied when it is older."""

    async def main() -> None:
        api = ScriptedAPI([])
        async with api.client() as client:
            plan = Loop(model="claude-sonnet-4-5", client=client, clock=FakeClock(), window=WINDOW).plan
            log = MemoryLog("run-1", payloads="keep", clock=plan.clock, entropy=plan.entropy)
            at = Workplace(plan=plan, journal=Journal(log), history=History(), outbox=Outbox(), partial=False)
            add(at, [histories.user("Go."), *histories.steps(6)])
            messages = at.history.messages()
            spans = [span_at(messages, 1, 5), span_at(messages, 9, 13)]
            compressor = Compressor(at, Gauge(at), NextRequest(at))
            compressor.restore(PastCompression(staged=[Staged(span=span, summary="It was done.") for span in spans]))
            compressor.drain()
            assert len(at.history) == 9
            assert compressor.staged == 0, "it may not be applied now"
            add(at, histories.steps(2, first=7))
            assert compressor.staged == 1
            compressor.drain()
            assert len(at.history) == 9
            assert compressor.staged == 0

    asyncio.run(main())


def add(at: Workplace, messages: list[histories.Message]) -> None:
    for message in messages:
        answers = message["role"] == "assistant"
        more: dict[str, Any] = dict.fromkeys(("message_id", "model", "stop_reason")) if answers else {}
        content: Any = message["content"]
        blocks = [histories.text(content)] if isinstance(content, str) else content
        at.join(message["role"], [at.journal.keep(block) for block in blocks], **more)


# --- what counts as a read


def played(read_only: bool) -> Play:
    again = [reply(tool_use(f"t{n}", "look", {"path": "same"})) for n in range(9)]
    tool = tool_named("look", read_only=read_only, answer=lambda given, ctx: f"{ctx.tool_use_id} line\n" * 200)
    only_snip = Compression(micro_at=None, stage_at=None, collapse_at=None, compact_at=None)
    return meet([*again, reply("Done.")], tools=[tool], window=WINDOW, compression=only_snip, limits=MANY)


def test_only_reads_are_superseded_by_the_same_read() -> None:
    """What a write said is of that time: a later call of the same kind says nothing of it."""
    assert "snip" in levels(read := played(read_only=True))
    assert "[superseded: " in str(read.run.messages)
    assert levels(played(read_only=False)) == []
    assert transcript_in({"messages": read.sent[-1]}) is None
    assert moves(read, "SummaryDue") == []


# --- another model


def test_a_turn_that_lost_its_thinking_goes_on_without_it_after_a_resume_too() -> None:
    overloaded = error(529, "overloaded_error", "")
    call = reply(thinking("hm"), tool_use("t1", "read", {"path": "a"}))
    options: dict[str, Any] = {
        "tools": [files(100)],
        "fallback_model": "claude-haiku-4-5",
        "params": {"thinking": {"type": "enabled", "budget_tokens": 2_000}},
    }
    told = meet([call, overloaded, overloaded, reply("Done.")], **options)
    asked = [request.body["thinking"]["type"] for request in told.api.requests]
    assert asked == ["enabled", "enabled", "enabled", "disabled"]
    went_on = asyncio.run(resumed(after(told.log, "BackoffElapsed", 1), [reply("Done.")], **options))
    assert [request.body["thinking"]["type"] for request in went_on.api.requests] == ["disabled"]


def test_thinking_is_on_again_in_the_next_turn() -> None:
    """More output is wanted, and the model is told so: a new turn begins, which has no thinking that was dropped."""
    overloaded = error(529, "overloaded_error", "")
    call = reply(thinking("hm"), tool_use("t1", "read", {"path": "a"}))
    told = meet(
        [call, overloaded, overloaded, reply("Part."), reply("Done.", usage={"output_tokens": 9_500})],
        tools=[files(100)],
        fallback_model="claude-haiku-4-5",
        params={"thinking": {"type": "enabled", "budget_tokens": 2_000}},
        limits=Limits(output_target=10_000),
    )
    asked = [request.body["thinking"]["type"] for request in told.api.requests]
    assert asked == ["enabled", "enabled", "enabled", "disabled", "enabled"]
