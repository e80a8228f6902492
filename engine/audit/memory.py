"""A log in memory: for tests, and for runs whose log nobody asked to keep."""

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

from looplatch.audit.chained import ChainedLog
from looplatch.audit.mirror import Mirror
from looplatch.audit.payloads import MemoryPayloads
from looplatch.audit.prefix import Prefix
from looplatch.audit.protocol import AuditLog, Durability, Entropy, Payloads, PayloadSource
from looplatch.audit.signing import Signer
from looplatch.audit.stamps import SYSTEM_TIME, TimeSource


class MemoryLog(ChainedLog):
    """An AuditLog that lives as long as the process; nothing is ever durable, so `sync` has nothing to do.

    kept, before, children: the records of a run that goes on, its payloads and its sub-agents; see `reopen`.
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
        before: PayloadSource | None = None,
        children: Mapping[str, AuditLog] | None = None,
    ) -> None:
        super().__init__(
            run,
            durability=durability,
            payloads=payloads,
            clock=clock,
            entropy=entropy,
            mirror=mirror,
            signer=signer,
            kept=kept,
        )
        self._lines: list[bytes] = [] if kept is None else list(kept.lines)
        self._payloads = MemoryPayloads(before)
        self.children.update(children or {})
        self._torn = 0 if kept is None else len(kept.torn)

    @classmethod
    def reopen(cls, kept: Prefix, payloads: PayloadSource, **settings: Any) -> Self:
        """The log of a run that goes on from `kept`, whose contents are in `payloads`; it waits for `resume`.

        settings: clock, entropy, mirror, signer, and the logs of sub-agents as `children`. The log that `kept` was
        read from stays as it is.
        """
        return cls(kept.run, kept=kept, before=payloads, **settings)

    @property
    def file(self) -> None:
        """None: there is no file."""
        return

    @property
    def payloads(self) -> MemoryPayloads:
        """The payloads kept so far."""
        return self._payloads

    def lines(self) -> Iterator[bytes]:
        """The lines of the records written so far, each with its newline, in order."""
        return iter(tuple(self._lines))

    async def sync(self) -> None:
        """Nothing: memory is never durable."""

    def _write(self, line: bytes) -> None:
        self._lines.append(line)

    def _store(self, kept: Sequence[tuple[str, bytes, bytes]]) -> None:
        for commitment, salt, payload in kept:
            self._payloads.put(commitment, salt, payload)

    def _clear_tail(self, epoch: int) -> dict[str, int]:
        return {"records": self._torn, "payloads": 0}

    def _harden(self) -> None:
        """Nothing: memory is never durable."""

    def _erase(self, commitments: Sequence[str]) -> None:
        for one in commitments:
            self._payloads.drop(one)

    def _release(self) -> None:
        """Nothing: what is in memory stays readable after the run."""
