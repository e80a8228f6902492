"""Fields that a record has and its schema has not: whatever they say, nothing else in the log bears it out."""

from collections.abc import Iterable
from typing import Any, Final

from looplatch.states.shapes import BLOCK, EVERY, INSIDE, RECORDS
from looplatch.states.verify.findings import Findings
from looplatch.states.verify.values import is_list, is_object

_STRICT_FROM: Final = 2  # the first schema whose records have no fields but those that are named
_KNOWN: Final = {kind: frozenset((*EVERY, *fields)) for kind, fields in RECORDS.items()}
_INSIDE: Final = {
    kind: tuple((name, frozenset(INSIDE[name])) for name in fields if name in INSIDE)
    for kind, fields in RECORDS.items()
}  # fmt: skip
_BLOCKS: Final = {
    kind: tuple(name for name in ("blocks", "unfinished") if name in fields) for kind, fields in RECORDS.items()
}
_BLOCK: Final = frozenset(BLOCK)


class Shapes:
    """Asks every record for fields that it should not have."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._right: set[tuple[str, ...]] = set()  # the fields of records, and of blocks, that were found right

    def check(self, record: dict[str, Any]) -> None:
        """A record."""
        if record["v"] < _STRICT_FROM:
            return
        kind: str = record["kind"]
        if kind in ("effect_begin", "effect_end"):
            kind = f"{kind} {record['class']}"
        names = (kind, *record)
        if names not in self._right:
            known = _KNOWN.get(kind)
            if known is None or not self._are_known(kind, record, known):
                return
            self._right.add(names)
        for field, known in _INSIDE[kind]:
            value = record.get(field)
            if value is not None and is_object(value):
                self._are_known(field, value, known)
        for field in _BLOCKS[kind]:
            blocks = record.get(field)
            for block in blocks if is_list(blocks) else ():
                if is_object(block) and tuple(block) not in self._right and self._are_known("block", block, _BLOCK):
                    self._right.add(tuple(block))

    def _are_known(self, what: str, fields: Iterable[str], known: frozenset[str]) -> bool:
        strange = sorted(set(fields) - known)
        if strange:
            wanted = ", ".join(sorted(known))
            self._findings.add("I4", f"the {what} has fields that its schema has not", wanted, ", ".join(strange))
        return not strange
