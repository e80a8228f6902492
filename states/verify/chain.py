"""Integrity: every line canonical, numbered, chained and hashed; the run, the clock, the seal and the checkpoints."""

import hashlib
import re
from collections.abc import Callable
from typing import Any, Final

import orjson

from looplatch.states.merkle import Merkle
from looplatch.states.record import MAX_INT, SCHEMAS, ZEROS, Kind
from looplatch.states.verify.findings import Findings
from looplatch.states.verify.kinds import common_of
from looplatch.states.verify.values import is_list, is_object

_CANONICAL: Final = orjson.OPT_SORT_KEYS | orjson.OPT_STRICT_INTEGER
_LINE: Final = _CANONICAL | orjson.OPT_APPEND_NEWLINE
_HASH: Final = b'"hash":"'
_HASH_SIZE: Final = len(_HASH) + 64 + len(b'",')
_SECOND: Final = len("2026-01-31T12:34:56.")
_IS_TIME: Final = re.compile(r"\d{4}-[01]\d-[0-3]\dT[0-2]\d:[0-5]\d:[0-6]\d\.\d{6}Z").fullmatch
_HEX: Final = frozenset("0123456789abcdef")
_KINDS: Final = frozenset(kind.value for kind in Kind)


class Chain:
    """Reads one line after the other. `whole` turns False when records are missing or unreadable: what follows cannot
    be judged as a run any more, only line by line."""

    def __init__(self, findings: Findings, knows: Callable[[object], bool], fingerprint: str) -> None:
        self.whole = True
        self.count = 0
        self.head = ZEROS
        self.sealed = False
        self.recognised = False  # whether any line looks like a record, right or wrong
        self.merkle = Merkle()
        self.kind = ""  # the common kind of the record that has passed last
        self._findings = findings
        self._knows = knows  # whether a table of this fingerprint is at hand
        self._fingerprint = fingerprint
        self._next_seq = 0
        self._prev: str | None = ZEROS  # None where the line before could not be read
        self._readable = True  # whether every hash so far is known
        self._run: object = None
        self._epoch: int = 0
        self._mono: int = -1
        self._table: object = fingerprint  # the one that judges the run
        self._second = ""  # the time of the last record but for the fraction of its second
        self._schema: object = None  # that of the genesis, or of the last claim

    def passed(self, line: bytes) -> dict[str, Any] | None:
        """The record of a line, newline included, that is of a common kind and has nothing wrong with it; else None.

        Most lines are such: that is asked first, all at once, and only of the others what is wrong with them. A record
        that has passed is the head of the chain now.
        """
        common = common_of(line)
        if common is None:
            return None
        try:
            record = common.read(line)
            right = orjson.dumps(record, None, _LINE) == line
        except (ValueError, TypeError, RecursionError):  # what the kind's reader, or the encoder, does not take
            return None
        seq, own, mono, ts = record["seq"], record["hash"], record["mono_ns"], record["ts"]
        # The hash is cut out of the bytes. Another one of the same value, which stands behind it, would be cut out
        # instead. But then the hash would be in what is hashed, and nobody can make it come out as itself.
        place = line.rfind(_HASH)
        if (
            not right
            or record["prev"] != self._prev
            or seq != self._next_seq
            or mono < self._mono
            or record["epoch"] != self._epoch
            or record["v"] != self._schema
            or record["run"] != self._run
            or self.sealed
            or not line.isascii()
            or hashlib.sha256(line[:place] + line[place + _HASH_SIZE : -1]).hexdigest() != own
        ):
            return None
        if ts[:_SECOND] != self._second or not ts[_SECOND:-1].isdigit() or len(ts) != _SECOND + 7 or ts[-1] != "Z":
            if _IS_TIME(ts) is None:
                return None
            self._second = ts[:_SECOND]
        self.count = self._findings.line = self.count + 1
        self._findings.seq = seq
        self._next_seq = seq + 1
        self._prev = self.head = own
        self._mono = mono
        self.merkle.add(own)
        self.kind = common.name
        return record

    def read(self, line: bytes) -> dict[str, Any] | None:
        """Check a line that has not passed; returns its record, None where it is none, and says what is wrong."""
        findings, body, problem = self._findings, line[:-1], "no newline"
        self.count = findings.line = self.count + 1
        findings.seq = None
        record: Any = None
        if line[-1:] == b"\n":
            try:
                record = orjson.loads(body)
            except orjson.JSONDecodeError as error:
                problem = f"not JSON: {error}"
            else:
                problem = ""
        if not is_object(record):
            problem = problem or f"a {type(record).__name__}"
            findings.add("I4", "the line is no record", "one JSON object and a newline", problem)
            self._lose()
            return None
        self._check(record, body)
        return record

    def _lose(self) -> None:
        self.whole = self._readable = False
        self._prev = None
        self._next_seq += 1

    def _check(self, record: dict[str, Any], body: bytes) -> None:
        """Say what is wrong with a record."""
        add = self._findings.add
        seq, own = record.get("seq"), record.get("hash")
        self.recognised = self.recognised or ("hash" in record and "prev" in record)
        if type(seq) is int:
            self._findings.seq = seq
        self._check_canonical(record, body)
        computed = _hash(record)
        if computed is None:  # `_check_canonical` has told
            self._lose()
            return
        if own != computed:
            add("I3", "the record's hash is not the hash of its content", computed, own)
        known: str = own if type(own) is str and len(own) == 64 and set(own) <= _HEX else computed
        if seq != self._next_seq or type(seq) is not int:
            add("I1", "the records are not numbered one by one", self._next_seq, seq)
            self.whole = False
        self._next_seq = seq + 1 if type(seq) is int else self._next_seq + 1
        if record.get("prev") != self._prev and self._prev is not None:
            add("I2", "the record does not follow the one before it", self._prev, record.get("prev"))
            self.whole = self.count == 1 and self.whole
        self._prev = self.head = known
        self._check_run(record)
        self._check_kind(record)
        self.merkle.add(known)

    def _check_canonical(self, record: dict[str, Any], body: bytes) -> None:
        """Whether the line is its record's canonical encoding: RFC 8785, within the values that records may hold."""
        try:
            encoded = orjson.dumps(record, option=_CANONICAL)
        except TypeError as error:
            self._findings.add(
                "I4", "the record holds a value that is not allowed", "integers below 2**53, not nested deeply", error
            )
            return
        if encoded != body:
            self._findings.add("I4", "the line is not the canonical encoding of its record", encoded.decode(), body)
        elif problems := _forbidden(record):
            wanted = "no floats, ASCII keys"
            self._findings.add("I4", "the record holds a value that is not allowed", wanted, problems[0])

    def _check_run(self, record: dict[str, Any]) -> None:
        add = self._findings.add
        version, run, epoch, mono = record.get("v"), record.get("run"), record.get("epoch"), record.get("mono_ns")
        time = record.get("ts")
        if type(time) is str and _IS_TIME(time) is None:
            add("I4", "the record's time is none", "RFC 3339, UTC, to the microsecond", time)
        if version not in SCHEMAS or type(version) is not int:
            add("I6", "the schema is not one that this verifier knows", SCHEMAS, version)
        elif version != self._schema:
            falls = isinstance(self._schema, int) and version < self._schema
            if self.count > 1 and (record.get("kind") != "resumed" or falls):
                add("I6", "the schema changes where nobody new writes", self._schema, version)
            self._schema = version
        if run != self._run or type(run) is not str:
            if self.count > 1 or type(run) is not str:
                add("I6", "the record belongs to another run", self._run or "a run's name", run)
            self._run = run
        if type(epoch) is not int or type(mono) is not int or type(record.get("ts")) is not str:
            add("I4", "the record's stamps are missing", "whole numbers epoch and mono_ns, and a ts", (epoch, mono))
            return
        if epoch != self._epoch:
            claim = record.get("kind") == "resumed"
            if self.count > 1 and epoch < self._epoch:
                message = "the epoch falls at a claim" if claim else "a former owner of the run writes on"
                add("R3" if claim else "R4", message, f"above {self._epoch}" if claim else self._epoch, epoch)
            elif self.count > 1 and not claim:
                add("I7", "a new epoch begins only where the run is resumed", self._epoch, epoch)
            self._epoch, self._mono = epoch, -1
        elif record.get("kind") == "resumed":
            add("R3", "the epoch rises at each claim of a run", f"above {self._epoch}", epoch)
        if mono < self._mono:
            add("I7", "the clock of the epoch runs backwards", f"at least {self._mono}", mono)
        self._mono = mono

    def _check_kind(self, record: dict[str, Any]) -> None:
        add, kind = self._findings.add, record.get("kind")
        if (kind == "genesis") != (self.count == 1):
            add("I5", "the genesis is the first record, and no other is one", "genesis first, once", kind)
        if kind == "genesis":
            self._table = record.get("table")
        elif kind == "resumed":
            self._accept_table(record.get("changes"))
        if self.sealed and kind != "tombstone":
            add("I8", "a record follows the seal", "nothing", kind)
        if kind == "terminal":
            self._check_count(record, "I9", "the seal does not fit the records before it")
            self.sealed = True
        elif kind == "checkpoint":
            self._check_count(record, "I10", "the checkpoint is not that of the records before it")
        elif type(kind) is not str or kind not in _KINDS:
            add("I4", "the record is of an unknown kind", ", ".join(sorted(_KINDS)), kind)

    def _accept_table(self, changes: object) -> None:
        """A run may be resumed with another table."""
        change = changes.get("table") if is_object(changes) else None
        if not is_object(change):
            return
        if change.get("was") != self._table:
            self._findings.add("I6", "the table that was changed is not the run's", self._table, change.get("was"))
        self._table = change.get("now")

    def end(self) -> None:
        """No more lines come: the last table that judged the run must be known here."""
        if self.count and not self._knows(self._table):
            self._findings.line, self._findings.seq = 1, 0
            self._findings.add("I6", "the run was judged by another table", self._fingerprint, self._table)

    def _check_count(self, record: dict[str, Any], invariant: str, message: str) -> None:
        count, root = record.get("count"), record.get("root")
        wanted = self.count - 1, self.merkle.root() if self._readable else root
        if (count, root) != wanted or type(count) is not int:
            self._findings.add(invariant, message, wanted, (count, root))


def _hash(record: dict[str, Any]) -> str | None:
    """What the record's hash must be; None where it is nested too deeply to have one."""
    bare = {name: value for name, value in record.items() if name != "hash"}
    try:
        return hashlib.sha256(orjson.dumps(bare, option=orjson.OPT_SORT_KEYS)).hexdigest()
    except orjson.JSONEncodeError:
        return None


def _forbidden(value: object) -> list[str]:
    if type(value) is float:
        return [f"the float {value!r}"]
    if type(value) is int and not -MAX_INT <= value <= MAX_INT:
        return [f"the number {value}"]
    if is_object(value):
        named = [f"the key {key!r}" for key in value if not str(key).isascii()]
        return named + [problem for item in value.values() for problem in _forbidden(item)]
    if is_list(value):
        return [problem for item in value for problem in _forbidden(item)]
    return []
