"""Notebooks show a loop, a run and a log as pictures, without loading what draws them before."""

import asyncio
import subprocess
import sys
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import looplatch
from looplatch.audit import Log, MemoryLog
from looplatch.diagrams import render, timeline_svg
from looplatch.diagrams.walk import walk_of
from looplatch.states.record import Kind
from looplatch.states.state import State
from looplatch.states.table import TABLE
from looplatch.testing import ScriptedAPI, reply, tool_use
from tests.playing import echo, play
from tests.test_diagrams import RUN, SMALL


def svg_of(shown: Any) -> str:
    drawn: str = getattr(shown, "_repr_svg_")()  # noqa: B009 - as a notebook asks
    ET.fromstring(drawn)
    return drawn


def html_of(shown: Any) -> Any:
    return getattr(shown, "_repr_html_")()  # noqa: B009 - as a notebook asks


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        self.attributes.update(name for name, _value in attrs)


def test_a_loop_is_shown_as_its_machine() -> None:
    assert svg_of(looplatch.Loop(model="m", client=ScriptedAPI([]).client())) == render(format="svg")


def test_a_run_is_shown_as_the_machine_and_then_by_what_it_did() -> None:
    async def shown() -> tuple[str, Any, str, str]:
        async with ScriptedAPI([reply("Hello.")]).client() as client:
            run = looplatch.Loop(model="m", client=client).run("Go.")
            before = (svg_of(run), html_of(run))
            await run
            return *before, svg_of(run), html_of(run)

    svg_before, html_before, svg, html = asyncio.run(shown())
    assert (svg_before, html_before) == (render(format="svg"), None)
    assert "AnswerGiven \u00d71" in svg or "moves stay \u00d71" in svg
    assert "ended: answered" in html


def test_a_log_is_shown_by_its_timeline_and_its_way() -> None:
    hostile = "<img src=x onerror=alert(1)>"
    name = "tool_" + "x" * 20
    script = [reply(tool_use("t1", name, {"path": hostile})), reply("</svg><script>alert(1)</script>")]
    log = play(script, tools=[echo(name)]).log
    html = html_of(log)
    assert timeline_svg(log) in html
    assert render(log, format="svg", fold=True) in html
    assert svg_of(log) == render(log, format="svg", fold=True)
    tags = Tags()
    tags.feed(html)
    assert tags.seen == {"div", "code", "svg", "rect", "title", "text", "path", "circle", "details", "summary"}
    assert not any(attribute.startswith("on") or attribute == "href" for attribute in tags.attributes)


def test_a_log_that_cannot_be_read_is_shown_as_text(tmp_path: Path) -> None:
    damaged = Log([b"{}\n"], MemoryLog("r").payloads)
    assert html_of(damaged) is None
    assert getattr(damaged, "_repr_svg_")() is None  # noqa: B009 - as a notebook asks


def test_moves_by_rows_of_another_table_are_told_of() -> None:
    """A log that another table judged is drawn as far as this one goes."""
    genesis = {"kind": "genesis", "table": TABLE.fingerprint}
    stranger = {"kind": "transition", "source": "recover", "event": "TroubleNamed", "target": "failed", "terminal": "x"}
    run = [genesis, *RUN[:1], stranger]
    walk = walk_of(run, SMALL)
    assert (walk.others, walk.last) == (1, State.FAILED)
    assert "1 move by rows that this table does not have" in render(run, table=SMALL, format="text")
    resumed = {"kind": Kind.RESUMED, "changes": {"table": {"was": SMALL.fingerprint, "now": TABLE.fingerprint}}}
    own = {"kind": "genesis", "table": SMALL.fingerprint}
    assert walk_of([own, *RUN[:1], resumed, stranger], SMALL).others == 1


def test_nothing_that_draws_is_loaded_before_it_is_asked_for() -> None:
    code = (
        "import sys, looplatch; looplatch.Loop, looplatch.Run, looplatch.Log; "
        "print(any(name.startswith('looplatch.diagrams') for name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-Ic", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
