"""The shell tool: a fresh shell for each command, ended with all that it started, and reads that stay reads."""

import asyncio
import contextlib
import os
from pathlib import Path
from typing import Any

import pytest

from looplatch.states.errors import UsageError
from looplatch.tools import AbortSignal, Cause, Outcome, Toolbox
from looplatch.tools.execution import execute
from looplatch.tools.shell import shell_tool
from looplatch.tools.shell.environment import environment, quiet_environment
from looplatch.tools.shell.process import Process


async def called(folder: Path, abort: AbortSignal | None = None, **given: Any) -> Outcome:
    call = Toolbox([shell_tool(folder)]).call(tool_use_id="toolu_1", name="shell", given=given, index=0)
    return await execute(call, run_id="run_1", abort=abort or AbortSignal())


def run(folder: Path, command: str, **given: Any) -> Outcome:
    return asyncio.run(called(folder, command=command, **given))


def test_a_command_is_a_read_only_if_it_is_certain_to_read(tmp_path: Path) -> None:
    box = Toolbox([shell_tool(tmp_path)])
    judged = {
        command: box.call(tool_use_id="t", name="shell", given={"command": command}, index=0).read_only
        for command in ("ls -la | wc -l", "ls > f", "rm f")
    }
    assert judged == {"ls -la | wc -l": True, "ls > f": False, "rm f": False}


def test_a_command_runs_in_the_folder_and_leaves_nothing_to_the_next(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    assert run(tmp_path, "cd sub; X=1; pwd").content == str(tmp_path / "sub")
    assert run(tmp_path, 'echo "[$X]"; pwd').content == f"[]\n{tmp_path}"


@pytest.mark.parametrize(
    ("command", "content"),
    [
        ("echo out; echo err >&2; exit 3", "out\nerr\n[exit code 3]"),
        ("false", "[exit code 1]"),
        ("kill -9 $$", "[exit code -9]"),
        ("nul\0", "the command holds a null character"),
    ],
)
def test_a_command_that_fails_says_how(tmp_path: Path, command: str, content: str) -> None:
    outcome = run(tmp_path, command)
    assert (outcome.content, outcome.is_error) == (content, True)


def test_a_command_gets_no_input_and_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-secret")
    monkeypatch.setenv("BASH_ENV", str(tmp_path / "first"))
    (tmp_path / "first").write_text("echo ran first")
    assert run(tmp_path, 'read x; echo "[$x] ${ANTHROPIC_API_KEY:-no key}"').content == "[] no key"


def test_what_a_command_leaves_running_is_ended_with_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "alive")
    reading = os.open(tmp_path / "alive", os.O_RDONLY | os.O_NONBLOCK)
    assert run(tmp_path, "exec 3>alive; sleep 600 & echo begun").content == "begun"
    os.set_blocking(reading, True)
    assert os.read(reading, 1) == b""  # nobody holds the other end any more
    os.close(reading)


def test_a_command_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    outcome = run(tmp_path, "sleep 600", timeout_ms=50)
    assert (outcome.content, outcome.is_error) == ("[timed out after 0.05 s and was ended]", True)


def test_an_interrupted_command_is_ended(tmp_path: Path) -> None:
    async def scenario() -> None:
        abort = AbortSignal()
        os.mkfifo(tmp_path / "began")
        calling = asyncio.create_task(called(tmp_path, abort, command="echo $$ > began; sleep 600"))
        pid = int(await asyncio.get_running_loop().run_in_executor(None, (tmp_path / "began").read_text))
        abort.set()
        outcome = await calling
        assert (outcome.cause, outcome.abandoned) == (Cause.INTERRUPTED_EFFECT_UNKNOWN, False)
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(scenario())


def children() -> set[str]:
    """The processes that are ours."""
    return {pid for told in Path("/proc/self/task").glob("*/children") for pid in told.read_text().split()}


@pytest.mark.skipif(not Path(f"/proc/self/task/{os.getpid()}/children").exists(), reason="it counts processes in /proc")
@pytest.mark.parametrize("turns", range(12))
def test_a_start_that_is_cancelled_at_any_turn_leaves_no_process(tmp_path: Path, turns: int) -> None:
    async def scenario() -> None:
        starting = asyncio.create_task(Process.start(["sleep", "600"], folder=tmp_path, environment=os.environ))
        for _ in range(turns):
            await asyncio.sleep(0)
        starting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await (await starting).close()
        assert children() == before
        assert asyncio.all_tasks() == {asyncio.current_task()}

    before = children()
    asyncio.run(scenario())


def test_a_program_that_is_not_there_cannot_be_started(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        asyncio.run(Process.start([str(tmp_path / "nothing")], folder=tmp_path, environment={}))


def test_a_program_that_closes_its_output_works_on_to_its_own_end(tmp_path: Path) -> None:
    command = "echo said; exec >&- 2>&-; for i in {1..20000}; do :; done; : > done; exit 7"
    result = run(tmp_path, command)
    assert (result.content, result.is_error) == ("said\n[exit code 7]", True)
    assert (tmp_path / "done").exists()


def test_a_read_takes_no_program_out_of_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    for name in ("ls", "wc"):
        (tmp_path / "bin" / name).write_text("#!/bin/sh\necho planted; touch planted\n")
        (tmp_path / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", os.pathsep.join([str(tmp_path / "bin"), "bin", "", os.environ["PATH"]]))
    assert run(tmp_path, "ls bin").content == "ls\nwc"
    assert not (tmp_path / "planted").exists()
    assert run(tmp_path, "ls; true > f").content == "planted"


def test_a_read_runs_no_helpers(tmp_path: Path) -> None:
    known = {"PATH": "/usr/bin", "LESSOPEN": "|x", "RIPGREP_CONFIG_PATH": "x", "GIT_EXTERNAL_DIFF": "x", "HOME": "/h"}
    quiet = quiet_environment(known, tmp_path)
    assert (quiet["HOME"], quiet["PATH"], quiet["GIT_OPTIONAL_LOCKS"]) == ("/h", "/usr/bin", "0")
    assert not quiet.keys() & {"LESSOPEN", "RIPGREP_CONFIG_PATH", "GIT_EXTERNAL_DIFF"}
    settings = {
        quiet[f"GIT_CONFIG_KEY_{number}"]: quiet[f"GIT_CONFIG_VALUE_{number}"]
        for number in range(int(quiet["GIT_CONFIG_COUNT"]))
    }
    assert settings["core.fsmonitor"] == "false"


def test_functions_are_not_handed_down(tmp_path: Path) -> None:
    handed = environment({"PATH": "/usr/bin", "BASH_FUNC_ls%%": "() { rm x; }", "ENV": "x"})
    assert handed == {"PATH": "/usr/bin", "PS1": "", "PS2": "", "TERM": "dumb"}


def test_a_machine_without_bash_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="tool 'shell': there is no bash on this machine"):
        shell_tool(tmp_path)
