"""Sub-agents: the end of a call names the last record of the run inside it, and that run's genesis names the call."""

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, Final

import orjson

from looplatch.states.verify.findings import Findings
from looplatch.states.verify.values import is_object

Lines = Callable[[str, str | None], Iterable[bytes] | None]
"""Finds the lines of the log of a sub-agent by the call that it answers and the name of its file; None: not at hand."""

_CHILD: Final[dict[str, tuple[type, ...]]] = {"run": (str,), "seq": (int,), "hash": (str,), "log": (str, type(None))}


def no_children(call: str, file: str | None) -> None:
    """No log of a sub-agent is at hand."""


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
        if lines is not None:
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
