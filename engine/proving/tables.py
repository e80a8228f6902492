"""The tables that judged runs so far, by their fingerprints; each was written once, when its looplatch was made."""

from functools import cache
from importlib.resources import files
from typing import Final

import orjson

from looplatch.audit import Log
from looplatch.states.brief import brief
from looplatch.states.errors import LooplatchError
from looplatch.states.past import table_of
from looplatch.states.table import TABLE
from looplatch.states.transition import Table

_FINGERPRINT_LENGTH: Final = 64


@cache
def known_table(fingerprint: str) -> Table | None:
    """The table of this fingerprint; None where no looplatch up to this one had it."""
    if len(fingerprint) != _FINGERPRINT_LENGTH or not set(fingerprint) <= set("0123456789abcdef"):
        return None
    file = files("looplatch.states.tables") / f"{fingerprint}.json"
    return table_of(orjson.loads(file.read_bytes())) if file.is_file() else None


class UnknownTable(LooplatchError):
    """A log names a table that no looplatch up to this one had. fingerprint: what it names."""

    def __init__(self, fingerprint: object) -> None:
        super().__init__(
            f"the log names the table {brief(fingerprint)}, which no looplatch up to this one had. Replay it with the "
            "looplatch that wrote it, or a newer one; give a table of your own as `table`"
        )
        self.fingerprint = fingerprint


def table_named(fingerprint: object) -> Table:
    """The table of this fingerprint. Raises UnknownTable where no looplatch up to this one had it."""
    table = known_table(fingerprint) if isinstance(fingerprint, str) else None
    if table is None:
        raise UnknownTable(fingerprint)
    return table


def judge_of(log: Log) -> Table:
    """The table that judged `log`; this looplatch's own where the log names none that is known."""
    genesis = log.genesis
    named: object = None if genesis is None else genesis.get("table")
    return (known_table(named) if isinstance(named, str) else None) or TABLE
