"""`looplatch replay`: the outcome, and the walk through the moves: by lines of a pipe, by keys of a real terminal."""

import json
import os
import pty
import select
import subprocess
import sys
from pathlib import Path

import pytest

from looplatch import read
from looplatch.cli import main
from tests.playing import play
from tests.stories import THREE_TURNS
from tests.test_replaying import tampered, tools_and_an_answer


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    script, _ = THREE_TURNS.script()
    file = tmp_path / "run.jsonl"
    play(script, log=file, **THREE_TURNS.options)
    return file


@pytest.fixture
def bent(tmp_path: Path) -> Path:
    file = tmp_path / "bent.jsonl"
    log = tampered(tools_and_an_answer(), "ToolsRequested", target="recover")
    file.write_bytes(b"".join(log.lines))
    return file


def test_the_outcome_as_json(kept: Path, bent: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(kept), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"ok": True, "agreed": 13, "difference": None}
    assert main(["replay", str(bent), "--json"]) == 1
    difference = json.loads(capsys.readouterr().out)["difference"]
    assert difference["state"] == "decide"
    assert difference["event"] == "ToolsRequested"
    assert (difference["field"], difference["expected"], difference["recorded"]) == ("target", "orchestrate", "recover")


def heads_of(log: Path) -> list[str]:
    """How each move is headed."""
    moves = read(log).transitions
    return [f"[{number}/{len(moves)}] record {move.seq}" for number, move in enumerate(moves, 1)]


def walked(log: Path, keys: str) -> tuple[int, list[str]]:
    command = [sys.executable, "-Im", "looplatch", "replay", "--step", str(log)]
    done = subprocess.run(command, input=keys, capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    return done.returncode, [line for line in done.stdout.splitlines() if line.startswith("[")]


def test_moves_are_walked_by_the_lines_of_a_pipe(kept: Path) -> None:
    heads = heads_of(kept)
    code, shown = walked(kept, "n\n\nb\n4\nb\nnonsense\n99\nn\nq\nn\n")
    assert code == 0
    # 4 is the request: the move after it is shown
    assert [line.split(":")[0] for line in shown] == [heads[place] for place in (0, 1, 2, 1, 2, 1, 12)]


def test_the_walk_ends_with_its_input_and_at_the_first_move_that_is_not_the_machines(
    bent: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    read, write = os.pipe()
    os.write(write, b"99\nn\n")
    os.close(write)
    with os.fdopen(read) as given:
        monkeypatch.setattr("sys.stdin", given)
        assert main(["replay", "--step", str(bent)]) == 1
    out = capsys.readouterr().out
    assert "the machine does not do that: target" in out
    assert "expected: 'orchestrate'" in out
    assert "recorded: 'recover'" in out
    assert out.endswith("this is the last move\n")


class Terminal:
    """A command at a terminal of its own."""

    def __init__(self, *command: str) -> None:
        self._end, other = pty.openpty()
        self.process = subprocess.Popen(command, stdin=other, stdout=other, stderr=other, close_fds=True)
        os.close(other)
        self.shown = ""

    def until(self, text: str) -> str:
        """What was shown since the last call, up to `text`."""
        while text not in self.shown:
            ready, _, _ = select.select([self._end], [], [], 60)
            assert ready, self.shown
            self.shown += os.read(self._end, 4096).decode()
        before, _, self.shown = self.shown.partition(text)
        return before

    def press(self, keys: bytes) -> None:
        os.write(self._end, keys)

    def ended(self) -> int:
        code = self.process.wait(60)
        os.close(self._end)
        return code


def test_moves_are_walked_by_the_keys_of_a_terminal(kept: Path) -> None:
    terminal = Terminal(sys.executable, "-Im", "looplatch", "replay", "--step", str(kept))
    heads = heads_of(kept)
    terminal.until(heads[0])
    terminal.until("the machine does the same")
    for keys, shown in (
        (b"n", heads[1]),
        (b"\x1b[C", heads[2]),
        (b"b", heads[1]),
        (b"99\r", heads[12]),
        (b"\x1b[D", heads[11]),
        (b"x", "a number and Enter"),
        (b"5n", heads[12]),
    ):
        terminal.press(keys)
        terminal.until(shown)
    terminal.press(b"q")
    assert terminal.ended() == 0


def test_step_and_json_exclude_one_another(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["replay", "--step", "--json", str(kept)])
    assert left.value.code == 2
    assert "not allowed with" in capsys.readouterr().err


# --- what the entry does for every command


def test_a_closed_standard_output_is_told() -> None:
    done = subprocess.run(
        ["sh", "-c", 'exec "$0" -Im looplatch demo >&-', sys.executable], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2
    assert done.stderr.startswith("looplatch: standard output is closed")


INTERRUPTED_IMPORT = """
import sys

class Interrupts:
    def find_spec(self, name, path=None, target=None):
        if name == "looplatch.cli.entry":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupts())
from looplatch import read
from looplatch.cli import main
sys.exit(main(["--version"]))
"""


def test_ctrl_c_while_the_command_line_loads_is_quiet() -> None:
    done = subprocess.run([sys.executable, "-Ic", INTERRUPTED_IMPORT], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_an_empty_path_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["demo", "--dir", ""])
    assert left.value.code == 2
    assert "the path is empty" in capsys.readouterr().err
