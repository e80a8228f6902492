"""Auto compact: one summary before the latest exchange; what is pending stays."""

import attrs
import pytest

from looplatch.recovery.compression.compact import compact, compaction_request
from looplatch.recovery.compression.edits import apply
from looplatch.recovery.compression.settings import Compression, ThinkingRule
from tests.histories import (
    Message,
    assistant,
    call,
    of_type,
    picture,
    result,
    step,
    steps,
    system,
    text,
    thinking,
    user,
)

SETTINGS = Compression()
OPENING = "[Summary of the conversation so far, which is no longer shown]"
SUMMARY = text(f"{OPENING}\nmuch was done")


def history(count: int = 4) -> list[Message]:
    return [user("do it"), *steps(count)]


def compacted(messages: list[Message], settings: Compression = SETTINGS) -> list[Message]:
    edits = compact(messages, "  much was done\n", settings)
    assert edits
    return apply(messages, edits)


def test_the_task_the_summary_and_the_latest_exchange_are_left() -> None:
    messages = history()
    assert compacted(messages) == [user(text("do it"), SUMMARY), *messages[-2:]]


def test_the_answer_and_the_prompt_that_follows_it_are_the_latest_exchange() -> None:
    messages = [*history(), assistant("half of the ans"), user("Go on exactly where it stopped.")]
    assert compacted(messages) == [user(text("do it"), SUMMARY), *messages[-2:]]


def test_an_answer_that_waits_stays_with_the_exchange_before_it() -> None:
    waiting = assistant(call("toolu_9"), call("toolu_10"))
    messages = [*history(), waiting]
    assert compacted(messages) == [user(text("do it"), SUMMARY), *messages[-3:]]


def test_a_second_summary_takes_the_place_of_the_first() -> None:
    messages = [*compacted(history()), *steps(3, first=20)]
    edited = apply(messages, compact(messages, "more was done", SETTINGS))
    assert edited[0] == user(text("do it"), text(f"{OPENING}\nmore was done"))


def test_the_same_again_makes_nothing_shorter() -> None:
    once = compacted(history())
    assert compact(once, "much was done", SETTINGS) == ()
    assert compaction_request(once, SETTINGS) == [], "there is nothing to ask for"


def test_a_summary_too_long_is_asked_for_again() -> None:
    messages = apply(history(99), compact(history(99), "word " * 5_000, SETTINGS))
    assert compaction_request(messages, SETTINGS) != []
    assert compaction_request(messages, Compression(summary_max_tokens=9_000)) == []


def test_a_summary_that_is_blank_or_makes_nothing_shorter_is_of_no_use() -> None:
    assert compact(history(), " \n ", SETTINGS) == ()
    assert compact(history(), "x" * 90_000, SETTINGS) == ()


def test_a_history_of_one_exchange_has_nothing_to_summarise() -> None:
    for messages in ([user("do it")], history(1), [user("x" * 90_000), *step(1, "y" * 90_000)]):
        assert compaction_request(messages, SETTINGS) == []
        assert compact(messages, "much was done", SETTINGS) == ()


def test_summaries_of_spans_are_taken_into_the_one() -> None:
    spans = [text("[Summary of steps that are no longer shown]\nthis and that " * 9) for _ in range(3)]
    messages = [user(text("do it"), *spans), *steps(1)]
    request = compaction_request(messages, SETTINGS)
    assert "this and that" in request[0]["content"][0]["text"]
    assert compacted(messages) == [user(text("do it"), SUMMARY), *messages[-2:]]


def test_a_long_task_is_cut() -> None:
    messages = [user("a" * 9_000 + "z" * 9_000, picture()), *steps(3)]
    task = compacted(messages)[0]["content"][0]["text"]
    assert task.startswith("a" * 3_000 + "\n[… ")
    assert task.endswith(" …]\n" + "z" * 1_000)


def test_a_task_of_a_picture_and_a_text_is_kept_when_it_is_small() -> None:
    messages = [user("what is this?", picture()), *steps(3)]
    assert compacted(messages)[0] == user("what is this?", picture(), SUMMARY)


def test_messages_of_the_role_system_stay() -> None:
    messages = [user("do it"), *steps(2), system("note"), *steps(2, first=9)]
    assert compacted(messages) == [user(text("do it"), SUMMARY), system("note"), *messages[-2:]]


def test_the_request_tells_of_everything_before_the_latest_exchange() -> None:
    words = compaction_request(history(), SETTINGS)[0]["content"][0]["text"]
    assert "[user]\ndo it" in words
    assert all(f"result {number} " in words for number in (1, 2, 3))
    assert "result 4 " not in words


def test_the_request_keeps_within_its_budget() -> None:
    request = compaction_request([user("do it"), *steps(60)], SETTINGS, budget_tokens=3_000)
    assert len(request[0]["content"][0]["text"]) < 4 * 3_000 + 60 * 40 + 1_500


# --- thinking

STILL_OPEN = [
    *history(),
    assistant(thinking("so"), text("I look."), call("toolu_9", "read", path="a")),
    user(result("toolu_9", [text("what a holds"), picture()]), text("quick!")),
]


@pytest.mark.parametrize("rule", ["drop", "keep"])
def test_an_exchange_whose_thinking_is_bound_is_quoted_whole(rule: ThinkingRule) -> None:
    quote = '[The latest step, quoted]\n[assistant]\nI look.\n[assistant calls read]\n{"path":"a"}\n'
    quote += "[result of read]\nwhat a holds\n[image]"
    edited = compacted(STILL_OPEN, attrs.evolve(SETTINGS, thinking=rule))
    assert edited == [user(text("do it"), SUMMARY, text(quote), picture(), text("quick!"))]


def test_a_quoted_exchange_is_summarised_like_any_other_later() -> None:
    messages = [*compacted(STILL_OPEN), *steps(1, first=30)]
    words = compaction_request(messages, SETTINGS)[0]["content"][0]["text"]
    assert "what a holds" in words
    assert "quick!" in words
    assert compacted(messages) == [user(text("do it"), SUMMARY), *messages[-2:]]


def test_thinking_stays_where_the_api_drops_what_does_not_match() -> None:
    edited = compacted(STILL_OPEN, attrs.evolve(SETTINGS, thinking="drop_block"))
    assert edited == [user(text("do it"), SUMMARY), *STILL_OPEN[-2:]]


def test_thinking_of_an_answer_that_was_said_something_else_to_is_dropped() -> None:
    messages = [*history(), assistant(thinking("so"), text("done")), user("and that")]
    assert compacted(messages) == [user(text("do it"), SUMMARY), assistant(text("done")), user("and that")]


def test_an_answer_of_thinking_alone_goes_where_it_cannot_stay() -> None:
    messages = [*history(), assistant({"type": "redacted_thinking", "data": "x"}), user("and that")]
    assert compacted(messages) == [user(text("do it"), SUMMARY, text("and that"))]


def test_nothing_is_summarised_before_the_thinking_of_an_answer_that_waits() -> None:
    messages = [*history(), assistant(thinking("so"), call("toolu_9"))]
    for rule in ("drop", "keep"):
        settings = attrs.evolve(SETTINGS, thinking=rule)
        assert compaction_request(messages, settings) == []
        assert compact(messages, "much was done", settings) == ()
    assert compacted(messages, attrs.evolve(SETTINGS, thinking="drop_block"))[-3:] == messages[-3:]


def test_thinking_before_the_summary_goes_with_what_it_belongs_to() -> None:
    messages = [
        user("do it"),
        assistant(thinking("so"), call("toolu_9")),
        user(result("toolu_9", "x" * 900)),
        *steps(2, first=20),
    ]
    edited = compacted(messages)
    assert of_type(edited, "thinking") == []
    assert edited[1:] == messages[-2:]


def test_a_compaction_of_the_apis_own_in_the_latest_answer_makes_ours_useless() -> None:
    signed = {"type": "compaction", "content": "what was", "signature": "s"}
    messages = [*history(), assistant(signed, call("toolu_9")), user(result("toolu_9"))]
    assert compaction_request(messages, SETTINGS) == []
    assert compact(messages, "much was done", SETTINGS) == ()
