"""`looplatch view`: which file it writes, and what it refuses."""

import os
import stat
from pathlib import Path

import pytest

from looplatch.cli import main
from looplatch.cli.exits import Exit
from looplatch.testing import reply
from tests.playing import play


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "run.jsonl"
    play([reply("Hello.")], log=path)
    return path


def ask(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    return code, out, err


def test_the_page_goes_beside_the_log_and_is_as_private(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = log.with_suffix(".html")
    assert ask(capsys, "view", log) == (Exit.GOOD, f"{page}\n", "")
    assert page.read_text().startswith("<!doctype html>")
    if os.name == "posix":
        assert stat.S_IMODE(page.stat().st_mode) == 0o600
    before = page.stat().st_mtime_ns
    assert ask(capsys, "view", log)[0] == Exit.GOOD  # its own page is written anew
    assert page.stat().st_mtime_ns >= before


def test_a_log_of_another_name_gets_the_suffix_added(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = log.rename(log.with_name("run.log"))
    assert ask(capsys, "view", other) == (Exit.GOOD, f"{log.with_name('run.log.html')}\n", "")


def test_the_page_of_a_database_goes_beside_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    play([reply("Hello.")], log=tmp_path / "a.sqlite")
    assert ask(capsys, "view", tmp_path / "a.sqlite") == (Exit.GOOD, f"{tmp_path / 'a.html'}\n", "")


def test_a_segment_gives_the_page_of_the_whole_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    play([reply("Hello. " * 400)], log=tmp_path / "seg.jsonl", segment_bytes=1_024)
    assert (tmp_path / "seg.jsonl.3").exists()
    assert ask(capsys, "view", tmp_path / "seg.jsonl.3") == (Exit.GOOD, f"{tmp_path / 'seg.html'}\n", "")


def test_no_segment_of_the_log_is_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log, other = tmp_path / "seg.jsonl", tmp_path / "seg.jsonl.3"
    play([reply("Hello. " * 400)], log=log, segment_bytes=1_024)
    before = other.read_bytes()
    code, _, err = ask(capsys, "export", log, "--to", "csv", "-o", other)
    assert (code, err) == (Exit.USAGE, f"looplatch: -o: {other} belongs to the log itself. Give another path\n")
    assert other.read_bytes() == before


def test_the_page_goes_where_it_is_asked_to(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    there = log.with_name("there.html")
    there.write_text("old")
    assert ask(capsys, "view", log, "-o", there) == (Exit.GOOD, f"{there}\n", "")
    assert there.read_text() != "old"
    assert ask(capsys, "diagram", "--log", log, "-o", there) == (Exit.GOOD, "", "")
    assert there.read_text().startswith("<!doctype html>")


def test_a_strangers_file_is_not_written_over(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = log.with_suffix(".html")
    page.write_text("<p>mine</p>")
    code, out, err = ask(capsys, "view", log)
    assert (code, out) == (Exit.USAGE, "")
    assert err == f"looplatch: view: {page} is there, and is no page of looplatch. Name a file with -o\n"
    assert page.read_text() == "<p>mine</p>"


@pytest.mark.parametrize("suffix", [".jsonl", ".payloads"])
@pytest.mark.parametrize(
    "command",
    [
        ("view",),
        ("export", "--to", "csv"),
        ("diagram", "--format", "svg", "--log"),
        ("diagram", "--format", "svg", "--diff", "{log}"),
        ("diagram", "--format", "svg", "--coverage"),
    ],
)
def test_the_log_itself_is_not_written_over(
    log: Path, capsys: pytest.CaptureFixture[str], command: tuple[str, ...], suffix: str
) -> None:
    command = tuple(part.format(log=log) for part in command)
    own = log.with_suffix(suffix)
    before = own.read_bytes()
    code, _, err = ask(capsys, *command, log, "-o", own)
    assert (code, err) == (Exit.USAGE, f"looplatch: -o: {own} belongs to the log itself. Give another path\n")
    assert own.read_bytes() == before


@pytest.mark.parametrize("command", ["verify", "explain", "replay", "view"])
def test_a_folder_is_no_log(capsys: pytest.CaptureFixture[str], command: str) -> None:
    said = "looplatch: log: . cannot be read (Is a directory). Give the path of a log\n"
    assert ask(capsys, command, Path()) == (Exit.USAGE, "", said)


def test_a_damaged_log_is_shown(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log.write_bytes(b"not a record\n" + log.read_bytes()[:200])
    assert ask(capsys, "view", log)[0] == Exit.GOOD


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["missing.jsonl"], "log: missing.jsonl cannot be read (No such file or directory). Give the path of a log"),
        (
            ["missing.jsonl", "--serve"],
            "log: missing.jsonl cannot be read (No such file or directory). Give the path of a log",
        ),
        (["x", "--serve", "-o", "y"], "-o: a page that is served is not written. Leave out -o or --serve"),
        (["x", "--port", "80"], "--port: no server was asked for. Add --serve, or leave out --port"),
    ],
)
def test_what_cannot_be_done_is_refused(
    capsys: pytest.CaptureFixture[str], arguments: list[str], complaint: str
) -> None:
    assert ask(capsys, "view", *arguments) == (Exit.USAGE, "", f"looplatch: {complaint}\n")


def test_a_port_that_is_none_is_refused(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = ask(capsys, "view", log, "--serve", "--port", "70000")
    assert code == Exit.USAGE
    assert err.startswith("looplatch: --port: 70000 cannot be had (")
