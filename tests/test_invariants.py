"""Each invariant has a bad log that breaks it and it alone; and no damage to a log, however small, goes unseen."""

import importlib
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pytest

from looplatch import verify
from looplatch.states import events as on
from looplatch.states.patterns import KNOWN_VERSION
from looplatch.states.record import commitment
from looplatch.states.verify.findings import Report
from looplatch.states.verify.invariants import INVARIANTS
from looplatch.states.verify.log import verify_lines
from looplatch.states.verify.signatures import PublicKey
from tests.forge import Forge, broken
from tests.forged_runs import aborted, short_run
from tests.test_verify_counters import c3, endless

ELSEWHERE = {"T6", "R1", "R5"}  # what the file alone cannot show: its module says what does

# --- one bad log for each: those of the other modules, and these


def judged_i3() -> Report:
    """A record whose content is another than its hash says."""
    lines = short_run().lines()
    lines[-1] = lines[-1].replace(b"12:00:00", b"12:00:01")
    return verify_lines(lines)


def judged_c3() -> Report:
    """A table that lets a run go in circles."""
    return verify_lines(c3().lines(), table=endless())


def judged_p1() -> Report:
    """A key of the API in a content that is kept."""
    return _kept(b'"sk-ant-api03-' + b"a1B2" * 24 + b'"', None)


def judged_p2() -> Report:
    """A kept content that is another."""
    return _kept(b'"question"', b'"questi0n"')


def _kept(payload: bytes, found: bytes | None) -> Report:
    block = {"type": "text", "commitment": commitment(b"salt", payload), "bytes": len(payload)}
    forge = Forge()
    forge.records[0] |= {"payloads": "keep", "secrets": {"known": KNOWN_VERSION, "own": {}}}
    forge.join("user", block, form="text")
    forge.send(on.RunStarted())
    return verify_lines(aborted(forge).lines(), payloads=lambda _: (b"salt", found or payload))


def judged_i11() -> Report:
    """A seal that the key of the run has not signed."""
    forge = short_run()
    forge.records[0]["signed_by"] = "key"
    return verify_lines(forge.lines(), keys=[PublicKey(key_id="key", verifies=lambda data, signature: True)])


JUDGED: tuple[Callable[[], Report], ...] = (judged_i3, judged_i11, judged_c3, judged_p1, judged_p2)


@pytest.mark.parametrize("judge", JUDGED, ids=lambda judge: judge.__name__)
def test_a_bad_log_is_rejected_for_its_own_invariant_alone(judge: Callable[[], Report]) -> None:
    report = judge()
    assert broken(report) == {judge.__name__.split("_")[1].upper()}, str(report)


def forged() -> Iterable[str]:
    """The invariants of which the other modules have bad logs, each of them rejected there for that alone."""
    for file in sorted(Path(__file__).parent.glob("test_verify*.py")):
        module = importlib.import_module(f"tests.{file.stem}")
        builders: Sequence[Callable[[], Forge]] = getattr(module, "BAD", ())
        yield from (build.__name__.split("_")[0].upper() for build in builders)


def test_every_invariant_has_a_bad_log() -> None:
    shown = {*forged(), *(judge.__name__.split("_")[1].upper() for judge in JUDGED)}
    assert shown | ELSEWHERE == set(INVARIANTS)
    assert not shown & ELSEWHERE, "the file shows this now: take it off the list"


def test_every_finding_names_an_invariant() -> None:
    """The ids that the verifier may print, as they stand in its source."""
    states = Path(__file__).resolve().parent.parent / "states"
    source = "".join(file.read_text("utf-8") for file in (states / "verify").glob("*.py") if file.stem != "invariants")
    named = set(re.findall(r'"([IMTCERP][0-9]{1,2})"', source))
    assert named == set(INVARIANTS) - ELSEWHERE


# --- no damage goes unseen


LINES = short_run().lines()
NOT_SEALED = "the run has ended, and its seal is not set yet: resuming the run sets it"


def is_seen(lines: Iterable[bytes]) -> bool:
    """Whether a log is not what it was: it is broken, or not sealed any more."""
    report = verify_lines(lines)
    return not report.ok or report.status != "sealed"


def test_the_log_is_whole() -> None:
    assert not is_seen(LINES)


def test_every_byte_that_is_lost_or_too_many_is_seen() -> None:
    whole = b"".join(LINES)
    for place in range(0, len(whole), 3):
        assert is_seen((whole[:place] + whole[place + 1 :]).splitlines(keepends=True)), place
        assert is_seen((whole[:place] + b"0" + whole[place:]).splitlines(keepends=True)), place


def test_cut_at_every_byte_exactly_the_complete_records_are_judged() -> None:
    whole = b"".join(LINES)
    for place in range(len(whole)):
        cut = whole[:place].splitlines(keepends=True)
        report = verify_lines(cut)
        complete = whole[:place].count(b"\n")
        torn = len(whole[:place]) - sum(len(line) for line in LINES[:complete])
        if torn == len(LINES[complete]) - 1:
            continue  # all but the newline: that is no torn write of ours, and is told as damage
        ended = complete == len(LINES) - 1  # the run is over, and its log has no seal
        assert broken(report) == ({"I5"} if complete == 0 else set()), (place, str(report))
        assert (report.count, report.torn) == (complete, torn)
        assert report.notes == ((NOT_SEALED,) if ended else ())


def test_a_recorded_log_is_broken_by_any_byte(root: Path, tmp_path: Path) -> None:
    """The same for a log of a real run, with its contents beside it, at some places."""
    golden = root / "tests" / "golden" / "v1"
    log, contents = (golden / "tools.jsonl").read_bytes(), (golden / "tools.payloads").read_bytes()
    (tmp_path / "tools.payloads").write_bytes(contents)
    for place in range(0, len(log), 97):
        damaged = bytearray(log)
        damaged[place] ^= 1
        (tmp_path / "tools.jsonl").write_bytes(damaged)
        assert not verify(tmp_path / "tools.jsonl").ok, place
    (tmp_path / "tools.jsonl").write_bytes(log)
    for place in range(0, len(contents), 31):
        damaged = bytearray(contents)
        damaged[place] ^= 1
        (tmp_path / "tools.payloads").write_bytes(damaged)
        assert not verify(tmp_path / "tools.jsonl").ok, place
