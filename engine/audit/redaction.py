"""Redaction: deleting contents of a log that is on disk, so that the log still verifies."""

import os
from collections.abc import Iterator, Sequence
from typing import cast

import attrs

from looplatch.audit.places import place_of, prefix_at
from looplatch.audit.torn import blank_torn, commitments_torn
from looplatch.states.errors import UsageError
from looplatch.states.given import check_count
from looplatch.states.record import Kind, Record

_CHAIN = ("prev", "hash")  # hashes of records


@attrs.frozen
class Redaction:
    """What was deleted: the contents of the record number `seq`, by their commitments; `tombstones` say so in the log.

    also: the numbers of the other records that name any of them, whose contents are deleted with that.
    """

    seq: int
    commitments: tuple[str, ...]
    tombstones: tuple[Record, ...] = attrs.field(repr=False)
    also: tuple[int, ...] = ()


def redact(log: str | os.PathLike[str], seq: int) -> Redaction:
    """Delete the contents that the record number `seq` names from the payload store of the log in the file `log`.

    Of an edit of the history that is what the edit brought; what it left as it was stays, and is deleted by the record
    that brought it. Other records may name the same contents: the result says which.
    A tombstone for each is appended first, after the seal too. What was deleted is overwritten where it stood, and
    in what a crash tore off and was moved aside (`*.torn`), also where that is the beginning of the same text; copies
    elsewhere (a backup, another record that kept the same text anew) are not touched. The run cannot be resumed where
    it needs what was deleted. Raises UsageError where there is no such record or it has no contents any more, LogInUse
    where a run has the log open, LogDamaged where the log is damaged, LogFailed where the disk fails.
    """
    check_count("seq", seq, 0)
    place = place_of(log)
    kept = prefix_at(place)
    if not 0 <= seq < len(kept.records):
        raise UsageError("seq", f"the log has no record {seq}", f"Give a number from 0 to {len(kept.records) - 1}")
    payloads = place.payloads
    record = kept.records[seq]
    named = dict.fromkeys(_named_by(record))
    if record.kind is Kind.MESSAGE and record.get("op") == "edit":
        for earlier in kept.records[:seq]:
            for one in _named_by(earlier):
                named.pop(one, None)
    kept_of = {one: found[1] for one in named if (found := payloads.find(one)) is not None}
    torn = commitments_torn(place.torn)
    commitments = tuple(one for one in named if one in kept_of or one in torn)
    if not commitments:
        if place.is_unsettled:  # a deletion that failed at its end: what it overwrites is overwritten now
            place.reopen(kept).close()
        problem = f"the record {seq} ({record.kind}) has no contents of its own, or they are not kept any more"
        raise UsageError("seq", problem, "Give the number of a record whose contents are to be deleted")
    opened = place.reopen(kept)
    try:
        tombstones = opened.bury(commitments, seq)
        blank_torn(place.torn, commitments, tuple(kept_of.values()))
        return Redaction(seq, commitments, tombstones, _others(kept.records, seq, frozenset(commitments)))
    finally:
        opened.close()


def _others(records: Sequence[Record], seq: int, commitments: frozenset[str]) -> tuple[int, ...]:
    """The records that name one of the commitments, beside the record `seq` and what is told of deletions."""
    return tuple(
        one.seq
        for one in records
        if one.seq != seq and one.kind is not Kind.TOMBSTONE and not commitments.isdisjoint(_named_by(one))
    )


def _named_by(record: Record) -> Iterator[str]:
    """Every text in a record that may be a commitment."""
    return _texts({name: value for name, value in record.data.items() if name not in _CHAIN})


def _texts(value: object) -> Iterator[str]:
    """Every text in a value: one of them may be a commitment."""
    left = [value]
    while left:
        one = left.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, dict):
            left.extend(cast("dict[str, object]", one).values())
        elif isinstance(one, list):
            left.extend(cast("list[object]", one))
