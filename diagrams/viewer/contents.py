"""What a page holds of a log: its lines as they stand, the payloads that they commit to, and the verifier's report."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, Protocol, cast, runtime_checkable

import attrs
import orjson

from looplatch.states.errors import UsageError
from looplatch.states.record import canonical
from looplatch.states.transition import Table
from looplatch.states.verify.findings import Report
from looplatch.states.verify.log import verify_lines

MOST: Final = 64 << 20  # bytes of payloads that a page holds
_COMMITMENT: Final = re.compile(r"[0-9a-f]{64}").fullmatch
_CHAIN: Final = frozenset(("hash", "prev"))

Find = Callable[[str], tuple[bytes, bytes] | None]


class Payloads(Protocol):
    """Where payloads are found again, as a log has it."""

    def find(self, commitment: str, /) -> tuple[bytes, bytes] | None:
        """The salt and the payload; None where it is not kept."""
        ...


@runtime_checkable
class Lined(Protocol):
    """A log that can be read again: its lines, and its payloads."""

    @property
    def lines(self) -> Iterable[bytes] | Callable[[], Iterable[bytes]]:
        """The lines, or a method that gives them."""
        ...

    @property
    def payloads(self) -> Payloads:
        """Where the payloads are."""
        ...


@attrs.frozen(kw_only=True)
class Contents:
    """All of a log. `left_out`: how many payloads, of how many bytes, were too much for a page.

    file: the name of the log's file; None where it is in memory. report: None where there was nothing to be judged.
    """

    file: str | None
    lines: bytes = attrs.field(repr=False)
    payloads: bytes = attrs.field(repr=False)
    left_out: tuple[int, int]
    report: Report | None


def contents_of(source: object, table: Table, report: Report | None = None) -> Contents:
    """The contents of a log, of a run's log, or of records; nothing for None.

    `report` is the verifier's, where it was asked already. Records alone are shown without payloads, and are not
    judged. Raises UsageError where `source` is none of these.
    """
    named = type(source).__name__
    if source is None:
        return Contents(file=None, lines=b"", payloads=b"", left_out=(0, 0), report=None)
    if isinstance(source, Lined):
        return _of_log(source, table, report)
    log = getattr(source, "log", None)
    if log is not None:
        return contents_of(log, table, report)
    if isinstance(source, Iterable) and not isinstance(source, str | bytes | dict):
        records = cast("Iterable[object]", source)
        lines = b"".join(map(_line, records))
        return Contents(file=None, lines=lines, payloads=b"", left_out=(0, 0), report=None)
    raise UsageError(
        "log_or_run",
        f"{named} is neither a log nor a run nor a list of records",
        "Read a file with looplatch.read(path) first",
    )


def _of_log(log: Lined, table: Table, report: Report | None) -> Contents:
    found = log.lines
    given: Iterable[bytes] = found() if callable(found) else found
    torn: bytes = getattr(log, "torn", b"")
    lines: tuple[bytes, ...] = (*given, torn) if torn else tuple(given)
    find = log.payloads.find
    kept: list[bytes] = []
    held = count = left = 0
    for commitment, payload in _payloads(lines, find):
        if held + len(payload) > MOST:
            count, left = count + 1, left + len(payload)
            continue
        held += len(payload)
        kept.append(b"%b %b\n" % (commitment.encode(), payload.replace(b"\n", b" ")))
    file = getattr(log, "file", None)
    return Contents(
        file=None if file is None else str(file.name),
        lines=b"".join(lines),
        payloads=b"".join(kept),
        left_out=(count, left),
        report=report or (verify_lines(lines, table, find) if lines else None),
    )


def _payloads(lines: Iterable[bytes], find: Find) -> Iterator[tuple[str, bytes]]:
    """Each kept payload that the lines commit to, once, in the order in which they do."""
    seen = set[str]()
    for line in lines:
        try:
            record: object = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        for commitment in _commitments(record):
            if commitment not in seen:
                seen.add(commitment)
                if (found := find(commitment)) is not None:
                    yield commitment, found[1]


def _commitments(value: object) -> Iterator[str]:
    if isinstance(value, str):
        if _COMMITMENT(value):
            yield value
    elif isinstance(value, dict):
        for name, inner in cast("dict[str, object]", value).items():
            if name not in _CHAIN:
                yield from _commitments(inner)
    elif isinstance(value, list):
        for inner in cast("list[object]", value):
            yield from _commitments(inner)


def _line(record: object) -> bytes:
    fields: Any = getattr(record, "data", record)
    return canonical(fields) + b"\n"
