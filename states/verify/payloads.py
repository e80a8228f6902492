"""Payloads: each kept one is what its record committed to, and each that is gone has its tombstone."""

from collections.abc import Callable, Iterable
from typing import Any, Final

from looplatch.states.record import commitment
from looplatch.states.verify.findings import Findings
from looplatch.states.verify.privacy import Privacy

Source = Callable[[str], tuple[bytes, bytes] | None]
"""Finds the salt and the payload of a commitment; None where they are not kept."""

Stored = Callable[[], Iterable[str]]
"""Tells the commitments of all payloads that are kept."""


def nothing_stored() -> tuple[str, ...]:
    """Which payloads are kept is not known."""
    return ()


_BLOCKS: Final = ("blocks", "unfinished")
_NAMES: Final = ("result", "reason", "edited")  # fields that are a commitment


class Kept:
    """Compares what records commit to with the payload store.

    source: None where there is none to look at. stored: the commitments of all that is there, named by a record or not.
    """

    def __init__(self, findings: Findings, privacy: Privacy, source: Source | None, stored: Stored) -> None:
        self._findings = findings
        self._privacy = privacy
        self._source = source
        self._stored = stored
        self._keeps = False
        self._sizes: dict[str, int] = {}  # of the payloads that were looked at
        self._missing: dict[str, tuple[int, int | None]] = {}  # commitments, and the line and number of the record
        self._buried: dict[str, tuple[int, int | None]] = {}  # what tombstones are for, and their line and number

    @property
    def has_source(self) -> bool:
        """Whether there is a payload store to look at."""
        return self._source is not None

    def begin(self, genesis: dict[str, Any]) -> None:
        """The run says whether it keeps payloads."""
        self._keeps = genesis.get("payloads") == "keep"

    def check(self, record: dict[str, Any]) -> None:
        """Every payload that a record commits to."""
        for name in _BLOCKS:
            self._check_blocks(record.get(name) or ())
        for edit in record.get("edits") or ():
            for message in edit["messages"]:
                self._check_blocks(message["blocks"])
        for name in _NAMES:
            named = record.get(name)
            if type(named) is str:
                self._check_one(named, record.get("bytes"))
        if (full := record.get("full")) is not None:
            self._check_one(full["commitment"], full["bytes"])
        for approval in record.get("approvals") or ():
            for name in ("input", "message"):
                if approval[name] is not None:
                    self._check_one(approval[name], None)

    def _check_blocks(self, blocks: Iterable[dict[str, Any]]) -> None:
        for block in blocks:
            self._check_one(block["commitment"], block["bytes"])
            if (raw := block.get("raw")) is not None:
                self._check_one(raw, None)

    def _check_one(self, named: str, size: int | None) -> None:
        """A commitment, and how many bytes its payload has, where that is told. Each is looked at once."""
        source, findings, known = self._source, self._findings, self._sizes.get(named)
        if source is None or (known is not None and (size is None or known == size)):
            return
        kept = source(named)
        if kept is None:
            if self._keeps:
                self._missing.setdefault(named, (findings.line, findings.seq))
            return
        if known is None:
            self._privacy.check_payload(named, kept[1])
        found, long = commitment(*kept), len(kept[1])
        self._sizes[named] = long
        if found != named or size not in (None, long):
            wanted = named if size is None else f"{named}, {size} bytes"
            findings.add("P2", "a kept payload is not the one committed to", wanted, f"{found}, {long} bytes")

    def bury(self, record: dict[str, Any]) -> None:
        """A tombstone: a payload was deleted."""
        named = record.get("commitment")
        if type(named) is not str:
            self._findings.add("P3", "the tombstone names no payload", "a commitment", named)
        else:
            self._buried[named] = (self._findings.line, self._findings.seq)

    def end(self) -> None:
        """No more records come: what no record names is looked at, and what is gone must have its tombstone by now."""
        findings = self._findings
        for named in () if self._source is None else self._stored():
            self._check_one(named, None)
        for wanted, (line, seq) in self._buried.items():
            if self._source is not None and self._source(wanted) is not None:
                findings.line, findings.seq = line, seq
                findings.add("P3", "a payload that a tombstone is for is still kept", "nothing", wanted)
        for wanted, (line, seq) in self._missing.items():
            if wanted not in self._buried:
                findings.line, findings.seq = line, seq
                findings.add("P3", "a payload is gone, and no tombstone says so", wanted, "nothing")
