"""Verifying a log: `verify` finds its lines and payloads, and has `looplatch.states.verify.log` judge them."""

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from looplatch.audit.children import parent_files
from looplatch.audit.log import Log
from looplatch.audit.payloads import FilePayloads
from looplatch.audit.places import place_of
from looplatch.audit.protocol import AuditLog, check_is_log
from looplatch.audit.reader import parsed_run
from looplatch.audit.segments import SegmentPayloads
from looplatch.audit.signing import public_key
from looplatch.proving.checkpoints import Checkpoint, Watch, with_violation
from looplatch.proving.tables import known_table
from looplatch.states.errors import LooplatchError, UsageError
from looplatch.states.given import check_kind
from looplatch.states.secrets import Secrets
from looplatch.states.table import TABLE
from looplatch.states.transition import Table, check_is_table
from looplatch.states.verify.children import Lines, ParentLines
from looplatch.states.verify.findings import Report
from looplatch.states.verify.log import verify_lines
from looplatch.states.verify.signatures import PublicKey

Key = str | os.PathLike[str] | PublicKey
NONE: Final[Mapping[str, AuditLog]] = {}


def verify(
    log: Log | AuditLog | str | os.PathLike[str],
    *,
    table: Table = TABLE,
    expect: str | None = None,
    key: Key | Iterable[Key] | None = None,
    secrets: Secrets | None = None,
) -> Report:
    """Judge a log, or the log in a file, by its records, its payloads and the table alone.

    The report names every broken invariant with its line, what was expected and what was found. A run that is open,
    suspended or in doubt is said to be so and is no violation. A log that an earlier looplatch wrote is judged by the
    table of that time. expect: a checkpoint, as `run.checkpoint()` and the report have it; a log that does not extend
    it was cut, or is another one. key: the PEM file of the public key that the log must be signed with
    (`looplatch[signing]`), or a `PublicKey`; several for a run that was resumed with another signer; `report.signed`
    says how far its signatures reach. Without a key they are left aside, and the chain is judged all the same.
    secrets: patterns of your own that must match nothing, neither in records nor in contents, beside those that the run
    took out by itself; of patterns of its own a log has the digests only, so give them again. A log without its file of
    payloads is told so once. `report.notes` says what was not there to compare: logs of sub-agents, or that of the run
    that this one is a sub-agent of; and that a run has ended and is not sealed yet, as one that died in between. Its
    log is open: whoever takes away the end of a log leaves such a one, too, which only a checkpoint shows.
    Raises UsageError where a file cannot be read, and for a checkpoint or a key that is none.
    """
    if not isinstance(log, str | os.PathLike | Log):
        check_is_log(log)
    check_is_table(table)
    check_kind("secrets", secrets, Secrets | None, "Give looplatch.audit.Secrets(...), or None")
    keys = _keys(key)
    watch = Watch(None if expect is None else Checkpoint.read(expect), keys)
    file = place_of(log).file if isinstance(log, str | os.PathLike) else log.file
    judge = partial(verify_lines, table=table, past=known_table, keys=keys, secrets=secrets, parent=_parent(file))
    if isinstance(log, str | os.PathLike):
        place = place_of(log)
        absent, kept = place.absent, place.payloads
        lines, children = watch.passing(place.lines()), _children(place.file)
        if absent:
            report = judge(lines, children=children)
        else:
            report = judge(lines, children=children, payloads=kept.find, stored=kept.commitments)
        for fault in place.faults():
            report = with_violation(report, "I2", fault.problem, fault.expected, fault.found, line=fault.line)
        if absent and watch.keeps:
            problem = "the file of payloads is absent, so no content could be compared"
            report = with_violation(report, "P3", problem, ", ".join(path.name for path in absent), "nothing", line=1)
    else:
        if isinstance(log, Log):
            lines = watch.passing((*log.lines, log.torn) if log.torn else log.lines)
            children = _children(log.file, log.child_logs)
        else:
            lines, children = watch.passing(log.lines()), _children(log.file, log.children)
        absent, kept = (), log.payloads
        report = judge(lines, children=children, payloads=kept.find, stored=kept.commitments)
    for one in kept.strange() if not absent and isinstance(kept, FilePayloads | SegmentPayloads) else ():
        problem = f"{one.file.name} has a line that keeps nothing"
        report = with_violation(report, "P2", problem, "a payload", f"line {one.line}: {one.problem}", line=1)
    return watch.compared(report)


def _keys(given: Key | Iterable[Key] | None) -> tuple[PublicKey, ...]:
    if given is None:
        return ()
    several = (given,) if isinstance(given, str | os.PathLike | PublicKey) else given
    check_kind("key", several, Iterable, "Give the path of a public key, a PublicKey, or several in a list")
    keys = tuple(key if isinstance(key, PublicKey) else public_key(key) for key in several)
    if not keys:
        raise UsageError("key", "none is given", "Give one or more, or None to leave signatures aside")
    return keys


def _parent(file: Path | None) -> ParentLines:
    """Finds the log of the run that this one is a sub-agent of: beside its file."""

    def find(run: str) -> Iterable[bytes] | None:
        for path in () if file is None else parent_files(file):
            place = place_of(path)
            with suppress(LooplatchError):  # it is another file
                if parsed_run(next(iter(place.lines()), b""), path) == run:
                    return place.lines()
        return None

    return find


def _children(beside: Path | None, inside: Mapping[str, AuditLog] = NONE) -> Lines:
    """Finds the logs of sub-agents: beside the file, or in memory."""

    def find(call: str, file: str | None) -> Iterable[bytes] | None:
        if file is None:
            return inside[call].lines() if call in inside else None
        path = None if beside is None or Path(file).name != file else beside.with_name(file)
        return None if path is None or not path.is_file() else place_of(path).lines()

    return find
