"""The agent toolset over a real folder: it looks, edits, runs, and cannot be led out of it."""

import asyncio
import base64
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from anthropic.lib.tools.agent_toolset import AgentToolContext, beta_agent_toolset_20260401

from looplatch.states.errors import UsageError
from looplatch.testing import reply, tool_use
from looplatch.tools import AbortSignal, Cause, Outcome, Toolbox
from looplatch.tools.agent import agent_toolset
from looplatch.tools.execution import execute
from tests.playing import play

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small project, with a link that leads out of it."""
    place = tmp_path / "project"
    (place / "src").mkdir(parents=True)
    (place / "src" / "main.py").write_text("import os\n\n\ndef main():\n    print('TODO')\n")
    (place / "notes.md").write_text("# Notes\nTODO: write\n")
    (tmp_path / "secret.txt").write_text("secret TODO")
    (place / "way_out").symlink_to(tmp_path)
    return place


class Hand:
    """Calls tools of a toolset by hand, in one event loop."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.box = Toolbox(agent_toolset(folder, **options))

    async def call(self, name: str, run_id: str = "run_1", abort: AbortSignal | None = None, **given: Any) -> Outcome:
        call = self.box.call(tool_use_id="toolu_1", name=name, given=given, index=0)
        return await execute(call, run_id=run_id, abort=abort or AbortSignal())

    async def text(self, name: str, run_id: str = "run_1", **given: Any) -> str:
        """The text of a call that went well."""
        outcome = await self.call(name, run_id, **given)
        assert not outcome.is_error, outcome.content
        assert isinstance(outcome.content, str)
        return outcome.content

    async def refused(self, name: str, **given: Any) -> str:
        """The text of a call that did not go well."""
        outcome = await self.call(name, **given)
        assert outcome.is_error
        assert isinstance(outcome.content, str)
        return outcome.content


def told(folder: Path, name: str, **given: Any) -> str:
    return asyncio.run(Hand(folder).text(name, **given))


def refused(folder: Path, name: str, **given: Any) -> str:
    return asyncio.run(Hand(folder).refused(name, **given))


def test_names_inputs_and_what_is_required_are_the_sdks() -> None:
    theirs = {tool.name: tool.to_dict() for tool in beta_agent_toolset_20260401(AgentToolContext("."))}
    ours = {tool.name: tool.definition() for tool in agent_toolset(".")}
    assert ours.keys() == theirs.keys()
    for name, definition in ours.items():
        schema, other = definition["input_schema"], cast("dict[str, Any]", theirs[name]["input_schema"])
        assert schema["properties"].keys() == other["properties"].keys()
        assert set(schema.get("required", [])) == set(other.get("required", []))


def test_the_readers_are_reads_and_the_rest_writes(folder: Path) -> None:
    tools = agent_toolset(folder)
    assert {tool.name: tool.read_only for tool in tools} == {
        "read": True, "glob": True, "grep": True, "write": False, "edit": False, "bash": False
    }  # fmt: skip
    assert "bash" not in {tool.name for tool in agent_toolset(folder, shell=False)}


def test_read_gives_the_text_or_some_of_its_lines(folder: Path) -> None:
    assert told(folder, "read", file_path="notes.md") == "# Notes\nTODO: write\n"
    assert told(folder, "read", file_path="src/main.py", view_range=[4, 4]) == "def main():\n"
    assert told(folder, "read", file_path="src/main.py", view_range=[5, -1]) == "    print('TODO')\n"
    assert "view_range must be" in refused(folder, "read", file_path="notes.md", view_range=[1])


def test_read_gives_pictures_and_documents_as_they_are(folder: Path) -> None:
    (folder / "dot.PNG").write_bytes(PNG)
    (folder / "paper.pdf").write_bytes(b"%PDF-1.4")

    async def scenario() -> None:
        hand = Hand(folder)
        source = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(PNG).decode()}
        assert (await hand.call("read", file_path="dot.PNG")).content == [{"type": "image", "source": source}]
        source = {"type": "base64", "media_type": "application/pdf", "data": base64.b64encode(b"%PDF-1.4").decode()}
        assert (await hand.call("read", file_path="paper.pdf")).content == [{"type": "document", "source": source}]

    asyncio.run(scenario())


def test_read_refuses_what_cannot_be_shown(folder: Path) -> None:
    (folder / "huge.png").write_bytes(b"\x89PNG" + bytes(5 * 1024 * 1024))
    (folder / "program").write_bytes(b"\x7fELF\0")
    assert "is longer than the 3,932,160 bytes" in refused(folder, "read", file_path="huge.png")
    assert "is binary and has no text" in refused(folder, "read", file_path="program")


def test_glob_lists_what_fits_newest_first(folder: Path) -> None:
    os.utime(folder / "notes.md", (1, 1))
    assert told(folder, "glob", pattern="**/*") == "src/main.py\nnotes.md"
    assert told(folder, "glob", pattern="*") == "notes.md"
    assert told(folder, "glob", pattern="*.py", path="src") == "src/main.py"
    assert told(folder, "glob", pattern="*.rs") == "no matches"


def test_glob_says_how_many_more_fit(folder: Path) -> None:
    for number in range(205):
        (folder / f"{number}.x").write_text("")
    lines = told(folder, "glob", pattern="*.x").splitlines()
    assert len(lines) == 201
    assert lines[-1] == "[... 5 more files ...]"


def test_grep_finds_lines_in_the_folder_or_in_one_file(folder: Path) -> None:
    found = told(folder, "grep", pattern="TODO").splitlines()
    assert sorted(found) == ["notes.md:2:TODO: write", "src/main.py:5:    print('TODO')"]
    assert told(folder, "grep", pattern="^TODO", path="notes.md") == "notes.md:2:TODO: write"
    assert told(folder, "grep", pattern="TODO", path="src") == "src/main.py:5:    print('TODO')"
    assert told(folder, "grep", pattern="DONE") == "no matches"
    assert "no regular expression" in refused(folder, "grep", pattern="(")
    assert "cannot be read" in refused(folder, "grep", pattern="x", path="missing.md")


def test_grep_is_bounded(folder: Path) -> None:
    (folder / "many.txt").write_text("needle " * 300 + "\n" + "needle\n" * 10_000)
    text = told(folder, "grep", pattern="needle", path="many.txt")
    assert len(text) < 101_000
    assert text.endswith("[... more lines fit; narrow the pattern or the path ...]")
    assert max(map(len, text.splitlines())) < 2_050


def test_write_and_edit_change_files(folder: Path) -> None:
    assert told(folder, "write", file_path="new/file.txt", content="zwölf\r\n") == "wrote 8 bytes to new/file.txt"
    assert (folder / "new" / "file.txt").read_bytes() == "zwölf\r\n".encode()
    edited = told(folder, "edit", file_path="new/file.txt", old_string="zwölf", new_string="elf")
    assert edited == "edited new/file.txt: 1 replaced"
    assert (folder / "new" / "file.txt").read_bytes() == b"elf\r\n"


def test_edit_wants_the_text_once_unless_told_otherwise(folder: Path) -> None:
    path = folder / "twice.txt"
    path.write_text("one two one")
    assert "stands in twice.txt 2 times" in refused(
        folder, "edit", file_path="twice.txt", old_string="one", new_string="1"
    )
    assert "does not stand in" in refused(folder, "edit", file_path="twice.txt", old_string="three", new_string="3")
    assert "old_string is empty" in refused(folder, "edit", file_path="twice.txt", old_string="", new_string="3")
    assert path.read_text() == "one two one"
    told(folder, "edit", file_path="twice.txt", old_string="one", new_string="1", replace_all=True)
    assert path.read_text() == "1 two 1"


def test_edit_leaves_what_is_no_text_alone(folder: Path) -> None:
    (folder / "latin.txt").write_bytes(b"caf\xe9")
    assert "is no UTF-8 text" in refused(folder, "edit", file_path="latin.txt", old_string="caf", new_string="tea")
    assert (folder / "latin.txt").read_bytes() == b"caf\xe9"


@pytest.mark.parametrize("path", ["../secret.txt", "way_out/secret.txt", "/etc/passwd", "src/../../secret.txt"])
def test_nothing_leads_out_of_the_folder(folder: Path, path: str) -> None:
    for name, given in {
        "read": {"file_path": path},
        "glob": {"pattern": "*", "path": os.path.dirname(path)},
        "grep": {"pattern": "secret", "path": path},
        "write": {"file_path": path, "content": "x"},
        "edit": {"file_path": path, "old_string": "secret", "new_string": "x"},
    }.items():
        assert "leads out of the folder" in refused(folder, name, **given)
    assert told(folder, "glob", pattern="way_out/*") == "no matches"
    if not path.startswith("way_out"):
        assert "leads out of the folder" in refused(folder, "glob", pattern=path)
    assert "secret" not in told(folder, "grep", pattern="TODO")
    assert (folder.parent / "secret.txt").read_text() == "secret TODO"


# The shell


def test_the_shell_keeps_its_folder_and_variables_within_a_run(folder: Path) -> None:
    async def scenario() -> None:
        hand = Hand(folder)
        assert await hand.text("bash", command="cd src; THERE=$(ls); pwd") == str(folder / "src")
        assert await hand.text("bash", command='echo "$THERE"; pwd') == f"main.py\n{folder / 'src'}"
        assert await hand.text("bash", run_id="run_2", command='echo "[$THERE]"; pwd') == f"[]\n{folder}"
        assert await hand.text("bash", restart=True) == "a fresh shell is there"
        assert await hand.text("bash", command="pwd") == str(folder)
        assert await hand.box.close("run_1") == await hand.box.close("run_2") == ()

    asyncio.run(scenario())


@contextmanager
def watched(pid: int) -> Generator[None]:
    """The process is there at the beginning, and gone at the end."""
    os.kill(pid, 0)
    yield
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


class Lifeline:
    """A pipe that a process holds open as long as it lives."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self._path = path
        self._reading = os.open(path, os.O_RDONLY | os.O_NONBLOCK)

    async def cut(self) -> None:
        """Wait until nobody holds it."""
        os.set_blocking(self._reading, True)
        assert await asyncio.get_running_loop().run_in_executor(None, os.read, self._reading, 1) == b""
        os.close(self._reading)


def test_the_shell_and_all_that_it_started_ends_with_the_run(folder: Path) -> None:
    async def scenario() -> None:
        hand = Hand(folder)
        lifeline = Lifeline(folder / "alive")
        shell = int(await hand.text("bash", command="sleep 600 3>alive & echo $$"))
        assert await hand.text("bash", command="kill -0 $! && echo alive") == "alive"
        assert await hand.box.close("run_1") == ()
        with pytest.raises(ProcessLookupError):
            os.kill(shell, 0)
        await lifeline.cut()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("echo out; echo err >&2; false", "out\nerr\n[exit code 1]"),
        ("exit 7", "[the shell has ended with exit code 7. The next command starts a fresh shell.]"),
        ("set -e; false", "[the shell has ended with exit code 1. The next command starts a fresh shell.]"),
        ("kill -9 $$", "[the shell has ended with exit code -9. The next command starts a fresh shell.]"),
        ("echo 'open", "unexpected EOF"),
        ("nul\0", "null character"),
        ("", "there is no command"),
    ],
)
def test_a_command_that_fails_says_how_and_the_next_one_works(folder: Path, command: str, text: str) -> None:
    async def scenario() -> None:
        hand = Hand(folder)
        assert text in await hand.refused("bash", command=command)
        assert await hand.text("bash", command="echo next") == "next"
        await hand.box.close("run_1")

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("cat", ""),
        ("read x; echo \"[$x]\"", "[]"),
        ("printf no_line_end", "no_line_end"),
        ("cat <<'END'\nit's $HOME\nEND", "it's $HOME"),
        ("exec >/dev/null 2>&1", ""),
        ("echo '\x1b[31mred\x1b[0m'", "red"),
        ("echo ${ANTHROPIC_API_KEY:-none}", "none"),
    ],
)  # fmt: skip
def test_what_commands_print_is_what_the_model_gets(
    folder: Path, command: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-secret")

    async def scenario() -> None:
        hand = Hand(folder)
        assert await hand.text("bash", command=command) == text
        assert await hand.text("bash", command="echo next") == "next"
        await hand.box.close("run_1")

    asyncio.run(scenario())


def test_the_mark_of_the_end_cannot_be_found_out_by_showing_commands(folder: Path) -> None:
    async def scenario() -> None:
        hand = Hand(folder)
        for command in ("set -xv", "echo hi", "true", "set +xv", "echo clean"):
            last = await hand.text("bash", command=command)
        assert last == "clean"
        await hand.box.close("run_1")

    asyncio.run(scenario())


def test_long_output_keeps_its_ends(folder: Path) -> None:
    async def scenario() -> None:
        hand = Hand(folder)
        text = await hand.text("bash", command="echo begin; head -c 3000000 /dev/zero | tr '\\0' x; echo; echo end")
        assert len(text) < 103_000
        assert text.startswith("begin\nxxx")
        assert text.endswith("xxx\nend")
        assert "bytes left out ...]" in text
        await hand.box.close("run_1")

    asyncio.run(scenario())


def test_a_command_that_takes_too_long_is_ended_with_its_children(folder: Path) -> None:
    async def scenario() -> None:
        hand = Hand(folder)
        lifeline = Lifeline(folder / "alive")
        text = await hand.refused("bash", command="echo begun; sleep 600 3>alive & sleep 600", timeout_ms=300)
        ended = "it and all that the shell had started was ended. The next command starts a fresh shell."
        assert text.removeprefix("begun\n") == f"[timed out after 0.3 s; {ended}]"
        await lifeline.cut()
        assert await hand.text("bash", command="echo next") == "next"
        await hand.box.close("run_1")

    asyncio.run(scenario())


def test_an_interrupted_command_is_ended_and_says_that_its_effect_is_unknown(folder: Path) -> None:
    async def scenario() -> None:
        hand, abort = Hand(folder), AbortSignal()
        fifo = folder / "began"
        os.mkfifo(fifo)
        calling = asyncio.create_task(hand.call("bash", abort=abort, command="echo $$ > began; sleep 600"))
        loop = asyncio.get_running_loop()
        pid = int(await loop.run_in_executor(None, fifo.read_text))
        with watched(pid):
            abort.set()
            outcome = await calling
        assert outcome.cause is Cause.INTERRUPTED_EFFECT_UNKNOWN
        assert not outcome.abandoned
        assert await hand.text("bash", command="echo next") == "next"
        await hand.box.close("run_1")

    asyncio.run(scenario())


def test_a_run_edits_and_greps_the_folder_and_ends_its_shell(folder: Path) -> None:
    script = [
        reply(
            tool_use("toolu_1", "grep", {"pattern": "TODO", "path": "notes.md"}),
            tool_use("toolu_2", "edit", {"file_path": "notes.md", "old_string": "TODO", "new_string": "DONE"}),
            tool_use("toolu_3", "bash", {"command": "echo $$ > pid; cat notes.md"}),
            tool_use("toolu_4", "read", {"file_path": "../secret.txt"}),
        ),
        reply("Done."),
    ]
    went = play(script, tools=agent_toolset(folder))
    found, edited, shown, refused = [block["content"] for block in went.sent[1][2]["content"]]
    assert (found, edited) == ("notes.md:2:TODO: write", "edited notes.md: 1 replaced")
    assert shown == "# Notes\nDONE: write"
    assert "leads out of the folder" in refused
    with pytest.raises(ProcessLookupError):
        os.kill(int((folder / "pid").read_text()), 0)


def test_what_is_no_folder_is_refused(folder: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read as one"):
        agent_toolset(folder / "notes.md")


def test_a_machine_without_bash_says_so(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(folder))
    with pytest.raises(UsageError, match="there is no bash on this machine"):
        agent_toolset(folder)
    assert agent_toolset(folder, shell=False)
