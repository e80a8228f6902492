"""The sequence diagram of a run: who said what to whom, in the order of the records."""

import asyncio
import re
import xml.etree.ElementTree as ET
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from looplatch.diagrams import render
from looplatch.diagrams.sequence import MOST, TOOLS, sequence_of
from looplatch.diagrams.source import Source
from looplatch.states.errors import UsageError
from tests.busy_runs import Scribe, long_run, three_turns
from tests.playing import played
from tests.stories import STORIES
from tests.test_diagrams_pictures import read
from tests.test_diagrams_timeline import ODD

LINE = re.compile(
    r"sequenceDiagram|    participant p\d+ as [\w ,./()#;|\[\]\u00d7]+"
    r"|    (p\d+(->>|-->>|--x)p\d+|Note over p\d+): [\w ,./()#;|\[\]\u00d7]*|    (de)?activate p\d+"
)

THREE_TURNS = """\
sequenceDiagram
    participant p0 as consumer
    participant p1 as loop
    participant p2 as model
    participant p3 as hooks
    participant p4 as read (tool)
    participant p5 as grep (tool)
    participant p6 as deploy (tool)
    p0->>p1: run
    p1->>p2: turn 1
    activate p2
    p1->>p4: toolu_4
    activate p4
    p1->>p5: toolu_5
    activate p5
    p4-->>p1: answered, 500 ms
    deactivate p4
    p2-->>p1: tool_use, 1.2 s
    deactivate p2
    p5-->>p1: answered, 1.1 s
    deactivate p5
    Note over p1: turn 2
    p1->>p2: turn 2
    activate p2
    p2--xp1: overloaded_error, 250 ms
    deactivate p2
    Note over p1: ModelFailed
    Note over p1: back#45;off, 1500 ms
    p1->>p2: turn 2
    activate p2
    p2-->>p1: tool_use, 900 ms
    deactivate p2
    p1->>p3: before_tool guard
    activate p3
    p3-->>p1: Ask, 40 ms
    deactivate p3
    p1-->>p0: approval awaited
    Note over p1: taken over after 1 h 0 min
    p0->>p1: resume
    p0->>p1: approval given
    p1->>p6: toolu_31
    activate p6
    p6-->>p1: failed, 800 ms
    deactivate p6
    Note over p1: turn 3
    p1->>p2: summary
    activate p2
    p2-->>p1: ok, 500 ms
    deactivate p2
    Note over p1: HistoryCompressed
    p1->>p2: turn 3
    activate p2
    p2-->>p1: end_turn, 1.1 s
    deactivate p2
    p1-->>p0: completed, answered
"""


def check_sequence(source: Source) -> str:
    """Assert that both forms can be read; returns the Mermaid text."""
    text = render(source, kind="sequence")
    active: dict[str, int] = {}
    for line in text.splitlines():
        assert LINE.fullmatch(line), line
        if found := re.fullmatch(r"    (de)?activate (p\d+)", line):
            active[found[2]] = active.get(found[2], 0) + (-1 if found[1] else 1)
            assert active[found[2]] >= 0, "Mermaid refuses to end what has not begun"
    assert set(active.values()) <= {0}
    svg = render(source, kind="sequence", format="svg")
    picture = read(svg)
    for box in (*picture.texts, *picture.cards):
        assert picture.page.holds(box), f"{box} is not on the page"
    for one, other in combinations(picture.texts, 2):
        assert not one.meets(other), f"{one} lies on {other}"
    assert (text, svg) == (render(source, kind="sequence"), render(source, kind="sequence", format="svg"))
    return text


def test_three_turns_as_mermaid() -> None:
    assert check_sequence(three_turns().records) == THREE_TURNS


def test_a_long_run_keeps_its_beginning_and_its_end() -> None:
    sequence = sequence_of(long_run(300).records)
    texts = [step.text for step in sequence.steps]
    assert len(texts) == MOST + 1
    assert texts[0] == "run"
    assert texts[-1] == "completed, answered"
    assert re.fullmatch(r"\d,\d{3} steps left out", texts[MOST // 2])
    text = check_sequence(long_run(300).records)
    assert len(text) < 50_000  # what Mermaid takes


def test_many_tools_share_a_column() -> None:
    scribe = Scribe()
    for number in range(TOOLS + 3):
        scribe.end(scribe.tool(f"tool_{number}"), "answered")
    sequence = sequence_of(scribe.records)
    assert sequence.parties == ("loop", *(f"tool_{number} (tool)" for number in range(TOOLS)), "other tools")
    check_sequence(scribe.records)


def test_a_failed_call_is_a_crossed_arrow() -> None:
    scribe = Scribe()
    scribe.end(scribe.tool("write"), "failed", is_error=True)
    assert "    p1--xp0: failed, 0 ms\n" in check_sequence(scribe.records)


def test_hostile_names_are_text() -> None:
    scribe = Scribe()
    scribe.end(scribe.tool("end\n    Note over p0: owned; </text><script>#59;\x1b[31m\u202e" + "y" * 999), "]]>: x\n")
    text = check_sequence(scribe.records)
    svg = render(scribe.records, kind="sequence", format="svg")
    ET.fromstring(svg)
    assert "<script" not in svg
    for drawn in (text, svg):
        assert "\x1b" not in drawn
        assert "y" * 100 not in drawn


@given(st.lists(st.fixed_dictionaries({}, optional={
    "kind": st.sampled_from(["transition", "effect_begin", "effect_end", "resumed", "rejected", "genesis"]) | ODD,
    "seq": st.integers(0, 5) | ODD, "effect": st.integers(0, 5) | ODD, "mono_ns": st.integers(0, 10**15) | ODD,
    "class": st.sampled_from(["model", "tool", "sleep", "hook", "summary", "size"]) | ODD, "sent": ODD,
    "name": ODD, "outcome": ODD, "ts": ODD, "event": ODD, "reason": ODD, "terminal": ODD, "target": ODD,
}), max_size=12))  # fmt: skip
@settings(deadline=None, max_examples=60)
def test_any_records_can_be_drawn(records: list[dict[str, Any]]) -> None:
    check_sequence(records)


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_real_runs_can_be_drawn(story: Any) -> None:
    script, watch = story.script()
    play = asyncio.run(played(script, watch=watch, **story.options))
    text = check_sequence(play.run)
    assert text.count("->>p2: turn") == len(play.api.requests)
    assert text.endswith(f", {play.result.terminal}\n")


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(UsageError, match=r"a sequence is not drawn as 'dot'\. Take one of mermaid"):
        render(three_turns().records, kind="sequence", format="dot")
    with pytest.raises(UsageError, match="a sequence needs a run"):
        render(kind="sequence")
