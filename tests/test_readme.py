"""The README says what is true: its example runs as it stands, its diagram and its commands are the real ones."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from looplatch.states.state import State
from looplatch.testing import ScriptedAPI, reply, tool_use


@pytest.fixture(scope="module")
def readme(root: Path) -> str:
    """The README."""
    return (root / "README.md").read_text(encoding="utf-8")


def blocks(page: str, language: str) -> list[str]:
    """The code blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)


def test_the_example_runs_as_it_stands(readme: str, tmp_path: Path) -> None:
    example, _, _ = blocks(readme, "python")
    assert len(example.splitlines()) <= 22
    api = ScriptedAPI(
        [
            reply(tool_use("toolu_1", "weather", {"city": "Paris"}), tool_use("toolu_2", "weather", {"city": "Rome"})),
            reply("It is as warm in Paris as in Rome."),
        ]
    )
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ANTHROPIC_")}
    with api.serve_in_thread() as url:
        ended = subprocess.run(
            [sys.executable, "-Ic", example],
            cwd=tmp_path,
            env={**kept, "ANTHROPIC_API_KEY": "key", "ANTHROPIC_BASE_URL": url, "NO_PROXY": "127.0.0.1"},
            capture_output=True,
            text=True,
            check=False,
        )
    assert (ended.returncode, ended.stderr) == (0, "")
    lines = ended.stdout.splitlines()
    assert lines[:-1] == [
        "ToolUseBlock(id='toolu_1', name='weather', input={'city': 'Paris'})",
        "ToolUseBlock(id='toolu_2', name='weather', input={'city': 'Rome'})",
        "TextBlock(text='It is as warm in Paris as in Rome.')",
        "prepare -> stream -> decide -> orchestrate -> prepare -> stream -> decide -> completed",
    ]
    assert lines[-1].startswith("ok: sealed, ")
    results = api.requests[1].messages[-1]["content"]
    assert [result["content"] for result in results] == [
        "Paris: 21 degrees, clear",
        "Rome: 21 degrees, clear",
    ]
    api.check_played()


def test_the_example_of_a_test_needs_no_model(readme: str, tmp_path: Path) -> None:
    example, kit, _ = blocks(readme, "python")
    tool, _, _ = example.partition("async def main")
    asked = "async def ask() -> None:\n    print((await loop.run('Is it warm?')).result)\n\nasyncio.run(ask())\n"
    ended = subprocess.run(
        [sys.executable, "-Ic", f"{tool}\n{kit}\n{asked}"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr, ended.stdout) == (0, "", "It is warm in Rome.\n")


def test_the_example_of_a_pytest_test_passes_and_has_its_run_verified(readme: str, tmp_path: Path) -> None:
    _, _, example = blocks(readme, "python")
    imports = "import asyncio\nimport looplatch\nfrom looplatch.testing import reply\n"
    (tmp_path / "test_example.py").write_text(imports + example)
    ended = subprocess.run(
        [
            sys.executable,
            "-Im",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "--rootdir",
            str(tmp_path),
            "test_example.py",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, "1 passed" in ended.stdout) == (0, True), ended.stdout


def test_the_diagram_is_the_rendered_one(readme: str, root: Path) -> None:
    (diagram,) = blocks(readme, "mermaid")
    assert diagram == (root / "diagrams" / "agent_loop.mmd").read_text(encoding="utf-8")


def test_the_commands_are_targets_of_the_makefile(readme: str, root: Path) -> None:
    (commands,) = blocks(readme, "sh")
    named = re.findall(r"^make (\w+)", commands, re.MULTILINE)
    targets = re.findall(r"^(\w+):.*## ", (root / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert named == ["run", "test"]
    assert set(named) <= set(targets)
    assert "make test" in (root / ".ci" / "run").read_text(encoding="utf-8").splitlines()


def test_every_target_of_the_makefile_says_what_it_does(root: Path) -> None:
    makefile = (root / "Makefile").read_text(encoding="utf-8")
    (phony,) = re.findall(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    told = re.findall(r"^(\w+):.*## \S", makefile, re.MULTILINE)
    assert sorted(told) == sorted(phony.split())
    assert {"run", "test", "check", "diagrams", "bench", "dist", "help"} <= set(told)


def test_the_duties_are_numbered_in_order(readme: str) -> None:
    duties = readme.partition("## Your duties")[2].partition("\n## ")[0]
    numbers = [int(number) for number in re.findall(r"^(\d+)\. \*\*", duties, re.MULTILINE)]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) >= 5


def test_the_words_are_explained(readme: str) -> None:
    words = readme.partition("## Words")[2].partition("\n## ")[0]
    assert re.findall(r"^\| \*\*(\w+)\*\* \|", words, re.MULTILINE) == [
        "State",
        "Event",
        "Guard",
        "Transition",
        "Continue",
        "Command",
        "Context",
        "Trouble",
        "Record",
        "Run",
    ]
    assert all(f"`{state}`" in words for state in State)


def test_every_file_that_is_linked_is_there(readme: str, root: Path) -> None:
    linked = [target for target in re.findall(r"\]\(([^)]+)\)", readme) if "://" not in target]
    assert linked
    assert [target for target in linked if not (root / target).is_file()] == []
