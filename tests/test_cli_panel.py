"""The live view in a terminal: what a terminal shows of it, at any width, and that nothing is left behind."""

import fcntl
import io
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pyte
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from looplatch.blocks import TextBlock, ToolUseBlock
from looplatch.cli.cells import cells, fitted, wrapped
from looplatch.cli.exits import Exit
from looplatch.cli.live import LiveView
from looplatch.cli.panel import PanelScreen, screen_for
from looplatch.cli.screen import Screen, Style
from looplatch.cli.status import Status
from looplatch.messages import ToolMessage, ToolPhase, TransitionMessage
from looplatch.states.record import Record
from looplatch.testing import ScriptedAPI, reply, tool_use
from tests.test_cli_live import START, STOP, answer, delta, move

pytestmark = pytest.mark.skipif(os.name == "nt", reason="there are no pseudo-terminals")


class Terminal(io.StringIO):
    """A terminal of a size, which an emulator shows; its window can be made larger and smaller."""

    def __init__(self, columns: int, rows: int) -> None:
        super().__init__()
        self.screen = pyte.HistoryScreen(columns, rows, history=10_000, ratio=0.5)
        self.stream = pyte.Stream(self.screen)
        self.raw = ""

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.raw += text
        self.stream.feed(text.replace("\n", "\r\n"))  # as the line discipline does
        return len(text)

    @property
    def shown(self) -> list[str]:
        """All rows, those that scrolled away too, without the empty ones at the end."""
        width = self.screen.columns
        gone = ["".join(row[x].data for x in range(width)).rstrip() for row in self.screen.history.top]
        rows = [*gone, *(row.rstrip() for row in self.screen.display)]
        while rows and not rows[-1]:
            rows.pop()
        return rows


class Clock:
    """Seconds that pass when they are told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        self.now += 1.0  # each look is a second later: every picture is drawn
        return self.now


@pytest.fixture
def window(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Terminal]:
    def opened(columns: int = 60, rows: int = 12) -> Terminal:
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setenv("LINES", str(rows))
        return Terminal(columns, rows)

    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    return opened


def view_on(terminal: Terminal, now: Callable[[], float] | None = None) -> tuple[LiveView, PanelScreen]:
    screen = PanelScreen(terminal, Clock())
    return LiveView(screen, now or (lambda: 7.0)), screen


def tool(phase: ToolPhase, id_: str = "t1", **more: Any) -> ToolMessage:
    return ToolMessage(phase=phase, tool_use_id=id_, name="read", **more)


def test_tools_and_the_run_have_a_row_at_the_foot(window: Callable[..., Terminal]) -> None:
    terminal = window()
    view, _screen = view_on(terminal, lambda: 3.5)
    with view.following():
        view.show(answer(ToolUseBlock(id="t1", name="read", input={"path": "a.txt"})))
        view.show(move("prepare", "stream", "ContextReady", change={"turn": 2}))
        view.show(tool(ToolPhase.START))
        view.show(tool(ToolPhase.PROGRESS, progress=("half", 50)))
        view.tick()
        assert terminal.shown == [
            "> 0 ms read path='a.txt': half 50",
            "[stream] | turn 2 | 0 ms | Ctrl-C ends the run",
        ]
        view.show(tool(ToolPhase.END, cause="answered"))
        assert terminal.shown == [
            "< read path='a.txt': answered, 0 ms",
            "[stream] | turn 2 | 0 ms | Ctrl-C ends the run",
        ]
    assert terminal.shown == ["< read path='a.txt': answered, 0 ms"]


def test_time_passes_in_the_panel(window: Callable[..., Terminal]) -> None:
    terminal, at = window(), [0.0]
    view, _screen = view_on(terminal, lambda: at[0])
    with view.following():
        view.show(tool(ToolPhase.START))
        at[0] = 2.5
        view.tick()
        assert terminal.shown == ["> 2.5 s read", "[prepare] | turn 1 | 2.5 s | Ctrl-C ends the run"]


@pytest.mark.parametrize("columns", [10, 24, 40, 80, 200])
def test_text_is_written_above_the_panel_at_any_width(window: Callable[..., Terminal], columns: int) -> None:
    terminal = window(columns)
    view, _screen = view_on(terminal)
    text = "The quick brown fox jumps over the lazy dog, 你好 twice, and then on to the next line.\nAnd ends."
    with view.following():
        view.show(START)
        for index in range(0, len(text), 3):
            view.show(delta(text[index : index + 3]))
            assert all(cells(row) < columns for row in terminal.shown)
            assert terminal.shown[-1].startswith("[prepare]"[: columns - 4])
            assert sum(row.startswith("[prepa") for row in terminal.shown) == 1
        view.show(STOP)
        view.show(answer(TextBlock(text=text)))
    assert " ".join(terminal.shown).split() == text.split()


def test_a_window_made_narrower_leaves_nothing_behind(window: Callable[..., Terminal]) -> None:
    terminal = window(60, 12)
    view, screen = view_on(terminal)
    with view.following():
        screen.line("done")
        view.show(tool(ToolPhase.START))
        view.tick()
        narrow = window(30, 12)  # the terminal breaks the rows that are there in two
        for row in terminal.shown:
            narrow.write("\n" * bool(narrow.raw) + row)
        terminal.screen, terminal.stream, terminal.raw = narrow.screen, narrow.stream, ""
        screen.line("more")
    assert terminal.shown == ["done", "more"]


def test_whoever_asks_has_the_terminal_for_himself(window: Callable[..., Terminal]) -> None:
    terminal = window()
    view, _screen = view_on(terminal)
    with view.following():
        view.show(START)
        view.show(delta("half a sen"))
        with view.paused():
            view.tick()
            assert terminal.shown == ["half a sen"]
            terminal.write("Allow deploy? yes\n")
            view.show(move("orchestrate", "suspended", "ApprovalAwaited", reason="next_turn"))
        assert terminal.shown == [
            "half a sen",
            "Allow deploy? yes",
            "[orchestrate -> suspended] ApprovalAwaited, next_turn",
            "[suspended] | turn 1 | 0 ms | Ctrl-C ends the run",
        ]


def test_many_calls_are_counted(window: Callable[..., Terminal]) -> None:
    terminal = window(60, 24)
    view, _screen = view_on(terminal)
    with view.following():
        for number in range(10):
            view.show(tool(ToolPhase.START, f"t{number}"))
        assert terminal.shown[-2:] == ["> and 4 more calls", "[prepare] | turn 1 | 0 ms | Ctrl-C ends the run"]
        assert len(terminal.shown) == 8


def test_a_low_window_keeps_the_row_of_the_run(window: Callable[..., Terminal]) -> None:
    terminal = window(60, 4)
    view, screen = view_on(terminal)
    with view.following():
        for number in range(10):
            view.show(tool(ToolPhase.START, f"t{number}"))
        screen.line("said")
        assert terminal.shown[-3:] == ["said", "> and 4 more calls", "[prepare] | turn 1 | 0 ms | Ctrl-C ends the run"]
    assert terminal.shown == ["said"]


def test_no_text_steers_the_terminal(window: Callable[..., Terminal]) -> None:
    terminal = window(70)
    view, _screen = view_on(terminal)
    evil = "\x1b[2J\x1b]0;title\x07\r\x9b31m\u202eevil\t\x00"
    with view.following():
        view.show(answer(ToolUseBlock(id="t1", name=evil, input={evil: evil})))
        view.show(ToolMessage(phase=ToolPhase.START, tool_use_id="t1", name=evil))
        view.show(ToolMessage(phase=ToolPhase.START, tool_use_id="t2", name=evil))
        view.show(ToolMessage(phase=ToolPhase.PROGRESS, tool_use_id="t1", name=evil, progress=(evil, evil)))
        view.show(START)
        view.show(delta(evil))
        view.show(TransitionMessage(record=Record({"kind": "rejected", "source": evil, "event": evil, "target": "x"})))
        view.show(ToolMessage(phase=ToolPhase.END, tool_use_id="t1", name=evil, cause=evil))
    left = re.sub(r"\x1b\[\d+A|\x1b\[J|\r", "", terminal.raw)
    assert all(char.isprintable() or char == "\n" for char in left), ascii(left)


def test_what_was_spent_is_told_as_far_as_there_is_room() -> None:
    status = Status()
    status.stream({"type": "message_start", "message": {"usage": {"input_tokens": 12, "cache_read_input_tokens": 30}}})
    status.stream({"type": "message_delta", "usage": {"output_tokens": 5}})
    whole = "[prepare] | turn 1 | 1.5 s | 42 tokens read, 5 written | Ctrl-C ends the run"
    assert status.line(1.5, 200) == whole
    assert status.line(1.5, len(whole) - 1) == "[prepare] | turn 1 | 1.5 s | 42 tokens read, 5 written"
    assert status.line(1.5, 20) == "[prepare] | turn 1"
    change = {"turn": 3, "input_tokens": 20_000, "cache_read_tokens": 480, "output_tokens": 7, "cost_micro_usd": 12_345}
    status.move(Record({"kind": "transition", "source": "stream", "target": "decide", "change": change}))
    assert (
        status.line(100, 200)
        == "[decide] | turn 3 | 1 min 40 s | 20k tokens read, 7 written | $0.0123 | Ctrl-C ends the run"
    )


@given(st.text(st.characters(blacklist_categories=["Cs", "Cc"]), max_size=60), st.integers(0, 30))
def test_a_text_is_cut_to_the_columns_that_there_are(text: str, width: int) -> None:
    assert cells(fitted(text, width)) <= width
    if cells(text) <= width:
        assert fitted(text, width) == text


@given(st.text("ab 你e\u0301", max_size=80), st.integers(2, 20))
def test_breaking_lines_loses_nothing_but_spaces(text: str, width: int) -> None:
    rest, lines = text, list[str]()
    while (parts := wrapped(rest, width))[0]:
        lines.append(parts[0])
        rest = parts[1]
    assert all(cells(line) <= width for line in [*lines, rest])
    assert "".join([*lines, rest]).replace(" ", "") == text.replace(" ", "")


WRITES = st.one_of(
    st.tuples(st.just("line"), st.text("abc de", max_size=40)),
    st.tuples(st.just("write"), st.text("abc de\n", max_size=40)),
    st.tuples(st.just("start"), st.sampled_from(["t1", "t2", "t3"])),
    st.tuples(st.just("end"), st.sampled_from(["t1", "t2", "t3"])),
    st.tuples(st.just("pause"), st.just("")),
)


@given(st.lists(WRITES, max_size=12), st.integers(8, 50), st.integers(3, 12), st.booleans())
@settings(deadline=None, max_examples=60)
def test_whatever_is_written_stands_there_once(
    script: list[tuple[str, str]], columns: int, rows: int, slow: bool
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(columns))
        patch.setenv("LINES", str(rows))
        patch.setenv("NO_COLOR", "1")
        terminal = Terminal(columns, rows)
        screen = PanelScreen(terminal, Clock() if slow else (lambda: 1.0))
        view = LiveView(screen, lambda: 0.0)
        wanted = ""
        with view.following():
            for what, text in script:
                match what:
                    case "line":
                        screen.line(text)
                        wanted += f" {text} "
                    case "write":
                        screen.write(text)
                        wanted += text
                    case "start":
                        view.show(tool(ToolPhase.START, text))
                    case "pause":
                        with view.paused():
                            pass
                    case _:
                        view.show(tool(ToolPhase.END, text, cause="done"))
                        wanted += " < read: done, 0 ms " if f"start {text}" in seen(script) else " < read: done "
        stripped = re.sub(r"<read:done(,0ms)?|\.\.\.", "", "".join("".join(terminal.shown).split()))
        assert stripped == re.sub(r"<read:done(,0ms)?", "", "".join(wanted.split()))


def seen(script: list[tuple[str, str]]) -> set[str]:
    return {f"{what} {text}" for what, text in script}


def test_only_a_terminal_that_moves_has_a_panel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    assert isinstance(screen_for(Terminal(80, 24)), PanelScreen)
    assert type(screen_for(io.StringIO())) is Screen
    for dumb in ("dumb", ""):
        monkeypatch.setenv("TERM", dumb) if dumb else monkeypatch.delenv("TERM")
        assert type(screen_for(Terminal(80, 24))) is Screen


def test_colours_never_change_the_width(window: Callable[..., Terminal], monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = window(20)
    monkeypatch.delenv("NO_COLOR")
    view, screen = view_on(terminal)
    with view.following():
        screen.write("a faint text that is longer than a row", Style.FAINT)
        assert terminal.shown == ["a faint text that", "is longer than a", "row", "[prepare] | turn 1"]
    assert "\x1b[2m" in terminal.raw


# --- the real thing


@pytest.fixture
def in_terminal(tmp_path: Path) -> Generator[Callable[..., tuple[int, list[str], str]]]:
    """Run the command line in a pseudo-terminal; gives the exit code, what the terminal shows, and the raw output."""
    processes: list[subprocess.Popen[bytes]] = []

    def run(
        columns: int, *arguments: str, stop_at: bytes | None = None, yes_at: bytes | None = None, **env: str
    ) -> tuple[int, list[str], str]:
        leader, follower = pty.openpty()
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        clean = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
        process = subprocess.Popen(
            [sys.executable, "-Im", "looplatch", *arguments],
            stdin=follower,
            stdout=follower,
            stderr=follower,
            env={**clean, "TERM": "xterm", **env},
            cwd=tmp_path,
            start_new_session=True,
        )
        processes.append(process)
        os.close(follower)
        raw = b""
        while True:
            try:
                piece = os.read(leader, 65_536)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            raw += piece
            if stop_at is not None and stop_at in raw:
                os.kill(process.pid, signal.SIGINT)  # as the terminal does for Ctrl-C
                stop_at = None
            if yes_at is not None and yes_at in raw:
                os.write(leader, b"y\n")
                yes_at = None
        os.close(leader)
        terminal = Terminal(columns, 24)
        terminal.stream.feed(raw.decode())
        return process.wait(), terminal.shown, raw.decode()

    yield run
    for process in processes:
        process.kill()
        process.wait()


@pytest.mark.parametrize(("columns", "env"), [(90, {}), (30, {"NO_COLOR": "1"})])
def test_the_demo_in_a_real_terminal(
    in_terminal: Callable[..., tuple[int, list[str], str]], tmp_path: Path, columns: int, env: dict[str, str]
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a.txt").write_text("hello \x1b[31mred\n")
    code, shown, raw = in_terminal(columns, "demo", "--dir", "folder", "--log", "run.jsonl", **env)
    assert code == Exit.GOOD
    assert "[stream] | turn 1" in raw
    assert not any(row.startswith("[stream] | turn") for row in shown), "the panel is left behind"
    assert "".join(shown).replace(" ", "").count("verified:ok:sealed") == 1
    assert all(cells(row) <= columns for row in shown)
    steering = set(re.findall(r"\x1b[^A-Za-z]*[A-Za-z]", raw))
    moves = {found for found in steering if not found.endswith("m")}
    assert all(re.fullmatch(r"\x1b\[(\d+A|J)", found) for found in moves), moves
    assert (steering == moves) == ("NO_COLOR" in env)


def test_ctrl_c_in_a_real_terminal(in_terminal: Callable[..., tuple[int, list[str], str]], tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello")
    code, shown, _raw = in_terminal(70, "demo", "--dir", ".", "--log", "run.jsonl", stop_at=b"[stream]")
    assert code == Exit.INTERRUPTED
    assert "aborting; Ctrl-C again ends at once" in shown
    assert not any(row.startswith("[stream] | turn") for row in shown)
    assert any("aborted" in row for row in shown)


def test_a_question_stands_alone_in_a_real_terminal(
    in_terminal: Callable[..., tuple[int, list[str], str]], tmp_path: Path
) -> None:
    """Whoever is asked sees no panel; afterwards the view goes on below."""
    call = tool_use("t1", "write", {"file_path": "a.txt", "content": "hello"})
    with ScriptedAPI([reply("I write it now.", call), reply("Done.")]).serve_in_thread() as url:
        env = {"ANTHROPIC_API_KEY": "key", "ANTHROPIC_BASE_URL": url, "NO_PROXY": "127.0.0.1", "NO_COLOR": "1"}
        code, shown, raw = in_terminal(
            90, "run", "Write.", "--dir", ".", "--log", "run.jsonl", "--model", "m", yes_at=b"allow it?", **env
        )
    assert code == Exit.GOOD
    assert (tmp_path / "a.txt").read_text() == "hello"
    before, _, after = raw.partition("allow it?")
    terminal = Terminal(90, 24)
    terminal.stream.feed(before)
    assert terminal.shown[2:] == [
        "I write it now.",
        "",
        "The model wants to call write:",
        "  file_path: a.txt",
        "  content: hello",
    ]
    assert " | turn 1 | " in after
    assert [row for row in shown if row.startswith("allow it?")] == [
        "allow it? [y]es, [n]o, [a]lways or ne[v]er for write, [l]ater: y"
    ]
    assert "Done." in shown
