"""The compressor in runs: which level comes when, what it leaves alone, and that it never goes in circles."""

import asyncio
import gc
import sys
from collections.abc import Callable
from typing import Any

import pytest

from looplatch import Compression, Limits, Loop, Run, SystemMessage
from looplatch.audit import MemoryLog
from looplatch.compressing.compressor import Compressor
from looplatch.compressing.gauge import Gauge
from looplatch.encoding import decode
from looplatch.journal import Journal
from looplatch.outbox import Outbox
from looplatch.requests.history import History
from looplatch.requests.next_request import NextRequest
from looplatch.states.context import Context
from looplatch.states.events import ContextReady
from looplatch.testing import FakeClock, ScriptedAPI, error, reply, stalled, tool_use
from looplatch.workplace import Workplace
from tests.playing import Play, result, rounds, saying, tool_named, transition, use
from tests.recovering import (
    SUMMARY,
    WINDOW,
    Model,
    effects,
    files,
    levels,
    meet,
    met,
    moves,
    only,
    reads,
    transcript_in,
)

MANY = Limits(max_turns=400)
DONE = reply("Done.")


def sizes(play: Play) -> list[int]:
    return [move["fields"]["tokens"] for move in moves(play, "ContextReady")]


# --- each level in its turn


def test_nothing_is_done_below_every_threshold() -> None:
    """Three results of 1,000 tokens and an answer of 8,000 are less than 12,000, where the first level is due."""
    told = meet([*reads(3), DONE], tools=[files(4_000)], window=WINDOW)
    assert max(sizes(told)) < 12_000
    assert moves(told, "HistoryCompressed", "SummaryDue", "CollapseStaged") == []


def test_where_no_window_is_known_nothing_is_done() -> None:
    told = meet([*reads(40), DONE], tools=[files(20_000)], model="claude-of-tomorrow", limits=MANY)
    assert max(sizes(told)) > 150_000
    assert levels(told) == []


def test_what_is_read_again_goes_out_of_the_older_result() -> None:
    script = [*reads(2), reply(tool_use("again", "read", {"path": "f0"})), *reads(2, first=5), DONE]
    told = meet(script, tools=[files(6_000)], window=WINDOW, compression=only(snip_at=0.6))
    assert levels(told) == ["snip"]
    assert "[superseded: " in told.run.messages[2]["content"][0]["content"]
    assert all("[superseded: " not in str(message) for message in told.run.messages[3:])


def test_old_results_are_cleared_and_the_newest_five_stay() -> None:
    told = meet([*reads(12), DONE], tools=[files(2_500)], window=WINDOW, compression=only(micro_at=0.7), limits=MANY)
    [first, *_] = moves(told, "HistoryCompressed")
    assert first["fields"]["level"] == "micro"
    index = told.log.records.index(first)
    [edit] = [record for record in told.log.records[:index] if record.kind == "message" and record["op"] == "edit"]
    results = [one["start"] for one in edit["edits"]]
    assert results == [2, 4, 6, 8], "nine of 713 tokens made 14,000"


def test_spans_are_summarised_beside_the_history_and_take_their_places_later() -> None:
    model = Model([*reads(30), DONE])
    told = meet(
        model,
        tools=[files(1_500)],
        window=WINDOW,
        compression=only(stage_at=0.7, collapse_at=0.8),
        limits=MANY,
    )
    staged, drained = moves(told, "CollapseStaged"), moves(told, "HistoryCompressed")
    assert staged[0].seq < drained[0].seq
    assert {move["fields"]["level"] for move in drained} == {"collapse"}
    assert len(staged) == len(model.asked) == len(moves(told, "SummaryDue"))
    assert "[Summary of steps that are no longer shown]" in str(told.run.messages[0])
    assert SUMMARY in str(told.run.messages[0])


def test_one_summary_takes_the_place_of_all_but_the_latest_exchange() -> None:
    told = meet([*reads(7), DONE], tools=[files(6_000)], window=WINDOW, compression=only(compact_at=0.9), limits=MANY)
    [event] = moves(told, "HistoryCompressed")
    assert event["fields"]["level"] == "compact"
    place = next(n for n, sent in enumerate(told.sent) if SUMMARY in str(sent[0]))
    first, latest, results = told.sent[place]
    assert first["content"][0]["text"] == "Go."
    assert first["content"][1]["text"] == f"[Summary of the conversation so far, which is no longer shown]\n{SUMMARY}"
    before = told.sent[place - 1]  # the summary's own request
    assert transcript_in({"messages": before}) is not None
    assert latest["content"][0]["type"] == "tool_use"
    assert results["content"][0]["tool_use_id"] == latest["content"][0]["id"]


def test_each_change_tells_its_tokens_and_the_cache_it_gave_up_and_the_consumer_hears_of_it() -> None:
    told = meet([*reads(12), DONE], tools=[files(2_500)], window=WINDOW, limits=MANY)
    heard = [one.data for one in told.seen if isinstance(one, SystemMessage) and one.subtype == "compact_boundary"]
    changes = moves(told, "HistoryCompressed")
    assert len(heard) == len(changes) > 0
    for data, move in zip(heard, changes, strict=True):
        fields = move["fields"]
        assert data == {name: fields[name] for name in ("level", "tokens_before", "tokens_after")}
        assert 0 < fields["tokens_after"] < fields["tokens_before"]
        assert 0 < fields["cache_lost"] <= fields["tokens_before"]


def test_what_is_lost_of_the_cache_is_what_stands_behind_the_first_change() -> None:
    """A long prompt stays in the cache: only what follows it was lost."""
    told = meet([*reads(12), DONE], prompt="Read. " * 2_000, tools=[files(1_500)], window=WINDOW, limits=MANY)
    fields = moves(told, "HistoryCompressed")[0]["fields"]
    assert fields["level"] == "micro"
    assert fields["tokens_before"] - fields["cache_lost"] > 2_500


# --- when it is worth it


def test_small_gains_wait_until_they_are_enough_or_the_cache_is_lost_anyway() -> None:
    """A file of 300 tokens is read again and again: 400 tokens are 2 % of the window."""
    again = [reply(tool_use(f"t{n}", "read", {"path": "same"})) for n in range(20)]
    told = meet([*again, DONE], tools=[files(1_200)], window=WINDOW, compression=only(snip_at=0.6), limits=MANY)
    gains = [
        move["fields"]["tokens_before"] - move["fields"]["tokens_after"] for move in moves(told, "HistoryCompressed")
    ]
    assert gains
    assert min(gains) > 350


def test_a_span_is_not_worth_a_call_before_it_has_a_twentieth_of_the_window() -> None:
    model = Model([*reads(60), DONE])
    told = meet(model, tools=[files(400)], window=WINDOW, compression=only(stage_at=0.6, collapse_at=0.8), limits=MANY)
    spans = [move["fields"]["span_tokens"] for move in moves(told, "CollapseStaged")]
    assert spans
    assert min(spans) >= 1_000


def test_no_more_is_summarised_than_is_to_be_freed() -> None:
    """Another span is summarised only where the summaries that wait would not bring the history under the threshold."""
    settings = only(stage_at=0.6, collapse_at=1.0)
    model = Model([*reads(16), DONE])
    told = meet(model, tools=[files(2_000)], window=40_000, compression=settings, limits=MANY, max_tokens=20_000)
    waiting = visits = 0  # tokens that the waiting summaries would free; spans that were summarised
    before: list[int] = []
    for move in told.log.transitions:
        fields = move["fields"]
        if move.event == "CollapseStaged":
            before.append(waiting)
            waiting += fields["span_tokens"] - fields["summary_tokens"]
        elif move.event == "ContextReady":
            visits += len(before)
            assert all(fields["tokens"] - freed >= 0.59 * 40_000 for freed in before)
            before.clear()
    assert visits >= 2
    assert waiting > 0.05 * 40_000


def test_summaries_of_spans_come_too_late_where_one_of_all_is_due() -> None:
    """One read of 4,500 tokens brings the history from below every threshold to nine tenths."""
    model = Model([*reads(8), reply(tool_use("big", "read", {"path": "big", "n": 1})), DONE])

    def sized(given: dict[str, Any], ctx: Any) -> str:
        return f"{given['path']} line\n" * (2_000 if given["path"] == "big" else 40)

    told = meet(model, tools=[tool_named("read", answer=sized)], window=WINDOW, max_tokens=9_000, limits=MANY)
    due = [move["fields"]["level"] for move in moves(told, "SummaryDue")]
    assert "collapse" not in due


def test_a_run_that_stays_at_its_threshold_is_not_gone_through_again_and_again() -> None:
    """Nothing can be done about what the user said: each level looks, and looks again only when enough is new."""
    prompt = "word " * 8_000
    calls = [reply(tool_use(f"t{n}", "read", {})) for n in range(15)]
    model = Model([*calls, DONE])
    compression = Compression(compact_at=None)
    told = meet(model, prompt=prompt, tools=[saying("read", "ok")], window=WINDOW, compression=compression, limits=MANY)
    assert min(sizes(told)) > 0.8 * WINDOW
    assert levels(told) == []
    assert model.asked == []
    assert told.result.terminal == "answered"


def test_prepare_costs_the_same_whatever_the_length_of_a_history_that_needs_nothing() -> None:
    """Not a call more of any function, for a history a hundred times as long."""
    calls_of_fit(1)  # what is made but once in a process is made then
    short, long = (calls_of_fit(count) for count in (10, 1_000))
    assert short == long


def calls_of_fit(count: int) -> int:
    """How many functions are called when a history of so many exchanges is looked at that needs nothing."""

    async def main() -> int:
        api = ScriptedAPI([])
        async with api.client() as client:
            plan = Loop(model="claude-sonnet-4-5", client=client, clock=FakeClock(), window=10**9).plan
            log = MemoryLog("run-1", payloads="keep", clock=plan.clock, entropy=plan.entropy)
            at = Workplace(plan=plan, journal=Journal(log), history=History(), outbox=Outbox(), partial=False)
            at.join("user", [at.journal.keep_text("Go.")], form="text")
            for number in range(count):
                at.join("assistant", [at.journal.keep(use(f"t{number}", "read"))], **NO_ANSWER)
                at.join("user", [at.journal.keep(result(f"t{number}", "line\n" * 100))])
            compressor = Compressor(at, Gauge(at), NextRequest(at))
            called = 0

            def count_call(frame: object, event: str, arg: object) -> None:
                nonlocal called
                called += event in ("call", "c_call")

            gc.disable()  # clearing away what is no longer used calls functions, whenever it comes
            sys.setprofile(count_call)
            try:
                event = await compressor.fit(Context())
            finally:
                sys.setprofile(None)
                gc.enable()
            assert isinstance(event, ContextReady)
            return called

    return asyncio.run(main())


NO_ANSWER: dict[str, Any] = dict.fromkeys(("message_id", "model", "stop_reason"))


# --- how large it thinks that the history is


def test_the_estimate_is_near_what_the_api_counts_then_also_after_edits() -> None:
    """The server counts three bytes a token; once it has counted, the loop knows."""

    def count(body: Any) -> int:
        return len(str(body["messages"])) // 3

    told = meet([*reads(40), DONE], tools=[files(2_500)], window=WINDOW, limits=MANY, api={"count": count})
    assert {"micro", "collapse", "compact"} & set(levels(told))
    estimated = [size - 8_000 for size in sizes(told)]
    counted = [count(request.body) for request in told.api.requests if transcript_in(request.body) is None]
    assert len(estimated) == len(counted)
    for guess, true in list(zip(estimated, counted, strict=True))[2:]:
        assert 0.7 * true < guess < 1.4 * true


def test_pictures_are_estimated_by_what_they_are_and_not_by_their_bytes() -> None:
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * 400_000}}
    told = meet(
        [reply(tool_use("t1", "look", {}), usage={"input_tokens": 0}), DONE],
        tools=[saying("look", [picture])],
        window=WINDOW,
    )
    assert levels(told) == []
    assert 9_600 < sizes(told)[-1] < 10_000


def test_the_prompts_of_all_rounds_of_a_server_tool_are_not_taken_for_the_size_of_the_history() -> None:
    searched = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}}
    found: dict[str, Any] = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    asked = tool_use("t1", "read", {"path": "a"})
    script = [reply(searched, found, "Found.", asked, usage={"input_tokens": 190_000}), DONE]
    told = meet(script, tools=[files(100), {"type": "web_search_20250305", "name": "web_search"}])
    assert sizes(told)[-1] < 10_000


def test_where_the_rounds_are_told_apart_the_last_one_is_the_size_of_the_history() -> None:
    rounds_of = [{"type": "message", "input_tokens": n, "output_tokens": 10} for n in (60_000, 90_000)]
    searched = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}}
    found: dict[str, Any] = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    usage = {"input_tokens": 150_000, "iterations": rounds_of}
    script = [reply(searched, found, tool_use("t1", "read", {"path": "a"}), usage=usage), DONE]
    told = meet(script, tools=[files(100), {"type": "web_search_20250305", "name": "web_search"}])
    assert 98_000 < sizes(told)[-1] < 98_500


# --- results that are too big


def test_a_result_is_cut_to_a_quarter_of_the_window_when_its_tool_ends_and_is_kept_whole() -> None:
    whole = "".join(f"line {number}\n" for number in range(10_000))
    told = meet([reply(tool_use("t1", "read", {})), DONE], tools=[saying("read", whole)], window=WINDOW)
    sent = told.sent[1][2]["content"][0]["content"]
    assert len(sent) < 20_200
    [(_, end)] = effects(told, "tool")
    assert end is not None
    reference = end["full"]["commitment"]
    assert f"characters left out; the full text is kept as {reference} …]" in sent
    found = told.log.payloads.find(reference)
    assert found is not None
    assert decode(found[1]) == whole


def test_without_kept_contents_no_place_is_named() -> None:
    told = meet(
        [reply(tool_use("t1", "read", {})), DONE],
        tools=[saying("read", "line\n" * 20_000)],
        window=WINDOW,
        payloads="digest",
    )
    sent = told.sent[1][2]["content"][0]["content"]
    assert "characters left out …]" in sent
    assert "kept as" not in sent


def test_newest_results_that_do_not_fit_together_are_cut_with_a_reference_to_the_whole() -> None:
    calls = [tool_use(f"t{number}", "read", {"path": f"f{number}"}) for number in range(6)]
    told = meet([reply(*calls), DONE], tools=[files(16_000)], window=WINDOW)
    [event] = moves(told, "HistoryCompressed")
    assert event["fields"]["level"] == "snip"
    assert sizes(told)[-1] <= WINDOW
    joined = next(record for record in told.log.records if record.kind == "message" and record["index"] == 2)
    for before, after in zip(joined["blocks"], told.sent[1][2]["content"], strict=True):
        assert f"the full text is kept as {before['commitment']} …]" in after["content"]
        found = told.log.payloads.find(before["commitment"])
        assert found is not None
        assert len(decode(found[1])["content"]) > 15_000


def test_what_the_window_cannot_hold_whatever_is_done_ends_the_run() -> None:
    told = meet([], prompt="word " * 30_000, window=WINDOW)
    assert told.result.terminal == "context_blocked"
    assert told.api.requests == []


# --- summaries that fail, or are pending


def failing_summaries(count: int) -> Model:
    return Model([*reads(11), DONE], [*[error(400, "invalid_request_error", "no")] * count, SUMMARY])


def withheld(play: Play) -> list[bool]:
    """Of each summary that was due, whether the breaker withheld it."""
    return [["summary_withheld", True] in move["guards"] for move in moves(play, "SummaryDue")]


def later(clock: FakeClock, seconds: float) -> Callable[[Any, Run], None]:
    """Moves the clock whenever a summary is withheld."""

    def watch(message: Any, run: Run) -> None:
        move = transition(message)
        if move is not None and ["summary_withheld", True] in move["guards"]:
            clock.advance(seconds)

    return watch


def test_after_three_failed_summaries_none_is_asked_for_until_the_breaker_has_cooled_down() -> None:
    """One is due at each turn from 12,000 tokens on. After a minute a trial is allowed, and it closes the breaker."""
    clock = FakeClock()
    options: dict[str, Any] = {"tools": [files(4_000)], "window": WINDOW, "compression": only(compact_at=0.6)}
    told = meet(failing_summaries(3), clock=clock, watch=later(clock, 30), limits=MANY, **options)
    assert withheld(told) == [False, False, False, True, True, False]
    assert [move["fields"]["breaker_cooled"] for move in moves(told, "SummaryDue")] == [True, *[False] * 4, True]
    assert [move["change"]["breaker"] for move in moves(told, "SummaryFailed")] == [1, 2, 3]
    [closed] = moves(told, "HistoryCompressed")
    assert closed["change"]["breaker"] == 0
    assert told.result.terminal == "answered"


def test_a_trial_that_fails_leaves_the_breaker_open_and_the_cool_down_begins_again() -> None:
    clock = FakeClock()
    options: dict[str, Any] = {"tools": [files(4_000)], "window": WINDOW, "compression": only(compact_at=0.6)}
    told = meet(failing_summaries(4), clock=clock, watch=later(clock, 60), limits=MANY, **options)
    assert withheld(told) == [False, False, False, True, False, True, False]
    opened = [["breaker_open", True] in move["guards"] for move in moves(told, "SummaryFailed")]
    assert opened == [False, False, False, True]
    assert moves(told, "SummaryFailed")[-1]["change"].get("breaker") is None, "it is past its bound nowhere"


def test_a_summary_that_is_no_shorter_is_of_no_use_and_counts_for_the_breaker() -> None:
    model = Model([*reads(8), DONE], ["word " * 20_000])
    told = meet(model, tools=[files(4_000)], window=WINDOW, compression=only(compact_at=0.6), limits=MANY)
    first = moves(told, "SummaryFailed")[0]
    assert (first["fields"]["failure"], first["change"]["breaker"]) == ("not_shorter", 1)
    assert first["fields"]["output_tokens"] > 10_000, "it was paid for"
    assert levels(told) == []


@pytest.mark.parametrize(
    ("compression", "known"),
    [
        (only(stage_at=0.7, collapse_at=0.8), True),
        (only(compact_at=0.9), True),
        (only(compact_at=0.9), False),  # the API finds out that the prompt is too long
    ],
)
def test_a_run_that_is_ended_while_a_summary_is_written_leaves_the_history_as_it_was(
    compression: Compression, known: bool
) -> None:
    async def main() -> None:
        gate = asyncio.Event()
        model = Model([*reads(30), DONE], [lambda body: stalled(reply("never"), after=2, gate=gate)])
        api = ScriptedAPI(model, window=WINDOW)

        async def end(run: Run) -> None:
            while not model.asked or not api.exchanges[-1].stalled.is_set():
                await rounds(5)
            run.abort()

        ending: list[asyncio.Future[None]] = []

        def watch(message: Any, run: Run) -> None:
            if not ending:
                ending.append(asyncio.ensure_future(end(run)))

        given: dict[str, Any] = {"window": WINDOW} if known else {}
        told = await met(api, tools=[files(4_000)], compression=compression, limits=MANY, watch=watch, **given)
        assert told.result.terminal == "aborted"
        [(_, ended)] = effects(told, "summary")
        assert ended is not None
        assert ended["outcome"] == "interrupted"
        assert [record for record in told.log.records if record.kind == "message" and record["op"] == "leave"] == []

    asyncio.run(main())
