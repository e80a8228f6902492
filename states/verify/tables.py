"""The tables that a log may have been judged by: the one at hand, and those of earlier looplatches."""

from collections.abc import Callable

from looplatch.states.transition import Table

Past = Callable[[str], Table | None]
"""Finds a table by its fingerprint; None where it is not known."""


def no_past(fingerprint: str) -> Table | None:
    """No table is known but the one at hand."""
    return None


class Tables:
    """Finds the table that a record names."""

    def __init__(self, table: Table, past: Past) -> None:
        self._table = table
        self._past = past

    def find(self, fingerprint: object) -> Table | None:
        """The table of this fingerprint; None where nobody here knows it."""
        if fingerprint == self._table.fingerprint:
            return self._table
        return self._past(fingerprint) if isinstance(fingerprint, str) else None

    def knows(self, fingerprint: object) -> bool:
        """Whether there is one."""
        return self.find(fingerprint) is not None
