"""Fields that a record has and its schema has not, and such as it lacks, or that are of another type."""

from collections.abc import Iterable
from typing import Any, Final

from looplatch.states.record import SCHEMA
from looplatch.states.shapes import BLOCK, EDIT, EDITED, EVERY, FORMER, INSIDE, RECORDS
from looplatch.states.verify.fields import mistake_in
from looplatch.states.verify.findings import Findings
from looplatch.states.verify.values import is_list, is_object

_STRICT_FROM: Final = 2  # the first schema whose records have no fields but those that are named
_FORMER: Final = "{} of schema 2"
_KNOWN: Final = {
    **{kind: frozenset((*EVERY, *fields)) for kind, fields in RECORDS.items()},
    **{_FORMER.format(kind): frozenset((*EVERY, *fields)) for kind, fields in FORMER.items()},
}
_INSIDE: Final = {name: frozenset(fields) for name, fields in INSIDE.items()}
_HOLDS_BLOCKS: Final = ("blocks", "unfinished")
_BLOCK: Final = frozenset(BLOCK)
_EDIT: Final = frozenset(EDIT)
_EDITED: Final = frozenset(EDITED)
_EDITS: Final = "edits"
_HOLDERS: Final = (*_INSIDE, *_HOLDS_BLOCKS, _EDITS)
_EFFECTS: Final = ("effect_begin", "effect_end")


class Shapes:
    """Asks a record for fields that it should not have, or not so."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        # The fields of records that were found right, and which of these hold more; the fields of such and of blocks.
        self._records: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._right: set[tuple[str, ...]] = set()

    def check(self, record: dict[str, Any]) -> None:
        """A record."""
        if record["v"] < _STRICT_FROM:
            return
        shape = shape_of(record)
        if (problem := mistake_in(shape, record)) is not None:
            self._findings.add("I4", f"the {shape} is not as its schema has it", "all its fields", problem)
        names = (shape, *record)
        holding = self._records.get(names)
        if holding is None:
            known = _KNOWN.get(names[0])
            if known is None or not self._are_known(names[0], record, known):
                return
            self._records[names] = holding = tuple(name for name in _HOLDERS if name in record)
        for field in holding:
            value = record[field]
            if not value:
                continue
            if is_list(value):
                if field in _HOLDS_BLOCKS:
                    for block in value:
                        self._check_inside("block", block, _BLOCK)
                elif field == _EDITS:
                    self._check_edits(value)
            elif field in _INSIDE:
                self._check_inside(field, value, _INSIDE[field])

    def _check_edits(self, edits: list[Any]) -> None:
        for edit in edits:
            self._check_inside("edit", edit, _EDIT)
            for message in edit["messages"]:
                self._check_inside("edited message", message, _EDITED)
                for block in message["blocks"]:
                    self._check_inside("block", block, _BLOCK)

    def _check_inside(self, what: str, value: object, known: frozenset[str]) -> None:
        if is_object(value):
            names = (what, *value)
            if names not in self._right and self._are_known(what, value, known):
                self._right.add(names)

    def _are_known(self, what: str, fields: Iterable[str], known: frozenset[str]) -> bool:
        strange = sorted(set(fields) - known)
        if strange:
            wanted = ", ".join(sorted(known))
            self._findings.add("I4", f"the {what} has fields that its schema has not", wanted, ", ".join(strange))
        return not strange


def shape_of(record: dict[str, Any]) -> str:
    """What the fields of a record are known by."""
    kind: str = record["kind"]
    if kind in _EFFECTS:
        return f"{kind} {record['class']}"
    if record["v"] < SCHEMA and kind in FORMER:
        return _FORMER.format(kind)
    return "message edit" if kind == "message" and _EDITS in record else kind
