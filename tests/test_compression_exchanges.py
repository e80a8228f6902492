"""Which messages belong together, and which must not be edited for the sake of thinking."""

import attrs
import pytest

from looplatch.recovery.compression.edits import Edit, apply
from looplatch.recovery.compression.exchanges import outline
from looplatch.recovery.compression.settings import Compression, ThinkingRule
from looplatch.recovery.compression.thinking import bound_turn, editable_from, with_thinking_dropped
from tests.histories import Block, Message, assistant, call, result, system, text, thinking, user

DROP = Compression()
THOUGHT = thinking("so it is")


def places(messages: list[Message]) -> tuple[list[tuple[int, int, int]], int]:
    parts = outline(messages)
    return [(one.start, one.answer, one.stop) for one in parts.exchanges], parts.pending


def test_an_exchange_is_an_answer_and_what_is_said_to_it() -> None:
    messages = [
        user("do it"),
        assistant(call("toolu_1")),
        user(result("toolu_1")),
        assistant("done"),
        user("and that"),
    ]
    assert places(messages) == ([(1, 2, 3), (3, 4, 5)], 5)
    assert not outline(messages).is_pending


def test_messages_of_one_role_in_a_row_are_one_turn() -> None:
    messages = [
        user("do it"),
        user("please"),
        assistant(call("toolu_1")),
        assistant(call("toolu_2")),
        user(result("toolu_1"), result("toolu_2")),
        user("go on"),
        assistant("well"),
        assistant("done"),
    ]
    assert places(messages) == ([(2, 4, 6)], 6)
    assert outline(messages).is_pending


def test_without_an_answer_there_is_no_exchange() -> None:
    assert places([user("do it")]) == ([], 1)
    assert places([user("do it"), assistant("well")]) == ([], 1)


def test_a_system_message_belongs_to_the_exchange_before_it() -> None:
    messages = [user("do it"), assistant("a"), user("b"), system("note"), assistant("c"), user("d")]
    parts = outline(messages)
    assert [(one.start, one.stop, one.plain) for one in parts.exchanges] == [(1, 4, False), (4, 6, True)]


def served(answer_to_it: list[Message]) -> list[Message]:
    begun: Block = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "code_execution", "input": {}}
    own = {**call("toolu_1"), "caller": {"type": "code_execution_20260120", "tool_id": "srvtoolu_1"}}
    return [user("do it"), assistant(begun, own), *answer_to_it]


def test_an_exchange_lasts_until_the_servers_own_tool_has_answered() -> None:
    done: Block = {"type": "code_execution_tool_result", "tool_use_id": "srvtoolu_1", "content": {}}
    again = {**call("toolu_2"), "caller": {"type": "code_execution_20260120", "tool_id": "srvtoolu_1"}}
    messages = served(
        [
            user(result("toolu_1")),
            assistant(again),
            user(result("toolu_2")),
            assistant(done, text("so")),
            user("on"),
            assistant("x"),
            user("y"),
        ]
    )
    assert places(messages) == ([(1, 6, 7), (7, 8, 9)], 9)


def test_a_servers_tool_that_others_talked_over_waits_no_more() -> None:
    messages = served([user(result("toolu_1"), text("never mind")), assistant("x"), user("y")])
    assert places(messages) == ([(1, 2, 3), (3, 4, 5)], 5)


def test_an_answer_that_goes_on_with_a_servers_tool_is_pending_from_where_that_was_called() -> None:
    messages = served([user(result("toolu_1")), assistant("still at it")])
    assert places(messages) == ([], 1)


# --- thinking

OPEN = [
    user("do it"),
    assistant(thinking("old"), call("toolu_1")),
    user(result("toolu_1")),
    assistant(THOUGHT, call("toolu_2")),
    user(result("toolu_2")),
]
CLOSED = [*OPEN, assistant("done"), user("and that")]


@pytest.mark.parametrize(
    ("messages", "rule", "floor"),
    [
        (OPEN, "drop", 4),
        (OPEN, "keep", 4),
        (OPEN, "drop_block", 0),
        (CLOSED, "drop", 0),
        (CLOSED, "keep", 4),
        (CLOSED, "drop_block", 0),
        ([*OPEN, assistant(call("toolu_3"))], "drop", 0),
        ([*OPEN, assistant(thinking("new"), call("toolu_3"))], "drop", 6),
    ],
)
def test_nothing_is_edited_before_thinking_that_must_stay(
    messages: list[Message], rule: ThinkingRule, floor: int
) -> None:
    assert editable_from(messages, outline(messages), attrs.evolve(DROP, thinking=rule)) == floor


@pytest.mark.parametrize("rule", ["drop", "keep", "drop_block"])
def test_nothing_is_edited_before_a_compaction_of_the_apis_own(rule: ThinkingRule) -> None:
    signed = {"type": "compaction", "content": "what was", "signature": "s"}
    messages = [user("do it"), assistant("a"), user("b"), assistant(signed, text("c")), user("d"), assistant("e")]
    assert editable_from(messages, outline(messages), attrs.evolve(DROP, thinking=rule)) == 4
    messages[1] = assistant(THOUGHT, text("a"))
    assert editable_from(messages, outline(messages), attrs.evolve(DROP, thinking=rule)) == 4, "whichever is last"


def test_the_last_answer_is_bound_as_long_as_its_tools_were_just_answered() -> None:
    assert bound_turn(OPEN, outline(OPEN)) == range(3, 5)
    assert bound_turn(CLOSED, outline(CLOSED)) == range(0)
    pending = [*OPEN, assistant(call("toolu_3"))]
    assert bound_turn(pending, outline(pending)) == range(5, 6)
    assert bound_turn([user("x")], outline([user("x")])) == range(0)


def test_thinking_behind_the_first_edit_goes_and_what_is_before_it_stays() -> None:
    edit = Edit(start=2, stop=3, messages=(user(result("toolu_1", "short")),))
    edited = apply(CLOSED, with_thinking_dropped(CLOSED, outline(CLOSED), (edit,), DROP))
    assert edited[1] == CLOSED[1]
    assert edited[3] == assistant(call("toolu_2"))


def test_a_message_of_thinking_alone_goes_where_its_turn_has_others() -> None:
    messages = [user("do it"), assistant(THOUGHT), assistant("well"), user("on"), assistant("done"), user("more")]
    edit = Edit(start=0, stop=1, messages=(user("it"),))
    edited = apply(messages, with_thinking_dropped(messages, outline(messages), (edit,), DROP))
    assert edited == [user("it"), assistant("well"), user("on"), assistant("done"), user("more")]


def test_nothing_is_edited_where_a_turn_would_be_left_without_content() -> None:
    messages = [user("do it"), assistant("a"), user("b"), assistant(THOUGHT)]
    edit = Edit(start=0, stop=1, messages=(user("it"),))
    assert with_thinking_dropped(messages, outline(messages), (edit,), DROP) == ()


@pytest.mark.parametrize("rule", ["keep", "drop_block"])
def test_thinking_is_dropped_only_where_that_is_asked_for(rule: ThinkingRule) -> None:
    edit = Edit(start=2, stop=3, messages=(user(result("toolu_1", "short")),))
    assert with_thinking_dropped(CLOSED, outline(CLOSED), (edit,), attrs.evolve(DROP, thinking=rule)) == (edit,)
