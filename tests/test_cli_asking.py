"""Asking on the command line: real processes on a real terminal, answered by keys."""

import asyncio
import os
import pty
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from looplatch import Allow, Ask, Deny, ToolUseBlock, verify
from looplatch.cli import main
from looplatch.cli.agent import connected
from looplatch.cli.asking import REFUSED, Asking
from looplatch.cli.exits import Exit
from looplatch.hooks import ToolCallContext
from looplatch.testing import ScriptedAPI, reply, tool_use

QUESTION = "ne[v]er for write"


def write(id_: str, path: str = "a.txt") -> Any:
    return tool_use(id_, "write", {"file_path": path, "content": "one\ntwo \x1b[31mred"})


class Terminal:
    """A process on a terminal of its own."""

    def __init__(self, folder: Path, url: str, *arguments: str) -> None:
        self._end, inside = pty.openpty()
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("ANTHROPIC_")},
            "ANTHROPIC_API_KEY": "key", "ANTHROPIC_BASE_URL": url, "NO_PROXY": "127.0.0.1", "NO_COLOR": "1",
        }  # fmt: skip
        self._process = subprocess.Popen(
            [sys.executable, "-Im", "looplatch", *arguments],
            stdin=inside, stdout=inside, stderr=inside, cwd=folder, env=environment, start_new_session=True,
        )  # fmt: skip
        os.close(inside)
        self.shown = ""

    def until(self, text: str, times: int = 1) -> None:
        """Read until `text` was shown so many times."""
        while self.shown.count(text) < times:
            assert self._read(), f"{text!r} was never shown: {self.shown}"

    def press(self, keys: str) -> None:
        os.write(self._end, keys.encode())

    def interrupt(self) -> None:
        self._process.send_signal(signal.SIGINT)

    def ended(self) -> int:
        """Read to the end; the exit code."""
        while self._read():
            pass
        os.close(self._end)
        return self._process.wait()

    def _read(self) -> bool:
        try:
            came = os.read(self._end, 65_536)
        except OSError:  # the other end was closed
            return False
        self.shown += came.decode(errors="replace").replace("\r\n", "\n")
        return bool(came)


Start = Callable[..., Terminal]


@pytest.fixture
def start(tmp_path: Path) -> Start:
    def begin(url: str, *arguments: str) -> Terminal:
        return Terminal(tmp_path, url, *arguments)

    return begin


@contextmanager
def served(*answers: Any) -> Generator[tuple[ScriptedAPI, str]]:
    api = ScriptedAPI(list(answers))
    with api.serve_in_thread() as url:
        yield api, url
    assert api.refusals == []


def results(api: ScriptedAPI, request: int = -1) -> list[str]:
    return [block["content"] for block in api.requests[request].messages[-1]["content"]]


RUN = ("run", "Write.", "--dir", ".", "--log", "run.jsonl")


def test_a_write_is_asked_about_and_shown_whole(tmp_path: Path, start: Start) -> None:
    with served(reply("I write.", write("t1")), reply("Done.")) as (api, url):
        terminal = start(url, *RUN)
        terminal.until(QUESTION)
        assert not (tmp_path / "a.txt").exists()
        assert "The model wants to call write:\n  file_path: a.txt\n  content: one\n    two red\n" in terminal.shown
        terminal.press("what?\n")
        terminal.until(QUESTION, 2)
        terminal.press("y\n")
        assert terminal.ended() == Exit.GOOD
        assert (tmp_path / "a.txt").read_text() == "one\ntwo \x1b[31mred"
        assert results(api) == ["wrote 16 bytes to a.txt"]


def test_ctrl_c_ends_the_run_while_it_asks(tmp_path: Path, start: Start) -> None:
    with served(reply(write("t1"))) as (_, url):
        terminal = start(url, *RUN)
        terminal.until(QUESTION)
        terminal.interrupt()
        assert terminal.ended() == Exit.INTERRUPTED
    report = verify(tmp_path / "run.jsonl")
    assert (report.ok, report.status) == (True, "sealed")
    assert not (tmp_path / "a.txt").exists()


def test_a_suspended_run_names_the_command_that_takes_it_up(tmp_path: Path, start: Start) -> None:
    (tmp_path / "my pj").mkdir()
    with served(reply(write("t1")), reply("Done.")) as (api, url):
        terminal = start(url, "run", "Write.", "--dir", "my pj", "--log", "a log.jsonl", "--model", "claude-opus-4-5")
        terminal.until(QUESTION)
        terminal.press("l\n")
        assert terminal.ended() == Exit.SUSPENDED
        [said] = [line for line in terminal.shown.splitlines() if line.startswith("go on with: ")]
        command, *arguments = shlex.split(said.removeprefix("go on with: "))
        assert command == "looplatch"
        terminal = start(url, *arguments)
        terminal.until(QUESTION)
        terminal.press("y\n")
        assert terminal.ended() == Exit.GOOD
        assert (tmp_path / "my pj" / "a.txt").exists()
        assert [request.body["model"] for request in api.requests] == ["claude-opus-4-5"] * 2


def test_later_suspends_the_run_and_resume_asks_again(tmp_path: Path, start: Start) -> None:
    with served(reply(write("t1")), reply("Done.")) as (api, url):
        terminal = start(url, *RUN)
        terminal.until(QUESTION)
        terminal.press("l\n")
        assert terminal.ended() == Exit.SUSPENDED
        assert "go on with: looplatch resume run.jsonl --dir .\n" in terminal.shown
        terminal = start(url, "resume", "run.jsonl", "--dir", ".")
        terminal.until(QUESTION)
        terminal.press("yes\n")
        assert terminal.ended() == Exit.GOOD
        assert (tmp_path / "a.txt").exists()
        assert len(api.requests) == 2
    assert verify(tmp_path / "run.jsonl").status == "sealed"


# --- the answers, on a terminal in this process


@pytest.fixture
def keyboard() -> Generator[tuple[int, Asking]]:
    """The end at which keys are pressed, and what asks at the other one."""
    outer, inner = pty.openpty()
    with open(inner, closefd=False) as reads, open(inner, "w", closefd=False) as writes:
        yield outer, Asking(keeps=False, ask_at=reads, show_at=writes)
    os.close(inner)
    os.close(outer)


def call(tool: str) -> ToolUseBlock:
    return ToolUseBlock(id="t1", name=tool, input={"n": [1]})


@contextmanager
def answering(outer: int, keys: Callable[[], str]) -> Generator[list[str]]:
    """Press `keys` each time when a question stands there; gives what is shown."""
    shown: list[str] = []

    def read() -> None:
        before = "".join(shown).count("allow it?")
        shown.append(os.read(outer, 65_536).decode())
        text = "".join(shown)
        if text.count("allow it?") > before:
            os.write(outer, keys().encode())

    asyncio.get_running_loop().add_reader(outer, read)
    try:
        yield shown
    finally:
        asyncio.get_running_loop().remove_reader(outer)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ("y\n", [Allow(), Deny(REFUSED)]),
        ("n\n", [Deny(REFUSED), Deny(REFUSED)]),
        ("NO\n", [Deny(REFUSED), Deny(REFUSED)]),
        ("always\n", [Allow(), Allow()]),
        ("v\n", [Deny(REFUSED), Deny(REFUSED)]),
        ("l\n", [Deny(REFUSED), Deny(REFUSED)]),
        ("\x04", [Deny(REFUSED), Deny(REFUSED)]),
    ],
)
def test_an_answer_counts_once_or_for_good(keyboard: tuple[int, Asking], keys: str, said: list[Any]) -> None:
    """All questions but the first are answered by no."""
    outer, asking = keyboard

    async def main() -> None:
        answers = iter([keys])
        with answering(outer, lambda: next(answers, "n\n")):
            for expected in said:
                assert await asking.decide(call("write")) == expected

    asyncio.run(main())


def test_what_was_typed_before_a_question_is_no_answer_to_it(keyboard: tuple[int, Asking]) -> None:
    outer, asking = keyboard

    async def main() -> None:
        os.write(outer, b"y\nalways\ny")
        answers = iter(["?\ny\n", "n\n"])  # the second one before the question is asked again
        with answering(outer, lambda: next(answers)):
            assert await asking.decide(call("write")) == Deny(REFUSED)

    asyncio.run(main())


def test_the_name_of_a_tool_is_shown_clean(keyboard: tuple[int, Asking]) -> None:
    outer, asking = keyboard

    async def main() -> str:
        with answering(outer, lambda: "n\n") as shown:
            await asking.decide(call("wr\x1b[2Jite\n\u202efor b"))
        return "".join(shown)

    shown = asyncio.run(main())
    assert "wants to call write for b:" in shown
    assert "ne[v]er for write for b: " in shown
    assert "\x1b[2J" not in shown


# --- where nobody can answer, and what options say


@pytest.fixture
def at_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Callable[..., ScriptedAPI]]:
    """This process, in a folder of its own, against a scripted API; standard input is no terminal."""
    with ExitStack() as stack:

        def begin(*answers: Any) -> ScriptedAPI:
            api, url = stack.enter_context(served(*answers))
            for name, value in {"API_KEY": "key", "BASE_URL": url}.items():
                monkeypatch.setenv(f"ANTHROPIC_{name}", value)
            return api

        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        monkeypatch.chdir(tmp_path)
        yield begin


AtWork = Callable[..., ScriptedAPI]


def test_where_nobody_can_answer_writes_are_denied(tmp_path: Path, at_work: AtWork) -> None:
    api = at_work(reply(write("t1")), reply("Well."))
    assert main([*RUN]) == Exit.GOOD
    assert results(api) == ["denied. The call was not run: nobody is there to allow it"]
    assert not (tmp_path / "a.txt").exists()


class Later:
    """Decides on nothing."""

    async def before_tool(self, call: ToolCallContext) -> Ask:
        return Ask()


def suspend() -> None:
    """A run of the command line's own agent that waits for approvals."""

    async def go() -> None:
        async with connected("claude-sonnet-5", Path(), Later()) as loop:
            assert (await loop.run("Write.", log="run.jsonl")).subtype == "suspended"

    asyncio.run(go())


@pytest.mark.parametrize(
    ("options", "said", "code"),
    [
        (["--approve", "t1", "--deny", "t2=not that one"], ["wrote ", "denied. The call was not run: not that one"], 0),
        (["--approve", "t1", "--deny", "t2"], ["wrote ", "denied. The call was not run: the user does not"], 0),
        (["--deny", "t2"], None, 3),
        ([], None, 3),
        (["--approve", "t9"], None, 2),
        (["--approve", "t1", "--deny", "t1"], None, 2),
    ],
)
def test_resume_takes_decisions_from_its_options(
    at_work: AtWork, capsys: pytest.CaptureFixture[str], options: list[str], said: list[str] | None, code: int
) -> None:
    api = at_work(reply(write("t1"), write("t2", "b.txt")), reply("Done."))
    suspend()
    assert main(["resume", "run.jsonl", "--dir", ".", *options]) == code
    out = capsys.readouterr().out
    if said is not None:
        for told, begins in zip(results(api), said, strict=True):
            assert told.startswith(begins)
    elif code == Exit.SUSPENDED:
        assert "t1 waits for approval: write" in out
        assert ("t2 waits for approval" in out) is (options == [])
        assert len(api.requests) == 1


def test_a_loop_that_has_changed_is_refused_and_accepted_on_demand(
    at_work: AtWork, capsys: pytest.CaptureFixture[str]
) -> None:
    at_work(reply(write("t1")), reply("Done."))
    suspend()
    resume = ["resume", "run.jsonl", "--dir", ".", "--approve", "t1", "--model", "m-2"]
    assert main(resume) == Exit.USAGE
    assert "model (was claude-sonnet-5, is m-2)" in capsys.readouterr().err
    assert main([*resume, "--accept-changes"]) == Exit.GOOD


def test_a_resumption_without_the_folder_names_the_options(
    at_work: AtWork, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    api = at_work(reply(write("t1")), reply("Done."))
    suspend()
    before = (tmp_path / "run.jsonl").read_bytes()
    resume = ["resume", "run.jsonl", "--approve", "t1"]
    assert main(resume) == Exit.USAGE
    told = capsys.readouterr().err
    assert "--dir" in told
    assert "--accept-changes" in told
    assert "accept_changes" not in told
    assert main([*resume, "--accept-changes"]) == Exit.USAGE
    told = capsys.readouterr().err
    assert "does not have: write. Give the --dir" in told
    assert "loop.resume" in told
    assert (tmp_path / "run.jsonl").read_bytes() == before
    assert len(api.requests) == 1
    assert main(["resume", "run.jsonl", "--dir", ".", "--approve", "t1"]) == Exit.GOOD
