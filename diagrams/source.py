"""What can be drawn: a log, a run, or its records. They are known by their shape: nothing here imports the engine."""

from collections.abc import Iterable, Iterator
from typing import Protocol, cast

from looplatch.diagrams.elapsed import Fields
from looplatch.states.brief import brief
from looplatch.states.errors import UsageError


class HasRecords(Protocol):
    """A log, such as `looplatch.read` returns."""

    @property
    def records(self) -> Iterable[Fields]:
        """All records, in order."""
        ...


class HasLog(Protocol):
    """A run, or the result of one."""

    @property
    def log(self) -> object:
        """Its log, as it is now."""
        ...


Source = HasRecords | HasLog | Iterable[Fields]
"""A log, a run, or a list of records."""


def records_of(source: object) -> Iterable[Fields]:
    """The records of a log, of a run, or the records themselves. Raises UsageError where `source` is none of these."""
    kind = type(source).__name__
    for name in ("records", "transitions"):
        found = getattr(source, name, None)
        if isinstance(found, Iterable):
            return cast("Iterable[Fields]", found)
    log = getattr(source, "log", None)
    if log is not None:
        return records_of(log)
    if isinstance(source, Iterable) and not isinstance(source, str | bytes | dict):
        return _records(cast("Iterable[object]", source))
    raise UsageError(
        "log_or_run",
        f"{kind} is neither a log nor a run nor a list of records",
        "Read a file with looplatch.read(path) first",
    )


def _records(listed: Iterable[object]) -> Iterator[Fields]:
    for place, record in enumerate(listed):
        if not callable(getattr(record, "get", None)):
            problem = f"what stands at {place} of the list is no record: {brief(record)}"
            raise UsageError("log_or_run", problem, "Give the records of one log, or of one run")
        yield cast("Fields", record)
