"""The folders, the import names and what goes into the wheel agree; importing the package costs nothing it need not."""

import importlib
import importlib.metadata
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import looplatch
from looplatch.cli import main

NOT_LOADED = ("anthropic", "hypothesis", "jsonschema_rs", "pydantic", "pytest", "structlog", "httpx2")


@pytest.fixture(scope="module")
def project(root: Path) -> dict[str, Any]:
    """pyproject.toml."""
    return tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))


def folder_of(package: str, mapped: dict[str, str]) -> Path:
    """The folder of a package: that of the longest mapped name, and the rest below it."""
    name = max((name for name in mapped if f"{package}.".startswith(f"{name}.")), key=len)
    return Path(mapped[name], *package.removeprefix(name).split("."))


def test_every_package_that_is_there_goes_into_the_wheel(root: Path, project: dict[str, Any]) -> None:
    """A package that is not listed works in the editable install and is missing in the wheel."""
    setup = project["tool"]["setuptools"]
    listed = {folder_of(package, setup["package-dir"]) for package in setup["packages"]}
    there = {
        file.parent.relative_to(root)
        for folder in setup["package-dir"].values()
        for file in (root / folder).rglob("__init__.py")
    }
    assert listed == there


def test_each_import_name_leads_to_its_folder(root: Path, project: dict[str, Any]) -> None:
    setup = project["tool"]["setuptools"]
    for package in setup["packages"]:
        file = importlib.import_module(package).__file__
        assert file is not None
        assert Path(file).parent == root / folder_of(package, setup["package-dir"])


def test_no_folder_of_code_is_left_out_of_the_map(root: Path, project: dict[str, Any]) -> None:
    """Python files stand in the mapped folders and in tests, nowhere else."""
    allowed = {*project["tool"]["setuptools"]["package-dir"].values(), "tests"}
    tracked = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "*.py"], cwd=root, capture_output=True, text=True, check=False
    )
    if tracked.returncode != 0:
        pytest.skip("not in a git checkout")
    assert {Path(name).parts[0] for name in tracked.stdout.splitlines()} <= allowed


def test_the_types_are_announced(root: Path, project: dict[str, Any]) -> None:
    assert project["tool"]["setuptools"]["package-data"]["looplatch"] == ["py.typed"]
    assert (root / "engine" / "py.typed").is_file()


def test_the_parts_of_the_viewers_page_go_into_the_wheel(root: Path, project: dict[str, Any]) -> None:
    assert project["tool"]["setuptools"]["package-data"]["looplatch.diagrams.viewer"] == ["web/*"]
    assert {file.suffix for file in (root / "diagrams" / "viewer" / "web").iterdir()} == {".css", ".html", ".js"}


def test_every_dependency_has_a_lower_bound(project: dict[str, Any]) -> None:
    optional = project["project"]["optional-dependencies"].values()
    needed = [*project["project"]["dependencies"], *(one for extra in optional for one in extra)]
    unbounded = [one for one in needed if ">=" not in one and not one.startswith("looplatch[")]
    assert unbounded == []
    assert "anthropic>=2.14" in needed


def test_importing_looplatch_loads_none_of_the_slow_packages() -> None:
    """It is imported by every test and tool that only reads logs or draws tables."""
    code = "import json, sys, looplatch; print(json.dumps(sorted(sys.modules)))"
    shown = subprocess.run([sys.executable, "-Ic", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in json.loads(shown.stdout)}
    assert "looplatch" in loaded
    assert loaded & set(NOT_LOADED) == set()


def test_the_console_script_is_the_command_line() -> None:
    (script,) = importlib.metadata.entry_points(group="console_scripts", name="looplatch")
    assert script.value == "looplatch.cli:main"
    assert script.load() is main


def test_python_m_looplatch_is_the_command_line() -> None:
    shown = subprocess.run(
        [sys.executable, "-Im", "looplatch", "--version"], capture_output=True, text=True, check=True
    )
    assert shown.stdout.strip() == importlib.metadata.version("looplatch")


def test_the_public_names_are_there_and_few() -> None:
    """At most 30 names, besides the classes of messages and blocks."""
    assert [name for name in looplatch.__all__ if not hasattr(looplatch, name)] == []
    assert sorted(looplatch.__all__) == list(looplatch.__all__)
    named = [name for name in looplatch.__all__ if not re.search(r"(?:Message|[a-z]Block|StreamEvent)$", name)]
    assert len(named) <= 30


def test_the_changelog_begins_with_what_is_not_released(root: Path) -> None:
    text = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## \[(.+?)\]", text, re.MULTILINE)[0] == "Unreleased"
