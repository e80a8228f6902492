"""The folder tools: they find what is there, stay inside, and their results are bounded whatever the folder holds."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from looplatch.demo import folder_tools as tools
from looplatch.demo.folder_tools import folder_tools
from looplatch.states.errors import UsageError
from looplatch.tools import ToolContext, ToolResult
from looplatch.tools.files.folder import Folder, PathRefused
from looplatch.tools.files.listing import MAX_DEPTH
from looplatch.tools.files.patterns import fits
from looplatch.tools.files.texts import MAX_BYTES


def call(folder: Path, name: str, **given: Any) -> Any:
    """What a tool returns."""
    (used,) = [tool for tool in folder_tools(folder) if tool.name == name]
    assert used.problem(given) is None
    return asyncio.run(_called(used, given))


async def _called(used: Any, given: dict[str, Any]) -> Any:
    return await used.call(given, ToolContext(tool_use_id="t", run_id="r"))


def test_all_of_them_only_read(tmp_path: Path) -> None:
    assert [(tool.name, tool.read_only) for tool in folder_tools(tmp_path)] == [
        ("glob", True),
        ("grep", True),
        ("read", True),
    ]


def test_glob_lists_what_was_changed_last_first(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for age, name in enumerate(["new.py", "sub/mid.py", "old.txt"]):
        (tmp_path / name).write_text("x" * age)
        os.utime(tmp_path / name, (1_000_000 - age, 1_000_000 - age))
    assert call(tmp_path, "glob") == {
        "files": [{"path": "new.py", "bytes": 0}, {"path": "sub/mid.py", "bytes": 1}, {"path": "old.txt", "bytes": 2}],
        "not_listed": 0,
        "whole_folder_seen": True,
    }
    assert [file["path"] for file in call(tmp_path, "glob", pattern="*.py")["files"]] == ["new.py", "sub/mid.py"]


def test_hidden_folders_are_not_listed_and_hidden_files_are(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_text("secret")
    (tmp_path / ".env.example").write_text("KEY=")
    assert [file["path"] for file in call(tmp_path, "glob")["files"]] == [".env.example"]


def test_grep_finds_lines_by_plain_text_whatever_its_case(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\nThe (Word).*\n\nthe (word).* again\n")
    (tmp_path / "b.bin").write_bytes(b"\0the (word).*")
    assert call(tmp_path, "grep", text="THE (word).*") == {
        "matches": [
            {"path": "a.txt", "line": 2, "text": "The (Word).*"},
            {"path": "a.txt", "line": 4, "text": "the (word).* again"},
        ],
        "files_searched": 2,
        "all_searched": True,
    }


def test_an_empty_text_finds_the_first_lines_that_hold_anything(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("\n  \nfirst\nsecond\nthird\n")
    found = call(tmp_path, "grep", text="", per_file=2)["matches"]
    assert [(match["line"], match["text"]) for match in found] == [(3, "first"), (4, "second")]


def test_results_are_bounded(tmp_path: Path) -> None:
    for number in range(tools.MAX_FILES + 5):
        (tmp_path / f"f{number}").write_text("x" * 5_000 + "\n" * 3)
    listed = call(tmp_path, "glob")
    assert (len(listed["files"]), listed["not_listed"]) == (tools.MAX_FILES, 5)
    found = call(tmp_path, "grep", text="x")
    assert (len(found["matches"]), found["all_searched"]) == (tools.MAX_MATCHES, False)
    assert {len(match["text"]) for match in found["matches"]} == {300}


def test_the_middle_of_a_long_text_is_left_out_and_can_be_asked_for(tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_text("".join(f"line {number}\n" for number in range(1, 10_001)))
    text = call(tmp_path, "read", path="long.txt")
    assert text.startswith("line 1\nline 2\n")
    assert text.endswith("line 9999\nline 10000\n")
    assert len(text) < tools.MAX_TEXT + 100
    first = int(text.partition("[... lines ")[2].partition(" to ")[0])
    assert call(tmp_path, "read", path="long.txt", from_line=first + 1).startswith(f"line {first + 1}\n")


def test_the_ends_of_a_huge_file_are_read_and_no_more(tmp_path: Path) -> None:
    with (tmp_path / "huge.txt").open("wb") as file:
        file.write(b"first words\n")
        file.seek(50 * MAX_BYTES)
        file.write(b"\nlast words")
    text = call(tmp_path, "read", path="huge.txt")
    assert isinstance(text, ToolResult)  # the hole reads as null characters: no text
    with (tmp_path / "huge.txt").open("wb") as file:
        file.write(b"first words\n" + b"a line\n" * MAX_BYTES + b"last words")
    text = call(tmp_path, "read", path="huge.txt")
    assert text.startswith("first words\n")
    assert text.endswith("a line\nlast words")


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\xef\xbb\xbfmarked", "marked"),
        ("wide ÿ".encode("utf-16"), "wide ÿ"),
        (b"latin \xe9", "latin \ufffd"),
        (b"", ""),
    ],
)
def test_texts_of_other_encodings_are_read(tmp_path: Path, data: bytes, text: str) -> None:
    (tmp_path / "f").write_bytes(data)
    assert call(tmp_path, "read", path="f") == text


def test_a_binary_file_is_an_error_that_says_so(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"\x7fELF\0")
    assert call(tmp_path, "read", path="f") == ToolResult("'f' is binary, it has no text", is_error=True)


@pytest.fixture
def guarded(tmp_path: Path) -> Path:
    """A folder with something secret beside it, and links to that in it."""
    inside = tmp_path / "inside"
    (inside / "sub").mkdir(parents=True)
    (inside / "a.txt").write_text("open")
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "inside-too").mkdir()
    (tmp_path / "inside-too" / "secret.txt").write_text("secret")
    (inside / "link.txt").symlink_to(tmp_path / "secret.txt")
    (inside / "up").symlink_to(tmp_path)
    (inside / "sub" / "own.txt").symlink_to("../a.txt")
    (inside / "loop").symlink_to("loop")
    return inside


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("../secret.txt", "leads out of the folder"),
        ("sub/../../secret.txt", "leads out of the folder"),
        ("../inside-too/secret.txt", "leads out of the folder"),
        ("link.txt", "leads out of the folder"),
        ("up/secret.txt", "leads out of the folder"),
        ("/etc/hostname", "leads out of the folder"),
        ("", "is the folder itself"),
        ("sub", "cannot be read (it is no regular file)"),
        ("none.txt", "cannot be read (No such file or directory)"),
        ("a\0b", "cannot be found (embedded null byte)"),
    ],
)
def test_no_path_leads_out(guarded: Path, path: str, problem: str) -> None:
    with pytest.raises(PathRefused) as caught:
        call(guarded, "read", path=path)
    assert (caught.value.path, caught.value.problem) == (path, problem)
    assert str(caught.value).startswith(f"{path!r} {problem}. Give the path of a file")


def test_links_that_stay_inside_are_followed(guarded: Path) -> None:
    assert call(guarded, "read", path="sub/own.txt") == "open"
    assert call(guarded, "read", path="sub/../a.txt") == "open"


def test_links_are_not_listed_and_not_searched(guarded: Path) -> None:
    assert [file["path"] for file in call(guarded, "glob")["files"]] == ["a.txt"]
    assert call(guarded, "grep", text="secret")["matches"] == []


def test_a_link_in_a_circle_is_refused(guarded: Path) -> None:
    with pytest.raises(PathRefused):
        call(guarded, "read", path="loop")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(PathRefused, match="no regular file"):
        call(tmp_path, "read", path="pipe")


def test_a_deep_or_large_folder_is_not_walked_to_its_end(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["d"] * (MAX_DEPTH + 2))
    deep.mkdir(parents=True)
    (deep / "f").write_text("x")
    assert call(tmp_path, "glob") == {"files": [], "not_listed": 0, "whole_folder_seen": False}


@pytest.mark.parametrize("root", ["none", "file", "nul\0"])
def test_what_is_no_folder_is_refused(tmp_path: Path, root: str) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(UsageError) as caught:
        Folder(tmp_path / root)
    assert caught.value.what == "folder"


@pytest.mark.parametrize(
    ("path", "pattern", "fit"),
    [
        ("a.py", "*.py", True),
        ("sub/a.py", "*.py", True),
        ("sub/a.py", "sub/*.py", True),
        ("sub/deep/a.py", "sub/*.py", False),
        ("sub/deep/a.py", "sub/**/*.py", True),
        ("sub/a.py", "sub/**/*.py", True),
        ("a.py", "**/*.py", True),
        ("a.py", "./*.py", True),
        ("a.txt", "**/*.py", False),
        ("sub/a.py", "sub/**", True),
        ("other/a.py", "sub/**", False),
        ("sub/a.py", "**", True),
        ("a/b/c/d", "a/**/c/*", True),
        ("a/c/d", "a/**/c/*", True),
        ("a/b/d", "a/**/c/*", False),
        ("ab.c", "a?.c", True),
        ("a/.c", "a?.c", False),
    ],
)
def test_patterns(path: str, pattern: str, fit: bool) -> None:
    assert fits(path, pattern) is fit


PARTS = st.lists(st.sampled_from(["a", "b", "ab"]), min_size=1, max_size=5)


@given(PARTS, st.lists(st.sampled_from(["a", "*", "**", "b*"]), min_size=2, max_size=6))
def test_patterns_agree_with_their_meaning(path: list[str], pattern: list[str]) -> None:
    def means(parts: list[str], globs: list[str]) -> bool:
        if not globs:
            return not parts
        if globs[0] == "**":
            return any(means(parts[skipped:], globs[1:]) for skipped in range(len(parts) + 1))
        one = bool(parts) and (globs[0] == "*" or globs[0] == parts[0] or (globs[0] == "b*" and parts[0][0] == "b"))
        return one and means(parts[1:], globs[1:])

    assert fits("/".join(path), "/".join(pattern)) is means(path, pattern)
