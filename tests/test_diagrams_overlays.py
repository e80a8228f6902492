"""What is laid over the machine: times, the difference of two runs, and what a test run walked."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from looplatch.diagrams import coverage, diff, render
from looplatch.diagrams.elapsed import Elapsed, spent
from looplatch.diagrams.source import records_of
from looplatch.diagrams.walk import walk_of
from looplatch.states.errors import UsageError
from looplatch.states.state import State
from looplatch.states.table import TABLE
from tests.forged_runs import aborted, long_run, one_turn, overflowing, short_run
from tests.test_diagrams import RUN, SMALL, move
from tests.test_diagrams_pictures import check, record, tables

MS = 1_000_000
SVG = "{http://www.w3.org/2000/svg}"


def at(ms: int, made: dict[str, Any], epoch: int = 0) -> dict[str, Any]:
    return {**made, "mono_ns": ms * MS, "epoch": epoch}


# 100 ms in prepare, 900 in stream, nothing in decide, 1,000 in prepare, 3,000 in stream.
TIMED = tuple(at(ms, made) for ms, made in zip((100, 1_000, 1_000, 2_000, 5_000), RUN, strict=True))
ANSWERED = (
    *RUN[:2],
    move("decide", "StopHooksPassed", "completed", terminal="answered"),
)


@pytest.mark.parametrize(
    ("ns", "told"),
    [
        (0, "0 ms"),
        (1, "<1 ms"),
        (MS, "1 ms"),
        (999 * MS, "999 ms"),
        (1_000 * MS, "1.0 s"),
        (9_900 * MS, "9.9 s"),
        (9_960 * MS, "10 s"),
        (99_400 * MS, "99 s"),
        (99_600 * MS, "1 min 40 s"),
        (3_599_900 * MS, "1 h 0 min"),
        (500 * 3_600_000 * MS, "500 h"),
    ],
)
def test_times_are_told_in_few_digits(ns: int, told: str) -> None:
    assert spent(ns) == told


def test_edges_and_states_tell_their_times() -> None:
    text = render(TIMED, table=SMALL, format="text")
    assert [" ".join(line.split()) for line in text.splitlines() if re.search(r"\u00d7\d", line)] == [
        "prepare \u00d72, 1.1 s, 22 % (starts here)",
        "-> stream ContextReady \u00d72, 1.1 s / CallModel",
        "stream \u00d72, 3.9 s, 78 %",
        "-> decide ModelResponded \u00d71, 900 ms",
        "decide \u00d71",
        "-> prepare ToolsRequested [turns_left] \u00d71, 0 ms next_turn",
        "-> failed RunAborted \u00d71, 3.0 s aborted",
        "failed \u00d71 (the run is here)",
    ]
    assert text.endswith("\nthe run ended in failed: aborted\nthe whole run took 5.0 s\n")


def test_every_format_tells_the_times() -> None:
    for name in ("mermaid", "dot", "svg"):
        drawn = render(TIMED, table=SMALL, format=name)
        assert "ModelResponded \u00d71, 900 ms" in drawn
        assert "3.9 s, 78 %" in drawn.replace("#37;", "%")


def test_the_bars_are_as_long_as_the_shares() -> None:
    root = ET.fromstring(render(TIMED, table=SMALL, format="svg"))
    bars = [float(rect.get("width", "")) for rect in root.iter(f"{SVG}rect") if rect.get("class") == "share"]
    assert len(bars) == 2  # nothing was spent in decide
    assert bars[1] / bars[0] == pytest.approx(3_900 / 1_100, rel=0.01)


def test_an_open_run_has_spent_time_where_it_is() -> None:
    """Effects tell the time too; the last 2 s were spent waiting for the model."""
    open_run = (at(500, RUN[0]), at(2_500, {"kind": "effect_begin"}))
    walk = walk_of(open_run, SMALL)
    assert walk.dwelt == {State.PREPARE: 500 * MS, State.STREAM: 2_000 * MS}
    text = render(open_run, table=SMALL, format="text")
    assert "stream \u00d71, 2.0 s, 80 % (the run is here)\n" in text
    assert "\nthe run is in stream\n" in text


def test_time_away_is_not_counted() -> None:
    """`mono_ns` begins anew with each process: 1 s in the first, 200 ms in the second."""
    resumed = (at(1_000, RUN[0]), at(50, {"kind": "resumed"}, 1), at(200, RUN[1], 1))
    walk = walk_of(resumed, SMALL)
    assert (walk.whole, walk.away) == (1_200 * MS, 1)
    assert walk.dwelt[State.STREAM] == 200 * MS
    assert "taken over 1 time; time away is not counted" in render(resumed, table=SMALL, format="text")


def test_a_clock_that_is_wrong_makes_no_time() -> None:
    elapsed = Elapsed()
    told = (5, 3, True, "9", None, -7, 8)
    assert [elapsed.at({"mono_ns": value, "epoch": 0}) for value in told] == [5, 5, 5, 5, 5, 5, 8]


def test_two_runs_are_told_apart() -> None:
    text = diff(RUN, ANSWERED, names=("a.jsonl", "b.jsonl"), table=SMALL, format="text")
    assert [" ".join(line.split()) for line in text.splitlines() if "\u00d7" in line] == [
        "prepare \u00d72|\u00d71 (starts here)",
        "-> stream ContextReady \u00d72|\u00d71 / CallModel",
        "stream \u00d72|\u00d71",
        "-> decide ModelResponded \u00d71|\u00d71",
        "decide \u00d71|\u00d71",
        "-> prepare ToolsRequested [turns_left] \u00d71|\u2013 next_turn",
        "-> completed StopHooksPassed \u2013|\u00d71 answered",
        "-> failed RunAborted \u00d71|\u2013 aborted",
        "completed \u2013|\u00d71 (the run is here)",
        "failed \u00d71|\u2013 (the run is here)",
        "\u00d71|\u00d72: times walked in A|in B",
    ]
    assert "\nonly in A: a.jsonl\nonly in B: b.jsonl\n" in text


def strokes(svg: str) -> dict[str, str]:
    """The colour of each edge, by the row it names first."""
    edges = [path for path in ET.fromstring(svg).iter(f"{SVG}path") if path.get("class") == "edge"]
    hints = [(edge.find(f"{SVG}title"), edge.get("stroke", "")) for edge in edges]
    return {re.findall("--(.*?)-->", str(hint.text))[0]: stroke for hint, stroke in hints if hint is not None}


def test_each_run_has_its_colour() -> None:
    colours = strokes(diff(RUN, ANSWERED, table=SMALL))
    only_a, only_b = colours["RunAborted[always]"], colours["StopHooksPassed[always]"]
    assert colours["ToolsRequested[turns_left]"] == only_a
    both, neither = colours["ContextReady[always]"], colours["ModelFailed[always]"]
    assert len({only_a, only_b, both, neither}) == 4
    svg = diff(RUN, ANSWERED, names=("x", "y"), table=SMALL)
    assert re.search(f'fill="{only_a}">only in A: x<', svg)
    assert re.search(f'fill="{only_b}">only in B: y<', svg)


def test_coverage_counts_rows_over_several_runs() -> None:
    text = coverage([RUN, ANSWERED], table=SMALL, format="text")
    # Of the eight rows, ModelFailed, AnswerGiven and ToolsRequested [turns_spent] are walked by neither.
    assert text.endswith("\n5 of 8 rows walked, by 2 runs\n3 of 8 rows never walked\n")
    assert "  -> stream  ContextReady \u00d73  / CallModel\n" in text
    assert "(the run is here)" not in text
    colours = strokes(coverage([RUN, ANSWERED], table=SMALL))
    missed = {name for name, colour in colours.items() if colour == colours["ModelFailed[always]"]}
    assert missed == {"ModelFailed[always]", "ToolsRequested[turns_spent]"}
    assert len(set(colours.values())) == 2


def test_no_run_covers_nothing() -> None:
    assert coverage([], format="text").endswith(f"\n0 of {len(TABLE)} rows walked, by 0 runs\n"
                                                f"{len(TABLE)} of {len(TABLE)} rows never walked\n")  # fmt: skip


def test_a_folded_line_tells_what_its_rows_tell() -> None:
    stays = (at(10, move("prepare", "RunStarted", "prepare")), at(30, move("prepare", "CollapseStaged", "prepare")))
    assert "  stays       9 moves stay \u00d72, 30 ms\n" in render(stays, format="text", fold=True)


def test_a_run_of_another_table_is_refused_everywhere() -> None:
    other = [move("recover", "TroubleNamed", "failed", "fatal", terminal="model_error")]
    with pytest.raises(UsageError, match="the table has no such row"):
        diff(RUN, other, table=SMALL)
    with pytest.raises(UsageError, match="the table has no such row"):
        coverage([RUN, other], table=SMALL)


def test_hostile_names_are_text() -> None:
    name = '<script>"\x1b[31m&]]>\u202e' + "x" * 500
    for format_ in ("svg", "dot", "mermaid", "text"):
        drawn = diff(RUN, ANSWERED, names=(name, name), table=SMALL, format=format_)
        assert "\x1b" not in drawn
        assert "x" * 50 not in drawn
        assert ("<script>" in drawn) == (format_ == "text")
    check(diff(RUN, ANSWERED, names=(name, name), table=SMALL))


@pytest.mark.parametrize("fold", [False, True])
def test_nothing_overlaps_with_a_run_laid_over(fold: bool) -> None:
    forged = (short_run(), long_run(), overflowing(), one_turn(), aborted(one_turn()))
    runs = [forge.records for forge in forged]
    for run in runs:
        check(render(run, format="svg", fold=fold))
    check(diff(runs[0], runs[-1], format="svg", fold=fold))
    check(coverage(runs, format="svg", fold=fold))


def stamped(run: Sequence[dict[str, Any]], steps: Sequence[int]) -> list[dict[str, Any]]:
    """The run with times, `steps` nanoseconds apart."""
    return [{**made, "epoch": 0, "mono_ns": sum(steps[: n + 1])} for n, made in enumerate(run)]


@given(tables(), st.data())
@settings(deadline=None, max_examples=20)
def test_any_overlay_can_be_drawn_and_read(table: Any, data: st.DataObject) -> None:
    def run() -> list[dict[str, Any]]:
        walked = data.draw(st.lists(st.sampled_from(table.rows), max_size=6))
        steps = data.draw(st.lists(st.integers(0, 10**15), min_size=len(walked), max_size=len(walked)))
        return stamped([record(row, data.draw(st.sampled_from(row.sources))) for row in walked], steps)

    one, other, fold = run(), run(), data.draw(st.booleans())
    names = data.draw(st.tuples(st.text(max_size=50), st.text(max_size=50)))
    check(render(one, table=table, format="svg", fold=fold))
    check(diff(one, other, names=names, table=table, fold=fold))
    check(coverage([one, other], table=table, fold=fold))
    for format_ in ("mermaid", "dot", "svg", "text"):
        drawn = diff(one, other, names=names, table=table, format=format_, fold=fold)
        assert drawn == diff(one, other, names=names, table=table, format=format_, fold=fold)
        assert all(line.isprintable() for line in drawn.splitlines())
    walk = walk_of(one, table)
    assert sum(walk.times.values()) == (one[-1]["mono_ns"] if one else 0)


def test_a_thing_with_a_log_is_looked_into() -> None:
    class Holder:
        log = RUN

    assert list(records_of(Holder())) == list(RUN)
