"""Verifying a log: `verify` finds its lines and payloads, and has `looplatch.states.verify` judge them."""

import os
from pathlib import Path

from looplatch.audit.log import Log
from looplatch.audit.payloads import FilePayloads, payloads_of
from looplatch.audit.protocol import AuditLog
from looplatch.states.errors import UsageError
from looplatch.states.findings import Report
from looplatch.states.table import TABLE
from looplatch.states.transition import Table
from looplatch.states.verify import verify_lines
from looplatch.tables import known_table


def verify(log: Log | AuditLog | str | os.PathLike[str], *, table: Table = TABLE) -> Report:
    """Judge a log, or the log in a file, by its records, its payloads and the table alone.

    The report names every broken invariant with its line, what was expected and what was found. A run that is open,
    suspended or in doubt is said to be so and is no violation. A log that an earlier looplatch wrote is judged by the
    table of that time. Raises UsageError where a file cannot be read.
    """
    if isinstance(log, Log):
        lines = (*log.lines, log.torn) if log.torn else log.lines
        return verify_lines(lines, table, log.payloads.find, known_table)
    if isinstance(log, str | os.PathLike):
        return _verify_file(Path(log), table)
    return verify_lines(log.lines(), table, log.payloads.find, known_table)


def _verify_file(path: Path, table: Table) -> Report:
    try:
        with path.open("rb") as file:
            return verify_lines(file, table, FilePayloads(payloads_of(path)).find, known_table)
    except OSError as error:
        raise UsageError("log", f"{path} cannot be read ({error.strerror})", "Give the path of a log") from error
