"""The context's change: what a row makes of it, against what the record says it became."""

from enum import StrEnum
from typing import Any, Final

from looplatch.states.context import TOTALS
from looplatch.states.record import MAX_INT
from looplatch.states.verify.findings import Findings
from looplatch.states.verify.plan import REASONS, TROUBLES, Fold, Plan, RowPlan, totals_of
from looplatch.states.verify.values import is_object

_NOTHING: Final = (0,) * len(TOTALS)
_ABSENT: Final = "no change"


class Change:
    """Folds the context row by row."""

    def __init__(self, plan: Plan, findings: Findings) -> None:
        self._plan = plan
        self._findings = findings

    def apply(self, record: dict[str, Any], row: RowPlan, fields: dict[str, Any], context: Fold) -> None:
        """Check the record's change against the row's, and change `context` as the record says."""
        recorded: Any = record["change"]
        own = vars(context)
        wanted: dict[str, Any] = {}
        if row.fixes is not None and row.fixes(own) != row.values:
            wanted = {name: value for name, value in row.fixed if value is not own[name] and value != own[name]}
        if row.counts:
            self._count(row, fields, own, wanted)
        if recorded != wanted or not _are_of_classes(wanted, recorded):
            self._compare(wanted, recorded, own, row.enters_recover)
        elif wanted:
            own.update(wanted)
        for name in row.raises:
            self._check_bound(name, context)
        if row.enters_recover and own["trouble"] is None and "trouble" not in wanted:
            self._findings.add("M8", "recover is entered without a trouble", "a trouble in the context", None)

    def _compare(self, wanted: dict[str, Any], recorded: Any, own: dict[str, Any], enters_recover: bool) -> None:
        """Say where a change differs from the row's."""
        if not is_object(recorded):
            self._findings.add("M11", "the record does not say what changed", "an object", recorded)
            recorded = {}
        for name, value in wanted.items():
            absent = name not in recorded
            found = recorded.get(name, _ABSENT)
            if absent or not _same(value, found):
                plain = str(value) if isinstance(value, StrEnum) else value
                self._note("M8" if enters_recover and name == "trouble" else None, name, plain, found)
            if absent or _same(value, found):
                own[name] = value
        for name, found in recorded.items():
            if name not in wanted:
                self._note(None, name, own.get(name) if name != "limits" else "no such field", found)
            if name not in wanted or not _same(wanted[name], found):
                take(name, found, own)

    def _count(self, row: RowPlan, fields: dict[str, Any], own: dict[str, Any], wanted: dict[str, Any]) -> None:
        """Put into `wanted` what the row takes from the event, raises and adds up."""
        for name in row.takes:
            if fields[name] != own[name]:
                wanted[name] = fields[name]
        for name in row.raises:
            wanted[name] = own[name] + 1
        if row.adds and (told := totals_of(fields)) != _NOTHING:
            for name, more in zip(TOTALS, told, strict=True):
                if not more:
                    continue
                if more < 0:
                    self._findings.add("C4", f"{name} falls", "at least 0", more)
                total = own[name] + more
                if total <= MAX_INT:
                    wanted[name] = total
                elif own[name] != MAX_INT:
                    wanted[name] = MAX_INT

    def _note(self, known: str | None, name: str, wanted: object, found: object) -> None:
        message = f"the change of {name} does not follow from the row"
        if known is not None:
            invariant = known
        elif name == "turn":
            invariant = "C1"
        elif name in self._plan.counters:
            invariant = "C2"
        else:
            invariant = "C4" if name in TOTALS else "M11"
        self._findings.add(invariant, message, wanted, found)

    def _check_bound(self, name: str, context: Fold) -> None:
        bound, value = self._plan.bound(name, context), vars(context)[name]
        if value > bound:
            self._findings.add("C1" if name == "turn" else "C2", f"{name} is past its bound", bound, value)


def _are_of_classes(wanted: dict[str, Any], recorded: dict[str, Any]) -> bool:
    """Whether what equals `wanted` is the same in the eyes of JSON: 1 is not true."""
    for name, value in wanted.items():
        found = recorded[name]
        if value.__class__ is not found.__class__ and not (isinstance(value, StrEnum) and type(found) is str):
            return False
    return True


def _same(value: Any, found: Any) -> bool:
    """Whether a record's `found` is `value`, and of the type that it should be."""
    return value == found and (
        value.__class__ is found.__class__ or (isinstance(value, StrEnum) and type(found) is str)
    )


def take(name: str, found: Any, own: dict[str, Any]) -> None:
    """Believe a wrong record where it makes sense, so that what follows from it is not wrong, too."""
    if name not in own or name == "limits":
        return
    if name in ("trouble", "reason"):
        known: dict[str, Any] = {**TROUBLES, **REASONS}
        own[name] = known.get(found) if type(found) is str else None
    elif type(found) is type(own[name]):
        own[name] = found
