"""What a run needs of its audit log, wherever the log is kept."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

import attrs

from looplatch.audit.signing import Signer
from looplatch.states.given import check_kind
from looplatch.states.reasons import Terminal
from looplatch.states.record import Kind, Record
from looplatch.states.state import State

Durability = Literal["none", "group", "barrier"]
"""When records reach the disk itself, not only the operating system.

`none`: never on purpose; they survive the end of the process, not of the machine.
`group`: within 50 ms, and at each `sync()`.
`barrier`: the same; the driver calls `sync()` more often (before a result is handed out, too).
"""

Payloads = Literal["keep", "digest"]
"""Whether contents are kept beside the log, or only commitments to them in it."""

Entropy = Callable[[int], bytes]
"""Where salts come from: `os.urandom`, or anything that returns as many bytes as it is asked for."""


@attrs.frozen
class Commitment:
    """What a record says of a payload: the salted SHA-256 as 64 hex digits, and the payload's size in bytes."""

    hex: str
    size: int


class PayloadSource(Protocol):
    """Finds payloads by the commitments to them."""

    def find(self, commitment: str) -> tuple[bytes, bytes] | None:
        """The salt and the payload that `commitment` stands for; None where it is not (or no longer) kept."""
        ...

    def commitments(self) -> Iterable[str]:
        """The commitments of all payloads that are kept, whether a record names them or not."""
        ...


@runtime_checkable
class AuditLog(Protocol):
    """The log of one run. All calls come from one thread; `append`, `keep` and `finish` do not wait for the disk.

    Once a write or an fsync has failed, `append`, `keep`, `finish` and `sync` raise LogFailed for good.
    """

    children: dict[str, "AuditLog"]
    """The logs of sub-agents that this process has run, by the call that each answers."""

    signer: Signer | None
    """What signs its seal and checkpoints, as the genesis says; None: nothing."""

    @property
    def run(self) -> str:
        """The run that the log belongs to."""
        ...

    @property
    def file(self) -> Path | None:
        """Where the log is kept, if that is a file."""
        ...

    @property
    def durability(self) -> Durability:
        """When its records reach the disk itself, as the genesis says."""
        ...

    @property
    def keeps_payloads(self) -> bool:
        """Whether contents are kept, and not only commitments to them."""
        ...

    @property
    def head(self) -> tuple[int, str]:
        """How many records there are, and the hash of the last one (zeros before the first)."""
        ...

    def append(self, kind: Kind, fields: dict[str, Any]) -> Record:
        """Write a record with the `fields` of its kind; it is with the operating system when this returns.

        The fields that every record has (v, run, seq, epoch, ts, mono_ns, kind, prev, hash) are added. Raises BadRecord
        (nothing is written, the log stays usable), LogFailed, or LogClosed after `finish` or `close`.
        """
        ...

    def resume(self, fields: Callable[[], dict[str, Any]]) -> Record:
        """Claim a log that was reopened: what a crash tore off is moved aside, and a new epoch begins.

        Writes the `resumed` record with what `fields` returns, which may `keep` contents for it, and `lost`: how many
        bytes were moved aside. A reopened log takes nothing before that; one that was not reopened raises LogClosed.
        Raises as `append` does.
        """
        ...

    def bury(self, commitments: Sequence[str], of: int) -> tuple[Record, ...]:
        """Delete payloads of the record number `of` from a log that was reopened, sealed or not, and not resumed.

        Their tombstones are durable before the payloads go; those stand in no file of the log afterwards. What a crash
        tore off is moved aside as by `resume`. Raises as `append` does.
        """
        ...

    def keep(self, payload: bytes) -> Commitment:
        """Put `payload`, one line of JSON as `looplatch.encoding.encode` makes it, into the payload store.

        Each call draws a new salt, so call it once per payload and repeat its commitment afterwards. With
        payloads="digest" nothing is stored; the commitment is made all the same. Raises as `append` does.
        """
        ...

    async def sync(self) -> None:
        """Return when all that was written so far is durable, payloads first; at once with durability "none"."""
        ...

    def finish(self, state: State, terminal: Terminal, history: dict[str, Any] | None = None) -> Record:
        """Append the seal: the final state, why the run ended, the count and the Merkle root of the records before.

        `history`: the count of the message records that make the final history, and the digest over them.
        """
        ...

    def close(self) -> None:
        """Make what was written durable (but for durability "none") and let go of the files; once is enough.

        Blocks for an fsync unless `sync()` came right before. Raises LogFailed when that fails; closed it is even then.
        """
        ...

    def lines(self) -> Iterator[bytes]:
        """The lines of the records written so far, each with its newline, in order."""
        ...

    @property
    def payloads(self) -> PayloadSource:
        """The payloads kept so far."""
        ...


@runtime_checkable
class KeepsMany(Protocol):
    """An AuditLog that can also keep many payloads in one write; any other log is handed them one by one."""

    def keep_all(self, payloads: Sequence[bytes]) -> list[Commitment]:
        """Put each of `payloads` into the payload store, as `keep` does; returns their commitments, in order.

        Raises as `keep` does; some of them may have been stored then.
        """
        ...


def check_is_log(given: object) -> None:
    """Raise UsageError where `given`, which is no path, is no log either."""
    check_kind("log", given, AuditLog, "Give a Log (of a run: run.log), an AuditLog, or the path of a file")
