"""Reading a log back: its lines, torn tails, damage, and what it tells of the run."""

from pathlib import Path
from typing import Any

import pytest

from looplatch.audit import JsonlLog, Log, LogDamaged, MemoryLog, read
from looplatch.states.errors import UsageError
from looplatch.states.reasons import Terminal
from looplatch.states.record import Kind
from looplatch.states.state import State


def move(source: str, target: str, reason: str | None = None) -> dict[str, Any]:
    return {"source": source, "event": "E", "target": target, "reason": reason}


def short_log(path: Path) -> list[str]:
    log = JsonlLog(path, "r1", durability="none", payloads="digest")
    hashes = [log.append(Kind.GENESIS, {"model": "m"}).hash, log.append(Kind.TRANSITION, move("a", "b")).hash]
    hashes.append(log.finish(State.COMPLETED, Terminal.ANSWERED).hash)
    log.close()
    return hashes


def test_cut_at_every_byte_exactly_the_whole_records_survive(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    hashes = short_log(path)
    data = path.read_bytes()
    ends = [place + 1 for place, byte in enumerate(data) if byte == ord("\n")]
    for cut in range(len(data) + 1):
        path.write_bytes(data[:cut])
        found = read(path)
        whole = [end for end in ends if end <= cut]
        assert [record.hash for record in found] == hashes[: len(whole)]
        assert found.torn == data[max(whole, default=0) : cut]
        assert b"".join(found.lines) == data[: max(whole, default=0)]


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (b"", "it is not JSON"),
        (b"\x00\x00", "it is not JSON"),
        (b'{"v":1', "it is not JSON"),
        (b"[]", "it is no JSON object"),
        (b"{}", "its field 'v' is missing or is no int"),
        (b'{"v":true}', "its field 'v' is missing or is no int"),
        (b'{"v":1,"run":5}', "its field 'run' is missing or is no str"),
    ],
)
def test_a_line_that_is_no_record_is_named(tmp_path: Path, damage: bytes, problem: str) -> None:
    path = tmp_path / "run.jsonl"
    short_log(path)
    lines = path.read_bytes().splitlines(keepends=True)
    for number in range(1, 4):
        path.write_bytes(b"".join([*lines[: number - 1], damage + b"\n", *lines[number:]]))
        with pytest.raises(LogDamaged) as caught:
            read(path)
        assert (caught.value.file, caught.value.line) == (path, number)
        assert caught.value.problem.startswith(problem)
        assert str(caught.value).startswith(f"{path}, line {number}: {problem}")


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (b'"v":3', b'"v":4', "it has schema 4; this looplatch reads the schemas 1, 2 and 3"),
        (b'"kind":"genesis"', b'"kind":"novelty"', "its kind 'novelty' is unknown"),
    ],
)
def test_what_a_later_version_may_write_is_refused(tmp_path: Path, old: bytes, new: bytes, problem: str) -> None:
    path = tmp_path / "run.jsonl"
    short_log(path)
    path.write_bytes(path.read_bytes().replace(old, new, 1))
    with pytest.raises(LogDamaged, match=problem):
        read(path)


@pytest.mark.parametrize(("name", "problem"), [("none", "No such file"), ("", "Is a directory"), ("a\0b", "null")])
def test_a_file_that_cannot_be_read_is_a_usage_error(tmp_path: Path, name: str, problem: str) -> None:
    with pytest.raises(UsageError, match=f"cannot be read.*{problem}"):
        read(tmp_path / name)


def test_an_empty_file_is_a_log_without_records(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.touch()
    log = read(path)
    assert (len(log), log.run, log.genesis, log.terminal, log.torn) == (0, None, None, None, b"")
    assert (log.path, log.messages, log.effects) == (("prepare",), [], ())


def test_a_log_tells_its_path_and_reasons() -> None:
    """A move that stays is not entered again; a refused event is no move."""
    log = MemoryLog("r1")
    genesis = log.append(Kind.GENESIS, {})
    moves = [
        move("prepare", "prepare"),
        move("prepare", "stream"),
        move("stream", "decide"),
        move("decide", "prepare", "next_turn"),
        move("prepare", "stream"),
        move("stream", "recover"),
        move("recover", "recover"),
        move("recover", "prepare", "reactive_compact_retry"),
        move("prepare", "failed"),
    ]
    made = [log.append(Kind.TRANSITION, fields) for fields in moves]
    log.append(Kind.REJECTED, move("failed", "failed"))
    seen = Log.of(log)
    assert seen.path == ("prepare", "stream", "decide", "prepare", "stream", "recover", "prepare", "failed")
    assert seen.reasons == ("next_turn", "reactive_compact_retry")
    assert seen.transitions == tuple(made)
    assert (seen.genesis, seen.terminal, seen.run, seen.file) == (genesis, None, "r1", None)
    assert repr(seen) == "<Log of run r1, 11 records, open>"


def test_a_sealed_log_has_its_terminal_record(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    short_log(path)
    log = read(str(path))
    assert log.terminal is not None
    assert (log.terminal["state"], log.terminal.terminal, log.terminal["count"]) == ("completed", "answered", 2)
    assert repr(log) == "<Log of run r1, 3 records, answered>"


def test_effects_are_pairs_in_the_order_of_their_begins() -> None:
    log = MemoryLog("r")
    model = log.append(Kind.EFFECT_BEGIN, {"effect": 0, "class": "model"})
    tool = log.append(Kind.EFFECT_BEGIN, {"effect": 1, "class": "tool"})
    lost = log.append(Kind.EFFECT_BEGIN, {"effect": 2, "class": "tool"})
    tool_end = log.append(Kind.EFFECT_END, {"effect": 1, "class": "tool"})
    model_end = log.append(Kind.EFFECT_END, {"effect": 0, "class": "model"})
    effects = Log.of(log).effects
    assert [(e.kind, e.begin, e.end) for e in effects] == [
        ("model", model, model_end),
        ("tool", tool, tool_end),
        ("tool", lost, None),
    ]


def test_a_log_can_be_read_while_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    log = JsonlLog(path, "r", durability="none")
    log.append(Kind.GENESIS, {})
    assert len(read(path)) == 1
    log.append(Kind.MESSAGE, {})
    assert len(read(path)) == 2
    log.close()
