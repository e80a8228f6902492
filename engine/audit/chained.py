"""What all logs share: records are stamped, chained and sealed here, and stored by whoever derives from it."""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, get_args

from looplatch.audit.errors import BadRecord, LogClosed, LogFailed, LogState
from looplatch.audit.mirror import Mirror
from looplatch.audit.prefix import Prefix
from looplatch.audit.protocol import AuditLog, Commitment, Durability, Entropy, Payloads, PayloadSource
from looplatch.audit.salts import Salts
from looplatch.audit.signing import Signer, signature
from looplatch.audit.stamps import SYSTEM_TIME, Stamps, TimeSource
from looplatch.encoding import EncodeError, mend
from looplatch.states.brief import brief
from looplatch.states.errors import UsageError
from looplatch.states.merkle import Merkle
from looplatch.states.reasons import Terminal
from looplatch.states.record import SCHEMA, ZEROS, Kind, Record, commitment, seal, signed_bytes
from looplatch.states.state import State

_STAMPED: Final = 8  # the fields that every record has, without its hash
_SIGNED: Final = (Kind.TERMINAL, Kind.CHECKPOINT)
_BROKEN_OFF: Final = LogState.BROKEN_OFF
_TWO_LINES: Final = "it is not one line of JSON; make it with looplatch.encoding.encode"


class ChainedLog(ABC):
    """An AuditLog but for its storage.

    run: the run's id. durability: see `Durability`. payloads: "keep" or "digest". clock, entropy: where times and salts
    come from. mirror: gets a copy of every record after it is written, or None. signer: signs the seal and checkpoints,
    or None. kept: the records of a run that goes on; nothing is taken then until `resume`. Raises UsageError for
    settings that do not exist.
    """

    def __init__(
        self,
        run: str,
        *,
        durability: Durability = "group",
        payloads: Payloads = "keep",
        clock: TimeSource = SYSTEM_TIME,
        entropy: Entropy = os.urandom,
        mirror: Mirror | None = None,
        signer: Signer | None = None,
        kept: Prefix | None = None,
    ) -> None:
        check_setting("durability", durability, get_args(Durability))
        check_setting("payloads", payloads, get_args(Payloads))
        self.durability: Durability = durability
        self.keeps_payloads = payloads == "keep"
        self._run = run
        self._stamps = Stamps(clock)
        self._salts = Salts(entropy)
        self._mirror = mirror
        self.signer = signer
        self._merkle = Merkle()
        self.children: dict[str, AuditLog] = {}
        self._head = ZEROS
        self._ended: LogState | None = None  # why no more records are taken
        self._failure: LogFailed | None = None  # what the storage failed by; nothing is taken after it
        if kept is not None:
            self._go_on(kept)

    def _go_on(self, kept: Prefix) -> None:
        for record in kept.records:
            self._merkle.add(record.hash)
        self._head = kept.records[-1].hash
        self._stamps = Stamps(self._stamps.clock, kept.records[-1]["epoch"], kept.records[-1]["mono_ns"])
        self._ended = LogState.REOPENED

    @property
    def run(self) -> str:
        """The run that the log belongs to."""
        return self._run

    @property
    @abstractmethod
    def file(self) -> Path | None:
        """Where the log is kept, if that is a file."""

    @property
    def head(self) -> tuple[int, str]:
        """How many records there are, and the hash of the last one (zeros before the first)."""
        return self._merkle.count, self._head

    @property
    @abstractmethod
    def payloads(self) -> PayloadSource:
        """The payloads kept so far."""

    @abstractmethod
    def lines(self) -> Iterator[bytes]:
        """The lines of the records written so far, each with its newline, in order."""

    @abstractmethod
    async def sync(self) -> None:
        """Return when all that was written so far is durable."""

    @abstractmethod
    def _write(self, line: bytes) -> None:
        """Store a record's line."""

    @abstractmethod
    def _store(self, kept: Sequence[tuple[str, bytes, bytes]]) -> None:
        """Store payloads, each given by its commitment, its salt and itself."""

    @abstractmethod
    def _release(self) -> None:
        """Let go of the storage."""

    @abstractmethod
    def _clear_tail(self, epoch: int) -> dict[str, int]:
        """Move what a crash left behind the good prefix aside; return how many bytes that were, by what they were."""

    @abstractmethod
    def _harden(self) -> None:
        """Make all that was written durable; blocks."""

    @abstractmethod
    def _erase(self, commitments: Sequence[str]) -> None:
        """Delete payloads, so that nothing is left of them where they stood."""

    def bury(self, commitments: Sequence[str], of: int) -> tuple[Record, ...]:
        """Delete payloads of a reopened log, which stays as it is but for their tombstones; see AuditLog."""
        self._check()
        self._check_reopened()
        self._clear_tail(self._stamps.epoch + 1)  # where the next owner looks for it
        self._ended = None
        try:
            stones = [self.append(Kind.TOMBSTONE, {"commitment": one, "of": of}) for one in commitments]
        finally:
            self._ended = self._ended or LogState.REOPENED
        self._harden()  # a payload that is gone without a tombstone would be a loss
        self._erase(commitments)
        return tuple(stones)

    def resume(self, fields: Callable[[], dict[str, Any]]) -> Record:
        """Claim a reopened log for this process; see AuditLog."""
        self._check()
        self._check_reopened()
        epoch = self._stamps.epoch + 1
        lost = self._clear_tail(epoch)
        self._stamps = Stamps(self._stamps.clock, epoch)
        self._ended = None
        try:
            return self.append(Kind.RESUMED, {"lost": lost, **fields()})
        except BaseException:
            self._ended = self._ended or LogState.NOT_RESUMED
            raise

    def append(self, kind: Kind, fields: dict[str, Any]) -> Record:
        """Write a record of `kind` with its `fields`; see AuditLog."""
        if self._ended is not None or self._failure is not None:
            self._refuse()
        stamps, merkle = self._stamps, self._merkle
        ts, mono_ns = stamps.now()
        data: dict[str, Any] = {
            "v": SCHEMA,
            "run": self._run,
            "seq": merkle.count,
            "epoch": stamps.epoch,
            "ts": ts,
            "mono_ns": mono_ns,
            "kind": str(kind),
            "prev": self._head,
            **fields,
        }
        if len(data) != _STAMPED + len(fields) or "hash" in fields:
            raise BadRecord(kind, "its fields include one that the log itself writes")
        if self.signer is not None and kind in _SIGNED:
            # Beside the hash, which covers it, so that the record after it holds it fast as well.
            data["signature"] = signature(self.signer, signed_bytes(data))
        try:
            line = seal(data)
        except TypeError:
            data, line = _mended(kind, data)
        self._ended = _BROKEN_OFF  # until all three are done: whoever interrupts them must not write the same seq again
        self._write(line)
        self._head = data["hash"]
        merkle.add(self._head)
        self._ended = None
        record = Record(data)
        if self._mirror is not None:
            self._mirror.show(record)
        return record

    def keep(self, payload: bytes) -> Commitment:
        """Put `payload`, one line of JSON, into the payload store; see AuditLog."""
        if self._ended is not None or self._failure is not None:
            self._refuse()
        salt = self._salts.next()
        made = Commitment(commitment(salt, payload), len(payload))
        if self.keeps_payloads:
            if payload.find(b"\n") >= 0:  # `in` takes bytes for a number first, at ten times the cost
                raise BadRecord("payload", _TWO_LINES)
            self._store(((made.hex, salt, payload),))
        return made

    def keep_all(self, payloads: Sequence[bytes]) -> list[Commitment]:
        """Put many payloads into the payload store at once; see `KeepsMany`."""
        if self._ended is not None or self._failure is not None:
            self._refuse()
        salts = self._salts.many(len(payloads))
        hexes = list(map(commitment, salts, payloads))
        if self.keeps_payloads and payloads:
            if b"".join(payloads).find(b"\n") >= 0:
                raise BadRecord("payload", _TWO_LINES)
            self._store(list(zip(hexes, salts, payloads, strict=True)))
        return list(map(Commitment, hexes, map(len, payloads)))

    def finish(self, state: State, terminal: Terminal, history: dict[str, Any] | None = None) -> Record:
        """Append the seal; no record follows it."""
        count, root = self._merkle.count, self._merkle.root()
        fields = {"state": state.value, "terminal": terminal.value, "count": count, "root": root, "history": history}
        record = self.append(Kind.TERMINAL, fields)
        self._ended = LogState.SEALED
        return record

    def _check(self) -> None:
        """Raise if the storage has failed."""
        if (failure := self._failure) is not None:
            raise LogFailed(failure.file, failure.action, failure.cause) from failure.cause

    def _check_reopened(self) -> None:
        """Raise unless the log was reopened, and nobody has taken it up yet."""
        if self._ended is not LogState.REOPENED:
            raise LogClosed(self._run, self._ended or LogState.IN_USE)

    def _refuse(self) -> None:
        """Raise for what takes nothing any more: its storage has failed, or it has ended."""
        self._check()
        if self._ended is not None:
            raise LogClosed(self._run, self._ended)

    def close(self) -> None:
        """Let go of the storage, durably; a second call does nothing."""
        if self._ended is not LogState.CLOSED:
            self._ended = LogState.CLOSED
            self._release()


def check_setting(name: str, value: object, allowed: tuple[str, ...]) -> None:
    """Raise UsageError unless the setting `name` has one of the `allowed` values."""
    if value not in allowed:
        raise UsageError(name, f"{brief(value)} is not a setting", f"Use one of {', '.join(allowed)}")


def _mended(kind: Kind, data: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
    """The record and its line once more, without lone surrogates: a model may put them into any name."""
    try:
        whole: dict[str, Any] = mend(data)
        return whole, seal(whole)
    except (EncodeError, TypeError) as error:
        raise BadRecord(kind, str(error)) from error
