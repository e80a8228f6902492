"""Sub-agents: the end of a call names the last record of the run inside it, and that run's genesis names the call.

A log that is not at hand is noted, and so is a parent's that does not have the call: what began in a process that died
before its record was on the disk has no parent, and is no forgery.
"""

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, Final

import orjson

from looplatch.states.verify.findings import Findings
from looplatch.states.verify.values import is_object

Lines = Callable[[str, str | None], Iterable[bytes] | None]
"""Finds the lines of the log of a sub-agent by the call that it answers and the name of its file; None: not at hand."""

_PARENT: Final = (("run", str), ("seq", int), ("hash", str))
ParentLines = Callable[[str], Iterable[bytes] | None]
"""Finds the lines of the log of a run that this one is a sub-agent of, by its id; None: not at hand."""

_CHILD: Final[dict[str, tuple[type, ...]]] = {"run": (str,), "seq": (int,), "hash": (str,), "log": (str, type(None))}


def no_children(call: str, file: str | None) -> None:
    """No log of a sub-agent is at hand."""


def no_parent(run: str) -> None:
    """No log of a parent is at hand."""


def look_at_parent(findings: Findings, genesis: dict[str, Any], lines: ParentLines) -> None:
    """Note what cannot be said of the call that a sub-agent's run answers."""
    link = genesis.get("parent")
    if not is_object(link) or any(link.get(name).__class__ is not kind for name, kind in _PARENT) or link["seq"] < 0:
        return  # it has none; what is no link is told elsewhere
    found, place = lines(link["run"]), f"record {link['seq']} of the log of run {link['run']}"
    if found is None:
        findings.note(f"the parent's log was not there to compare: this run answers a call that is {place}")
        return
    record = _read(next(islice(found, link["seq"], None), b""))
    if record.get("hash") != link["hash"] or record.get("class") != "tool":
        findings.note(f"the parent's log does not have the call that this run answers, as {place}")


class Children:
    """Compares what the records of calls say of the runs inside them with the logs of those runs."""

    def __init__(self, findings: Findings, lines: Lines) -> None:
        self._findings = findings
        self._lines = lines
        self._begun: dict[str, list[dict[str, Any]]] = {}  # what a genesis may name as its parent, by the call

    def begin(self, record: dict[str, Any]) -> None:
        """A tool begins."""
        link = {"run": record["run"], "seq": record["seq"], "hash": record["hash"]}
        self._begun.setdefault(record["tool_use_id"], []).append(link)

    def end(self, call: str, record: dict[str, Any]) -> None:
        """A tool ends; `child` says how far the run inside it has come, if there was one."""
        child = record.get("child", ...)
        if child is ...:
            self._begun.pop(call, None)  # it was no sub-agent, and is carried out once
            return
        right = is_object(child) and set(child) == set(_CHILD)
        if not right or any(child[name].__class__ not in types for name, types in _CHILD.items()):
            self._findings.add("P4", "the end of the call does not name the run inside", ", ".join(_CHILD), child)
            return
        lines = self._lines(call, child["log"])
        if lines is None:
            self._findings.note(f"the log of the run inside the call {call} was not there to compare")
        else:
            self._compare(call, child, lines)

    def _compare(self, call: str, child: dict[str, Any], lines: Iterable[bytes]) -> None:
        rest = iter(lines)
        first = _read(next(rest, b""))
        last = first if child["seq"] == 0 else _read(next(islice(rest, max(0, child["seq"] - 1), None), b""))
        begun, parent = self._begun.get(call, []), first.get("parent")
        if parent not in begun:
            self._findings.add("P4", "the run inside does not name the call", begun, parent)
        wanted, found = (child["run"], child["hash"]), (last.get("run"), last.get("hash"))
        if wanted != found:
            self._findings.add("P4", f"record {child['seq']} of the run inside is another one", wanted, found)


def _read(line: bytes) -> dict[str, Any]:
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError:
        return {}
    return record if is_object(record) else {}
