"""The commands: what they print, what they send, and their exit codes."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

import looplatch
from looplatch.cli import main
from looplatch.cli.exits import Exit
from looplatch.diagrams import coverage, diff, render, timeline_svg
from looplatch.proving.verification import verify
from looplatch.testing import ScriptedAPI, error, reply, text, thinking, tool_use
from tests.playing import play

TWO_TURNS = [
    reply("I look.", tool_use("toolu_1", "read", {"file_path": "a.txt"})),
    reply(thinking("Hm."), text("It says \x1b[31mhello\x1b[0m.", pieces=4)),
]


@pytest.fixture(autouse=True)
def no_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No test sends anything to the API, whoever runs it; and the working directory is empty."""
    for name in [name for name in os.environ if name.startswith("ANTHROPIC_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")


@contextmanager
def served(api: ScriptedAPI, monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    """The command line talks to `api`."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with api.serve_in_thread() as url:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", url)
        yield


Ask = Callable[..., tuple[int, str, str]]


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Ask:
    """Call the command line; gives the exit code, standard output and standard error."""

    def call(*arguments: str | Path) -> tuple[int, str, str]:
        code = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return call


# --- run


def test_run_shows_text_tools_and_states(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("a.txt").write_text("hello")
    api = ScriptedAPI(TWO_TURNS)
    with served(api, monkeypatch):
        code, out, err = ask("run", "What does a.txt say?", "--dir", ".", "--log", "run.jsonl", "--model", "m-1")
    assert (code, err) == (Exit.GOOD, "")
    lines = out.splitlines()
    assert lines[0].startswith("run ")
    assert lines[1] == "model m-1, tools: glob, grep, read, write, edit"
    shown = [line for line in lines[2:] if not line.startswith((">", "<"))]
    assert shown == [
        "[prepare -> stream] ContextReady",
        "I look.",
        "[stream -> decide] ModelResponded",
        "[decide -> orchestrate] ToolsRequested",
        "= read file_path='a.txt': 5 characters: hello",
        "[orchestrate -> prepare] ToolsAnswered, next_turn",
        "[prepare -> stream] ContextReady",
        "Hm.",
        "It says hello.",
        "[stream -> decide] ModelResponded",
        "[decide -> completed] StopHooksPassed, answered",
        "",
        shown[12],
        "log: run.jsonl",
    ]
    assert shown[12].startswith("success: answered, 2 turns, ")
    tools = [line for line in lines if line.startswith((">", "<"))]
    assert tools == ["> read file_path='a.txt'", "< read file_path='a.txt': answered"]
    assert verify("run.jsonl").ok
    assert [request.body["model"] for request in api.requests] == ["m-1", "m-1"]
    api.check_played()


def test_run_prints_one_message_a_line_as_json(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("a.txt").write_text("hello \x1b[31m ÿ")
    with served(ScriptedAPI(TWO_TURNS), monkeypatch):
        code, out, err = ask("run", "What does a.txt say?", "--dir", ".", "--json")
    assert (code, err) == (Exit.GOOD, "")
    assert out.isascii()
    messages = [json.loads(line) for line in out.splitlines()]
    assert [message["type"] for message in messages if message["type"] != "transition"] == [
        "system",
        "assistant",
        "assistant",
        "tool",
        "tool",
        "user",
        "assistant",
        "assistant",
        "result",
    ]
    assistant = [message for message in messages if message["type"] == "assistant"]
    assert assistant[1] == {
        "type": "assistant",
        "message_id": "msg_000001",
        "model": "claude-sonnet-5",
        "parent_tool_use_id": None,
        "content": [{"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"file_path": "a.txt"}}],
    }
    (user,) = [message for message in messages if message["type"] == "user"]
    assert user["content"] == [
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": "hello \x1b[31m ÿ", "is_error": False}
    ]
    moves = [message["record"] for message in messages if message["type"] == "transition"]
    assert (moves[0]["source"], moves[0]["event"], moves[-1]["target"]) == ("prepare", "RunStarted", "completed")
    result = messages[-1]
    assert (result["subtype"], result["terminal"], result["log"]) == ("success", "answered", None)
    assert [message["role"] for message in result["messages"]] == ["user", "assistant", "user", "assistant"]


def test_a_run_that_does_not_end_well_is_a_failure(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    with served(ScriptedAPI([error(400, "invalid_request_error", "no such model \x1b[2J")]), monkeypatch):
        code, out, _ = ask("run", "Hello")
    assert code == Exit.FAILED
    assert out.splitlines()[-3].startswith("error_during_execution: model_error, 1 turn, ")
    assert out.splitlines()[-2:] == [
        "invalid_request_error: no such model ",
        "log: not kept; --log FILE keeps it",
    ]


def test_without_a_key_nothing_is_sent_and_the_demo_is_named(ask: Ask) -> None:
    code, out, err = ask("run", "Hello")
    assert (code, out) == (Exit.USAGE, "")
    assert err == (
        "looplatch: the API: no API key and no token was found, so nothing was sent. "
        "Set ANTHROPIC_API_KEY, or try `looplatch demo`: it needs no key\n"
    )


def test_resume_looks_at_the_log_before_it_looks_for_a_key(ask: Ask, tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    play([reply("Done.")], log=log)
    code, out, err = ask("resume", str(log))
    assert (code, out) == (Exit.USAGE, "")
    assert err == "looplatch: log: the run has ended (answered). Start another one with its messages\n"


@pytest.mark.parametrize("name", ["none.jsonl", "none.sqlite"])
@pytest.mark.parametrize("command", ["resume", "verify", "replay", "explain", "view"])
def test_a_log_that_is_missing_is_told_in_the_same_words(ask: Ask, tmp_path: Path, command: str, name: str) -> None:
    code, _, err = ask(command, str(tmp_path / name))
    assert code == Exit.USAGE
    told = f"{tmp_path / name} cannot be read (No such file or directory). Give the path of a log"
    assert err == f"looplatch: log: {told}\n"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["run", " "], "prompt: it is empty"),
        (["run", "Hello", "--model", ""], "model: '' is no model's name"),
        (["run", "Hello", "--dir", "none"], "--dir: 'none' cannot be read as one"),
        (["run", "Hello", "--log", "none/run.jsonl"], "log: "),
        (["run", "Hello", "--log", "taken.jsonl"], "taken.jsonl: it holds something that is no log of looplatch"),
        (["demo", "--dir", "none"], "--dir: 'none' cannot be read as one"),
        (["demo", "--log", "taken.jsonl"], "taken.jsonl: it holds something that is no log of looplatch"),
        (["verify", "none.jsonl"], "log: none.jsonl cannot be read (No such file or directory)"),
        (["diagram", "--log", "none.jsonl"], "log: none.jsonl cannot be read (No such file or directory)"),
        (["diagram", "-o", "x.foo"], "-o: x.foo: the suffix '.foo' tells no format. End the name in one of .mmd, "),
        (["diagram", "-o", "none/x.svg"], "-o: none/x.svg cannot be written (No such file or directory)"),
    ],
)
def test_what_cannot_be_done_is_said_before_anything_is_sent(
    ask: Ask, monkeypatch: pytest.MonkeyPatch, arguments: list[str], complaint: str
) -> None:
    Path("taken.jsonl").write_text("mine\n")
    api = ScriptedAPI([])
    with served(api, monkeypatch):
        code, _, err = ask(*arguments)
    assert code == Exit.USAGE
    assert err.startswith("looplatch: ")
    assert complaint in err
    assert api.requests == []
    assert Path("taken.jsonl").read_text() == "mine\n"


@pytest.mark.parametrize(
    "arguments", [[], ["fly"], ["run"], ["diagram", "--format", "gif"], ["verify"], ["diagram", "--diff", "a"]]
)
def test_what_is_no_command_is_a_usage_error(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == Exit.USAGE
    assert capsys.readouterr().err.startswith("usage: looplatch")


def test_help_lists_the_commands_that_there_are(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")  # so that a command is a line
    with pytest.raises(SystemExit) as caught:
        main(["--help"])
    assert caught.value.code == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines() if line.startswith("    ")]
    assert listed == [
        "run",
        "resume",
        "demo",
        "verify",
        "replay",
        "explain",
        "diff",
        "export",
        "redact",
        "diagram",
        "view",
        "check",
    ]


# --- Ctrl-C

ABORTED_RUN = """
import asyncio, os, signal, sys
import looplatch
from looplatch.cli.live import LiveView
from looplatch.cli.screen import Screen
from looplatch.cli.watching import watch
from looplatch.testing import ScriptedAPI, reply, tool_use

@looplatch.tool
async def interrupt() -> None:
    "Press Ctrl-C, then wait for ever."
    for _ in range(int(sys.argv[1])):
        os.kill(os.getpid(), signal.SIGINT)
    await asyncio.Event().wait()

async def go() -> int:
    client = ScriptedAPI([reply(tool_use("toolu_1", "interrupt", {}))]).client()
    loop = looplatch.Loop(model="m", tools=[interrupt], client=client)
    return await watch(loop.run("Go", log=sys.argv[2]), LiveView(Screen()))

sys.exit(asyncio.run(go()))
"""


def interrupted(times: int, log: Path) -> "subprocess.CompletedProcess[str]":
    """A run whose tool presses Ctrl-C so many times."""
    return subprocess.run(
        [sys.executable, "-Ic", ABORTED_RUN, str(times), str(log)], capture_output=True, text=True, check=False
    )


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent otherwise there")
def test_ctrl_c_aborts_the_run_and_shows_its_result(tmp_path: Path) -> None:
    ended = interrupted(1, tmp_path / "run.jsonl")
    assert ended.returncode == Exit.INTERRUPTED
    assert ended.stderr == "\naborting; Ctrl-C again ends at once\n"
    assert "[orchestrate -> aborted] RunAborted, aborted\n" in ended.stdout
    assert "\nerror_during_execution: aborted, 1 turn, " in ended.stdout
    report = verify(tmp_path / "run.jsonl")
    assert (report.ok, report.status) == (True, "sealed")


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent otherwise there")
def test_ctrl_c_twice_ends_the_process_at_once(tmp_path: Path) -> None:
    ended = interrupted(2, tmp_path / "run.jsonl")
    assert ended.returncode == Exit.INTERRUPTED
    assert "aborted" not in ended.stdout
    report = verify(tmp_path / "run.jsonl")
    assert (report.ok, report.status) == (True, "in_doubt")


def test_the_handler_of_before_is_put_back(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    before = signal.getsignal(signal.SIGINT)
    with served(ScriptedAPI([reply("Hi.")]), monkeypatch):
        ask("run", "Hello")
    assert signal.getsignal(signal.SIGINT) is before


# --- verify


@pytest.fixture
def log(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A log of two turns."""
    Path("a.txt").write_text("hello")
    with served(ScriptedAPI(TWO_TURNS), monkeypatch):
        assert ask("run", "Look", "--dir", ".", "--log", "run.jsonl")[0] == Exit.GOOD
    return Path("run.jsonl")


def test_verify_tells_of_a_good_log(ask: Ask, log: Path) -> None:
    code, out, err = ask("verify", log)
    assert (code, err) == (Exit.GOOD, "")
    assert out == f"{verify(log)}\n"
    assert out.startswith("ok: sealed, ")


def test_verify_finds_a_changed_log(ask: Ask, log: Path) -> None:
    log.write_bytes(log.read_bytes().replace(b'"ToolsRequested"', b'"ToolsRequesteD"'))
    code, out, err = ask("verify", log)
    assert (code, err) == (Exit.FAILED, "")
    assert out.startswith("not ok: ")
    assert "I3" in out


def test_verify_looks_for_patterns_of_ones_own(ask: Ask, log: Path) -> None:
    code, out, err = ask("verify", log, "--secrets", "word=hell[o]", "--secrets", "name=Rumpel")
    assert (code, err) == (Exit.FAILED, "")
    assert "P1: a kept payload has a secret in it" in out
    assert "found word" in out
    assert "hello" not in out
    Path("own.json").write_text('{"name": "Rumpel", "other": "(?i)stilts(kin)"}')
    assert ask("verify", log, "--secrets", "@own.json")[0] == Exit.GOOD
    Path("own.json").write_text('{"name": "Rumpel", "word": "h(ello)"}')
    assert ask("verify", log, "--secrets", "@own.json")[0] == Exit.FAILED


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["word"], "'word' is no pattern. Give NAME=REGEX, or @FILE"),
        (["a=x", "a=y"], "'a' is given twice"),
        (["a=(x"], "the pattern 'a' is no regular expression (missing ), unterminated subpattern)"),
        (["a=x*"], "the pattern 'a' also matches nothing"),
        (["@none.json"], "none.json cannot be read (No such file or directory)"),
        (["@run.jsonl"], "run.jsonl is no JSON"),
        (["@list.json"], "list.json holds no patterns by name"),
    ],
)
def test_patterns_that_are_none_are_told(ask: Ask, log: Path, given: list[str], told: str) -> None:
    Path("list.json").write_text("[1]")
    code, out, err = ask("verify", log, *(part for one in given for part in ("--secrets", one)))
    assert (code, out) == (Exit.USAGE, "")
    assert err.startswith(f"looplatch: --secrets: {told}")


def test_a_log_cannot_steer_the_terminal_through_a_finding(ask: Ask, log: Path) -> None:
    log.write_bytes(log.read_bytes().replace(b'"ToolsRequested"', b'"\\u001b]0;owned\\u0007\\u009b2J"'))
    code, out, _ = ask("verify", log)
    assert code == Exit.FAILED
    assert "\x1b" not in out
    assert "\x9b" not in out


# --- diagram


@pytest.mark.parametrize("chosen", ["mermaid", "dot", "svg", "text"])
def test_diagram_prints_what_render_gives(ask: Ask, chosen: str) -> None:
    code, out, err = ask("diagram", "--format", chosen)
    assert (code, err) == (Exit.GOOD, "")
    assert out == render(format=chosen)  # type: ignore[call-overload]  # chosen is one of the formats


def test_diagram_is_mermaid_unless_said_otherwise(ask: Ask) -> None:
    assert ask("diagram") == (Exit.GOOD, render(format="mermaid"), "")


@pytest.mark.parametrize(("name", "begins"), [("x.dot", b"digraph"), ("x.SVG", b"<svg"), ("x", b"%%{init")])
def test_the_suffix_of_the_file_chooses_the_format(ask: Ask, name: str, begins: bytes) -> None:
    assert ask("diagram", "-o", name) == (Exit.GOOD, "", "")
    assert Path(name).read_bytes().startswith(begins)


def test_diagram_lays_two_logs_or_many_over_the_table(ask: Ask, log: Path) -> None:
    read, name = looplatch.read(log), str(log)
    code, out, err = ask("diagram", "--format", "svg", "--fold", "--diff", log, log)
    assert (code, out, err) == (Exit.GOOD, diff(read, read, names=(name, name), fold=True), "")
    code, out, err = ask("diagram", "--format", "text", "--coverage", log, log, log)
    assert (code, out, err) == (Exit.GOOD, coverage([read] * 3, format="text"), "")
    assert "rows walked, by 3 runs\n" in out


def test_diagram_draws_the_timeline_of_a_run(ask: Ask, log: Path) -> None:
    assert ask("diagram", "--kind", "timeline", "--log", log) == (Exit.GOOD, timeline_svg(looplatch.read(log)), "")
    code, out, err = ask("diagram", "--kind", "timeline")
    assert (code, out, err) == (
        Exit.USAGE,
        "",
        "looplatch: --kind: a timeline is of one run. Name its log with --log\n",
    )
    code, out, err = ask("diagram", "--kind", "timeline", "--log", log, "--format", "dot")
    assert (code, out) == (Exit.USAGE, "")
    assert "a timeline is not drawn as 'dot'" in err


def test_diagram_lays_a_log_over_the_table(ask: Ask, log: Path) -> None:
    code, out, err = ask("diagram", "--format", "text", "--log", log)
    assert (code, err) == (Exit.GOOD, "")
    assert out == render(looplatch.read(log), format="text")
    assert out != render(format="text")


def test_a_damaged_log_cannot_be_drawn(ask: Ask, log: Path) -> None:
    log.write_bytes(b"{}\n" + log.read_bytes())
    code, out, err = ask("diagram", "--log", log)
    assert (code, out) == (Exit.FAILED, "")
    assert "run.jsonl, line 1: " in err


def test_a_reader_that_leaves_is_no_error() -> None:
    """As in `looplatch diagram | head -1`."""
    read, write = os.pipe()
    os.close(read)
    ended = subprocess.run(
        [sys.executable, "-Im", "looplatch", "diagram"], stdout=write, stderr=subprocess.PIPE, check=False
    )
    os.close(write)
    assert (ended.returncode, ended.stderr) == (Exit.FAILED, b"")


def test_replay_makes_the_moves_of_a_log_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "run.jsonl"
    assert main(["demo", "--dir", str(tmp_path), "--log", str(log)]) == Exit.GOOD
    capsys.readouterr()
    assert main(["replay", str(log)]) == Exit.GOOD
    assert "every move is the machine's own" in capsys.readouterr().out
    forged = log.read_bytes().replace(b'"target":"orchestrate"', b'"target":"recover"', 1)
    log.write_bytes(forged)
    assert main(["replay", str(log)]) == Exit.FAILED
    assert "the machine gives 'orchestrate', the log has 'recover'" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        (["redact", "--seq", "99"], "looplatch: --seq: the log has no record 99. "),
        (["explain", "--turn", "9"], "looplatch: --turn: the run has no turn 9. "),
    ],
)
def test_a_complaint_names_the_option(ask: Ask, log: Path, command: list[str], complaint: str) -> None:
    name, *options = command
    code, _, err = ask(name, log, *options)
    assert (code, err[: len(complaint)]) == (Exit.USAGE, complaint)
