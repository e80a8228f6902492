"""Privacy: no secret that the run is to take out stands in a record, nor in a payload that is kept."""

from typing import Any, Final

import attrs
import orjson

from looplatch.states.patterns import KNOWN_VERSION
from looplatch.states.record import SCHEMA
from looplatch.states.secrets import SECRETS, Secrets
from looplatch.states.shapes import RECORDS
from looplatch.states.verify.fields import NUMBERS, TEXTS
from looplatch.states.verify.findings import Findings
from looplatch.states.verify.kinds import COMMON, EVENT_TEXTS
from looplatch.states.verify.shapes import shape_of
from looplatch.states.verify.values import is_object

_REMEMBERED: Final = 10_000  # texts that were looked at
_AT_ONCE: Final = 64
_NUMBERS: Final = frozenset((int, bool, type(None)))
# Numbers, hashes, names of runs and their files, and what the table or the schema allows no other value of.
_PINNED: Final = frozenset(
    (
        "v", "seq", "epoch", "ts", "mono_ns", "kind", "prev", "hash", "redacted", "source", "event", "target", "reason",
        "strategy", "terminal", "guards", "change", "idempotency_key", "count", "root", "signature", "signed_by",
        "effect", "class", "bytes", "op",
        "index", "role", "form", "commitment", "raw", "result", "input", "edited", "table", "system", "limits", "usage",
        "sent", "history", "secrets", "full", "parent", "lost", "is_error", "access", "of", "tools", "params", "child",
        "pending", "message", "changed_contents", "was",
    )
)  # fmt: skip


_FREE: Final = {kind: tuple(name for name in fields if name not in _PINNED) for kind, fields in RECORDS.items()}
_BLOCKS: Final = ("blocks", "unfinished")
# Of common kinds: the fields that hold a text, and those that hold more but no blocks.
_TEXTS: Final = {kind: tuple(name for name in _FREE.get(kind, ()) if name in TEXTS) for kind in COMMON}
_HOLDING: Final = {
    kind: tuple(name for name in _FREE.get(kind, ()) if name not in TEXTS | NUMBERS and name not in _BLOCKS)
    for kind in COMMON
}
_HELD_BLOCKS: Final = {kind: tuple(name for name in _FREE.get(kind, ()) if name in _BLOCKS) for kind in COMMON}
SILENT: Final = frozenset(kind for kind in COMMON if not EVENT_TEXTS.get(kind, True))
"""Common kinds that hold no text from outside."""


class Privacy:
    """Looks for secrets: those that the run says it takes out, and those that the caller gives.

    given: the caller's patterns; those of the run's own are known by their digests alone, so they are looked for where
    they are given.
    """

    def __init__(self, findings: Findings, given: Secrets | None) -> None:
        self._findings = findings
        self._given = given
        self._looked_for = given
        self._seen: set[str] = set()
        self._texts: dict[tuple[str, ...], tuple[str, ...]] = {}  # by the names in a block: those that hold texts
        self._unseen: list[tuple[str, int, int | None]] = []  # texts, and the lines and numbers of their records

    def configure(self, record: dict[str, Any]) -> None:
        """The genesis, or a claim, says which secrets are taken out of contents before they are kept."""
        found = record.get("secrets")
        configured = found if is_object(found) else {}
        known, given = configured.get("known") == KNOWN_VERSION, self._given
        self.flush()
        self._seen.clear()
        if given is None:
            self._looked_for = SECRETS if known else None
            return
        self._looked_for = attrs.evolve(given, known=given.known or known)
        own, ours = configured.get("own"), given.fields()["own"]
        for name, digest in own.items() if is_object(own) else ():
            if digest not in ours.values():
                problem = f"the run takes out what the pattern {name!r} finds, and that one was not given"
                self._findings.add("P1", problem, digest, ours.get(name, "none of this name"))

    def check_record(self, record: dict[str, Any]) -> None:
        """What stands in a record that comes from outside: names, ids, and what services say."""
        if self._looked_for is None:
            return
        # Of another schema, or with fields that it has not, all of it is looked at.
        names = _FREE.get(shape_of(record), ()) if record["v"] == SCHEMA else record
        for name in names:
            value = record.get(name)
            if value is not None and name not in _PINNED:
                self._check_value(value)

    def check_common(self, record: dict[str, Any], kind: str) -> None:
        """The same of a record of a common kind, whose fields are of their types."""
        if self._looked_for is None:
            return
        if record["v"] != SCHEMA:
            self.check_record(record)
            return
        if kind in EVENT_TEXTS:
            for name in EVENT_TEXTS[kind]:
                self._check_value(record["fields"][name])
            return
        seen = self._seen
        for name in _TEXTS[kind]:
            text = record.get(name)
            if text is not None and text not in seen:
                self._note(text)
        for name in _HELD_BLOCKS[kind]:
            for block in record[name]:
                for field in self._texts.get(names := tuple(block)) or self._texts_of(names):
                    if block[field] not in seen:
                        self._note(block[field])
        for name in _HOLDING[kind]:
            value = record.get(name)
            if value:
                self._check_value(value)

    def _texts_of(self, block: tuple[str, ...]) -> tuple[str, ...]:
        """Which fields of a block with these hold a text that is to be looked at."""
        texts = tuple(name for name in block if name in TEXTS and name not in _PINNED)
        self._texts[block] = texts
        return texts

    def _note(self, text: str) -> None:
        self._seen.add(text)
        self._unseen.append((text, self._findings.line, self._findings.seq))
        if len(self._unseen) >= _AT_ONCE:
            self.flush()

    def _check_value(self, value: Any) -> None:
        if value.__class__ is str:
            if value not in self._seen:
                self._note(value)
        elif value.__class__ is dict:
            seen = self._seen
            for name, inner in value.items():
                if inner.__class__ is str:
                    if inner not in seen and name not in _PINNED:
                        self._note(inner)
                elif inner.__class__ not in _NUMBERS and name not in _PINNED:
                    self._check_value(inner)
        elif value.__class__ is list:
            for inner in value:
                self._check_value(inner)

    def flush(self) -> None:
        """Look at what was met since the last time: many texts at once cost little more than one."""
        findings, secrets, unseen = self._findings, self._looked_for, self._unseen
        if secrets is not None and secrets.may_be_in("\n".join(text for text, _, _ in unseen).encode()):
            here = findings.line, findings.seq
            for text, line, seq in unseen:
                if kinds := secrets.taken_out(text)[1]:
                    findings.line, findings.seq = line, seq
                    findings.add("P1", "the record has a secret in it", "none", ", ".join(kinds))
            findings.line, findings.seq = here
        unseen.clear()
        if len(self._seen) > _REMEMBERED:
            self._seen.clear()

    def check_payload(self, named: str, payload: bytes) -> None:
        """A kept payload. Nobody says where the secret is, nor what: a report is for other eyes."""
        secrets = self._looked_for
        if secrets is None or not secrets.may_be_in(payload):
            return
        try:
            _, kinds = secrets.taken_out_of_block(orjson.loads(payload))
        except orjson.JSONDecodeError:  # an integer that this parser does not take, or no JSON, which P2 tells
            return
        if kinds:
            self._findings.add("P1", "a kept payload has a secret in it", f"none in {named}", ", ".join(kinds))
