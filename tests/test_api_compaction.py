"""The API's own compaction: what is sent for it, where its signed block goes, and what follows where it is refused."""

from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from looplatch import Compression, Limits
from looplatch.recovery.compression.compact import compact_signed, compacted_messages
from looplatch.recovery.compression.edits import apply
from looplatch.recovery.compression.markers import QUOTE_OPENING
from looplatch.recovery.validity import history_problems
from looplatch.testing import Answer, block, error, failing, refusal, reply
from looplatch.testing.issued import Issued
from tests import histories
from tests.playing import use
from tests.recovering import SUMMARY, WINDOW, Item, Model, effects, files, levels, meet, moves, reads

BETA = "compact-2026-09-04"
SAID = "All files so far were read; they hold lines."
COMPACTING = Compression(api_compaction=True, snip_at=None, micro_at=None, collapse_at=None)
MANY = Limits(max_turns=100)


class Compacting(Model):
    """A model whose API compacts, as `blocks` say; the last one again and again."""

    def __init__(self, answers: Iterable[Item], blocks: Sequence[Item | None] = (None,)) -> None:
        super().__init__(answers)
        self._blocks = list(blocks)
        self.bodies: list[dict[str, Any]] = []

    def __call__(self, body: dict[str, Any]) -> Answer:
        if "compaction" not in body:
            return super().__call__(body)
        self.bodies.append(body)
        item = self._blocks.pop(0) if len(self._blocks) > 1 else self._blocks[0]
        if item is None:
            return reply(block(signed(len(self.bodies))), stop="compaction")
        return item(body) if callable(item) else item


def signed(number: int, said: str | None = SAID) -> dict[str, Any]:
    return {"type": "compaction", "content": said, "signature": f"signature-{number}"}


def compacted(**options: Any) -> tuple[Compacting, Any]:
    """A run of ten reads of 1,000 tokens each: more than a window of 20,000 takes beside an answer of 8,000."""
    model = Compacting([*reads(10), reply("Done.")], options.pop("blocks", (None,)))
    given: dict[str, Any] = {"tools": [files(4_000)], "window": WINDOW, "compression": COMPACTING, "limits": MANY}
    return model, meet(model, **{**given, **options})


def test_the_block_comes_first_and_the_latest_exchange_stays_as_it_was() -> None:
    model, told = compacted()
    [body] = model.bodies
    [event] = moves(told, "HistoryCompressed")
    assert event["fields"]["level"] == "compact"
    after = next(request for request in told.api.requests if request.messages[0]["role"] == "assistant").messages
    assert after[0] == {"role": "assistant", "content": [signed(1)]}
    latest = len(body["messages"]) // 2
    assert after[1:2] == [{"role": "assistant", "content": [use(f"t{latest}", "read", path=f"f{latest}")]}]
    assert [part["tool_use_id"] for part in after[2]["content"]] == [f"t{latest}"]
    assert len(after) == 3


def test_what_is_compacted_is_sent_as_it_is_without_what_would_shape_an_answer() -> None:
    params = {
        "temperature": 0.3,
        "stop_sequences": ["END"],
        "tool_choice": {"type": "any"},
        "output_config": {"effort": "low", "format": {"type": "json_schema"}},
        "betas": ["mine-1"],
    }
    model, told = compacted(system="Be brief.", params=params)
    [body] = model.bodies
    assert body["compaction"] == {"type": "summarize"}
    assert body["system"] == "Be brief."
    assert body["output_config"] == {"effort": "low"}
    assert body["max_tokens"] == 8_000
    assert body["messages"][-1]["role"] == "user"
    assert "stop_sequences" not in body
    assert "tool_choice" not in body
    [request] = [request for request in told.api.requests if "compaction" in request.body]
    assert request.headers["anthropic-beta"] == f"mine-1,{BETA}"
    assert request.query == "beta=true"
    before = told.api.requests[told.api.requests.index(request) - 1]
    assert body["messages"][: len(before.messages)] == before.messages[: len(body["messages"])]


def test_requests_after_it_have_the_beta_that_the_block_needs_and_those_before_have_not() -> None:
    _, told = compacted()
    talk = [request for request in told.api.requests if "compaction" not in request.body]
    for request in talk:
        first = request.messages[0]["role"]
        assert request.headers.get("anthropic-beta") == (BETA if first == "assistant" else None)


def test_a_second_compaction_takes_the_place_of_the_first() -> None:
    model = Compacting([*reads(24), reply("Done.")])
    told = meet(model, tools=[files(4_000)], window=WINDOW, compression=COMPACTING, limits=MANY)
    assert len(model.bodies) >= 2
    assert model.bodies[1]["messages"][0] == {"role": "assistant", "content": [signed(1)]}
    assert told.run.messages[0] == {"role": "assistant", "content": [signed(len(model.bodies))]}


def test_it_is_a_summary_of_the_log_that_the_api_wrote_and_what_it_cost_is_counted() -> None:
    usage = {
        "input_tokens": 11,
        "output_tokens": 3,
        "iterations": [{"type": "compaction", "input_tokens": 9_000, "output_tokens": 200}],
    }
    _, told = compacted(blocks=[reply(block(signed(1)), stop="compaction", usage=usage)])
    [(begin, end)] = effects(told, "summary")
    assert (begin["by"], begin["level"], begin["model"]) == ("api", "compact", "claude-sonnet-4-5")
    assert end is not None
    assert (end["outcome"], end["usage"]["input_tokens"], end["usage"]["output_tokens"]) == ("ok", 9_011, 203)
    [event] = moves(told, "HistoryCompressed")
    assert (event["fields"]["input_tokens"], event["fields"]["output_tokens"]) == (9_011, 203)


@pytest.mark.parametrize(
    ("refused", "tries"),
    [
        (error(400, "invalid_request_error", "compaction: Extra inputs are not permitted"), 1),
        (error(404, "not_found_error", "no"), 1),
        (error(400, "invalid_request_error", "prompt is too long: 30000 tokens > 20000 maximum"), 2),
        (reply(block(signed(1, None)), stop="compaction"), 1),
        (reply("I cannot do that."), 1),
        (error(529, "overloaded_error", "compaction unavailable"), 2),
        (failing(reply(block(signed(1)), stop="compaction"), after=2), 2),
    ],
)
def test_where_it_is_refused_the_model_writes_the_summary_and_it_is_asked_again_only_if_it_may_succeed(
    refused: Answer, tries: int
) -> None:
    model = Compacting([*reads(24), reply("Done.")], [refused])
    told = meet(model, tools=[files(4_000)], window=WINDOW, compression=COMPACTING, limits=MANY)
    assert told.result.terminal == "answered"
    assert levels(told)
    assert set(levels(told)) == {"compact"}
    assert len(model.asked) == len(levels(told)), "each time the model wrote it"
    assert (len(model.bodies) == 1) is (tries == 1)
    assert SUMMARY in str(told.run.messages[0])
    ways = [begin["by"] for begin, _ in effects(told, "summary")]
    assert ways[:2] == ["api", "model"]


def test_both_attempts_are_paid_for() -> None:
    """The tokens of the refused one are in the event, too, or the log would not verify."""
    refused = reply(block(signed(1, None)), stop="compaction", usage={"input_tokens": 7_000, "output_tokens": 0})
    _, told = compacted(blocks=[refused])
    [event] = moves(told, "HistoryCompressed")
    assert event["fields"]["input_tokens"] > 7_000


def test_after_an_overflow_it_is_the_apis_as_well() -> None:
    """The server's window is smaller than the loop believes."""
    model = Compacting([*reads(30), reply("Done.")])
    told = meet(model, tools=[files(4_000)], compression=COMPACTING, limits=MANY, api={"window": WINDOW})
    assert "reactive_compact_retry" in told.log.reasons
    ways = [(begin["by"], end is not None and end["outcome"] == "ok") for begin, end in effects(told, "summary")]
    assert set(ways) == {("api", True)}
    assert told.result.terminal == "answered"


# --- the edit by itself


def test_a_block_takes_the_place_of_all_before_the_latest_exchange() -> None:
    messages = [histories.user("Do it."), *histories.steps(3)]
    assert compacted_messages(messages, Compression()) == messages[:-2]
    after = apply(messages, compact_signed(messages, signed(1), Compression()))
    assert after == [{"role": "assistant", "content": [signed(1)]}, *messages[-2:]]
    assert accepted(after)


def test_thinking_that_must_stay_as_it_was_is_quoted_behind_the_block() -> None:
    thoughtful = histories.assistant(histories.thinking("hm"), histories.call("c9", path="x"))
    latest = [thoughtful, histories.user(histories.result("c9", "found it"))]
    messages = [histories.user("Do it."), *histories.steps(3), *latest]
    after = apply(messages, compact_signed(messages, signed(1), Compression()))
    assert [message["role"] for message in after] == ["assistant", "user"]
    assert after[1]["content"][0]["text"].startswith(QUOTE_OPENING)
    assert "found it" in after[1]["content"][0]["text"]
    assert accepted(after)


def test_nothing_is_compacted_where_there_is_nothing_before_the_latest_exchange() -> None:
    messages = [histories.user("Do it."), *histories.step(1)]
    assert compacted_messages(messages, Compression()) == ()
    assert compact_signed(messages, signed(1), Compression()) == ()


def accepted(messages: list[dict[str, Any]]) -> bool:
    issued = Issued()
    issued.learn_blocks([signed(1)])
    body = {"model": "m", "max_tokens": 10, "messages": messages}
    return refusal(body, issued=issued) is None and list(history_problems(messages)) == []
