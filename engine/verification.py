"""Verifying a log: `verify` finds its lines and payloads, and has `looplatch.states.verify` judge them."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from looplatch.audit.log import Log
from looplatch.audit.places import place_of
from looplatch.audit.protocol import AuditLog
from looplatch.states.findings import Report
from looplatch.states.table import TABLE
from looplatch.states.transition import Table
from looplatch.states.verify import verify_lines
from looplatch.states.verify_children import Lines
from looplatch.tables import known_table

NONE: Final[Mapping[str, AuditLog]] = {}


def verify(log: Log | AuditLog | str | os.PathLike[str], *, table: Table = TABLE) -> Report:
    """Judge a log, or the log in a file, by its records, its payloads and the table alone.

    The report names every broken invariant with its line, what was expected and what was found. A run that is open,
    suspended or in doubt is said to be so and is no violation. A log that an earlier looplatch wrote is judged by the
    table of that time. Raises UsageError where a file cannot be read.
    """
    if isinstance(log, str | os.PathLike):
        place = place_of(log)
        return verify_lines(place.lines(), table, place.payloads.find, known_table, _children(place.file))
    if isinstance(log, Log):
        lines = (*log.lines, log.torn) if log.torn else log.lines
        return verify_lines(lines, table, log.payloads.find, known_table, _children(log.file, log.child_logs))
    return verify_lines(log.lines(), table, log.payloads.find, known_table, _children(log.file, log.children))


def _children(beside: Path | None, inside: Mapping[str, AuditLog] = NONE) -> Lines:
    """Finds the logs of sub-agents: beside the file, or in memory."""

    def find(call: str, file: str | None) -> Iterable[bytes] | None:
        if file is None:
            return inside[call].lines() if call in inside else None
        path = None if beside is None or Path(file).name != file else beside.with_name(file)
        return None if path is None or not path.is_file() else place_of(path).lines()

    return find
