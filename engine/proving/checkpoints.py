"""Checkpoints: what a run had written at some moment, for whoever wants to see later that it is all still there."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import attrs

from looplatch.audit.reader import fields_of
from looplatch.audit.signing import Signer, checkpoint_bytes, signature
from looplatch.states.brief import brief
from looplatch.states.counted import counted
from looplatch.states.errors import UsageError
from looplatch.states.verify.findings import Report, Violation
from looplatch.states.verify.signatures import PublicKey

_FORM: Final = re.compile(r"(0|[1-9][0-9]{0,15}):([0-9a-f]{64})(?::([0-9a-f]{128}))?").fullmatch


@attrs.frozen
class Checkpoint:
    """So many records, and the hash of the last of them (zeros before the first); as a text, `COUNT:HASH`.

    signature: of that text, by the key of the log; None: it is not signed.
    """

    count: int
    hash: str
    signature: str | None = None

    @classmethod
    def read(cls, text: str) -> "Checkpoint":
        """The checkpoint that `text` spells. Raises UsageError where it spells none."""
        found = _FORM(text) if isinstance(text, str) else None  # pyright: ignore[reportUnnecessaryIsInstance]
        if found is None:
            raise UsageError("expect", f"{brief(text)} is no checkpoint", "Give COUNT:HASH, as run.checkpoint() does")
        return cls(int(found[1]), found[2], found[3])

    def signed(self, signer: Signer | None) -> "Checkpoint":
        """The same with its signature; as it is where nobody signs. Raises SigningFailed."""
        if signer is None:
            return self
        return Checkpoint(self.count, self.hash, signature(signer, checkpoint_bytes(self._bare)))

    def is_signed_with(self, key: PublicKey) -> bool:
        """Whether its signature is one of `key`."""
        return self.signature is not None and key.verifies(checkpoint_bytes(self._bare), bytes.fromhex(self.signature))

    @property
    def _bare(self) -> str:
        return f"{self.count}:{self.hash}"

    def __str__(self) -> str:
        return self._bare if self.signature is None else f"{self._bare}:{self.signature}"


class Watch:
    """Looks at the lines of a log as they pass to the verifier: the first, and the one that a checkpoint is of."""

    def __init__(self, expected: Checkpoint | None, keys: Sequence[PublicKey] = ()) -> None:
        self._expected = expected
        self._keys = keys
        self._first: bytes | None = None
        self._at: bytes | None = None

    def passing(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        """The `lines`, as they are."""
        place = -1 if self._expected is None else self._expected.count
        for number, line in enumerate(lines, 1):
            if number == 1:
                self._first = line
            if number == place:
                self._at = line
            yield line

    @property
    def keeps(self) -> bool:
        """Whether the genesis says that contents are kept."""
        return fields_of(self._first).get("payloads") == "keep"

    def compared(self, report: Report) -> Report:
        """The report, with what the checkpoint has against the log."""
        expected = self._expected
        if expected is None:
            return report
        if self._keys and expected.signature is not None and not any(map(expected.is_signed_with, self._keys)):
            message = "the signature of the checkpoint is wrong"
            wanted = f"that of the key {' or '.join(key.key_id for key in self._keys)}"
            report = with_violation(report, "I11", message, wanted, expected.signature)
        if expected.count == 0:
            return report
        if report.count < expected.count:
            message = "records that a checkpoint counts are not there: the end of the log was cut off"
            return with_violation(report, "I10", message, f"at least {counted(expected.count, 'record')}", report.count)
        found = str(fields_of(self._at).get("hash"))
        if found == expected.hash:
            return report
        message = "the log is not the one that the checkpoint was taken of"
        return with_violation(report, "I10", message, expected.hash, found, line=expected.count)


def with_violation(
    report: Report, invariant: str, message: str, expected: object, found: object, *, line: int | None = None
) -> Report:
    """The report with one more violation, at `line` or at the end of the log."""
    place = report.count if line is None else line
    one = Violation(
        invariant=invariant,
        seq=place - 1 if place else None,
        line=place,
        expected=str(expected),
        found=str(found),
        message=message,
    )
    return attrs.evolve(report, violations=(*report.violations, one))
