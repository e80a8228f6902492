"""The timeline of a run: who was busy when, on one page, however long the run was."""

import asyncio
import re
import xml.etree.ElementTree as ET
from itertools import combinations
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from looplatch.diagrams import render, timeline_svg
from looplatch.diagrams.axis import axis_of
from looplatch.diagrams.bars import BARS, LANES
from looplatch.diagrams.course import Role, Sign, course_of
from looplatch.states.errors import UsageError
from tests.busy_runs import MS, Scribe, long_run, three_turns
from tests.forged_runs import short_run
from tests.playing import played
from tests.stories import STORIES
from tests.test_diagrams_pictures import SVG, Box, Picture, read


def check_page(svg: str) -> Picture:
    """Assert that nothing is cut off, that no text lies on another, and that text in bars stays in them."""
    picture = read(svg)
    for text in picture.texts:
        assert picture.page.holds(text), f"{text} is not on the page"
    rows: dict[float, list[Box]] = {}
    for text in picture.texts:
        rows.setdefault(round(text.bottom), []).append(text)
    for at, row in rows.items():
        near = [*row, *rows.get(at + 1, []), *rows.get(at + 2, [])]
        for one, other in combinations(near, 2):
            assert not one.meets(other), f"{one} lies on {other}"
    for bar in bars(svg):
        assert picture.page.holds(bar), f"{bar} is not on the page"
        for text in rows.get(round(bar.top + 12.2), []):
            if text.meets(bar):
                assert bar.left <= text.left, f"{text} runs into {bar}"
                assert text.right <= bar.right, f"{text} runs out of {bar}"
    return picture


def bars(svg: str) -> list[Box]:
    found: list[Box] = []
    for rect in ET.fromstring(svg).iter(f"{SVG}rect"):
        if rect.get("class") == "bar":
            x, y, width, height = (float(rect.get(name, "")) for name in ("x", "y", "width", "height"))
            hint = rect.find(f"{SVG}title")
            found.append(Box((hint is not None and hint.text) or "", x, y, x + width, y + height))
    return found


def bar(svg: str, begins: str) -> Box:
    """The one bar whose hint begins so."""
    (found,) = [one for one in bars(svg) if one.what.startswith(begins)]
    return found


def test_tools_are_seen_to_start_inside_the_stream() -> None:
    """The model wrote from 2 to 1,202 ms, read ran from 402 to 902 ms, grep from 702 to 1,802 ms."""
    svg = timeline_svg(three_turns().records)
    model, read_, grep = bar(svg, "turn 1, m, tool_use"), bar(svg, "read, "), bar(svg, "grep, ")
    assert model.left < read_.left < read_.right < model.right < grep.right
    scale = (model.right - model.left) / 1_200
    assert read_.left - model.left == pytest.approx(400 * scale, abs=0.2)
    assert grep.right - model.left == pytest.approx(1_800 * scale, abs=0.2)
    assert model.bottom < read_.top < grep.top, "a lane for the model, one for each of two calls"
    check_page(svg)


def test_what_happened_is_told() -> None:
    svg = timeline_svg(three_turns().records)
    words = [text.what for text in read(svg).texts]
    for told in (
        "run run-1",
        "3 turns, 3 tool calls, 1 h 0 min, ended: answered",
        "tools were busy for 2.2 s, 800 ms of it while the model wrote",  # read and grep: 402 to 1,202 of 1,802
        "approval awaited",
        "back-off",
        "retry",
        "summary",
        "1 h 0 min wait",
    ):
        assert told in words
    hints = [one.what for one in bars(svg)]
    assert "turn 2, m, overloaded_error, 250 ms" in hints
    assert "turn 1, m, tool_use, ok, 1,234 input tokens, 56 output tokens, 1.2 s" in hints
    assert "waiting for approval, 1 h 0 min" in hints
    assert "deploy, toolu_31, write, failed, 800 ms" in hints
    assert "taken over after 1 h 0 min" in svg


def test_the_course_of_a_run_is_read_from_its_records() -> None:
    course = course_of(three_turns().records)
    assert [(span.name, span.start // MS, span.end // MS) for span in course.of(Role.READ, Role.WRITE)] == [
        ("read", 402, 902),
        ("grep", 702, 1_802),
        ("deploy", 3_604_514, 3_605_314),
    ]
    assert [span.failed for span in course.of(Role.MODEL)] == [False, True, False, False]
    assert [span.failed for span in course.of(Role.HOOK)] == [False]
    assert [moment.sign for moment in course.moments] == [
        Sign.TURN, Sign.RETRY, Sign.TAKEN_OVER, Sign.TURN, Sign.SHORTER, Sign.END,
    ]  # fmt: skip
    assert (course.whole // MS, course.terminal) == (3_606_919, "answered")


def test_a_long_wait_is_drawn_short() -> None:
    axis = axis_of(10_000, [(0, 100), (9_900, 10_000)], 1, 1_000.0)
    assert axis.waits == ((100, 9_900),)
    assert axis.at(0) == 0
    assert axis.at(10_000) == pytest.approx(1_000)
    assert axis.at(9_900) - axis.at(100) == pytest.approx(0.04 / 1.04 * 1_000)
    assert axis.at(50) == pytest.approx(axis.at(100) / 2)


@given(st.data())
def test_an_axis_never_turns_back(data: st.DataObject) -> None:
    whole = data.draw(st.integers(0, 10**12))
    pairs = data.draw(st.lists(st.tuples(st.integers(0, whole), st.integers(0, whole)), max_size=8))
    rows = data.draw(st.integers(1, 8))
    axis = axis_of(whole, [(min(pair), max(pair)) for pair in pairs], rows, 500.0)
    times = sorted(data.draw(st.lists(st.integers(0, whole), min_size=2, max_size=8)))
    at = [axis.at(time) for time in times]
    assert at == sorted(at)
    assert at[0] >= -0.001
    assert at[-1] <= rows * 500.0 + 0.001
    assert len(list(axis.ticks(9))) <= 40 * rows
    for place in axis.places(times[0], times[-1], 2.0):
        assert place.left >= 0
        assert place.left + 1.999 <= place.right <= 500.001
        assert 0 <= place.row < rows


@pytest.mark.parametrize("turns", [1, 3, 20, 300])
def test_a_run_stays_on_one_readable_page(turns: int) -> None:
    svg = timeline_svg(long_run(turns).records)
    picture = check_page(svg)
    assert picture.page.right == 1_200
    assert picture.page.bottom <= 1_700
    assert len(svg) < 600_000


def test_thousands_of_turns_stay_bounded() -> None:
    svg = timeline_svg(long_run(1_500).records)
    assert len(bars(svg)) <= BARS * 1.1  # what goes on in the next row has two
    assert read(svg).page.bottom <= 1_700
    assert len(svg) < 1_200_000


def test_more_calls_than_lanes_share_the_last_one() -> None:
    scribe = Scribe()
    calls = [scribe.wait(1).tool() for _ in range(40)]
    for call in calls:
        scribe.wait(1).end(call, "answered")
    svg = timeline_svg(scribe.records)
    check_page(svg)
    tools = [one for one in bars(svg) if "read" in one.what]
    assert len({one.top for one in tools}) == LANES
    assert any(one.what.startswith(f"{40 - LANES + 1} of read, ") for one in tools)


def test_what_never_ended_is_drawn_to_the_end() -> None:
    scribe = Scribe()
    scribe.wait(10).tool()
    scribe.wait(90).write("checkpoint")
    (call,) = course_of(scribe.records).of(Role.READ)
    assert (call.start, call.end, call.open, call.failed) == (10 * MS, 100 * MS, True, True)
    assert "its end was not recorded" in timeline_svg(scribe.records)


def test_records_without_times_are_laid_out_in_their_order() -> None:
    records = [{**record, "mono_ns": None} for record in three_turns().records]
    svg = timeline_svg(records)
    check_page(svg)
    assert bar(svg, "turn 1, m, tool_use").left < bar(svg, "read, ").left
    assert " ms" not in "".join(text.what for text in read(svg).texts)


def test_nothing_at_all_can_be_drawn() -> None:
    check_page(timeline_svg([]))


def test_hostile_names_are_text() -> None:
    scribe = Scribe(run='"><script>\x1b[31m\u202e')
    scribe.wait(5).end(scribe.tool('</text><script x="1">&\x00' + "y" * 999), "]]>&<b>")
    svg = timeline_svg(scribe.records)
    ET.fromstring(svg)
    assert "<script" not in svg
    assert "\x1b" not in svg
    assert "y" * 100 not in svg
    check_page(svg)


ODD = st.none() | st.integers() | st.text(max_size=5) | st.lists(st.integers(), max_size=2) | st.booleans()


@given(st.lists(st.fixed_dictionaries({}, optional={
    "kind": st.sampled_from(["transition", "effect_begin", "effect_end", "resumed", "rejected", "genesis"]) | ODD,
    "seq": st.integers(0, 5) | ODD, "effect": st.integers(0, 5) | ODD, "mono_ns": st.integers(0, 10**15) | ODD,
    "epoch": st.integers(0, 3), "class": st.sampled_from(["model", "tool", "sleep", "hook", "summary", "size"]) | ODD,
    "name": ODD, "outcome": ODD, "usage": ODD, "ts": ODD, "event": ODD, "reason": ODD, "terminal": ODD, "target": ODD,
}), max_size=12))  # fmt: skip
@settings(deadline=None, max_examples=60)
def test_any_records_can_be_drawn(records: list[dict[str, Any]]) -> None:
    """A viewer also shows logs that no verifier would pass."""
    svg = timeline_svg(records)
    check_page(svg)
    assert svg == timeline_svg(records)


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_real_runs_can_be_drawn(story: Any) -> None:
    script, watch = story.script()
    play = asyncio.run(played(script, watch=watch, **story.options))
    svg = render(play.run, kind="timeline", format="svg")
    assert svg == timeline_svg(play.log)
    check_page(svg)
    effects = [effect for effect in play.log.effects if effect.kind in ("model", "tool")]
    assert len(course_of(play.log).of(Role.MODEL, Role.READ, Role.WRITE)) == len(effects)
    assert f"ended: {play.result.terminal}" in svg


def test_a_forged_log_is_drawn() -> None:
    check_page(timeline_svg(short_run().records))


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        render(three_turns().records, kind="timeline", format="dot")
    assert str(caught.value) == "format: a timeline is not drawn as 'dot'. Take one of svg, png"
    with pytest.raises(UsageError, match="a timeline needs a run"):
        render(kind="timeline", format="svg")
    with pytest.raises(UsageError, match="neither a log nor a run"):
        timeline_svg(cast("Any", "run.jsonl"))


def test_the_timeline_can_be_painted() -> None:
    painted = render(three_turns().records, kind="timeline", format="png")
    assert re.match(rb"\x89PNG", painted)
