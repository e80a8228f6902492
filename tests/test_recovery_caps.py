"""Every bound of a run is reached by one, and says why it ended; no counter is ever past its bound."""

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest

from looplatch import Block, Compression, Hooks, Limits, Pass
from looplatch.hooks import StopContext
from looplatch.states.table import COUNTERS
from looplatch.testing import FakeClock, error, reply, server_tool_use, thinking, tool_use
from tests.playing import Play, echo, play, tool_named
from tests.recovering import Item, Model, files, meet, moves, reads, strategies

OVERLOADED = error(529, "overloaded_error", "Overloaded")
TOO_LONG = error(400, "invalid_request_error", "prompt is too long")
CUT = reply("Part of it.", stop="max_tokens")
LITTLE, MUCH = {"output_tokens": 499}, {"output_tokens": 500}


def blocking(context: StopContext) -> Any:
    async def block() -> Block:
        return Block("Not yet.")

    return block()


def calls(count: int) -> list[Item]:
    return [reply(tool_use(f"t{number}", "read", {"n": number})) for number in range(count)]


def pauses(count: int) -> list[Item]:
    search = server_tool_use("srvtoolu_1", "web_search", {"query": "q"})
    return [reply(search, stop="pause_turn"), *[reply("Still searching.", stop="pause_turn")] * (count - 1)]


SEARCH = [{"type": "web_search_20250305", "name": "web_search"}]

Case = tuple[Iterable[Item], dict[str, Any], str, int]
CASES: dict[str, Case] = {
    # what the model does, how the loop is set up, why the run ends, how many requests were made
    "turns": (calls(3), {"limits": Limits(max_turns=3)}, "max_turns", 3),
    "turns, of a pause": (pauses(2), {"limits": Limits(max_turns=2), "tools": SEARCH}, "max_turns", 2),
    "attempts": ([OVERLOADED] * 3, {"limits": Limits(max_attempts=2)}, "model_error", 3),
    "no attempts": ([OVERLOADED], {"limits": Limits(max_attempts=0)}, "model_error", 1),
    "a wait that is too long": (
        [error(429, "rate_limit_error", "", {"retry-after": "601"})],
        {"limits": Limits(max_delay_ms=600_000)},
        "model_error",
        1,
    ),
    "output recoveries": ([CUT] * 5, {}, "output_truncated", 5),
    "no output recoveries": ([CUT] * 2, {"limits": Limits(max_output_recoveries=0)}, "output_truncated", 2),
    "blocks": (
        [reply("Done.")] * 3,
        {"limits": Limits(max_blocks=3), "hooks": Hooks(stop=[blocking])},
        "stop_hook_limit",
        3,
    ),
    "pauses": (pauses(3), {"limits": Limits(max_pauses=2), "tools": SEARCH}, "pause_limit", 3),
    "little progress": (
        [reply("A", usage=MUCH), *[reply("B", usage=LITTLE)] * 3],
        {"limits": Limits(output_target=100_000)},
        "answered",
        4,
    ),
    "continuations": (
        [reply("A", usage=MUCH)] * 4,
        {"limits": Limits(output_target=100_000, max_continuations=3)},
        "answered",
        4,
    ),
    "the output target": (
        [reply("A", usage={"output_tokens": 4_500})] * 2,
        {"limits": Limits(output_target=10_000)},
        "answered",
        2,
    ),
    "total tokens": (calls(2), {"limits": Limits(max_total_tokens=100)}, "budget_spent", 2),
    "compaction, of nothing": ([TOO_LONG], {}, "context_blocked", 1),
}


@pytest.mark.parametrize("name", CASES)
def test_a_bound_ends_the_run_and_says_so(name: str) -> None:
    script, options, terminal, requests = CASES[name]
    given = {"tools": [echo()], **options}
    told = play(list(script), **given)
    assert told.result.terminal == terminal
    assert len(told.api.requests) == requests
    within_bounds(told)


def within_bounds(told: Play) -> None:
    """No counter has ever been past its bound."""
    limits = told.run.log.genesis
    assert limits is not None
    for counter in COUNTERS:
        bound = counter.bound if isinstance(counter.bound, int) else limits["limits"][counter.bound]
        values = [move["change"].get(counter.name, 0) for move in told.log.transitions]
        assert max(values) <= bound, counter.name


# --- once in a turn


def test_an_overflow_is_drained_once_and_compacted_once_in_a_turn() -> None:
    """What is still too long then ends the run; the next turn would have begun anew."""
    staging = Compression(snip_at=None, micro_at=None, stage_at=0.3, collapse_at=1.0, compact_at=1.0)
    told = meet([*reads(8), TOO_LONG, TOO_LONG, TOO_LONG], tools=[files(3_000)], window=40_000, compression=staging)
    assert strategies(told) == ["collapse_drain_retry", "reactive_compact_retry"]
    assert told.result.terminal == "context_blocked"
    within_bounds(told)


def test_a_new_turn_gives_the_compaction_back() -> None:
    script = [*reads(3), TOO_LONG, *reads(3, first=10), TOO_LONG, reply("Done.")]
    told = meet(script, tools=[files(3_000)])
    assert strategies(told) == ["reactive_compact_retry"] * 2
    assert told.result.terminal == "answered"


def test_an_answer_is_asked_for_with_a_higher_limit_once_in_a_turn() -> None:
    told = play([CUT, CUT, *calls(1), CUT, reply("Done.")], tools=[echo()])
    assert strategies(told) == [
        "max_output_tokens_escalate",
        "max_output_tokens_recovery",
        "max_output_tokens_escalate",
    ]
    assert [request.body["max_tokens"] for request in told.api.requests] == [8_000, 64_000, 64_000, 8_000, 64_000]


def test_tool_turns_do_not_give_blocks_back_and_the_flag_stays() -> None:
    seen: list[bool] = []

    async def hook(context: StopContext) -> Block | Pass:
        seen.append(context.stop_hook_active)
        return Block("More.")

    script = [reply("One."), *calls(1), reply("Two."), reply("Three.")]
    told = play(script, tools=[echo()], hooks=Hooks(stop=[hook]), limits=Limits(max_blocks=3))
    assert told.result.terminal == "stop_hook_limit"
    assert seen == [False, True, True]


# --- a summary after an overflow


def summaries(*said: Item | str) -> Model:
    return Model([*reads(3), TOO_LONG, reply("Done.")], said)


def test_a_summary_that_may_succeed_later_is_asked_for_again_after_a_wait() -> None:
    told = meet(summaries(OVERLOADED, OVERLOADED, "It was done."), tools=[files(3_000)])
    assert told.result.terminal == "answered"
    assert told.clock.slept == [0.5, 1.0]
    assert strategies(told) == ["reactive_compact_retry"]
    named = [move.event for move in moves(told, "SummaryFailed", "BackoffElapsed", "HistorySummarised")]
    assert named == ["SummaryFailed", "BackoffElapsed"] * 2 + ["HistorySummarised"]


def test_a_summary_waits_as_long_as_the_server_asks() -> None:
    told = meet(
        summaries(error(429, "rate_limit_error", "", {"retry-after": "7"}), "It was done."), tools=[files(3_000)]
    )
    assert told.clock.slept == [7.0]


@pytest.mark.parametrize(
    ("said", "limits", "slept"),
    [
        ([OVERLOADED], Limits(max_attempts=2), [0.5, 1.0]),
        ([error(400, "invalid_request_error", "no")], Limits(), []),
        ([reply("cut", stop="max_tokens")], Limits(), []),
        ([error(429, "rate_limit_error", "", {"retry-after": "700"})], Limits(), []),
        ([OVERLOADED], Limits(breaker_threshold=4), [0.5, 1.0, 2.0]),
        ([OVERLOADED], Limits(breaker_threshold=1), []),
    ],
)
def test_a_summary_that_is_not_to_be_had_ends_the_run(said: list[Item], limits: Limits, slept: list[float]) -> None:
    model = Model([*reads(3), TOO_LONG], said)
    told = meet(model, tools=[files(3_000)], limits=limits)
    assert told.result.terminal == "context_blocked"
    assert told.clock.slept == slept
    within_bounds(told)
    counted = [move["change"]["breaker"] for move in moves(told, "SummaryFailed")]
    assert counted == list(range(1, len(slept) + 2)), "each failure counts for the breaker"


def test_a_trial_of_the_breaker_after_an_overflow_is_given_up_when_it_fails() -> None:
    """Three failed in prepare; by the overflow the breaker has cooled down, and one more is allowed."""
    settings = Compression(snip_at=None, micro_at=None, stage_at=None, collapse_at=None, compact_at=0.5, cool_down_s=0)
    model = Model([*reads(9), TOO_LONG], [error(400, "invalid_request_error", "no")] * 4)
    limits = Limits(breaker_threshold=3)
    told = meet(model, tools=[files(3_000)], window=20_000, compression=settings, limits=limits)
    assert told.result.terminal == "context_blocked"
    last = moves(told, "SummaryFailed")[-1]
    assert dict(map(tuple, last["guards"]))["summary_given_up_breaker_open"] is True
    assert last["change"].get("breaker") is None, "it is past its bound nowhere"
    within_bounds(told)


def test_a_summary_that_is_no_shorter_ends_the_run() -> None:
    told = meet(Model([*reads(3), TOO_LONG], ["word " * 20_000]), tools=[files(3_000)])
    assert told.result.terminal == "context_blocked"
    [move] = moves(told, "HistorySummarised")
    assert move["change"]["breaker"] == 1


def test_no_summary_is_asked_for_after_an_overflow_while_the_breaker_is_open() -> None:
    """Three failed in prepare; the clock stands still."""
    settings = Compression(snip_at=None, micro_at=None, stage_at=None, collapse_at=None, compact_at=0.5)
    model = Model([*reads(9), TOO_LONG], [error(400, "invalid_request_error", "no")])
    told = meet(model, tools=[files(3_000)], window=20_000, compression=settings)
    assert told.result.terminal == "context_blocked"
    [named] = moves(told, "TroubleNamed")
    assert (named["fields"]["can_summarise"], named["fields"]["breaker_cooled"]) == (True, False)
    assert len(model.asked) == 3


# --- time


def test_wall_time_ends_the_run_as_a_deadline_waits_included() -> None:
    """Each of the waits before a retry doubles: after 0.5 and 1 second there is not enough left for two more."""
    told = play([OVERLOADED] * 3, limits=Limits(max_wall_s=2.0))
    assert told.result.terminal == "deadline"
    assert told.result.subtype == "error_during_execution"
    genesis = told.log.genesis
    assert genesis is not None
    assert genesis["limits"]["max_wall_ms"] == genesis["deadline_ms"] == 2_000
    assert told.clock.slept == [0.5, 1.0, 2.0], "the last wait was cut short"


@pytest.mark.parametrize(
    ("wall", "deadline", "first_ms"), [(5.0, 3.0, 3_000), (3.0, 5.0, 3_000), (None, 3.0, 3_000), (2.5, None, 2_500)]
)
def test_what_comes_first_ends_the_run(wall: float | None, deadline: float | None, first_ms: int) -> None:
    hints = [error(429, "rate_limit_error", "", {"retry-after": "60"})]
    told = play(hints, limits=Limits(max_wall_s=wall), deadline_s=deadline)
    assert told.result.terminal == "deadline"
    assert told.log.genesis is not None
    assert told.log.genesis["deadline_ms"] == first_ms


def test_wall_time_ends_tools_that_hang() -> None:
    clock = FakeClock()

    async def hang(given: Any, ctx: Any) -> str:
        clock.advance(10)
        await asyncio.Event().wait()
        return "never"

    told = play(calls(1), tools=[tool_named("read", answer=hang)], limits=Limits(max_wall_s=9), clock=clock)
    assert told.result.terminal == "deadline"
    assert "interrupted, no effect" in told.last["content"][0]["content"]


# --- another model


def models(told: Play) -> list[tuple[str, str | None]]:
    begins = [effect.begin for effect in told.log.effects if effect.begin["class"] == "model"]
    return [(begin["model"], begin["differs"]) for begin in begins]


FIRST, OTHER = "claude-sonnet-4-5", "claude-haiku-4-5"


def test_after_two_overloads_in_a_row_the_fallback_model_is_asked_and_stays() -> None:
    script = [OVERLOADED, OVERLOADED, *calls(1), reply("Done.")]
    told = play(script, tools=[echo()], fallback_model=OTHER)
    assert models(told) == [(FIRST, None), (FIRST, None), (OTHER, "fallback_model"), (OTHER, None)]
    assert [request.body["model"] for request in told.api.requests] == [FIRST, FIRST, OTHER, OTHER]


@pytest.mark.parametrize(
    "trouble",
    [
        error(429, "rate_limit_error", ""),
        error(500, "api_error", ""),
        error(408, "timeout_error", ""),
    ],
)
def test_no_other_trouble_leads_to_the_fallback_model(trouble: Any) -> None:
    told = play([trouble] * 3 + [reply("Done.")], fallback_model=OTHER)
    assert {model for model, _ in models(told)} == {FIRST}


def test_a_refusal_never_leads_to_the_fallback_model() -> None:
    told = play([reply(stop="refusal")], fallback_model=OTHER)
    assert told.result.terminal == "refused"
    assert [request.body["model"] for request in told.api.requests] == [FIRST]


def test_thinking_of_the_first_model_is_not_shown_to_the_other() -> None:
    script = [reply(thinking("hm"), "I look.", tool_use("t1", "read", {})), OVERLOADED, OVERLOADED, reply("Done.")]
    told = play(script, tools=[echo()], fallback_model=OTHER, params={"thinking": {"type": "adaptive"}})
    assert [block["type"] for block in told.sent[1][1]["content"]] == ["thinking", "text", "tool_use"]
    assert [block["type"] for block in told.sent[-1][1]["content"]] == ["text", "tool_use"]


def test_a_turn_with_open_tools_that_lost_its_thinking_is_sent_with_thinking_off() -> None:
    """The API wants such a turn to begin with its thinking while thinking is on."""
    on = {"thinking": {"type": "enabled", "budget_tokens": 2_000}}
    script = [reply(thinking("hm"), tool_use("t1", "read", {})), OVERLOADED, OVERLOADED, reply("Done.")]
    told = play(script, tools=[echo()], fallback_model=OTHER, params=on)
    asked = [request.body["thinking"]["type"] for request in told.api.requests]
    assert asked == ["enabled", "enabled", "enabled", "disabled"]
    assert told.result.terminal == "answered"


def test_between_turns_thinking_stays_on_for_the_other_model() -> None:
    on = {"thinking": {"type": "enabled", "budget_tokens": 2_000}}
    told = play(
        [
            reply(thinking("hm"), "A first answer."),
            OVERLOADED,
            OVERLOADED,
            reply("Sure.", usage={"output_tokens": 9_500}),
        ],
        fallback_model=OTHER,
        params=on,
        limits=Limits(output_target=10_000),
    )
    assert [request.body["thinking"]["type"] for request in told.api.requests] == ["enabled"] * 4
    assert told.sent[-1][1]["content"] == [{"type": "text", "text": "A first answer."}]
