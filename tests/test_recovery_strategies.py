"""Each strategy alone, each pair of them in a row, and all six in one run."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from attrs import field, frozen

from looplatch import Block, Compression, Hooks, Limits, Pass
from looplatch.hooks import StopContext
from looplatch.recovery.failure import Failure
from looplatch.recovery.strategies.max_output_tokens_recovery import GO_ON
from looplatch.recovery.strategies.token_budget_continuation import budget_prompt
from looplatch.testing import error, reply, tool_use
from tests.playing import Play, assistant, echo, play, result, use, user
from tests.recovering import SUMMARY, Item, Model, files, levels, meet, moves, reads, strategies, transcript_in

GO = user("Go.")
TOO_LONG = error(400, "invalid_request_error", "prompt is too long")  # without figures: nothing was measured
CUT = reply("Par", stop="max_tokens")
UNSURE = "I think that is all."
ENOUGH = {"output_tokens": 9_500}
MANY = Limits(max_turns=200)
STAGING = Compression(snip_at=None, micro_at=None, stage_at=0.3, collapse_at=1.0, compact_at=1.0)

DRAIN, COMPACT, ESCALATE, RECOVER, HOOK, BUDGET = ALL = (
    "collapse_drain_retry",
    "reactive_compact_retry",
    "max_output_tokens_escalate",
    "max_output_tokens_recovery",
    "stop_hook_blocking",
    "token_budget_continuation",
)


def hooks() -> Hooks:
    """A stop hook that blocks an answer which is not sure."""

    async def check(context: StopContext) -> Pass | Block:
        return Block("Check it.") if context.text == UNSURE else Pass()

    return Hooks(stop=[check])


@frozen
class Acts:
    """Makes the parts of a script, each of which needs one strategy; the ids of calls never repeat."""

    _numbers: Any = field(factory=itertools.count)

    def reads(self, count: int) -> list[Item]:
        return [item for _ in range(count) for item in reads(1, first=next(self._numbers))]

    def sealed_cut(self) -> Item:
        number = next(self._numbers)
        return reply(
            tool_use(f"t{number}", "read", {"path": f"f{number}"}),
            tool_use(f"cut{number}", "read", '{"path": "x'),
            stop="max_tokens",
        )

    def act(self, strategy: str, before: str = "") -> list[Item]:
        """`before`: what was needed just before; what is drained in a turn is not drained again in it."""
        made: dict[str, Callable[[], list[Item]]] = {
            DRAIN: lambda: [*self.reads(8), TOO_LONG],  # by then a span of them is summarised
            COMPACT: lambda: [TOO_LONG] if before == DRAIN else [*self.reads(2), TOO_LONG],
            ESCALATE: lambda: [CUT],
            RECOVER: lambda: [self.sealed_cut()],
            HOOK: lambda: [reply(UNSURE)],
            BUDGET: lambda: [reply("A first part.")],
        }
        return made[strategy]()


def acted(*wanted: str) -> Play:
    acts = Acts()
    script = [
        item for before, strategy in zip(("", *wanted), wanted, strict=False) for item in acts.act(strategy, before)
    ]
    target = 10_000 if BUDGET in wanted else None
    return meet(
        [*script, reply("All is done.", usage=ENOUGH)],
        tools=[files(3_000)],
        window=40_000,
        compression=STAGING,
        hooks=hooks(),
        limits=Limits(max_turns=200, output_target=target),
    )


@pytest.mark.parametrize("wanted", [*itertools.permutations(ALL, 2), ALL, tuple(reversed(ALL))], ids=" ".join)
def test_strategies_follow_one_another(wanted: tuple[str, ...]) -> None:
    told = acted(*wanted)
    assert strategies(told) == list(wanted)
    assert told.result.terminal == "answered"


def test_all_six_reasons_occur_in_one_run() -> None:
    assert set(acted(*ALL).log.reasons) == {"next_turn", *ALL} - {ESCALATE}


# --- each alone, step by step


def test_drain_what_was_staged_takes_the_place_of_its_span_and_the_request_is_made_anew() -> None:
    acts = Acts()
    model = Model([*acts.act(DRAIN), reply("Done.")])
    told = meet(model, tools=[files(3_000)], window=40_000, compression=STAGING, limits=MANY)
    assert told.moves[-6:] == [
        "ModelFailed > recover",
        "TroubleNamed > prepare: collapse_drain_retry (collapse_drain_retry)",
        "ContextReady > stream",
        "ModelResponded > decide",
        "AnswerGiven",
        "StopHooksPassed > completed: answered",
    ]
    refused, again = [sent for sent in told.sent if transcript_in({"messages": sent}) is None][-2:]
    assert len(again) < len(refused)
    assert again[-5:] == refused[-5:], "the newest two exchanges and the message before them"
    assert SUMMARY in str(again[0])
    [move] = [move for move in told.log.transitions if move.strategy is not None]
    assert dict(map(tuple, move["guards"]))["collapses_staged"] is True
    assert move["fields"]["staged"] == 1
    assert len(model.asked) == 1, "draining costs no call"


def test_compact_one_summary_is_written_and_the_request_is_made_anew() -> None:
    model = Model([*reads(3), TOO_LONG, reply("Done.")])
    told = meet(model, tools=[files(3_000)], compression=STAGING)
    assert told.moves[-7:] == [
        "ModelFailed > recover",
        "TroubleNamed",
        "HistorySummarised > prepare: reactive_compact_retry (reactive_compact_retry)",
        "ContextReady > stream",
        "ModelResponded > decide",
        "AnswerGiven",
        "StopHooksPassed > completed: answered",
    ]
    refused, _, again = told.sent[-3:]
    assert again == [
        user({"type": "text", "text": "Go."}, {"type": "text", "text": again[0]["content"][1]["text"]}),
        *refused[-2:],
    ]
    assert again[0]["content"][1]["text"].endswith(SUMMARY)
    [move] = moves(told, "HistorySummarised")
    assert 0 < move["fields"]["tokens_after"] < move["fields"]["tokens_before"]


def test_escalate_the_same_request_is_sent_with_the_higher_limit_and_the_cut_answer_is_gone() -> None:
    told = play([CUT, reply("Part one.")])
    assert told.moves[2:5] == [
        "ModelResponded > decide",
        "OutputTruncated > recover",
        "TroubleNamed > prepare: max_output_tokens_recovery (max_output_tokens_escalate)",
    ]
    assert told.sent == [[GO], [GO]]
    assert [request.body["max_tokens"] for request in told.api.requests] == [8_000, 64_000]
    assert told.run.messages == [GO, assistant("Part one.")]


def test_recover_the_text_is_kept_and_the_model_is_asked_to_go_on_and_no_cut_call_runs() -> None:
    cut = reply("Part one,", tool_use("t1", "read", '{"path": "a'), stop="max_tokens")
    told = play([cut, reply("part two.")], max_tokens=64_000, tools=[echo()])
    assert told.moves[3:5] == [
        "OutputTruncated > recover",
        "TroubleNamed > prepare: max_output_tokens_recovery (max_output_tokens_recovery)",
    ]
    assert told.sent[1] == [GO, assistant("Part one,"), user({"type": "text", "text": GO_ON})]
    assert told.run.messages == [*told.sent[1], assistant("part two.")]


def test_recover_a_sealed_turn_is_not_asked_for_again_with_a_higher_limit() -> None:
    told = meet([Acts().sealed_cut(), reply("Done.")], tools=[echo()])
    assert [request.body["max_tokens"] for request in told.api.requests] == [8_000, 8_000]
    answered = told.sent[1][2]["content"]
    assert answered == [result("t0", 'read {"path":"f0"}'), {"type": "text", "text": GO_ON}]
    assert told.sent[1][1] == assistant(use("t0", "read", path="f0"))


def test_hook_its_reason_is_told_to_the_model() -> None:
    told = play([reply(UNSURE), reply("Sure.")], hooks=hooks())
    assert told.moves[3:6] == [
        "AnswerGiven",
        "StopHooksBlocked > recover",
        "TroubleNamed > prepare: stop_hook_blocking (stop_hook_blocking)",
    ]
    assert told.sent[1] == [GO, assistant(UNSURE), user({"type": "text", "text": "Check it."})]


def test_budget_the_model_is_told_how_much_is_still_to_come() -> None:
    told = play(
        [reply("A.", usage={"output_tokens": 800}), reply("B.", usage=ENOUGH)], limits=Limits(output_target=10_000)
    )
    assert told.moves[3:6] == [
        "AnswerGiven",
        "StopHooksPassed > recover",
        "TroubleNamed > prepare: token_budget_continuation (token_budget_continuation)",
    ]
    assert told.sent[1] == [GO, assistant("A."), user({"type": "text", "text": budget_prompt(800, 10_000)})]


# --- the window that the API has measured


def test_what_the_api_measured_lowers_the_window_for_good() -> None:
    """The loop believes in 200,000; the API says 20,000, and from then on the levels keep the history below that."""
    told = meet([*reads(60), reply("Done.")], tools=[files(3_000)], limits=MANY, api={"window": 20_000})
    windows = [move["fields"]["window"] for move in moves(told, "ContextReady")]
    first = windows.index(20_000)
    assert windows == [200_000] * first + [20_000] * (len(windows) - first)
    assert len(told.api.refusals) == 1
    assert levels(told)


def test_an_escalation_that_the_window_does_not_allow_is_lowered_to_what_it_leaves_and_nothing_is_lost() -> None:
    told = meet([*reads(2), CUT, reply("Part one.")], tools=[files(3_000)], api={"window": 20_000})
    limits = [request.body["max_tokens"] for request in told.api.requests]
    assert limits[:4] == [8_000, 8_000, 8_000, 64_000]
    assert 8_000 < limits[4] < 20_000
    assert told.sent[3] == told.sent[4] == told.sent[2]
    assert strategies(told) == [ESCALATE]
    assert told.clock.slept == [0]
    begins = [effect.begin for effect in told.log.effects if effect.begin["class"] == "model"]
    assert [begin["differs"] for begin in begins] == [None, None, None, None, "max_tokens"]


def test_an_answer_that_met_the_end_of_the_window_has_measured_it() -> None:
    full = reply("And so", stop="model_context_window_exceeded", usage={"input_tokens": 12_000, "output_tokens": 3_000})
    told = meet([*reads(3), full, reply("Done.")], tools=[files(3_000)])
    assert strategies(told) == [COMPACT]
    assert moves(told, "ContextReady")[-1]["fields"]["window"] == 15_000


@pytest.mark.parametrize("status", [400, 413])
def test_an_overflow_without_figures_is_one_all_the_same(status: int) -> None:
    kind = "invalid_request_error" if status == 400 else "request_too_large"
    told = meet(
        [*reads(3), error(status, kind, "Input is too long for requested model."), reply("Done.")], tools=[files(900)]
    )
    assert strategies(told) == [COMPACT]
    assert moves(told, "ContextReady")[-1]["fields"]["window"] == 200_000


def test_a_result_that_is_a_little_too_much_is_cut_by_that_where_there_is_nothing_to_summarise() -> None:
    """The API counts two tokens more than the window has, and the result is far from a half of it."""
    over = error(
        400,
        "invalid_request_error",
        "input length and `max_tokens` exceed context limit: 6502 + 1500 > 8000, decrease input length or `max_tokens`",
    )
    told = meet([*reads(1), over, reply("Done.")], tools=[files(6_000)], window=8_000, max_tokens=1_500)
    assert strategies(told) == [COMPACT]
    assert told.result.terminal == "answered"
    before, after = (request[2]["content"][0]["content"] for request in told.sent[-2:])
    assert "tokens left out" in after
    assert 5_000 < len(after) < len(before)


def test_the_caller_may_say_what_a_prompt_too_long_is() -> None:
    """An endpoint that says it in words of its own: without the caller's predicate, the run fails."""

    def is_overflow(failure: Failure) -> bool:
        return failure.message == "zu lang"

    script = [*reads(3), error(400, "invalid_request_error", "zu lang")]
    told = meet([*script, reply("Done.")], tools=[files(900)], is_overflow=is_overflow)
    assert strategies(told) == [COMPACT]
    assert told.result.terminal == "answered"
    assert meet(script, tools=[files(900)]).result.terminal == "model_error"


def test_results_too_big_for_the_real_window_are_cut_where_there_is_nothing_to_summarise() -> None:
    """The first tools bring four times 5,000 tokens, and the API takes 20,000 in all."""
    calls = [tool_use(f"t{number}", "read", {"path": f"f{number}"}) for number in range(4)]
    told = meet([reply(*calls), reply("Done.")], tools=[files(20_000)], api={"window": 20_000})
    assert strategies(told) == [COMPACT]
    assert told.result.terminal == "answered"
    [move] = moves(told, "HistorySummarised")
    assert move["fields"]["output_tokens"] == 0, "no model was asked"
    assert all("the full text is kept as" in block["content"] for block in told.sent[-1][2]["content"])
