"""A file of payloads holds payloads, blanked ones, and at most the torn end of one: all else is told."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from looplatch import read, verify
from looplatch.audit.payloads import FilePayloads
from looplatch.audit.segmented import SegmentedLog
from looplatch.audit.segments import SegmentPayloads
from looplatch.states.record import Kind

GOLDEN = Path(__file__).parent / "golden" / "v2" / "tools.jsonl"


def copied(folder: Path) -> Path:
    for path in (GOLDEN, GOLDEN.with_suffix(".payloads")):
        shutil.copy(path, folder / path.name)
    return folder / GOLDEN.name


def found(log: Path) -> list[tuple[str, str]]:
    assert verify(log) == verify(read(log))
    return [(one.invariant, one.found) for one in verify(log).violations]


def test_a_right_file_has_nothing_strange(tmp_path: Path) -> None:
    assert found(copied(tmp_path)) == []


Lines = list[bytes]
STRANGE: list[tuple[Callable[[Lines], Lines], str]] = [
    (lambda lines: [b"all the world may read this\n", *lines], "line 1: it is no payload"),
    (lambda lines: [lines[0], b"\n", *lines[1:]], "line 2: it is no payload"),
    (lambda lines: [*lines[:-1], lines[-1].replace(b'"salt"', b'"sale"')], "line 17: it is no payload"),
    (lambda lines: [*lines, b"no end"], "line 18: it is no payload"),
    (lambda lines: [*lines, lines[3]], "line 18: it is another payload for one commitment"),
]


@pytest.mark.parametrize(("change", "told"), STRANGE)
def test_a_line_that_keeps_nothing_is_told(tmp_path: Path, change: Callable[[Lines], Lines], told: str) -> None:
    log = copied(tmp_path)
    file = log.with_suffix(".payloads")
    lines = file.read_bytes().splitlines(keepends=True)
    assert len(lines) == 17
    file.write_bytes(b"".join(change(lines)))
    assert ("P2", told) in found(log)


@pytest.mark.parametrize("size", [1, 10, 15, 40, 100])
def test_the_torn_end_of_a_payload_is_no_violation(tmp_path: Path, size: int) -> None:
    log = copied(tmp_path)
    file = log.with_suffix(".payloads")
    file.write_bytes(file.read_bytes() + file.read_bytes()[:size])
    assert found(log) == []


def test_what_stands_in_a_strange_line_is_not_shown(tmp_path: Path) -> None:
    """It may be a secret."""
    log = copied(tmp_path)
    with log.with_suffix(".payloads").open("ab") as file:
        file.write(b"the password is swordfish\n" * 200)
    report = verify(log)
    assert (len(report.violations), "swordfish" in str(report)) == (100, False)


def test_segments_are_looked_at_one_by_one(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    log = SegmentedLog(path, "r", max_bytes=1_024)
    log.append(Kind.GENESIS, {})
    for number in range(12):
        log.append(Kind.MESSAGE, {"note": log.keep(b'"%d"' % number * 20).hex})
    log.close()
    first, second = (tmp_path / name for name in ("run.payloads", "run.jsonl.2.payloads"))
    assert SegmentPayloads(path).strange() == []
    of_first = first.read_bytes()
    second.write_bytes(b"junk\n" + second.read_bytes() + of_first)
    told = [(one.file, one.line, one.problem) for one in SegmentPayloads(path).strange()]
    assert told[0] == (second, 1, "it is no payload")
    lines = len(second.read_bytes().splitlines())
    twice = range(lines - len(of_first.splitlines()) + 1, lines + 1)
    assert sorted(told[1:]) == [(second, line, "it is another payload for one commitment") for line in twice]
    assert len(FilePayloads(second).strange()) == 1
