"""Payloads: each kept one is what its record committed to, and each that is gone has its tombstone."""

from collections.abc import Callable
from typing import Any, Final

import orjson

from looplatch.states.record import commitment
from looplatch.states.secrets import KNOWN_VERSION, SECRETS
from looplatch.states.verify.findings import Findings
from looplatch.states.verify.values import is_object

Source = Callable[[str], tuple[bytes, bytes] | None]
"""Finds the salt and the payload of a commitment; None where they are not kept."""

_BLOCKS: Final = ("blocks", "unfinished")
_NAMES: Final = ("result", "reason", "edited")  # fields that are a commitment


class Kept:
    """Compares what records commit to with the payload store. `source`: None where there is none to look at."""

    def __init__(self, findings: Findings, source: Source | None) -> None:
        self._findings = findings
        self._source = source
        self._keeps = False
        self._clean = False  # whether no secret that is known may be in a payload
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
        self.configure(genesis)

    def configure(self, record: dict[str, Any]) -> None:
        """The genesis, or a claim, says which secrets are taken out of contents before they are kept."""
        configured = record.get("secrets")
        self._clean = is_object(configured) and configured.get("known") == KNOWN_VERSION

    def check(self, record: dict[str, Any]) -> None:
        """Every payload that a record commits to."""
        for name in _BLOCKS:
            for block in record.get(name) or ():
                self._check_one(block["commitment"], block["bytes"])
                if (raw := block.get("raw")) is not None:
                    self._check_one(raw, None)
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
        if self._clean and known is None:
            self._check_secrets(named, kept[1])
        found, long = commitment(*kept), len(kept[1])
        self._sizes[named] = long
        if found != named or size not in (None, long):
            wanted = named if size is None else f"{named}, {size} bytes"
            findings.add("P2", "a kept payload is not the one committed to", wanted, f"{found}, {long} bytes")

    def _check_secrets(self, named: str, payload: bytes) -> None:
        """Nobody says where the secret is, nor what: a report is for other eyes."""
        if not SECRETS.may_be_in(payload):
            return
        try:
            _, kinds = SECRETS.taken_out(orjson.loads(payload))
        except orjson.JSONDecodeError:  # an integer that this parser does not take, or no JSON, which P2 tells
            return
        if kinds:
            self._findings.add("P1", "a kept payload has a secret in it", f"none in {named}", ", ".join(kinds))

    def bury(self, record: dict[str, Any]) -> None:
        """A tombstone: a payload was deleted."""
        named = record.get("commitment")
        if type(named) is not str:
            self._findings.add("P3", "the tombstone names no payload", "a commitment", named)
        else:
            self._buried[named] = (self._findings.line, self._findings.seq)

    def end(self) -> None:
        """No more records come: what is gone must have its tombstone by now."""
        findings = self._findings
        for wanted, (line, seq) in self._buried.items():
            if self._source is not None and self._source(wanted) is not None:
                findings.line, findings.seq = line, seq
                findings.add("P3", "a payload that a tombstone is for is still kept", "nothing", wanted)
        for wanted, (line, seq) in self._missing.items():
            if wanted not in self._buried:
                findings.line, findings.seq = line, seq
                findings.add("P3", "a payload is gone, and no tombstone says so", wanted, "nothing")
