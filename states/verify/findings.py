"""What the verifier says about a log: findings, each with the invariant that is broken, and the report on the whole."""

from typing import Final, Literal

import attrs

from looplatch.states.counted import counted
from looplatch.states.verify.invariants import INVARIANTS

KEPT: Final = 100  # findings that a report holds; the others are counted
_SHOWN: Final = 200  # characters of what was found

Status = Literal["sealed", "open", "suspended", "in_doubt"]


@attrs.frozen(kw_only=True)
class Violation:
    """One broken invariant.

    invariant: its id, as INVARIANTS lists them. seq: the record's number, None where the line is no record. line: the
    line, from 1. expected, found: what should stand there and what does, in words. message: what is wrong.
    """

    invariant: str
    seq: int | None
    line: int
    expected: str
    found: str
    message: str

    @property
    def meaning(self) -> str:
        """What the invariant asks for, in words."""
        return INVARIANTS[self.invariant]

    def __str__(self) -> str:
        return f"line {self.line}: {self.invariant}: {self.message}; expected {self.expected}, found {self.found}"


@attrs.frozen(kw_only=True)
class Report:
    """What verifying a log came to.

    status: `sealed` when the run has ended and its log is whole; else `open` (also where the run has ended and nobody
    has set the seal yet), `suspended` (it rests until someone resumes it) or `in_doubt` (something was begun of which
    no end is recorded). violations: the broken invariants, the first hundred; `omitted` more were found. count, head,
    root: how many lines there are, the last record's hash, and the Merkle root of all hashes, which a later log of the
    same run must extend. torn: bytes after the last whole line, left of a write that a crash broke off. signed: how
    many records, from the first on, the last good signature covers; None where no key was given to judge by. notes:
    what breaks nothing, and is worth knowing: what could not be compared, or that the seal is still to be set; the
    first hundred.
    """

    status: Status
    violations: tuple[Violation, ...]
    omitted: int
    count: int
    head: str
    root: str
    torn: int
    signed: int | None = None
    notes: tuple[str, ...] = ()

    @property
    def checkpoint(self) -> str:
        """`COUNT:HASH` of the whole log, which `verify` can be told to expect of it later."""
        return f"{self.count}:{self.head}"

    @property
    def ok(self) -> bool:
        """Whether no invariant is broken."""
        return not self.violations

    @property
    def _records(self) -> str:
        return counted(self.count, "record")

    def __str__(self) -> str:
        torn = f", {counted(self.torn, 'byte')} torn off" if self.torn else ""
        notes = [f"note: {note}" for note in self.notes]
        if self.ok:
            signed = "" if self.signed is None else f", {self.signed} of them signed"
            told = f"{self._records}{signed}{torn}, root {self.root}, checkpoint {self.checkpoint}"
            return "\n".join([f"ok: {self.status}, {told}", *notes])
        more = [f"and {self.omitted} more"] if self.omitted else []
        found = len(self.violations) + self.omitted
        head = f"not ok: {counted(found, 'violation')} in {self._records}{torn}"
        broken = dict.fromkeys(one.invariant for one in self.violations)
        meant = (f"{one}: {INVARIANTS[one]}" for one in broken)
        return "\n".join([head, *map(str, self.violations), *more, *meant, *notes])


class Findings:
    """Collects violations; the verifier sets `line` and `seq` as it goes."""

    def __init__(self) -> None:
        self.line = 0
        self.seq: int | None = None
        self.kept: list[Violation] = []
        self.notes: list[str] = []
        self.omitted = 0

    def add(self, invariant: str, message: str, expected: object, found: object) -> None:
        """Note that `invariant` is broken at the current line."""
        if len(self.kept) == KEPT:
            self.omitted += 1
            return
        self.kept.append(
            Violation(
                invariant=invariant,
                seq=self.seq,
                line=self.line,
                expected=_shown(expected),
                found=_shown(found),
                message=message,
            )
        )

    def note(self, told: str) -> None:
        """Note what breaks nothing, and is worth knowing."""
        if len(self.notes) < KEPT:
            self.notes.append(told)

    def replace(self, invariant: str, message: str, expected: str, found: str) -> None:
        """Say one thing about the whole, at the first line, in the place of all that was found."""
        self.kept, self.omitted = [], 0
        self.line, self.seq = 1, None
        self.add(invariant, message, expected, found)


def _shown(value: object) -> str:
    text = str(value) if isinstance(value, str) else repr(value)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
