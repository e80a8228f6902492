"""Snip: superseded and repeated results go, long old ones are cut."""

from collections.abc import Mapping
from typing import Any

import pytest

from looplatch.recovery.compression.edits import apply
from looplatch.recovery.compression.settings import Compression
from looplatch.recovery.compression.snip import snip
from tests.histories import Message, assistant, call, of_type, picture, result, step, steps, text, thinking, user

SETTINGS = Compression(keep_exchanges=1, long_result_tokens=1_000)
LINES = "a line\n" * 100  # 175 tokens


def snipped(messages: list[Message], settings: Compression = SETTINGS) -> list[object]:
    """The contents of all results after snip."""
    return [block["content"] for block in of_type(apply(messages, snip(messages, settings)), "tool_result")]


def test_the_same_call_made_again_supersedes_the_earlier_one() -> None:
    messages = [user("do it"), *step(1, LINES, path="a"), *step(2, LINES + "more", path="a"), *step(3, "end")]
    assert snipped(messages) == [
        "[superseded: 175 tokens; the same was asked for again later]",
        LINES + "more",
        "end",
    ]


def test_the_order_of_the_inputs_fields_does_not_matter() -> None:
    one: dict[str, Any] = {"path": "a", "limit": 1}
    two: dict[str, Any] = {"limit": 1, "path": "a"}
    messages = [user("do it"), *step(1, LINES, **one), *step(2, LINES * 2, **two), *step(3, "end")]
    assert str(snipped(messages)[0]).startswith("[superseded: ")


@pytest.mark.parametrize(
    ("earlier", "later", "supersedes"),
    [
        ({"path": "a", "offset": 10, "limit": 5}, {"path": "a"}, True),
        ({"file_path": "a", "view_range": [1, 2]}, {"file_path": "a"}, True),
        ({"path": "a"}, {"path": "a", "offset": 10}, False),
        ({"path": "a"}, {"path": "b"}, False),
        ({"path": "a", "pattern": "x"}, {"path": "a"}, False),
        ({"path": "a"}, {"file_path": "a"}, False),
        ({"path": "a", "content": "x"}, {"path": "a", "content": "y"}, False),
    ],
)
def test_reading_the_whole_of_a_file_supersedes_reading_a_part_of_it(
    earlier: dict[str, Any], later: dict[str, Any], supersedes: bool
) -> None:
    messages = [user("do it"), *step(1, LINES, **earlier), *step(2, LINES + "more", **later), *step(3, "end")]
    assert str(snipped(messages)[0]).startswith("[superseded: ") is supersedes


def test_a_call_of_another_tool_supersedes_nothing() -> None:
    messages = [
        user("do it"),
        *step(1, LINES, "read", path="a"),
        *step(2, LINES + "x", "stat", path="a"),
        *step(3, "end"),
    ]
    assert snip(messages, SETTINGS) == ()


def test_an_error_supersedes_nothing() -> None:
    failed = [assistant(call("toolu_2", "read", path="a")), user(result("toolu_2", "no such file", is_error=True))]
    messages = [user("do it"), *step(1, LINES, path="a"), *failed, *step(3, "end")]
    assert snip(messages, SETTINGS) == ()


def test_a_superseded_error_stays_an_error_with_a_text() -> None:
    failed = [assistant(call("toolu_1", "read", path="a")), user(result("toolu_1", LINES, is_error=True))]
    messages = [user("do it"), *failed, *step(2, LINES * 2, path="a"), *step(3, "end")]
    edited = of_type(apply(messages, snip(messages, SETTINGS)), "tool_result")[0]
    assert edited["is_error"] is True
    assert edited["content"].startswith("[superseded: ")


def test_only_what_the_caller_calls_a_read_is_superseded() -> None:
    def is_read(block: Mapping[str, Any]) -> bool:
        return (block["name"], block["input"]["path"]) == ("read", "a")

    messages = [user("do it")]
    for number, (name, path) in enumerate([("read", "a"), ("run", "a"), ("read", "b")] * 2):
        messages += step(number, f"{LINES}{number}", name, path=path)
    messages += step(9, "end")
    edited = apply(messages, snip(messages, SETTINGS, is_read=is_read))
    contents = [block["content"] for block in of_type(edited, "tool_result")]
    assert [content.startswith("[superseded: ") for content in contents] == [True, *[False] * 6]


def test_of_equal_outputs_the_newest_stays() -> None:
    messages = [user("do it"), *step(1, LINES), *step(2, LINES), *step(3, LINES)]
    gone = "[repeated: 175 tokens; a later result is the same, word by word]"
    assert snipped(messages) == [gone, gone, LINES]


def test_equal_lists_of_blocks_are_equal_outputs() -> None:
    messages = [user("do it"), *step(1, [text(LINES), picture()]), *step(2, [text(LINES), picture()]), *step(3, "end")]
    contents = snipped(messages)
    assert str(contents[0]).startswith("[repeated: ")
    assert contents[1] == [text(LINES), picture()]


def test_what_is_said_to_be_repeated_is_really_there() -> None:
    """The second is equal to the first, but goes itself, since a later call supersedes it: so the first stays."""
    messages = [
        user("do it"),
        *step(1, LINES, path="a"),
        *step(2, LINES, path="b"),
        *step(3, LINES * 2, path="b"),
        *step(4, "end"),
    ]
    contents = snipped(messages)
    assert contents[0] == LINES
    assert str(contents[1]).startswith("[superseded: ")


def test_short_outputs_are_not_worth_a_marker() -> None:
    messages = [user("do it"), *step(1, "ok", path="a"), *step(2, "ok", path="a"), *step(3, "ok", path="a")]
    assert snip(messages, SETTINGS) == ()


def test_a_long_old_result_is_cut_to_half_of_what_makes_it_long() -> None:
    messages = [user("do it"), *step(1, "a" * 3_000 + "z" * 1_004), *step(2, "b" * 4_000), *step(3, "c" * 9_000)]
    contents = snipped(messages)
    assert contents[0] == "a" * 1_500 + "\n[… 501 of 1,001 tokens left out …]\n" + "z" * 500
    assert contents[1:] == ["b" * 4_000, "c" * 9_000], "1,000 tokens are not too long, and the newest is not old"


def test_results_that_are_alike_only_where_they_were_cut_are_not_called_equal() -> None:
    one, two = ("a" * 4_000 + middle * 4_000 + "z" * 4_000 for middle in "xy")
    messages = [user("do it"), *step(1, one), *step(2, two), *step(3, "end")]
    edited = apply(messages, snip(messages, SETTINGS))
    contents = [block["content"] for block in of_type(edited, "tool_result")]
    assert contents[0] == contents[1]
    assert contents[0].startswith("a" * 1_500 + "\n[… ")
    assert snip(edited, SETTINGS) == ()


def test_of_equal_long_results_the_newest_is_cut_and_the_others_go() -> None:
    messages = [user("do it"), *step(1, "a" * 8_000), *step(2, "a" * 8_000), *step(3, "end")]
    contents = snipped(messages)
    assert str(contents[0]).startswith("[repeated: ")
    assert str(contents[1]).startswith("a" * 1_500 + "\n[… ")


def test_the_newest_exchanges_are_left_alone() -> None:
    long = [f"{number}" * 8_000 for number in range(5)]
    messages = [user("do it"), *(message for number, words in enumerate(long) for message in step(number, words))]
    contents = snipped(messages, Compression(keep_exchanges=3, long_result_tokens=1_000))
    assert contents[2:] == long[2:]
    assert all("left out" in str(content) for content in contents[:2])


def test_the_other_fields_and_results_of_a_message_stay() -> None:
    group = [
        assistant(call("toolu_1", "read", path="a"), call("toolu_2", "read", path="b")),
        user({**result("toolu_1", LINES), "cache_control": {"type": "ephemeral"}}, result("toolu_2", LINES + "x")),
    ]
    messages = [user("do it"), *group, *step(3, LINES * 2, path="a"), *step(4, "end")]
    edited = apply(messages, snip(messages, SETTINGS))[2]["content"]
    assert edited[0]["cache_control"] == {"type": "ephemeral"}
    assert edited[0]["tool_use_id"] == "toolu_1"
    assert edited[1] == result("toolu_2", LINES + "x")


def test_what_a_servers_tool_called_for_is_not_touched() -> None:
    served = [
        assistant({**call("toolu_1", "read", path="a"), "caller": {"type": "code_execution_20260120", "tool_id": "s"}}),
        user(result("toolu_1", "a" * 8_000)),
    ]
    messages = [user("do it"), *served, *steps(2, first=2)]
    assert snip(messages, SETTINGS) == ()


def test_an_edit_takes_the_thinking_behind_it_along() -> None:
    thought = [assistant(thinking("so"), call("toolu_2", "read", path="b")), user(result("toolu_2", "x"))]
    messages = [user("do it"), *step(1, "a" * 8_000), *thought, *step(3, "end")]
    edited = apply(messages, snip(messages, SETTINGS))
    assert of_type(edited, "thinking") == []
    assert edited[3] == assistant(call("toolu_2", "read", path="b"))


def test_nothing_is_cut_before_the_thinking_of_the_turn_whose_tools_were_just_answered() -> None:
    messages = [
        user("do it"),
        *step(1, "a" * 8_000),
        assistant(thinking("so"), call("toolu_2")),
        user(result("toolu_2", "x")),
    ]
    assert snip(messages, SETTINGS) == ()
    assert snip(messages, Compression(keep_exchanges=1, long_result_tokens=1_000, thinking="drop_block")) != ()


def test_a_history_without_old_exchanges_is_left_alone() -> None:
    assert snip([user("do it")], SETTINGS) == ()
    assert snip([user("x" * 90_000), *step(1, "y" * 90_000)], SETTINGS) == ()
