"""Signatures: the seal and each checkpoint bear one of a key that the run is to be judged by.

They stand inside the chain: the hash of a record covers its signature, and the signature covers all else of the record,
the hash of the one before included. So the seal's is one of the whole log, and none can be taken out unseen.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

import attrs

from looplatch.states.record import Kind, signed_bytes
from looplatch.states.verify.findings import Findings
from looplatch.states.verify.values import is_object

_SIGNED: Final = frozenset((Kind.CHECKPOINT.value, Kind.TERMINAL.value))
_LENGTH: Final = 128
_HEX: Final = frozenset("0123456789abcdef")


@attrs.frozen(kw_only=True)
class PublicKey:
    """What signatures are checked with.

    key_id: its name, as a genesis has it. verifies: of data and a signature, whether the signature was made of the
    data with this key. Anything that can check signatures may stand behind it.
    """

    key_id: str
    verifies: Callable[[bytes, bytes], bool]


class Signatures:
    """Asks every seal and checkpoint for its signature; without a key, nothing. `covered`: how many records the last
    good one stands for, None without a key. Of several keys, each judges what a process signed that says it has it."""

    def __init__(self, findings: Findings, keys: Sequence[PublicKey]) -> None:
        self._findings = findings
        self._keys: dict[object, PublicKey] = {key.key_id: key for key in keys}
        self.covered = 0 if keys else None
        self._signed_by: object = None  # the key that the run is signed with, as it says itself
        self._said: tuple[int, int | None] = (1, 0)  # the line and the number of the record that says so

    def begin(self, genesis: dict[str, Any]) -> None:
        """The run says whether it is signed."""
        self._say(genesis.get("signed_by"))

    def claim(self, record: dict[str, Any]) -> None:
        """A new process owns the run, and may sign with another key."""
        changes = record.get("changes")
        change = changes.get("signed_by") if is_object(changes) else None
        if is_object(change):
            self._say(change.get("now"))

    def _say(self, key_id: object) -> None:
        self._signed_by = key_id
        self._said = self._findings.line, self._findings.seq

    def check(self, record: dict[str, Any]) -> None:
        """A record; of a key that is not at hand no signature can be judged, which `end` tells of the last one."""
        key = self._keys.get(self._signed_by) if record["kind"] in _SIGNED else None
        if key is None:
            return
        what, signature = f"the {_NAMES[record['kind']]}", record.get("signature")
        if signature is None:
            self._findings.add("I11", f"{what} is not signed", f"a signature of the key {key.key_id}", "none")
        elif not is_signature(signature) or not key.verifies(signed_bytes(record), bytes.fromhex(signature)):
            self._findings.add(
                "I11", f"the signature of {what} is wrong", f"that of the key {key.key_id}", str(signature)
            )
        else:
            self.covered = self._findings.line

    def end(self) -> None:
        """No more records come: the run must be signed with a key at hand, or have come to be so."""
        if self._keys and self._signed_by not in self._keys:
            self._findings.line, self._findings.seq = self._said
            which = "this key" if len(self._keys) == 1 else "any of these keys"
            wanted = ", ".join(key.key_id for key in self._keys.values())
            self._findings.add("I11", f"the run is not signed with {which}", wanted, self._signed_by or "no key")


_NAMES: Final = {Kind.CHECKPOINT.value: "checkpoint", Kind.TERMINAL.value: "seal"}


def is_signature(value: object) -> bool:
    """Whether a value can be one: 64 bytes, as hex digits."""
    return type(value) is str and len(value) == _LENGTH and set(value) <= _HEX
