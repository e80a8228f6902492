"""When the API is asked how large a model is and how many tokens there are, and what a run makes of its answers."""

import asyncio
from typing import Any

import pytest

from looplatch import Compression, Limits, Loop, ResultMessage, Run
from looplatch.compressing.gauge import WORTH_ASKING
from looplatch.requests.request import RequestParts
from looplatch.states.record import Record
from looplatch.testing import Answer, FakeClock, ScriptedAPI, error, raw, reply, stalled, tool_use
from tests.playing import Play, check_log, rounds, saying
from tests.recovering import WINDOW, effects, meet, moves

NEW = "claude-of-tomorrow"
MANY = Limits(max_turns=200)
COUNTING = Compression(count_tokens=True)


def reading(count: int, size: int = 1_000) -> dict[str, Any]:
    """A script of `count` reads, with a tool whose results have `size` bytes."""
    calls = [reply(tool_use(f"t{number}", "read", {"n": number})) for number in range(count)]
    return {"answers": [*calls, reply("Done.")], "tools": [saying("read", "a line\n" * (size // 7))], "limits": MANY}


def ready(play: Play) -> list[Record]:
    return moves(play, "ContextReady")


async def drained(run: Run) -> ResultMessage:
    return await run


# --- the model's size


def test_the_api_is_asked_once_the_history_is_large_enough_to_matter_and_once_only() -> None:
    """8,000 tokens of an answer and a prompt of as many are worth it; ten results of 4,000 bytes make it so."""
    told = meet(
        **reading(12, 4_000), model=NEW, api={"models": {NEW: {"max_input_tokens": WINDOW, "max_tokens": 9_000}}}
    )
    [request] = told.api.asked
    assert (request.method, request.path) == ("GET", f"/v1/models/{NEW}")
    windows = [move["fields"]["window"] for move in ready(told)]
    first = windows.index(WINDOW)
    assert windows == [None] * first + [WINDOW] * (len(windows) - first)
    before = [move["fields"]["tokens"] for move in ready(told)][:first]
    assert 5 < first < 10
    assert max(before) < WORTH_ASKING


def test_what_the_api_says_of_the_model_is_an_effect_of_the_log() -> None:
    told = meet(
        **reading(12, 4_000), model=NEW, api={"models": {NEW: {"max_input_tokens": WINDOW, "max_tokens": 9_000}}}
    )
    [(begin, end)] = effects(told, "size")
    assert begin["model"] == NEW
    assert end is not None
    assert (end["outcome"], end["window"], end["output"]) == ("ok", WINDOW, 9_000)


def test_an_endpoint_that_does_not_know_leaves_the_window_unknown_and_is_not_asked_again() -> None:
    told = meet(**reading(15, 4_000), model=NEW)
    assert len(told.api.asked) == 1
    assert {move["fields"]["window"] for move in ready(told)} == {None}
    [(_, end)] = effects(told, "size")
    assert end is not None
    assert (end["outcome"], end["window"], end["output"]) == ("not_found_error", None, None)


@pytest.mark.parametrize("known", [{"model": "claude-sonnet-4-5"}, {"model": NEW, "window": 500_000}])
def test_a_model_whose_window_is_known_is_not_asked_about(known: dict[str, Any]) -> None:
    told = meet(**reading(15, 4_000), **known)
    assert told.api.asked == []


def test_a_cut_answer_asks_how_much_the_model_writes_before_it_asks_for_more() -> None:
    """The window was given, so only the output limit is of interest."""
    models = {NEW: {"max_input_tokens": 1, "max_tokens": 9_000}}
    told = meet([reply("Par", stop="max_tokens"), reply("Part.")], model=NEW, window=500_000, api={"models": models})
    assert [request.body["max_tokens"] for request in told.api.requests] == [8_000, 9_000]
    assert len(told.api.asked) == 1
    assert ready(told)[-1]["fields"]["window"] == 500_000


def test_a_model_that_writes_no_more_than_was_asked_for_is_not_asked_for_more() -> None:
    models = {NEW: {"max_input_tokens": 500_000, "max_tokens": 4_000}}
    script = [reply("Par", stop="max_tokens"), reply("t one.")]
    told = meet(script, model=NEW, max_tokens=4_000, api={"models": models})
    assert [move.strategy for move in moves(told, "TroubleNamed")] == ["max_output_tokens_recovery"]


# --- counting


def test_tokens_are_counted_where_the_estimate_may_be_on_the_wrong_side_of_a_threshold() -> None:
    """Each result is 1,000 tokens: what is new is in doubt by half, and thresholds are 2,000 apart."""
    told = meet(**reading(8, 4_000), window=WINDOW, compression=COUNTING)
    assert 0 < len(told.api.counted) < len(told.api.requests)
    sizes = [move["fields"]["tokens"] for move in ready(told)]
    assert [size for size in sizes if size < 0.5 * WINDOW] != [], "small requests are not counted"
    for begin, end in effects(told, "count"):
        assert end is not None
        assert (begin["model"], end["outcome"]) == ("claude-sonnet-4-5", "ok")
        assert end["tokens"] > 0


def test_what_was_counted_is_what_the_request_has() -> None:
    """The server counts twice what four bytes a token would make; the estimate alone would be far too low."""

    def twice(body: dict[str, Any]) -> int:
        return len(str(body["messages"])) // 2

    api: dict[str, Any] = {"count": twice}
    told = meet(**reading(3, 8_000), window=40_000, compression=COUNTING, api=api)
    [(_, end), *_] = effects(told, "count")
    assert end is not None
    counted = end["tokens"]
    assert counted + 8_000 in [move["fields"]["tokens"] for move in ready(told)]


def test_a_count_asks_for_the_prompt_and_nothing_else() -> None:
    told = meet(
        **reading(8, 4_000),
        window=WINDOW,
        compression=COUNTING,
        system="Be brief.",
        params={"temperature": 0.5, "metadata": {"user_id": "u"}, "stop_sequences": ["END"]},
    )
    first = told.api.counted[0]
    assert set(first.body) == {"model", "messages", "system", "tools"}
    assert first.body["messages"] in [request.messages for request in told.api.requests]


@pytest.mark.parametrize(
    ("answer", "counts"),
    [
        (error(404, "not_found_error", "no such path"), 1),
        (raw(b"{}", headers={"content-type": "application/json"}), 2),
        (error(529, "overloaded_error", "later"), 2),
    ],
)
def test_a_count_that_fails_leaves_the_estimate_and_is_asked_again_only_if_it_may_succeed(
    answer: Answer, counts: int
) -> None:
    told = meet(**reading(8, 4_000), window=WINDOW, compression=COUNTING, api={"counting": answer})
    assert told.result.terminal == "answered"
    assert (len(told.api.counted) > 1) is (counts > 1)
    assert all(end is not None and end["tokens"] is None for _, end in effects(told, "count"))
    plain = meet(**reading(8, 4_000), window=WINDOW)
    assert [move["fields"] for move in ready(told)] == [move["fields"] for move in ready(plain)]


def test_nothing_is_counted_unless_it_was_asked_for() -> None:
    assert meet(**reading(8, 4_000), window=WINDOW).api.counted == []


def test_a_run_that_is_aborted_while_it_counts_ends_and_says_so() -> None:
    async def main() -> None:
        gate = asyncio.Event()
        script = reading(8, 4_000)
        counting = stalled(error(529, "overloaded_error", ""), after=0, gate=gate)
        api = ScriptedAPI(script["answers"], counting=counting)
        async with api.client() as client:
            loop = Loop(
                model="claude-sonnet-4-5",
                client=client,
                clock=FakeClock(),
                window=WINDOW,
                compression=COUNTING,
                tools=script["tools"],
            )
            async with loop.run("Go.") as run:
                pulling = asyncio.ensure_future(drained(run))
                while not api.counted:
                    await rounds()
                run.abort()
                result = await pulling
            assert result.terminal == "aborted"
            check_log(run)
            [count] = [effect for effect in run.log.effects if effect.begin["class"] == "count"]
            assert count.end is not None
            assert count.end["outcome"] == "interrupted"

    asyncio.run(main())


# --- what a request has beside the messages


def test_system_prompt_and_tools_are_part_of_the_first_estimate() -> None:
    told = meet([reply("Done.")], system="word " * 4_000, window=WINDOW)
    [move] = ready(told)
    assert move["fields"]["tokens"] - 8_000 > 5_000


def test_the_weight_of_the_parts_is_that_of_system_and_tools() -> None:
    parts = RequestParts(model="m", system="abcd", tools=({"name": "t"},), params={"temperature": 1})
    assert parts.weight == len('"abcd"') + len('[{"name":"t"}]')
