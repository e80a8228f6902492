"""Every level over random histories: what must hold of each edit, of each sequence of them, and where they end."""

import copy
import itertools
from collections.abc import Callable, Sequence

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from looplatch.recovery.compression.collapse import Staged, anchored, drain, moved, next_span
from looplatch.recovery.compression.compact import compact
from looplatch.recovery.compression.edits import Edit, apply, saving
from looplatch.recovery.compression.exchanges import outline
from looplatch.recovery.compression.micro import micro
from looplatch.recovery.compression.settings import Compression, ThinkingRule
from looplatch.recovery.compression.snip import snip
from looplatch.recovery.weights import weigh_all
from looplatch.testing import histories as drawn_histories
from tests import histories
from tests.histories import Message, all_blocks, blocks_of, of_type, problems

RULES: tuple[ThinkingRule, ...] = ("drop", "keep", "drop_block")
SMALL = Compression(long_result_tokens=200, keep_results=2, micro_frees=0.0, span_exchanges=2, keep_exchanges=1)
SUMMARY = "It was done."

Shorten = Callable[[list[Message], Compression], Sequence[Edit]]

slow = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], max_examples=60)
each_rule = pytest.mark.parametrize("rule", RULES)


def by_micro(messages: list[Message], setting: Compression) -> Sequence[Edit]:
    return micro(messages, setting, 10_000)


def by_collapse(messages: list[Message], setting: Compression) -> Sequence[Edit]:
    return drain(messages, staged_in(messages, setting), setting)


def by_compact(messages: list[Message], setting: Compression) -> Sequence[Edit]:
    return compact(messages, SUMMARY, setting)


LEVELS: dict[str, Shorten] = {"snip": snip, "micro": by_micro, "collapse": by_collapse, "compact": by_compact}
each_level = pytest.mark.parametrize("level", list(LEVELS))


def staged_in(messages: list[Message], setting: Compression) -> list[Staged]:
    staged: list[Staged] = []
    while (span := next_span(messages, setting, staged)) is not None:
        staged.append(Staged(span=span, summary=SUMMARY))
    return staged


@each_rule
@each_level
@slow
@given(messages=drawn_histories())
def test_a_level_leaves_a_shorter_history_that_the_api_takes_and_then_finds_no_more(
    level: str, rule: ThinkingRule, messages: list[Message]
) -> None:
    assert problems(messages) == []
    setting = attrs.evolve(SMALL, thinking=rule)
    untouched = copy.deepcopy(messages)
    edits = LEVELS[level](messages, setting)
    assert messages == untouched
    if not edits:
        return
    after = apply(messages, edits)
    check(level, messages, edits, after, rule)
    assert LEVELS[level](after, setting) == ()


@each_rule
@slow
@given(data=st.data())
def test_any_sequence_of_levels_holds_while_the_history_grows(rule: ThinkingRule, data: st.DataObject) -> None:
    """Summaries are staged before other levels edit their spans, and applied after."""
    setting = attrs.evolve(SMALL, thinking=rule)
    messages = data.draw(drawn_histories(min_size=3))
    issued = list(messages)
    staged: list[Staged] = []
    for number in range(data.draw(st.integers(2, 8))):
        level = data.draw(st.sampled_from(["grow", "stage", "drain", *LEVELS]))
        edits: Sequence[Edit] = ()
        match level:
            case "grow":
                if not outline(messages).is_pending:
                    more = histories.step(10_000 + number)
                    messages, issued = messages + more, issued + more
            case "stage":
                staged += staged_in(messages, setting) if not staged else []
            case "drain":
                edits = drain(messages, staged, setting)
            case _:
                edits = LEVELS[level](messages, setting)
        if edits:
            after = apply(messages, edits)
            check("collapse" if level == "drain" else level, messages, edits, after, rule)
            assert problems(after, issued) == []
            found = anchored(after, outline(after), staged)
            staged = list(moved(staged, edits))
            assert anchored(after, outline(after), staged) == found, (
                "no summary is lost by an edit that leaves its span"
            )
            messages = after


def check(level: str, before: list[Message], edits: Sequence[Edit], after: list[Message], rule: ThinkingRule) -> None:
    """What holds of every edited history."""
    assert problems(after, before) == []
    assert weigh_all(after) < weigh_all(before)
    assert weigh_all(before) - weigh_all(after) == saving(before, edits)
    assert [edit.start for edit in edits] == sorted(edit.start for edit in edits)
    assert all(one.stop <= two.start for one, two in itertools.pairwise(edits))
    check_calls(before, after)
    check_thinking(level, before, after, rule)
    check_waiting(before, after)
    if level == "compact":
        check_latest_kept_or_quoted(before, after)
    else:
        check_said(before, after)
        check_latest(before, after)


def check_calls(before: list[Message], after: list[Message]) -> None:
    """A call stays as it was or goes, with the result and the whole group of its answer."""
    calls = {block["id"]: block for block in of_type(before, "tool_use")}
    kept = {block["id"] for block in of_type(after, "tool_use")}
    assert all(calls[block["id"]] == block for block in of_type(after, "tool_use"))
    answered = {block["tool_use_id"] for block in of_type(before, "tool_result")}
    assert {block["tool_use_id"] for block in of_type(after, "tool_result")} == kept & answered
    for exchange in outline(before).exchanges:
        group = {block["id"] for block in of_type(before[exchange.start : exchange.stop], "tool_use")}
        assert group <= kept or group.isdisjoint(kept)


def check_thinking(level: str, before: list[Message], after: list[Message], rule: ThinkingRule) -> None:
    """Thinking that stays has the same messages before it, unless the API is asked to drop what does not match."""
    thoughts = of_type(before, "thinking", "redacted_thinking")
    kept = of_type(after, "thinking", "redacted_thinking")
    assert [block for block in thoughts if block in kept] == kept
    if rule == "drop_block":
        if level in ("snip", "micro"):
            assert kept == thoughts
        return
    if rule == "keep" and level in ("snip", "micro"):
        assert kept == thoughts
    if kept:
        place = max(place for place, message in enumerate(after) if kept[-1] in blocks_of(message))
        assert after[: place + 1] == before[: place + 1]


def check_waiting(before: list[Message], after: list[Message]) -> None:
    """An answer that waits is as it was, to the byte."""
    parts = outline(before)
    waiting = before[parts.pending :]
    if waiting:
        assert after[-len(waiting) :] == waiting


def check_said(before: list[Message], after: list[Message]) -> None:
    """All that the user's side said is there, in its order."""
    said = [block for block in all_blocks(before, "user") if block["type"] != "tool_result"]
    left = iter(block for block in all_blocks(after, "user") if block["type"] != "tool_result")
    assert all(block in left for block in said)
    assert [m for m in before if m["role"] == "system"] == [m for m in after if m["role"] == "system"]


def check_latest(before: list[Message], after: list[Message]) -> None:
    """The results that the model has not seen yet are as they were."""
    exchanges = outline(before).exchanges
    if exchanges:
        latest = before[exchanges[-1].start : exchanges[-1].stop]
        for block in of_type(latest, "tool_use", "tool_result"):
            assert block in of_type(after, "tool_use", "tool_result")


def check_latest_kept_or_quoted(before: list[Message], after: list[Message]) -> None:
    """Nothing of the latest exchange but its thinking is lost: it is there, or its texts are quoted."""
    latest = outline(before).exchanges[-1]
    messages = before[latest.start : latest.stop]
    words = "\n".join(str(block.get("text")) for block in all_blocks(after, "user"))
    there = list(all_blocks(after))
    for block in all_blocks([message for message in messages if message["role"] != "system"]):
        match block:
            case {"type": "thinking" | "redacted_thinking"}:
                pass
            case _ if block in there:
                pass
            case {"type": "text", "text": said}:
                assert said in words
            case {"type": "tool_use" | "server_tool_use", "name": name}:
                assert f"calls {name}]" in words
            case {"type": "tool_result"}:
                content = block.get("content", "")
                for item in [histories.text(content)] if isinstance(content, str) else content:
                    assert item in there if item["type"] == "image" else item["text"] in words
            case _:
                assert block["type"] in words
    assert [m for m in before if m["role"] == "system"] == [m for m in after if m["role"] == "system"]
