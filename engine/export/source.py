"""What all exports read: the records of a log, one after the other."""

from collections.abc import Iterator
from typing import Any

from looplatch.analysis.reading import Readable, nothing_in, reading
from looplatch.audit import LogDamaged
from looplatch.audit.stamps import unix_ns
from looplatch.states.record import Kind, Record


def records_of(log: Readable) -> Iterator[Record]:
    """The records. Raises UsageError where there is none, LogDamaged at a line that is none."""
    source = reading(log)
    empty = True
    for record in source:
        empty = False
        yield record
    if empty:
        raise nothing_in(source)
    if source.damage is not None:
        raise source.damage


def nanoseconds(record: Record) -> int:
    """When the record was written, in nanoseconds since the epoch of Unix. Raises LogDamaged where that is no time."""
    try:
        return unix_ns(record["ts"])
    except (TypeError, ValueError) as error:
        raise LogDamaged(None, record.seq + 1, f"its time is none ({error})") from error


def effect_name(begin: Record) -> str:
    """What an effect is called: its class, and what it was asked of."""
    what: Any = begin.get("name") or begin.get("model") or begin.get("level")
    return f"{begin['class']} {what}" if what else str(begin["class"])


class Open:
    """The effects that have begun and not ended."""

    def __init__(self) -> None:
        self._begun: dict[int, Record] = {}

    def take(self, record: Record) -> Record | None:
        """The begin of the effect that `record` begins or ends; None for a record that does neither."""
        if record.kind is Kind.EFFECT_BEGIN:
            self._begun[record["effect"]] = record
            return record
        return self._begun.pop(record["effect"], None) if record.kind is Kind.EFFECT_END else None

    @property
    def left(self) -> list[Record]:
        """Those that are open now."""
        return list(self._begun.values())
