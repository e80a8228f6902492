"""The diagrams say what the table says: all of it, the same each time, and what a run walked of it."""

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from looplatch.diagrams import render
from looplatch.diagrams.files import rendered, with_diagram
from looplatch.proving.verification import verify
from looplatch.states import commands as do
from looplatch.states import events as on
from looplatch.states import guards as when
from looplatch.states.errors import UsageError
from looplatch.states.reasons import Continue, Terminal
from looplatch.states.state import State
from looplatch.states.table import TABLE
from looplatch.states.transition import Table, Transition

ROOT = Path(__file__).resolve().parent.parent

# A user's own machine: three states and two ends.
SMALL = Table(
    rows=(
        Transition(
            sources=(State.PREPARE,),
            event=on.ContextReady,
            guard=when.always,
            target=State.STREAM,
            commands=(do.CallModel(),),
        ),
        Transition(sources=(State.STREAM,), event=on.ModelResponded, guard=when.always, target=State.DECIDE),
        Transition(
            sources=(State.STREAM,),
            event=on.ModelFailed,
            guard=when.always,
            target=State.FAILED,
            terminal=Terminal.MODEL_ERROR,
        ),
        Transition(
            sources=(State.DECIDE,), event=on.AnswerGiven, guard=when.always, target=None, commands=(do.RunStopHooks(),)
        ),
        Transition(
            sources=(State.DECIDE,),
            event=on.ToolsRequested,
            guard=when.turns_left,
            target=State.PREPARE,
            reason=Continue.NEXT_TURN,
        ),
        Transition(
            sources=(State.DECIDE,),
            event=on.ToolsRequested,
            guard=when.turns_spent,
            target=State.FAILED,
            terminal=Terminal.MAX_TURNS,
        ),
        Transition(
            sources=(State.DECIDE,),
            event=on.StopHooksPassed,
            guard=when.always,
            target=State.COMPLETED,
            terminal=Terminal.ANSWERED,
        ),
        Transition(
            sources=(State.PREPARE, State.STREAM, State.DECIDE),
            event=on.RunAborted,
            guard=when.always,
            target=State.FAILED,
            terminal=Terminal.ABORTED,
        ),
    ),
    counters=(),
)

SMALL_TEXT = """\
prepare (starts here)
  -> stream  ContextReady  / CallModel

stream
  -> decide  ModelResponded
  -> failed  ModelFailed     model_error

decide
  stays         AnswerGiven                              / RunStopHooks
  -> prepare    ToolsRequested [turns_left]   next_turn
  -> failed     ToolsRequested [turns_spent]  max_turns
  -> completed  StopHooksPassed               answered

every state
  -> failed  RunAborted  aborted

final
  completed
  failed
"""

SMALL_MERMAID = """\
%%{init: {"themeCSS": "[id$=edge4]{stroke:#1d4ed8!important;stroke-width:2px!important}"}}%%
stateDiagram-v2
    direction TB
    state "prepare" as prepare
    state "stream" as stream
    state "decide" as decide
    decide : AnswerGiven / RunStopHooks
    state "every state" as every_state
    state final {
        state "completed" as completed
        state "failed" as failed
    }
    [*] --> prepare
    prepare --> stream : ContextReady
    stream --> decide : ModelResponded
    stream --> failed : ModelFailed<br/>model_error
    decide --> prepare : ToolsRequested [turns_left]<br/>next_turn
    decide --> failed : ToolsRequested [turns_spent]<br/>max_turns
    decide --> completed : StopHooksPassed<br/>answered
    every_state --> failed : RunAborted<br/>aborted
    classDef shared stroke-dasharray:5
    classDef final font-weight:bold
    classDef last stroke-width:4px
    class every_state shared
    class completed final
    class failed final
"""


def move(
    source: str, event: str, target: str, guard: str = "always", *, reason: str | None = None, **fields: object
) -> dict[str, Any]:
    return {
        "kind": "transition",
        "source": source,
        "event": event,
        "target": target,
        "reason": reason,
        "terminal": None,
        "guards": [[guard, True]],
        **fields,
    }


RUN = (
    move("prepare", "ContextReady", "stream"),
    move("stream", "ModelResponded", "decide"),
    move("decide", "ToolsRequested", "prepare", "turns_left", reason="next_turn"),
    move("prepare", "ContextReady", "stream"),
    move("stream", "RunAborted", "failed", terminal="aborted"),
)


class Log:
    """What a log is to the diagrams: something with `transitions`."""

    transitions = RUN


class Run:
    """What a run is to the diagrams: something with a log."""

    log = Log()


def test_the_committed_files_are_current() -> None:
    """`make diagrams` rewrites them."""
    folder = ROOT / "diagrams"
    assert {name: (folder / name).read_text(encoding="utf-8") for name in rendered()} == rendered()


def test_the_readme_shows_the_current_diagram() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for shown in ("agent_loop", "example_run", "example_sequence", "example_timeline"):
        assert f"(diagrams/{shown}.svg)" in readme
    assert readme == with_diagram(readme)


def test_the_example_is_a_run_that_verifies() -> None:
    report = verify(ROOT / "diagrams" / "example_run.jsonl")
    assert (report.ok, report.status) == (True, "sealed"), str(report)


def test_an_outdated_mermaid_block_is_replaced() -> None:
    page = "# A\n```mermaid\nstateDiagram-v2\n    old --> older\n```\nand\n```python\nx\n```\n"
    assert with_diagram(page) == f"# A\n```mermaid\n{render()}```\nand\n```python\nx\n```\n"


def test_a_small_table_as_text() -> None:
    assert render(table=SMALL, format="text") == SMALL_TEXT


def test_a_small_table_as_mermaid() -> None:
    assert render(table=SMALL) == SMALL_MERMAID


@pytest.mark.parametrize("source", [RUN, Log(), Run()], ids=["records", "log", "run"])
def test_a_run_is_counted_on_the_machine(source: Any) -> None:
    text = render(source, table=SMALL, format="text")
    assert [line.strip() for line in text.splitlines() if re.search(r"\u00d7\d", line)] == [
        "prepare \u00d72 (starts here)",
        "-> stream  ContextReady \u00d72  / CallModel",
        "stream \u00d72",
        "-> decide  ModelResponded \u00d71",
        "decide \u00d71",
        "-> prepare    ToolsRequested [turns_left] \u00d71  next_turn",
        "-> failed  RunAborted \u00d71  aborted",
        "failed \u00d71 (the run is here)",
    ]


def test_other_kinds_of_records_are_not_counted() -> None:
    others = ({"kind": "genesis"}, *RUN, {**RUN[0], "kind": "rejected"}, {"kind": "terminal"})
    assert render(others, table=SMALL, format="text") == render(RUN, table=SMALL, format="text")


def test_a_record_without_verdicts_is_known_by_its_ends_and_reason() -> None:
    moves = [
        {"source": "recover", "event": "TroubleNamed", "target": "prepare", "reason": reason}
        for reason in ("stop_hook_blocking", "collapse_drain_retry", "stop_hook_blocking")
    ]
    text = render(moves, format="text")
    counted = [" ".join(line.split()[2:5]) for line in text.splitlines() if "TroubleNamed" in line and "\u00d7" in line]
    assert counted == ["TroubleNamed [collapses_staged] \u00d71", "TroubleNamed [blocks_left] \u00d72"]


def test_what_was_never_walked_is_faint() -> None:
    text = render(RUN, table=SMALL, format="dot")
    line = {name: next(x for x in text.splitlines() if f"{name}<BR" in x or f"{name}</FONT>" in x) for name in
            ("ModelFailed", "ModelResponded \u00d71")}  # fmt: skip
    assert 'color="#cbd5e1"' in line["ModelFailed"]
    assert 'color="#cbd5e1"' not in line["ModelResponded \u00d71"]
    mermaid = render(RUN, table=SMALL)
    assert "class completed never" in mermaid
    assert "class failed last" in mermaid
    assert "class decide never" not in mermaid


def test_a_run_of_another_table_is_refused() -> None:
    moves = [*RUN, move("recover", "TroubleNamed", "failed", "fatal", seq=12, terminal="model_error")]
    with pytest.raises(UsageError) as caught:
        render(moves, table=SMALL)
    assert str(caught.value) == (
        "log_or_run: record 12 moves from recover by TroubleNamed to failed, and the table has no such row. "
        "Draw a run with the table that it ran on"
    )


@pytest.mark.parametrize("source", ["run.jsonl", b"{}", 7, {"kind": "transition"}])
def test_what_is_no_log_is_refused(source: Any) -> None:
    with pytest.raises(UsageError, match="neither a log nor a run nor a list of records") as caught:
        render(source)
    assert caught.value.what == "log_or_run"


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        render(format="gif")  # type: ignore[call-overload] # pyright: ignore[reportCallIssue, reportArgumentType] - the point
    assert str(caught.value) == "format: 'gif' is not known. Take one of mermaid, dot, svg, png, text, html"


def test_folded_moves_are_counted() -> None:
    text = render(format="text", fold=True)
    stays = Counter(
        source for row in TABLE.rows if row.target is None for source in row.sources if len(row.sources) < 3
    )
    assert f"  stays       {stays[State.PREPARE]} moves stay\n" in text
    assert "  stays           1 move stays\n" in text.split("stream\n", 1)[1]
    assert "RunStarted" not in text
    assert "RunStarted" not in render(fold=True)


def test_the_files_do_not_depend_on_the_process(tmp_path: Path) -> None:
    """Sets and hashes differ from process to process; the pictures do not."""
    folder = tmp_path / "diagrams"
    folder.mkdir()
    (tmp_path / "README.md").write_text("```mermaid\nold\n```\n", encoding="utf-8")
    printed: list[list[str]] = []
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-m", "looplatch.diagrams", str(folder)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        printed.append([Path(line).name for line in done.stdout.splitlines()])
    assert printed == [[*rendered(), "README.md"], []]
    assert {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()} == rendered()
    assert (tmp_path / "README.md").read_text(encoding="utf-8") == f"```mermaid\n{render()}```\n"


def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "looplatch.diagrams", "nowhere"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (
        2,
        "usage: python -m looplatch.diagrams [FOLDER]; nowhere is not a folder\n",
    )
