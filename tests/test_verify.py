"""What the report on a log says, and that no damage to bytes or lines passes, whoever hashes the file anew."""

import gc
import json
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest

from looplatch.audit import Log, MemoryLog, read
from looplatch.proving.verification import verify
from looplatch.states import events as on
from looplatch.states.errors import UsageError
from looplatch.states.verify.findings import KEPT
from looplatch.states.verify.log import verify_lines
from tests.forge import CLAIM, ZEROS, Fields, Forge, broken, call, encode, keep_up, naive_root, named, result, sealed
from tests.forged_runs import begun, drained, long_run, one_turn, short_run, streaming


@pytest.mark.parametrize("run", [short_run, long_run, drained])
def test_a_right_log_is_ok(run: Callable[[], Forge]) -> None:
    forge = run()
    lines = forge.lines()
    report = verify_lines(lines)
    assert report.ok, str(report)
    assert (report.status, report.count, report.omitted, report.torn) == ("sealed", len(forge.records), 0, 0)
    hashes = [json.loads(line)["hash"] for line in lines]
    assert (report.head, report.root) == (hashes[-1], naive_root(hashes))
    told = f"ok: sealed, {report.count} records, root {report.root}, checkpoint {report.count}:{report.head}"
    assert str(report) == told


def test_what_was_needed_to_judge_is_gone_with_the_report() -> None:
    """No cycle is left that keeps it until the collector comes: memory stays the same, log after log."""
    lines = long_run().lines()
    verify_lines(lines)
    gc.collect()
    gc.disable()
    try:
        verify_lines(lines)
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_a_violation_names_line_expectation_and_finding() -> None:
    forge = long_run()
    moved = forge.find(event="ToolsAnswered")
    moved["change"]["turn"] = 3
    place = forge.records.index(moved)
    report = verify_lines(forge.lines())
    (violation,) = report.violations
    assert attrs.asdict(violation) == {
        "invariant": "C1",
        "seq": place,
        "line": place + 1,
        "expected": "2",
        "found": "3",
        "message": "the change of turn does not follow from the row",
    }
    assert str(report) == (
        f"not ok: 1 violation in {len(forge.records)} records\n"
        f"line {place + 1}: C1: the change of turn does not follow from the row; expected 2, found 3\n"
        f"C1: {violation.meaning}"
    )
    assert violation.meaning.startswith("the turn is 1")


def test_at_most_a_hundred_violations_are_kept_and_the_others_counted() -> None:
    report = verify_lines([LINES[0], *[b"nothing\n"] * 250])
    assert (len(report.violations), report.omitted, report.ok) == (KEPT, 150, False)
    assert "\nand 150 more\n" in str(report)


@pytest.mark.parametrize("line", [b"import this\n", b'{"name": "a"}\n', b"\xff\x00\n", b"[]\n", b"\n"])
def test_what_is_no_log_at_all_is_told_once(line: bytes) -> None:
    report = verify_lines([line] * 250)
    assert [(one.invariant, one.line, one.message) for one in report.violations] == [
        ("I5", 1, "this is no log of looplatch")
    ]
    assert report.omitted == 0


# --- how far a run has come


def test_a_log_without_records_is_no_log() -> None:
    assert broken(verify_lines([])) == {"I5"}


def test_a_run_that_goes_on_is_open() -> None:
    report = verify_lines(streaming().lines())
    assert (report.ok, report.status) == (True, "open")


def test_a_run_that_waits_is_suspended() -> None:
    forge = one_turn()
    forge.send(on.ApprovalAwaited(calls=("b",)))
    report = verify_lines(forge.lines())
    assert (report.ok, report.status) == (True, "suspended")
    forge = begun()
    forge.send(on.RunPaused())
    assert verify_lines(forge.lines()).status == "suspended"
    forge.send(on.RunResumed())
    assert verify_lines(forge.lines()).status == "open"


def test_a_run_with_an_effect_in_flight_is_in_doubt() -> None:
    forge = streaming()
    forge.ask()
    report = verify_lines(forge.lines())
    assert (report.ok, report.status) == (True, "in_doubt")


def test_a_new_process_may_run_again_what_is_in_doubt() -> None:
    forge = streaming()
    forge.ask()
    forge.tool("a")
    resumed = forge.add("resumed", **CLAIM)
    place = forge.records.index(resumed)
    forge.join("assistant", call("a"))
    forge.send(on.RunResumed(begun=1))
    forge.did(forge.tool("a"))
    forge.join("user", result("a"))
    forge.send(on.ToolsAnswered(results=1))
    for number, record in enumerate(forge.records[place:]):
        record |= {"epoch": 1, "mono_ns": number}
    report = verify_lines(forge.lines())
    assert (report.ok, report.status) == (True, "open"), str(report)


# --- damage to the bytes and lines of a file

LINES = short_run().lines()


def test_every_flipped_byte_is_found() -> None:
    data = b"".join(LINES)
    missed: list[int] = []
    for place in range(len(data)):
        flipped = bytearray(data)
        flipped[place] ^= 1 << place % 8
        if verify_lines(_split(bytes(flipped))).ok:
            missed.append(place)
    assert missed == []


def _split(data: bytes) -> list[bytes]:
    """Lines as a file opened for bytes gives them."""
    parts = data.split(b"\n")
    return [part + b"\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


@pytest.mark.parametrize("place", range(len(LINES) - 1))
def test_every_dropped_line_before_the_seal_is_found(place: int) -> None:
    """Without its seal alone, a log is that of a process which died before it set it: open, and told to be so."""
    assert not verify_lines(LINES[:place] + LINES[place + 1 :]).ok


@pytest.mark.parametrize("place", range(len(LINES)))
def test_every_doubled_line_is_found(place: int) -> None:
    assert not verify_lines(LINES[: place + 1] + LINES[place:]).ok


@pytest.mark.parametrize("place", range(len(LINES) - 1))
def test_every_two_swapped_lines_are_found(place: int) -> None:
    swapped = [*LINES[:place], LINES[place + 1], LINES[place], *LINES[place + 2 :]]
    assert not verify_lines(swapped).ok


@pytest.mark.parametrize("place", range(len(LINES)))
def test_every_line_of_another_run_is_found(place: int) -> None:
    other = [line.replace(b'"run-1', b'"run-2') for line in LINES]
    assert not verify_lines([*LINES[:place], other[place], *LINES[place + 1 :]]).ok


def test_a_torn_last_line_is_told_and_is_no_violation() -> None:
    """Whatever is left of the line: no violation. (Its last byte but the newline makes it a whole record.)"""
    lines = streaming().lines()
    last = lines.pop()
    for length in range(1, len(last) - 1):
        report = verify_lines([*lines, last[:length]])
        assert (report.ok, report.torn, report.count) == (True, length, len(lines)), str(report)


def test_a_whole_last_line_without_its_newline_is_damage() -> None:
    for ending in (b"", b" ", b"\x0b"):
        report = verify_lines([*LINES[:-1], LINES[-1][:-1] + ending])
        assert broken(report) == {"I4"}, str(report)


# --- the forger hashes the whole file anew


def rehashed(records: list[Fields], *, requests: bool) -> list[bytes]:
    """The records numbered, chained, hashed and sealed anew; on demand, what names the history, too."""
    done: list[Fields] = []
    history: list[list[str]] = []
    for number, record in enumerate(records):
        told = {**record, "seq": number, "prev": done[-1]["hash"] if done else ZEROS}
        if "sent" in told and requests:
            told["sent"] = named(history)
        if told["kind"] == "effect_begin":
            told["effect"] = number
        if told["kind"] == "effect_end":
            told["effect"] = number - (record["seq"] - record["effect"])
        if told["kind"] == "terminal":
            told |= {"count": number, "root": naive_root(one["hash"] for one in done)}
            if requests:
                told["history"] = named(history)
        done.append(sealed(told))
        if told["kind"] == "message":
            keep_up(history, told, done[-1]["hash"])
    return [encode(record) + b"\n" for record in done]


def records(forge: Forge) -> list[Fields]:
    return [json.loads(line) for line in forge.lines()]


def test_the_forger_leaves_a_right_log_right() -> None:
    assert verify_lines(rehashed(records(long_run()), requests=True)).ok


@pytest.mark.parametrize(
    ("invariant", "event", "forgery"),
    [
        ("M3", "ModelResponded", {"target": "completed", "terminal": "answered"}),
        ("M5", "ToolsAnswered", {"fields": {"results": 3, "errors": 1, "stop_asked": True}}),
        ("M6", "ToolsAnswered", {"guards": [[name, True] for name in ("trouble_pending", "stop_asked", "turns_left",
                                                                       "turns_spent")]}),
        ("C1", "ToolsAnswered", {"change": {"turn": 7, "reason": "next_turn"}}),
        ("C2", "TroubleNamed", {"change": {"attempts": 3}}),
    ],
)  # fmt: skip
def test_a_forged_move_is_found(invariant: str, event: str, forgery: Fields) -> None:
    forged = records(long_run())
    place = next(n for n, record in enumerate(forged) if record.get("event") == event)
    forged[place] |= forgery
    for requests in (False, True):
        report = verify_lines(rehashed(forged, requests=requests))
        assert invariant in broken(report), str(report)
        assert report.violations[0].line == place + 1


@pytest.mark.parametrize("message", range(4))
def test_a_missing_message_is_found(message: int) -> None:
    forged = records(long_run())
    places = [place for place, record in enumerate(forged) if record["kind"] == "message"]
    assert len(places) == 4
    del forged[places[message]]
    assert not verify_lines(rehashed(forged, requests=False)).ok


def test_any_other_record_that_is_missing_is_found() -> None:
    """Even where the forger mends what names the history: only a message without calls or results can go then.

    Or the seal, without which the run is told to be open.
    """
    right = records(long_run())
    for place in (place for place, record in enumerate(right) if record["kind"] != "message"):
        forged = right[:place] + right[place + 1 :]
        assert verify_lines(rehashed(forged, requests=True)).ok is (right[place]["kind"] == "terminal"), right[place]


# --- logs and files


def test_logs_and_files_are_verified_alike(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(b"".join(LINES))
    assert verify(path) == verify(str(path)) == verify_lines(LINES)
    torn = tmp_path / "torn.jsonl"
    torn.write_bytes(b"".join(streaming().lines()) + b'{"epoch"')
    assert verify(torn).torn == 8
    assert verify(read(torn)) == verify(torn)
    assert verify(read(path)) == verify(path)


def test_a_log_in_memory_is_verified() -> None:
    log = MemoryLog("run-1")
    assert broken(verify(log)) == broken(verify(Log.of(log))) == {"I5"}


def test_a_file_that_is_not_there_is_the_callers_mistake(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as raised:
        verify(tmp_path / "none.jsonl")
    assert raised.value.what == "log"
