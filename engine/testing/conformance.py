"""What every AuditLog must do, as a class of tests for pytest: derive from it for a store of your own."""

import asyncio
import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from looplatch.audit import AuditLog, BadRecord, KeepsMany, Log, LogClosed, LogExists, LogInUse, read
from looplatch.encoding import encode
from looplatch.hooks import Allow
from looplatch.loop import Loop
from looplatch.permission.rules import Rule
from looplatch.proving.verification import verify
from looplatch.states.reasons import Terminal
from looplatch.states.record import Kind, commitment
from looplatch.states.state import State
from looplatch.testing.answers import reply
from looplatch.testing.api import ScriptedAPI
from looplatch.testing.blocks import tool_use
from looplatch.testing.clock import FakeClock
from looplatch.tools import Tool, ToolContext

_ZEROS = "0" * 64
_MODEL = "claude-sonnet-4-5"


class AuditLogConformance:
    """Derive a class named `Test...` from this and say how your logs are made; pytest runs what is inherited.

    `create` and `reopen` are called with a folder of the test's own, which holds one log, and with the settings
    `payloads`, `durability`, `clock` and `entropy` by name, as the stores of looplatch take them.
    """

    def create(self, folder: Path, run: str, **settings: Any) -> AuditLog:
        """A new log of the run `run` in `folder`."""
        raise NotImplementedError

    def reopen(self, folder: Path, **settings: Any) -> AuditLog:
        """The log in `folder` once more, for a process that takes the run over; it waits for `resume`."""
        raise NotImplementedError

    # --- writing

    def test_records_are_numbered_chained_and_hashed(self, tmp_path: Path) -> None:
        log = self.create(tmp_path, "run-1")
        assert (log.run, log.head) == ("run-1", (0, _ZEROS))
        made = [log.append(Kind.GENESIS, {"x": 1}), *(log.append(Kind.MESSAGE, {"n": n}) for n in range(5))]
        assert log.head == (6, made[-1].hash)
        lines = list(log.lines())
        log.close()
        assert [json.loads(line) for line in lines] == [dict(record.data) for record in made]
        prev = _ZEROS
        for place, line in enumerate(lines):
            assert line.endswith(b"\n")
            data = json.loads(line)
            assert (data["seq"], data["prev"], data["run"], data["epoch"]) == (place, prev, "run-1", 0)
            assert _canonical(data) == line[:-1]
            own = data.pop("hash")
            assert hashlib.sha256(_canonical(data)).hexdigest() == own
            prev = own

    def test_what_was_written_is_read_while_more_is_written(self, tmp_path: Path) -> None:
        log = self.create(tmp_path, "run-1")
        log.append(Kind.GENESIS, {})
        before = log.lines()
        assert len(list(before)) == 1
        log.append(Kind.MESSAGE, {})
        assert len(list(log.lines())) == 2
        log.close()
        assert len(list(log.lines())) == 2

    def test_a_record_that_cannot_stand_in_a_log_is_refused_and_changes_nothing(self, tmp_path: Path) -> None:
        log = self.create(tmp_path, "run-1")
        log.append(Kind.GENESIS, {})
        for fields in ({"seq": 1}, {"hash": "x"}, {"x": object()}):
            _raises(BadRecord, lambda fields=fields: log.append(Kind.MESSAGE, fields))
        _raises(BadRecord, lambda: log.keep(b"two\nlines"))
        log.append(Kind.MESSAGE, {})
        assert log.head[0] == len(list(log.lines())) == 2
        log.close()

    def test_the_seal_is_the_last_record(self, tmp_path: Path) -> None:
        log = self.create(tmp_path, "run-1")
        hashes = [log.append(Kind.GENESIS, {}).hash, log.append(Kind.MESSAGE, {}).hash]
        seal = log.finish(State.FAILED, Terminal.INTERNAL_ERROR)
        leaves = [hashlib.sha256(b"\x00" + bytes.fromhex(one)).digest() for one in hashes]
        root = hashlib.sha256(b"\x01" + leaves[0] + leaves[1]).hexdigest()
        assert (seal["count"], seal["root"], seal["state"], seal["terminal"]) == (2, root, "failed", "internal_error")
        _raises(LogClosed, lambda: log.append(Kind.MESSAGE, {}))
        _raises(LogClosed, lambda: log.keep(b"1"))
        log.close()

    def test_a_closed_log_takes_nothing(self, tmp_path: Path) -> None:
        log = self.create(tmp_path, "run-1")
        log.append(Kind.GENESIS, {})
        log.close()
        log.close()
        _raises(LogClosed, lambda: log.append(Kind.MESSAGE, {}))
        _raises(LogClosed, lambda: log.resume(dict))
        assert len(list(log.lines())) == 1

    def test_a_sync_waits_and_changes_nothing(self, tmp_path: Path) -> None:
        for durability in ("none", "group", "barrier"):
            folder = tmp_path / durability
            folder.mkdir()
            log = self.create(folder, "run-1", durability=durability)
            assert log.durability == durability
            log.append(Kind.GENESIS, {})
            log.keep(b'"kept"')
            asyncio.run(log.sync())
            assert log.head[0] == 1
            log.close()

    # --- payloads

    def test_payloads_are_found_by_their_commitments(self, tmp_path: Path) -> None:
        log = self.create(tmp_path, "run-1")
        assert log.keeps_payloads
        values: tuple[object, ...] = ("text", {"type": "text", "text": "ü\u2028\\"}, [], "x" * 100_000)
        payloads = [encode(value) for value in values]
        made = [log.keep(payload) for payload in payloads]
        again = log.keep(payloads[0])
        assert again != made[0]  # each has a salt of its own
        log.append(Kind.GENESIS, {})
        for kept, payload in zip([*made, again], [*payloads, payloads[0]], strict=True):
            found = log.payloads.find(kept.hex)
            assert found is not None
            assert (commitment(*found), found[1], len(payload)) == (kept.hex, payload, kept.size)
        assert log.payloads.find("0" * 64) is None
        log.close()
        assert log.payloads.find(made[0].hex) is not None

    def test_many_payloads_are_kept_like_one(self, tmp_path: Path) -> None:
        """Of those logs that can keep many at once."""
        for payloads in ("keep", "digest"):
            folder = tmp_path / payloads
            folder.mkdir()
            log = self.create(folder, "run-1", payloads=payloads)
            if not isinstance(log, KeepsMany):
                return
            values = [encode({"type": "text", "text": f"number {number}"}) for number in range(100)]
            made = log.keep_all([*values, values[0]])
            assert len({one.hex for one in made}) == 101  # each has a salt of its own
            assert log.keep_all([]) == []
            log.append(Kind.GENESIS, {})
            for kept, payload in zip(made, [*values, values[0]], strict=True):
                assert kept.size == len(payload)
                found = log.payloads.find(kept.hex)
                assert (found is None) is (payloads == "digest")
                assert found is None or (commitment(*found), found[1]) == (kept.hex, payload)
            if payloads == "keep":
                _raises(BadRecord, lambda log=log: log.keep_all([b"1", b"two\nlines"]))
            log.close()
            _raises(LogClosed, lambda log=log: log.keep_all([b"1"]))

    def test_a_digest_keeps_no_payload(self, tmp_path: Path) -> None:
        log = self.create(tmp_path, "run-1", payloads="digest")
        assert not log.keeps_payloads
        kept = log.keep(b'"text"')
        assert kept.size == 6
        assert log.payloads.find(kept.hex) is None
        log.close()

    # --- taking over

    def test_a_reopened_log_goes_on_in_a_new_epoch(self, tmp_path: Path) -> None:
        log = self.create(tmp_path, "run-1")
        log.append(Kind.GENESIS, {"payloads": "keep"})
        kept = log.keep(b'"text"')
        log.append(Kind.MESSAGE, {})
        log.close()
        before = list(log.lines())
        taken = self.reopen(tmp_path)
        assert (taken.run, taken.head) == ("run-1", log.head)
        _raises(LogClosed, lambda: taken.append(Kind.MESSAGE, {}))
        claim = taken.resume(lambda: {"why": "test"})
        assert (claim.kind, claim["epoch"], claim["why"], claim["seq"]) == (Kind.RESUMED, 1, "test", 2)
        assert claim["lost"] == {"records": 0, "payloads": 0}
        added = taken.keep(b'"more"')
        taken.append(Kind.MESSAGE, {})
        lines = list(taken.lines())
        assert (lines[:2], len(lines)) == (before, 4)
        assert taken.payloads.find(kept.hex) is not None
        assert taken.payloads.find(added.hex) is not None
        taken.close()

    def test_payloads_are_deleted_behind_tombstones(self, tmp_path: Path) -> None:
        log = self.create(tmp_path, "run-1")
        log.append(Kind.GENESIS, {"payloads": "keep"})
        gone, stays = log.keep(b'"the secret"'), log.keep(b'"the rest"')
        log.append(Kind.MESSAGE, {})
        log.finish(State.FAILED, Terminal.INTERNAL_ERROR)
        _raises(LogClosed, lambda: log.bury([gone.hex], 1))
        log.close()
        taken = self.reopen(tmp_path)
        (stone,) = taken.bury([gone.hex], 1)
        assert (stone.kind, stone["commitment"], stone["of"]) == (Kind.TOMBSTONE, gone.hex, 1)
        assert (stone["seq"], stone["epoch"]) == (3, 0)
        assert taken.payloads.find(gone.hex) is None
        assert taken.payloads.find(stays.hex) is not None
        _raises(LogClosed, lambda: taken.append(Kind.MESSAGE, {}))
        taken.close()
        assert not [path for path in _files(tmp_path) if b"the secret" in path.read_bytes()]

    def test_two_writers_of_one_file_are_one_too_many(self, tmp_path: Path) -> None:
        log = self.create(tmp_path, "run-1")
        log.append(Kind.GENESIS, {"payloads": "keep"})
        if log.file is not None:
            for another in (lambda: self.create(tmp_path, "run-2"), lambda: self.reopen(tmp_path)):
                _raises(LogInUse, another)
            assert {path.stat().st_mode & 0o077 for path in _files(tmp_path)} == {0}
            log.append(Kind.MESSAGE, {})
            log.close()
            _raises(LogExists, lambda: self.create(tmp_path, "run-2"))
            assert len(list(log.lines())) == 2
        log.close()

    # --- runs

    def test_a_run_is_written_verified_and_read_again(self, tmp_path: Path) -> None:
        log = self.create(tmp_path, "run-1")
        script = [reply("I look.", tool_use("t1", "look", {"at": 1})), reply("It is there.")]
        result = asyncio.run(_run(script, log))
        assert (result.subtype, result.session_id, result.result) == ("success", "run-1", "It is there.")
        report = verify(log)
        assert report.ok, str(report)
        assert report.status == "sealed"
        assert Log.of(log).messages == result.messages
        if log.file is not None:
            assert read(log.file).messages == result.messages
            assert verify(log.file) == report

    def test_a_suspended_run_goes_on_in_another_process(self, tmp_path: Path) -> None:
        log = self.create(tmp_path, "run-1")
        result = asyncio.run(_run([reply("I look.", tool_use("t1", "look", {}))], log, asks=True))
        assert result.subtype == "suspended"
        assert verify(log).status == "suspended"
        taken = self.reopen(tmp_path)
        result = asyncio.run(_run([reply("It is there.")], taken, asks=True, resume=True))
        assert (result.subtype, result.result) == ("success", "It is there.")
        report = verify(taken)
        assert report.ok, str(report)
        assert report.status == "sealed"


async def _run(script: Iterable[Any], log: AuditLog, *, asks: bool = False, resume: bool = False) -> Any:
    async def look(given: dict[str, Any], ctx: ToolContext) -> str:
        return "there"

    tool = Tool("look", "", {"type": "object"}, look, read_only=True)
    rules = [Rule("ask", "look")] if asks else []
    async with ScriptedAPI(list(script)).client() as client:
        loop = Loop(model=_MODEL, client=client, clock=FakeClock(), tools=[tool], rules=rules)
        return await (loop.resume(log, approvals={"t1": Allow()}) if resume else loop.run("Go.", log=log))


def _raises(kind: type[Exception], action: Any) -> None:
    try:
        action()
    except kind:
        return
    raise AssertionError(f"{kind.__name__} was not raised")


def _canonical(data: dict[str, Any]) -> bytes:
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]
