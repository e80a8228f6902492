"""The demo: a real run over a folder, whatever it holds, whose answer is made of what the tools returned."""

import asyncio
import os
import random
import secrets
import string
from pathlib import Path
from typing import Any

import pytest

import looplatch
from looplatch.cli import main
from looplatch.cli.exits import Exit
from looplatch.demo.folder_tools import folder_tools
from looplatch.demo.surveyor import READS, Surveyor
from looplatch.demo.words import rare_words
from looplatch.diagrams import way
from looplatch.messages import ResultMessage
from looplatch.proving.verification import verify
from looplatch.states.record import Kind
from looplatch.testing import ScriptedAPI
from looplatch.testing.loopback import loopback_client


async def surveyed(folder: Path, log: Path | None = None, pace_s: float = 0.0) -> tuple[ResultMessage, ScriptedAPI]:
    api = ScriptedAPI(Surveyor(pace_s))
    async with api.serve() as url, loopback_client(url) as client:
        loop = looplatch.Loop(model="demo", tools=folder_tools(folder), client=client, max_tokens=2_000)
        result = await loop.run("Survey the folder.", log=log)
    api.check_played()
    return result, api


def answer(folder: Path) -> str:
    """The final answer for a folder."""
    result, _ = asyncio.run(surveyed(folder))
    assert result.terminal == "answered"
    assert result.result is not None
    return result.result


def test_the_demo_shows_verifies_and_draws_its_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    word = f"word-{secrets.token_hex(8)}"
    folder, log = tmp_path / "folder", tmp_path / "log.jsonl"
    folder.mkdir()
    (folder / "note.txt").write_text(f"Remember {word}.\n")
    assert main(["demo", "--dir", str(folder), "--log", str(log)]) == Exit.GOOD
    out, err = capsys.readouterr()
    assert err == ""
    assert f"  | Remember {word}.\n" in out
    assert "[decide -> completed] StopHooksPassed, answered\n" in out
    assert way(looplatch.read(log)) in out
    told = out.splitlines()
    assert told[-3] == f"log: {log}"
    assert told[-1] == f"verified: {verify(log)}"


def test_without_a_path_the_log_goes_to_a_folder_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "temporary").mkdir()
    (tmp_path / "work").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    monkeypatch.chdir(tmp_path / "work")
    assert main(["demo"]) == Exit.GOOD
    (said,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("log: ")]
    assert verify(said.removeprefix("log: ")).status == "sealed"
    assert list((tmp_path / "work").iterdir()) == []


def test_the_run_is_the_one_that_is_promised(tmp_path: Path) -> None:
    """Parallel glob and grep, reads that begin while the model still writes, one answer cut by max_tokens."""
    for number in range(READS):
        (tmp_path / f"{number}.txt").write_text(f"content {number}")
    result, api = asyncio.run(surveyed(tmp_path))
    log = result.log
    assert log.path == (
        *("prepare", "stream", "decide", "orchestrate"),
        *("prepare", "stream", "decide", "orchestrate"),
        *("prepare", "stream", "decide", "recover"),
        *("prepare", "stream", "decide", "completed"),
    )
    assert log.reasons == ("next_turn", "next_turn", "max_output_tokens_recovery")
    assert [request.body["max_tokens"] for request in api.requests] == [2_000, 2_000, 2_000, 64_000]
    calls = [effect.begin["name"] for effect in log.effects if effect.kind == "tool"]
    assert calls == ["glob", "grep"] + ["read"] * READS
    _, reading, *_ = [effect for effect in log.effects if effect.kind == "model"]
    assert reading.end is not None
    begun = [effect.begin for effect in log.effects if effect.kind == "tool" and effect.begin["name"] == "read"]
    assert any(reading.begin.seq < begin.seq < reading.end.seq for begin in begun)


def test_pacing_changes_nothing_but_the_time(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("content")
    paced, _ = asyncio.run(surveyed(tmp_path, pace_s=0.000_1))
    assert paced.result == answer(tmp_path)


def test_an_empty_folder_is_said_to_be_empty(tmp_path: Path) -> None:
    assert answer(tmp_path) == "The folder holds no files.\n"


def test_the_answer_is_made_of_what_the_tools_returned(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "b.md").write_text("# Title\n\nbody\n")
    (tmp_path / "a.txt").write_text("only line")
    (tmp_path / "c.bin").write_bytes(b"\0\1")
    for age, name in enumerate(["a.txt", "sub/b.md", "c.bin"]):
        os.utime(tmp_path / name, (1_000_000 - age, 1_000_000 - age))
    assert answer(tmp_path) == (
        "The folder holds 3 files. 1 .txt, 1 .md, 1 .bin; 25 bytes together. "
        "I read 2 of them.\n"
        "\n"
        "a.txt (9 characters)\n"
        "  | only line\n"
        "\n"
        "sub/b.md (14 characters)\n"
        "  | # Title\n"
        "  | body\n"
    )


PLACES = ["alone", "deep", "middle of a long file", "end of a long file", "newest of many"]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("place", PLACES)
def test_a_random_word_in_a_file_shows_up(root: Path, tmp_path: Path, place: str, seed: int) -> None:
    word = "".join(random.Random(f"{place} {seed}").choices(string.ascii_lowercase, k=10))
    long = (root / "LICENSE").read_text()
    match place:
        case "alone":
            (tmp_path / "x").write_text(word)
        case "deep":
            (tmp_path / "a" / "b" / "c").mkdir(parents=True)
            (tmp_path / "a" / "b" / "c" / "x.md").write_text(f"A {word} here")
        case "middle of a long file":
            lines = long.splitlines()
            (tmp_path / "x.py").write_text("\n".join([*lines[:100], f"# {word}", *lines[100:]]))
        case "end of a long file":
            (tmp_path / "x.py").write_text(f"{long}\n{word}")
        case _:
            for number in range(100):
                (tmp_path / f"{number}.txt").write_text("old\n" * 200)
                os.utime(tmp_path / f"{number}.txt", (1, 1))
            (tmp_path / "50.txt").write_text("old\n" * 100 + word + "\nold" * 100)
    assert word in answer(tmp_path)


def test_a_folder_with_more_files_than_can_be_read(tmp_path: Path) -> None:
    for number in range(300):
        (tmp_path / f"{number:03}.txt").write_text(f"begins with {number}\n")
        os.utime(tmp_path / f"{number:03}.txt", (1_000_000 - number, 1_000_000 - number))
    said = answer(tmp_path)
    assert said.startswith("The folder holds 300 files. Of these the 200 that were changed last: 200 .txt; ")
    assert "I read 10 of them, and saw the first lines of 190 more.\n" in said
    assert "  010.txt: begins with 10\n" in said
    assert "  and 150 more files with text\n" in said


ODD_NAMES = ["sp ace", "new\nline", "quo'te\"", "-dash", "ünïcode", "\x1b[31mred", ".hidden", "a" * 200, "*?[x]"]


@pytest.mark.skipif(os.name == "nt", reason="such names cannot be there")
def test_odd_names_are_read_like_others(tmp_path: Path) -> None:
    for number, name in enumerate(ODD_NAMES):
        (tmp_path / name).write_text(f"in number {number}")
    said = answer(tmp_path)
    assert [number for number in range(len(ODD_NAMES)) if f"  | in number {number}\n" not in said] == []


@pytest.mark.skipif(os.name == "nt", reason="such names cannot be there")
def test_a_name_that_is_no_text_stops_nothing(tmp_path: Path) -> None:
    name = os.path.join(os.fsencode(tmp_path), b"bad\xff.txt")
    try:
        with open(name, "w") as file:
            file.write("inside")
    except OSError:
        pytest.skip("the file system takes no such name")
    said = answer(tmp_path)
    assert "bad\ufffd.txt" in said


def test_what_may_not_be_read_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("text")
    body = asyncio.run(_survey_then_remove(tmp_path))
    assert "Not read:\n  failed: PathRefused: 'a.txt' cannot be read" in body


async def _survey_then_remove(folder: Path) -> str:
    """A file that goes away between the survey and the read."""
    tools = folder_tools(folder)

    def script(body: dict[str, Any]) -> Any:
        if len(body["messages"]) == 3:
            (folder / "a.txt").unlink(missing_ok=True)
        return Surveyor()(body)

    loop = looplatch.Loop(model="demo", tools=tools, client=ScriptedAPI(script).client(), max_tokens=8_000)
    result = await loop.run("Survey the folder.")
    return result.result or ""


def test_the_log_of_the_demo_names_every_kind_of_record_that_it_should(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("text")
    result, _ = asyncio.run(surveyed(tmp_path))
    assert {record.kind for record in result.log.records} == {
        Kind.GENESIS,
        Kind.TRANSITION,
        Kind.MESSAGE,
        Kind.EFFECT_BEGIN,
        Kind.EFFECT_END,
        Kind.TERMINAL,
    }


def test_rare_words_are_those_of_one_text_only_the_oddest_first() -> None:
    texts = {"a": "the cat sat, The xqzvk and the mat", "b": "the cat sat and the hat"}
    assert rare_words(texts, 2) == {"a": ["xqzvk", "mat"], "b": ["hat"]}
