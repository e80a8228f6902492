"""What every audit log does, wherever it is kept: stamps, chain, seal, payload commitments, refusals."""

import asyncio
import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from looplatch.audit import AuditLog, BadRecord, JsonlLog, Log, LogClosed, LogState, MemoryLog
from looplatch.audit.salts import SALT_BYTES, Salts
from looplatch.states.errors import LooplatchError, UsageError
from looplatch.states.reasons import Terminal
from looplatch.states.record import Kind
from looplatch.states.state import State

ZEROS = "0" * 64
STAMPED = {"v", "run", "seq", "epoch", "ts", "mono_ns", "kind", "prev", "hash"}

MakeLog = Callable[..., AuditLog]


class Ticks:
    """A clock that tells the times it is given, then the last one for ever."""

    def __init__(self, now_ns: list[int], monotonic_ns: list[int]) -> None:
        self._now = now_ns
        self._monotonic = monotonic_ns

    def now_ns(self) -> int:
        return self._now.pop(0) if len(self._now) > 1 else self._now[0]

    def monotonic_ns(self) -> int:
        return self._monotonic.pop(0) if len(self._monotonic) > 1 else self._monotonic[0]


def given_salts(salts: list[bytes]) -> Callable[[int], bytes]:
    def draw(_size: int) -> bytes:
        return salts.pop(0)

    return draw


@pytest.fixture(params=["memory", "jsonl"])
def make_log(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MakeLog]:
    made: list[AuditLog] = []

    def make(run: str = "r1", **settings: Any) -> AuditLog:
        log: AuditLog
        if request.param == "memory":
            log = MemoryLog(run, **settings)
        else:
            log = JsonlLog(tmp_path / f"{len(made)}.jsonl", run, **settings)
        made.append(log)
        return log

    yield make
    for log in made:
        log.close()


def root_by_definition(leaves: list[bytes]) -> bytes:
    """RFC 6962, 2.1, word for word."""
    if not leaves:
        return hashlib.sha256(b"").digest()
    if len(leaves) == 1:
        return hashlib.sha256(b"\x00" + leaves[0]).digest()
    k = 1
    while k * 2 < len(leaves):
        k *= 2
    return hashlib.sha256(b"\x01" + root_by_definition(leaves[:k]) + root_by_definition(leaves[k:])).digest()


def assert_chained(lines: list[bytes]) -> None:
    prev = ZEROS
    for seq, line in enumerate(lines):
        data = json.loads(line)
        assert line == rfc8785.dumps(data) + b"\n"
        assert data["seq"] == seq
        assert data["prev"] == prev
        own = data.pop("hash")
        assert own == hashlib.sha256(rfc8785.dumps(data)).hexdigest()
        prev = own


def test_a_record_has_its_stamps_and_its_fields(make_log: MakeLog) -> None:
    """ts is UTC to the microsecond; mono_ns counts from the opening of the log."""
    log = make_log("r7", clock=Ticks([1_767_225_600_123_456_789], [5_000, 5_250]))
    record = log.append(Kind.GENESIS, {"model": "m", "deadline_ms": None})
    assert dict(record.data) == {
        "v": 3,
        "run": "r7",
        "seq": 0,
        "epoch": 0,
        "ts": "2026-01-01T00:00:00.123456Z",
        "mono_ns": 250,
        "kind": "genesis",
        "prev": ZEROS,
        "hash": record.hash,
        "model": "m",
        "deadline_ms": None,
    }
    assert [json.loads(line) for line in log.lines()] == [dict(record.data)]


def test_the_second_is_spelled_anew_when_it_changes(make_log: MakeLog) -> None:
    second = 1_000_000_000
    log = make_log(clock=Ticks([59 * second, 59 * second + 999_999_999, 60 * second, 59 * second], [0]))
    stamps = [log.append(Kind.MESSAGE, {})["ts"][11:] for _ in range(4)]
    assert stamps == ["00:00:59.000000Z", "00:00:59.999999Z", "00:01:00.000000Z", "00:00:59.000000Z"]


def test_mono_ns_never_falls_even_if_the_clock_does(make_log: MakeLog) -> None:
    log = make_log(clock=Ticks([0], [100, 150, 120, 90, 400]))
    assert [log.append(Kind.MESSAGE, {})["mono_ns"] for _ in range(4)] == [50, 50, 50, 300]


def test_records_are_chained_and_the_head_follows(make_log: MakeLog) -> None:
    log = make_log()
    assert log.head == (0, ZEROS)
    first = log.append(Kind.GENESIS, {"model": "m"})
    assert log.head == (1, first.hash)
    second = log.append(Kind.TRANSITION, {"source": "prepare"})
    assert second["prev"] == first.hash
    assert log.head == (2, second.hash)
    assert_chained(list(log.lines()))


@given(st.integers(min_value=0, max_value=70))
def test_the_seal_holds_count_and_merkle_root(records: int) -> None:
    log = MemoryLog("r")
    hashes = [log.append(Kind.MESSAGE, {"n": n}).hash for n in range(records)]
    seal = log.finish(State.COMPLETED, Terminal.ANSWERED)
    assert (seal.kind, seal["state"], seal.terminal) == (Kind.TERMINAL, "completed", "answered")
    assert seal["count"] == records
    assert seal["root"] == root_by_definition([bytes.fromhex(h) for h in hashes]).hex()


def test_nothing_follows_the_seal(make_log: MakeLog) -> None:
    log = make_log("r9")
    log.finish(State.FAILED, Terminal.MODEL_ERROR)
    for late in (
        lambda: log.append(Kind.MESSAGE, {}),
        lambda: log.keep(b"{}"),
        lambda: log.finish(State.FAILED, Terminal.MODEL_ERROR),
    ):
        with pytest.raises(LogClosed, match=r"^the log of run r9 is sealed; it takes no more records$") as caught:
            late()
        assert (caught.value.run, caught.value.state) == ("r9", "sealed")
    assert len(list(log.lines())) == 1


def test_nothing_follows_the_close_which_may_come_twice(make_log: MakeLog) -> None:
    log = make_log()
    log.append(Kind.GENESIS, {})
    log.close()
    log.close()
    with pytest.raises(LogClosed, match="is closed"):
        log.append(Kind.MESSAGE, {})
    with pytest.raises(LogClosed, match="is closed"):
        log.keep(b"1")
    assert len(Log.of(log)) == 1  # and it can still be read


@pytest.mark.parametrize("name", sorted(STAMPED))
def test_a_field_that_the_log_writes_itself_is_refused(make_log: MakeLog, name: str) -> None:
    log = make_log()
    with pytest.raises(BadRecord, match="one that the log itself writes") as caught:
        log.append(Kind.MESSAGE, {name: "x", "op": "join"})
    assert caught.value.kind == "message"
    assert log.head == (0, ZEROS)


@pytest.mark.parametrize("value", [object(), {1, 2}, 2**70, b"raw"])
def test_what_is_no_json_is_refused_and_the_log_goes_on(make_log: MakeLog, value: object) -> None:
    log = make_log()
    with pytest.raises(BadRecord, match="a record of kind message was refused"):
        log.append(Kind.MESSAGE, {"value": value})
    log.append(Kind.MESSAGE, {"value": "good"})
    lines = list(log.lines())
    assert len(lines) == 1
    assert_chained(lines)


def test_a_lone_surrogate_in_a_name_is_mended(make_log: MakeLog) -> None:
    """A model can put one anywhere; recording must not raise, and what was given stays as it is."""
    log = make_log()
    fields = {"name": "a\ud83ab", "blocks": [{"id": "\udc00"}]}
    record = log.append(Kind.EFFECT_BEGIN, fields)
    assert (record["name"], record["blocks"]) == ("a\ufffdb", [{"id": "\ufffd"}])
    assert fields == {"name": "a\ud83ab", "blocks": [{"id": "\udc00"}]}
    assert_chained(list(log.lines()))


plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text(st.characters()),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.from_regex(r"[a-z_]{1,6}", fullmatch=True), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.lists(st.dictionaries(st.from_regex(r"x[a-z_]{0,6}", fullmatch=True), plain, max_size=4), max_size=5))
def test_whatever_the_fields_the_lines_are_canonical_and_chained(records: list[dict[str, Any]]) -> None:
    log = MemoryLog("r")
    for fields in records:
        log.append(Kind.MESSAGE, fields)
    assert_chained(list(log.lines()))


def test_a_payload_is_committed_to_with_a_salt_and_found_again(make_log: MakeLog) -> None:
    log = make_log(entropy=given_salts([b"0123456789abcdef", b"fedcba9876543210"]))
    payload = '{"type":"text","text":"grüße"}'.encode()
    kept = log.keep(payload)
    assert kept.hex == hashlib.sha256(b"0123456789abcdef" + payload).hexdigest()
    assert kept.size == 32
    assert log.payloads.find(kept.hex) == (b"0123456789abcdef", payload)
    again = log.keep(payload)
    assert again.hex == hashlib.sha256(b"fedcba9876543210" + payload).hexdigest()  # another salt tells nothing
    assert log.payloads.find("0" * 64) is None


def test_by_default_salts_are_random(make_log: MakeLog) -> None:
    log = make_log()
    assert len({log.keep(b"1").hex for _ in range(20)}) == 20


def test_with_digest_the_commitment_is_made_and_nothing_is_kept(make_log: MakeLog) -> None:
    log = make_log(payloads="digest", entropy=given_salts([b"s" * 16]))
    kept = log.keep(b"{}")
    assert kept.hex == hashlib.sha256(b"s" * 16 + b"{}").hexdigest()
    assert log.payloads.find(kept.hex) is None


def test_entropy_that_gives_too_little_is_refused(make_log: MakeLog) -> None:
    log = make_log(entropy=given_salts([b"short"]))
    with pytest.raises(UsageError, match="entropy: it gave 5 bytes for 16"):
        log.keep(b"{}")


def test_a_payload_of_several_lines_is_refused(make_log: MakeLog) -> None:
    log = make_log()
    with pytest.raises(BadRecord, match="not one line of JSON"):
        log.keep(b'{\n"a":1}')
    log.append(Kind.GENESIS, {})


def test_an_unknown_payload_setting_is_refused(make_log: MakeLog) -> None:
    with pytest.raises(UsageError, match=r"payloads: 'full' is not a setting\. Use one of keep, digest"):
        make_log(payloads="full")


def test_sync_returns_on_every_log(make_log: MakeLog) -> None:
    log = make_log()
    log.append(Kind.GENESIS, {})
    log.keep(b"1")
    asyncio.run(log.sync())
    asyncio.run(log.sync())


def test_a_view_is_what_the_log_held_when_it_was_taken(make_log: MakeLog) -> None:
    log = make_log()
    first = log.append(Kind.GENESIS, {"model": "m"})
    view = Log.of(log)
    log.append(Kind.MESSAGE, {})
    assert view.records == (first,)
    assert len(Log.of(log)) == 2


def test_records_of_a_view_are_those_that_append_returned(make_log: MakeLog) -> None:
    log = make_log()
    made = [log.append(Kind.GENESIS, {}), log.append(Kind.MESSAGE, {"op": "join"})]
    made.append(log.finish(State.ABORTED, Terminal.CLOSED))
    assert list(Log.of(log)) == made


def test_every_error_is_one_of_ours_and_tells_the_way_out() -> None:
    for state in LogState:
        error = LogClosed("r", state)
        assert isinstance(error, LooplatchError)
        assert re.match(r"the log of run r (is|was) .+; (it takes no|only|open it)", str(error))


# --- salts


def test_no_salt_is_given_twice_and_the_kernel_is_asked_seldom() -> None:
    salts = Salts(os.urandom)
    given = [salts.next() for _ in range(1_000)]
    assert {len(salt) for salt in given} == {SALT_BYTES}
    assert len(set(given)) == 1_000


def test_a_callers_entropy_is_asked_for_each_salt() -> None:
    asked: list[int] = []

    def entropy(count: int) -> bytes:
        asked.append(count)
        return bytes(count)

    salts = Salts(entropy)
    assert [salts.next() for _ in range(3)] == [bytes(SALT_BYTES)] * 3
    assert asked == [SALT_BYTES] * 3


FORKED = """
import os
from looplatch.audit.salts import Salts
salts = Salts(os.urandom)
salts.next()
reads, writes = os.pipe()
if not (child := os.fork()):
    os.write(writes, salts.next())
    os._exit(0)
os.waitpid(child, 0)
print(os.read(reads, 16) not in {salts.next() for _ in range(63)})
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_process_gives_none_of_its_parents_salts() -> None:
    """In a process of its own: this one has threads, which do not go well with a fork."""
    told = subprocess.run([sys.executable, "-I", "-c", FORKED], check=True, capture_output=True, text=True)
    assert told.stdout == "True\n"
