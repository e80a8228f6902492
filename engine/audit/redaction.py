"""Redaction: deleting contents of a log that is on disk, so that the log still verifies."""

import os
from collections.abc import Iterator
from typing import cast

import attrs

from looplatch.audit.places import place_of, prefix_at
from looplatch.audit.torn import blank_torn, commitments_torn
from looplatch.states.errors import UsageError
from looplatch.states.given import check_count
from looplatch.states.record import Record

_CHAIN = ("prev", "hash")  # hashes of records


@attrs.frozen
class Redaction:
    """What was deleted: the contents of the record number `seq`, by their commitments; `stones` say so in the log."""

    seq: int
    commitments: tuple[str, ...]
    stones: tuple[Record, ...] = attrs.field(repr=False)


def redact(log: str | os.PathLike[str], seq: int) -> Redaction:
    """Delete the contents that the record number `seq` names from the payload store of the log in the file `log`.

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
    named = dict.fromkeys(_texts({name: value for name, value in kept.records[seq].data.items() if name not in _CHAIN}))
    kept_of = {one: found[1] for one in named if (found := payloads.find(one)) is not None}
    torn = commitments_torn(place.torn)
    commitments = tuple(one for one in named if one in kept_of or one in torn)
    if not commitments:
        if place.is_unsettled:  # a deletion that failed at its end: what it overwrites is overwritten now
            place.reopen(kept).close()
        problem = f"the record {seq} ({kept.records[seq].kind}) has no contents, or they are not kept any more"
        raise UsageError("seq", problem, "Give the number of a record whose contents are to be deleted")
    opened = place.reopen(kept)
    try:
        stones = opened.bury(commitments, seq)
        blank_torn(place.torn, commitments, tuple(kept_of.values()))
        return Redaction(seq, commitments, stones)
    finally:
        opened.close()


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
