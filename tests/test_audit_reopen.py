"""A log that a process left behind: what is kept of it, what is moved aside, and what no crash can have done."""

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from looplatch import Log, read
from looplatch.audit import JsonlLog, LogClosed, LogDamaged, LogFailed, LogInUse, MemoryLog
from looplatch.audit.disk import Disk
from looplatch.audit.payloads import payloads_of
from looplatch.audit.prefix import prefix_of, read_prefix
from looplatch.states.errors import UsageError
from looplatch.states.reasons import Terminal
from looplatch.states.record import Kind
from looplatch.states.state import State
from tests.forge import naive_root
from tests.test_audit_log import Ticks, assert_chained


def nothing() -> dict[str, Any]:
    return {}


def written(path: Path, records: int = 3) -> bytes:
    """A log of so many records besides the genesis, each with a payload, left without a seal."""
    log = JsonlLog(path, "r1", durability="none")
    log.append(Kind.GENESIS, {"payloads": "keep"})
    for number in range(records):
        kept = log.keep(b'{"n":%d}' % number)
        log.append(Kind.MESSAGE, {"commitment": kept.hex, "n": number})
    log.close()
    return path.read_bytes()


def reopened(path: Path, **settings: Any) -> JsonlLog:
    return JsonlLog.reopen(path, durability="none", **settings)


def test_the_chain_the_root_and_the_payloads_are_continued(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    before = written(path)
    log = reopened(path)
    assert (log.run, log.head[0]) == ("r1", 4)
    claim = log.resume(lambda: {"why": "crash"})
    assert (claim.seq, claim["epoch"], claim["lost"], claim["why"]) == (4, 1, {"records": 0, "payloads": 0}, "crash")
    kept = log.keep(b'"new"')
    log.append(Kind.MESSAGE, {"commitment": kept.hex})
    log.finish(State.COMPLETED, Terminal.ANSWERED)
    log.close()
    assert path.read_bytes().startswith(before)
    lines = path.read_bytes().splitlines(keepends=True)
    assert_chained(lines)
    found = read(path)
    kept_all = [found.payloads.find(record["commitment"]) for record in found if "commitment" in record.data]
    assert [payload for payload in kept_all if payload is None] == []
    assert len(kept_all) == 4


def test_the_root_over_both_epochs_is_that_of_all_records(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    written(path, 5)
    log = reopened(path)
    log.resume(nothing)
    seal = log.finish(State.COMPLETED, Terminal.ANSWERED)
    log.close()
    assert seal["root"] == naive_root(record.hash for record in read(path).records[:-1])


def test_each_epoch_has_its_own_clock(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    written(path)
    clock = Ticks([0], [5_000_000_000, 5_000_000_007])
    log = reopened(path, clock=clock)
    assert log.resume(nothing)["mono_ns"] in (0, 7)
    assert log.append(Kind.MESSAGE, {})["epoch"] == 1
    log.close()
    again = reopened(path)
    assert again.resume(nothing)["epoch"] == 2
    again.close()


def test_nothing_is_taken_before_the_claim_and_there_is_one_claim(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    before = written(path)
    log = reopened(path)
    for attempt in (lambda: log.append(Kind.MESSAGE, {}), lambda: log.keep(b"1")):
        with pytest.raises(LogClosed, match="reopened, but not resumed"):
            attempt()
    assert path.read_bytes() == before
    log.resume(nothing)
    with pytest.raises(LogClosed, match="in use already"):
        log.resume(nothing)
    log.close()
    with pytest.raises(LogClosed):
        MemoryLog("r").resume(nothing)


def test_the_claim_may_keep_contents_for_itself(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    written(path)
    log = reopened(path)
    claim = log.resume(lambda: {"note": log.keep(b'"said"').hex})
    log.close()
    found = read(path).payloads.find(claim["note"])
    assert found is not None
    assert found[1] == b'"said"'


def test_a_claim_that_fails_takes_no_records(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    before = written(path)
    log = reopened(path)

    def fails() -> dict[str, Any]:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        log.resume(fails)
    with pytest.raises(LogClosed, match="not resumed"):
        log.append(Kind.MESSAGE, {})
    log.close()
    assert path.read_bytes() == before
    again = reopened(path)
    assert again.resume(nothing)["epoch"] == 1
    again.close()


# --- torn ends


def test_cut_at_every_byte_exactly_the_complete_records_survive(tmp_path: Path) -> None:
    whole = written(tmp_path / "whole.jsonl")
    ends = [place + 1 for place, byte in enumerate(whole) if byte == 10]
    for size in range(1, len(whole) + 1):
        path = tmp_path / f"{size}.jsonl"
        path.write_bytes(whole[:size])
        good = max((end for end in ends if end <= size), default=0)
        if not good:
            with pytest.raises(UsageError, match="holds no run"):
                reopened(path)
            assert path.read_bytes() == whole[:size]
            continue
        log = reopened(path)
        claim = log.resume(nothing)
        log.close()
        torn = whole[good:size]
        assert claim["lost"]["records"] == len(torn)
        assert claim.seq == whole[:size].count(b"\n")
        assert path.read_bytes().startswith(whole[:good] + b"{")
        assert_chained(path.read_bytes().splitlines(keepends=True))
        aside = tmp_path / f"{size}.jsonl.1.torn"
        assert (aside.read_bytes() if torn else b"") == torn
        assert aside.exists() == bool(torn)


def test_a_payload_that_was_torn_off_is_moved_aside_as_well(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    written(path)
    store = payloads_of(path)
    whole = store.read_bytes()
    with store.open("ab") as file:
        file.write(b'{"commitment":"abc')
    log = reopened(path)
    kept = log.resume(lambda: {"note": log.keep(b"1").hex})
    log.close()
    assert kept["lost"] == {"records": 0, "payloads": 18}
    assert (tmp_path / "run.payloads.1.torn").read_bytes() == b'{"commitment":"abc'
    assert store.read_bytes().startswith(whole)
    found = read(path).payloads.find(kept["note"])
    assert found is not None
    assert found[1] == b"1"


@pytest.mark.parametrize("size", [1, 70_000])
def test_an_end_of_zeros_is_a_torn_end(tmp_path: Path, size: int) -> None:
    """What a file system leaves of a file whose new size was on the disk before its content."""
    path = tmp_path / "run.jsonl"
    whole = written(path)
    path.write_bytes(whole + bytes(size))
    payloads_of(path).write_bytes(payloads_of(path).read_bytes() + bytes(size))
    log = reopened(path)
    assert log.resume(nothing)["lost"] == {"records": size, "payloads": size}
    log.close()
    assert len(read(path)) == 5


def test_damage_at_the_end_costs_what_is_damaged_and_no_more(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    lines = written(path).splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]) + lines[-1].replace(b'"n":2', b'"n":9'))
    log = reopened(path)
    claim = log.resume(nothing)
    log.close()
    assert (claim.seq, claim["lost"]["records"]) == (3, len(lines[-1]))


def test_a_claim_that_was_cut_after_the_move_still_says_what_was_lost(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    whole = written(path)
    path.write_bytes(whole)
    (tmp_path / "run.jsonl.1.torn").write_bytes(b'{"half')  # moved aside by a claim whose record was never written
    log = reopened(path)
    assert log.resume(nothing)["lost"]["records"] == 6
    log.close()


def test_torn_ends_of_several_deaths_are_all_kept(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    written(path)
    for epoch in (1, 2, 3):
        with path.open("ab") as file:
            file.write(b"torn" * epoch)
        log = reopened(path)
        log.resume(nothing)
        log.close()
    assert [(tmp_path / f"run.jsonl.{epoch}.torn").read_bytes() for epoch in (1, 2, 3)] == [
        b"torn",
        b"torntorn",
        b"torntorntorn",
    ]


class FullDisk(Disk):
    """Writes nothing into files that hold torn ends, or cannot cut a file off."""

    def __init__(self, fails: str) -> None:
        self._fails = fails
        self._aside: set[int] = set()

    def open(self, path: Path, flags: int) -> int:
        fd = super().open(path, flags)
        if path.suffix == ".torn":
            self._aside.add(fd)
        return fd

    def write(self, fd: int, data: bytes | memoryview) -> int:
        if self._fails == "write" and fd in self._aside:
            raise OSError(28, "No space left on device")
        return super().write(fd, data[:1] if fd in self._aside else data)

    def truncate(self, fd: int, size: int) -> None:
        if self._fails == "truncate":
            raise OSError(5, "Input/output error")
        super().truncate(fd, size)


@pytest.mark.parametrize("fails", ["write", "truncate"])
def test_what_cannot_be_moved_aside_stays_where_it_is(tmp_path: Path, fails: str) -> None:
    path = tmp_path / "run.jsonl"
    before = written(path) + b'{"half'
    path.write_bytes(before)
    log = reopened(path, disk=FullDisk(fails))
    with pytest.raises(LogFailed, match="moving the torn end aside failed"):
        log.resume(nothing)
    with pytest.raises(LogFailed):
        log.append(Kind.MESSAGE, {})
    with pytest.raises(LogFailed):
        log.close()
    assert path.read_bytes() == before
    again = reopened(path, disk=FullDisk("nothing"))  # short writes
    assert again.resume(nothing)["lost"]["records"] == 6
    again.close()
    assert (tmp_path / "run.jsonl.1.torn").read_bytes() == b'{"half'


# --- damage that no crash did


def dropped(lines: list[bytes]) -> list[bytes]:
    return [*lines[:2], *lines[3:]]


def doubled(lines: list[bytes]) -> list[bytes]:
    return [*lines[:2], lines[1], *lines[2:]]


def swapped(lines: list[bytes]) -> list[bytes]:
    return [lines[0], lines[2], lines[1], *lines[3:]]


def edited(lines: list[bytes]) -> list[bytes]:
    return [*lines[:2], lines[2].replace(b'"n":1', b'"n":8'), *lines[3:]]


def garbled(lines: list[bytes]) -> list[bytes]:
    return [*lines[:2], b"\x00\xff\n", *lines[3:]]


def last_doubled(lines: list[bytes]) -> list[bytes]:
    return [*lines, lines[-1]]


def reordered_keys(lines: list[bytes]) -> list[bytes]:
    fields = json.loads(lines[2])
    return [*lines[:2], json.dumps(fields, sort_keys=True).encode() + b"\n", *lines[3:]]


TAMPERED: list[Callable[[list[bytes]], list[bytes]]] = [
    dropped, doubled, swapped, edited, garbled, last_doubled, reordered_keys
]  # fmt: skip


@pytest.mark.parametrize("tamper", TAMPERED, ids=lambda tamper: tamper.__name__)
def test_damage_before_a_good_record_is_refused(tmp_path: Path, tamper: Callable[[list[bytes]], list[bytes]]) -> None:
    path = tmp_path / "run.jsonl"
    changed = b"".join(tamper(written(path).splitlines(keepends=True)))
    path.write_bytes(changed)
    with pytest.raises(LogDamaged, match="no crash") as caught:
        reopened(path)
    assert caught.value.line in (2, 3, 5)
    assert path.read_bytes() == changed
    assert sorted(os.listdir(tmp_path)) == ["run.jsonl", "run.payloads"]


def test_records_of_another_run_are_no_torn_end(tmp_path: Path) -> None:
    one = written(tmp_path / "one.jsonl")
    other = JsonlLog(tmp_path / "other.jsonl", "r2", durability="none")
    other.append(Kind.GENESIS, {"payloads": "keep"})
    other.close()
    (tmp_path / "one.jsonl").write_bytes(one + (tmp_path / "other.jsonl").read_bytes())
    with pytest.raises(LogDamaged, match="line 5"):
        reopened(tmp_path / "one.jsonl")


@given(st.data())
def test_a_flipped_bit_is_never_gone_on_with(data: st.DataObject) -> None:
    """Wherever a bit is flipped: the records before it are kept, or the log is refused."""
    lines = [line + b"\n" for line in MEMORY.splitlines()]
    place = data.draw(st.integers(0, len(MEMORY) - 1))
    flipped = bytearray(MEMORY)
    flipped[place] ^= 1 << data.draw(st.integers(0, 7))
    number = MEMORY[:place].count(b"\n")
    parts = bytes(flipped).split(b"\n")
    try:
        prefix = prefix_of([part + b"\n" for part in parts[:-1]], parts[-1])
    except (LogDamaged, UsageError):
        return
    assert list(prefix.lines) == lines[: len(prefix.lines)]
    assert len(prefix.lines) <= number


def _in_memory() -> bytes:
    log = MemoryLog("r1")
    log.append(Kind.GENESIS, {"payloads": "keep"})
    for number in range(3):
        log.append(Kind.MESSAGE, {"n": number})
    return b"".join(log.lines())


MEMORY = _in_memory()


# --- one owner


def test_two_processes_do_not_reopen_one_log(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    written(path)
    log = reopened(path)
    with pytest.raises(LogInUse):
        reopened(path)
    log.resume(nothing)
    with pytest.raises(LogInUse):
        reopened(path)
    log.close()
    reopened(path).close()


def test_a_log_that_was_written_to_since_it_was_read_is_in_use(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    written(path)
    kept = read_prefix(path)
    other = reopened(path)
    other.resume(nothing)
    other.close()
    with pytest.raises(LogInUse):
        reopened(path, kept=kept)
    assert read(path).records[-1].kind is Kind.RESUMED


def test_what_was_written_before_is_synced_with_what_comes(tmp_path: Path) -> None:
    """The records of the dead process may be in the memory of the machine only."""
    synced: list[int] = []

    class Watched(Disk):
        def fsync(self, fd: int) -> None:
            synced.append(os.fstat(fd).st_size)
            super().fsync(fd)

    path = tmp_path / "run.jsonl"
    size = len(written(path))
    log = JsonlLog.reopen(path, disk=Watched())
    log.resume(nothing)
    asyncio.run(log.sync())
    assert any(one > size for one in synced)
    log.close()


# --- in memory


def test_a_log_in_memory_goes_on_in_another_and_stays_as_it_is() -> None:
    first = MemoryLog("r1")
    first.append(Kind.GENESIS, {"payloads": "keep"})
    kept = first.keep(b'"old"')
    before = Log.of(first)
    log = MemoryLog.reopen(prefix_of(before.lines), before.payloads)
    claim = log.resume(lambda: {"note": log.keep(b'"new"').hex})
    assert (claim.seq, claim["epoch"]) == (1, 1)
    assert_chained(list(log.lines()))
    assert (log.payloads.find(kept.hex) or (b"", b""))[1] == b'"old"'
    assert (log.payloads.find(claim["note"]) or (b"", b""))[1] == b'"new"'
    assert len(list(first.lines())) == 1
    assert first.payloads.find(claim["note"]) is None
