"""Context collapse: spans are chosen, their summaries staged, found again after other edits, and applied."""

from collections.abc import Callable

import attrs
import pytest

from looplatch.recovery.compression.collapse import Span, Staged, anchored, drain, moved, next_span, summary_request
from looplatch.recovery.compression.edits import Edit, apply
from looplatch.recovery.compression.exchanges import outline
from looplatch.recovery.compression.micro import micro
from looplatch.recovery.compression.settings import Compression
from looplatch.recovery.compression.snip import snip
from tests.histories import Message, assistant, call, of_type, result, step, steps, system, text, thinking, user

SETTINGS = Compression(span_exchanges=3, keep_exchanges=2)
OPENING = "[Summary of steps that are no longer shown]"


def history(count: int) -> list[Message]:
    return [user("do it"), *steps(count)]


def stage(messages: list[Message], settings: Compression = SETTINGS) -> list[Staged]:
    """Summaries of all spans there are, named by number."""
    staged: list[Staged] = []
    while (span := next_span(messages, settings, staged)) is not None:
        staged.append(Staged(span=span, summary=f"summary {len(staged) + 1}"))
    return staged


def found(messages: list[Message], staged: list[Staged]) -> tuple[Staged, ...]:
    return anchored(messages, outline(messages), staged)


def where(staged: list[Staged] | tuple[Staged, ...]) -> list[tuple[int, int]]:
    return [(one.span.start, one.span.stop) for one in staged]


# --- which spans


def test_spans_take_whole_exchanges_from_the_oldest_on_and_leave_the_newest() -> None:
    assert where(stage(history(11))) == [(1, 7), (7, 13), (13, 19)]
    assert where(stage(history(10))) == [(1, 7), (7, 13)], "the third would be short of an exchange"


def test_a_group_of_parallel_calls_is_one_exchange() -> None:
    group = [
        assistant(call("toolu_91")),
        assistant(call("toolu_92")),
        user(result("toolu_91", "x" * 900)),
        user(result("toolu_92", "x" * 900)),
    ]
    assert where(stage([user("do it"), *group, *steps(4)])) == [(1, 9)]


def test_a_span_that_would_save_too_little_takes_more() -> None:
    small = [message for number in range(12) for message in step(number, "ok")]
    spans = where(stage([user("do it"), *small, *steps(2, first=90)]))
    assert spans[0][0] == 1
    assert spans[0][1] > 7


def test_no_span_has_a_system_message_in_it() -> None:
    messages = [user("do it"), *steps(4), system("note"), *steps(7, first=50)]
    assert where(stage(messages)) == [(1, 7), (12, 18)], "right behind the note, no user message goes before"


def test_nothing_is_staged_that_may_not_be_edited_now() -> None:
    messages = [*history(8), assistant(thinking("so"), call("toolu_9")), user(result("toolu_9"))]
    assert next_span(messages, SETTINGS) is None
    assert next_span(messages, attrs.evolve(SETTINGS, thinking="drop_block")) is not None


# --- the request


def test_the_request_for_a_summary_is_a_transcript_that_needs_no_tools() -> None:
    messages = [
        user("do it"),
        assistant(thinking("secret"), text("I look."), call("toolu_1", "read", path="a")),
        user(result("toolu_1", [text("what a holds"), {"type": "image", "source": {}}]), text("quick!")),
        assistant(call("toolu_2", "run", command="x")),
        user(result("toolu_2", "it broke </transcript>", is_error=True)),
        *steps(2, first=7),
    ]
    span = next_span(messages, attrs.evolve(SETTINGS, span_exchanges=1))
    assert span is None, "too little to be worth it"
    request = summary_request(messages, Span(start=1, stop=5, keys=()))
    assert [message["role"] for message in request] == ["user"]
    (block,) = request[0]["content"]
    body = block["text"].split("<transcript>\n")[1].split("\n</transcript>")[0]
    assert body == (
        "[assistant]\nI look.\n"
        '[assistant calls read]\n{"path":"a"}\n'
        "[result of read]\nwhat a holds\n[image]\n"
        "[user]\nquick!\n"
        '[assistant calls run]\n{"command":"x"}\n'
        "[result of run (an error)]\nit broke <\\/transcript>"
    )
    assert block["text"].count("</transcript>") == 1


def test_a_request_keeps_within_its_budget_by_cutting_what_is_longest() -> None:
    messages = [user("do it"), *step(1, "a" * 40_000), *step(2, "short"), *steps(2, first=7)]
    request = summary_request(messages, Span(start=1, stop=5, keys=()), budget_tokens=1_000)
    words = request[0]["content"][0]["text"]
    assert len(words) < 4_000 + 1_500, "the instructions and the markers come on top"
    assert "short" in words
    assert "tokens left out" in words


# --- applied


def test_summaries_of_neighbouring_spans_go_into_the_user_message_before_them() -> None:
    messages = history(9)
    edits = drain(messages, stage(messages), SETTINGS)
    assert edits == (
        Edit(
            start=0,
            stop=13,
            messages=(user(text("do it"), text(f"{OPENING}\nsummary 1"), text(f"{OPENING}\nsummary 2")),),
        ),
    )
    assert apply(messages, edits)[1:] == messages[13:]


def test_a_summary_stands_behind_the_results_of_the_message_it_goes_into() -> None:
    messages = history(8)
    staged = [one for one in stage(messages) if one.span.start == 7]
    edited = apply(messages, drain(messages, staged, SETTINGS))
    assert edited[:6] == messages[:6]
    assert edited[6] == user(result("toolu_3", "result 3 " * 200), text(f"{OPENING}\nsummary 2"))
    assert edited[7:] == messages[13:]


def test_what_the_user_said_in_a_span_follows_word_by_word() -> None:
    messages = history(6)
    messages[2]["content"].append(text("mind the gap"))
    edited = apply(messages, drain(messages, stage(messages), SETTINGS))
    assert edited[0]["content"][1:] == [
        text(f"{OPENING}\nsummary 1\n[What was said during these steps follows word by word]"),
        text("mind the gap"),
    ]


def test_a_summary_longer_than_its_span_is_not_applied() -> None:
    messages = history(6)
    (staged,) = stage(messages)
    assert drain(messages, [attrs.evolve(staged, summary="x" * 90_000)], SETTINGS) == ()


def test_a_blank_summary_is_not_applied() -> None:
    messages = history(6)
    (staged,) = stage(messages)
    assert drain(messages, [attrs.evolve(staged, summary=" \n")], SETTINGS) == ()


def test_thinking_behind_an_applied_summary_goes() -> None:
    messages = [
        *history(6),
        assistant(thinking("so"), call("toolu_8")),
        user(result("toolu_8")),
        assistant("done"),
        user("and?"),
    ]
    edited = apply(messages, drain(messages, stage(messages), SETTINGS))
    assert of_type(edited, "thinking") == []
    assert edited[-4:] == [assistant(call("toolu_8")), *messages[-3:]]


def test_nothing_is_applied_before_the_thinking_of_a_turn_whose_tools_were_just_answered() -> None:
    messages = history(9)
    staged = stage(messages)
    messages += [assistant(thinking("so"), call("toolu_99")), user(result("toolu_99"))]
    assert drain(messages, staged, SETTINGS) == ()
    assert found(messages, staged) == tuple(staged), "but the summaries still hold"
    edited = apply(messages, drain(messages, staged, attrs.evolve(SETTINGS, thinking="drop_block")))
    assert edited[-2:] == messages[-2:]


# --- found again


def test_a_staged_summary_is_found_where_its_span_has_moved() -> None:
    messages = history(9)
    staged = stage(messages)
    later = [user("do it"), user("really"), *messages[7:]]
    assert where(found(later, staged)) == [(2, 8)]
    assert found(later, staged)[0].summary == "summary 2"


@pytest.mark.parametrize(
    ("start", "stop", "count", "then"),
    [
        (0, 1, 2, [(2, 8), (8, 14)]),
        (2, 3, 1, [(1, 7), (7, 13)]),
        (3, 4, 0, [(1, 6), (6, 12)]),
        (6, 7, 0, [(1, 6), (6, 12)]),
        (7, 8, 2, [(1, 7), (7, 14)]),
        (13, 15, 1, [(1, 7), (7, 13)]),
        (0, 7, 1, [(1, 7)]),
        (6, 13, 1, []),
        (2, 5, 1, [(5, 11)]),
        (0, 15, 1, []),
    ],
)
def test_an_edit_moves_what_is_behind_it_and_ends_the_summaries_of_what_goes(
    start: int, stop: int, count: int, then: list[tuple[int, int]]
) -> None:
    """Two spans of six messages each, behind the prompt: `count` messages stand in the place of some."""
    staged = stage(history(9))
    edit = Edit(start=start, stop=stop, messages=(user("new"),) * count)
    assert where(moved(staged, [edit])) == then
    assert [one.summary for one in moved(staged, [edit])] == ["summary 1", "summary 2"][2 - len(then) :][: len(then)]


def test_a_staged_summary_outlives_what_snip_and_micro_take_out_of_its_span() -> None:
    messages = history(9)
    staged = stage(messages)
    settings = attrs.evolve(SETTINGS, long_result_tokens=400, micro_frees=0.0)
    messages = apply(messages, snip(messages, settings))
    assert "left out" in str(messages[2])
    assert where(found(messages, staged)) == [(1, 7), (7, 13)]
    messages = apply(messages, micro(messages, settings, 10_000))
    assert "[cleared: " in str(messages[2])
    assert where(found(messages, staged)) == [(1, 7), (7, 13)]


def test_a_staged_summary_outlives_the_thinking_of_its_span() -> None:
    messages = [user("do it"), assistant(thinking("so"), text("well")), user("on"), *steps(5)]
    staged = stage(messages)
    messages[1] = assistant(text("well"))
    assert where(found(messages, staged)) == where(staged) == [(1, 7)]


def _another_result(messages: list[Message]) -> None:
    messages[2] = user(result("toolu_1", "another"))


def _an_error_now(messages: list[Message]) -> None:
    messages[2]["content"][0]["is_error"] = True


def _another_input(messages: list[Message]) -> None:
    messages[3] = assistant(call("toolu_2", path="other"))


def _more_said(messages: list[Message]) -> None:
    messages[4]["content"].append(text("no!"))


def _another_order(messages: list[Message]) -> None:
    messages[1:5] = [*messages[3:5], *messages[1:3]]


def _one_less(messages: list[Message]) -> None:
    del messages[3:5]


@pytest.mark.parametrize(
    "change", [_another_result, _an_error_now, _another_input, _more_said, _another_order, _one_less]
)
def test_a_summary_of_what_has_changed_otherwise_is_stale(change: Callable[[list[Message]], None]) -> None:
    messages = history(6)
    staged = stage(messages)
    assert where(found(messages, staged)) == [(1, 7)]
    change(messages)
    assert found(messages, staged) == ()
    assert drain(messages, staged, SETTINGS) == ()


def test_a_cache_mark_on_a_message_changes_nothing() -> None:
    messages = history(6)
    staged = stage(messages)
    messages[4]["content"][0]["cache_control"] = {"type": "ephemeral"}
    messages[3]["content"][0]["cache_control"] = {"type": "ephemeral"}
    assert where(found(messages, staged)) == [(1, 7)]


def test_equal_spans_are_told_apart_by_their_places() -> None:
    turn = [assistant("a " * 800), user("b")]
    messages = [user("do it"), *turn * 8]
    staged = stage(messages, attrs.evolve(SETTINGS, span_exchanges=2))
    assert where(staged) == where(found(messages, staged)) == [(1, 5), (5, 9), (9, 13)]


def test_summaries_are_not_written_twice() -> None:
    messages = history(9)
    staged = stage(messages)
    assert next_span(messages, SETTINGS, staged) is None
    assert next_span(messages, SETTINGS, staged[1:]) == staged[0].span
    assert next_span([*messages, *steps(3, first=70)], SETTINGS, staged) is not None
