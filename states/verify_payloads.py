"""Payloads: each kept one is what its record committed to, and each that is gone has its tombstone."""

from collections.abc import Callable
from typing import Any

from looplatch.states.findings import Findings
from looplatch.states.record import commitment

Source = Callable[[str], tuple[bytes, bytes] | None]
"""Finds the salt and the payload of a commitment; None where they are not kept."""


class Kept:
    """Compares what message records commit to with the payload store. `source`: None where there is none to look at."""

    def __init__(self, findings: Findings, source: Source | None) -> None:
        self._findings = findings
        self._source = source
        self._keeps = False
        self._missing: dict[str, tuple[int, int | None]] = {}  # commitments, and the line and number of the record
        self._named: set[str] = set()  # what tombstones are for

    def begin(self, genesis: dict[str, Any]) -> None:
        """The run says whether it keeps payloads."""
        self._keeps = genesis.get("payloads") == "keep"

    def check(self, blocks: list[dict[str, Any]]) -> None:
        """The blocks of a message."""
        source, findings = self._source, self._findings
        if source is None:
            return
        for block in blocks:
            kept = source(block["commitment"])
            if kept is None:
                if self._keeps:
                    self._missing.setdefault(block["commitment"], (findings.line, findings.seq))
                continue
            found = commitment(*kept)
            if found != block["commitment"] or len(kept[1]) != block["bytes"]:
                wanted = f"{block['commitment']}, {block['bytes']} bytes"
                findings.add(
                    "P2", "a kept payload is not the one committed to", wanted, f"{found}, {len(kept[1])} bytes"
                )

    def bury(self, record: dict[str, Any]) -> None:
        """A tombstone: a payload was deleted."""
        named = record.get("commitment")
        if type(named) is not str:
            self._findings.add("P3", "the tombstone names no payload", "a commitment", named)
        else:
            self._named.add(named)

    def end(self) -> None:
        """No more records come: what is gone must have its tombstone by now."""
        findings = self._findings
        for wanted, (line, seq) in self._missing.items():
            if wanted not in self._named:
                findings.line, findings.seq = line, seq
                findings.add("P3", "a payload is gone, and no tombstone says so", wanted, "nothing")
