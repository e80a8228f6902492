"""A verifier's report for programs: as JSON, and as SARIF 2.1.0 for those that show findings."""

import importlib.metadata
from pathlib import Path
from typing import Any
from urllib.parse import quote

import attrs

from looplatch.states.verify.findings import Report, Violation
from looplatch.states.verify.invariants import INVARIANTS


def as_json(report: Report) -> dict[str, Any]:
    """All that the report says."""
    return {
        "ok": report.ok,
        "checkpoint": report.checkpoint,
        **attrs.asdict(report),
    }


def as_sarif(report: Report, log: Path) -> dict[str, Any]:
    """The findings as the results of one run: the rule is the invariant, the place is the line of the log."""
    broken = sorted({one.invariant for one in report.violations})
    notes = [{"level": "note", "message": {"text": note}} for note in report.notes]
    uri = log.absolute().as_uri() if log.is_absolute() else quote(log.as_posix())
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "looplatch",
                        "semanticVersion": importlib.metadata.version("looplatch"),
                        "rules": [_rule(invariant) for invariant in broken],
                    }
                },
                "artifacts": [{"location": {"uri": uri}}],
                "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": notes}],
                "results": [_result(one, uri, broken.index(one.invariant)) for one in report.violations],
                "properties": {name: value for name, value in as_json(report).items() if name != "violations"},
            }
        ],
    }


def _rule(invariant: str) -> dict[str, Any]:
    return {"id": invariant, "shortDescription": {"text": INVARIANTS.get(invariant, invariant)}}


def _result(one: Violation, uri: str, rule: int) -> dict[str, Any]:
    place = {"artifactLocation": {"uri": uri, "index": 0}, "region": {"startLine": max(one.line, 1)}}
    return {
        "ruleId": one.invariant,
        "ruleIndex": rule,
        "level": "error",
        "message": {"text": f"{one.message}; expected {one.expected}, found {one.found}"},
        "locations": [{"physicalLocation": place}],
        "properties": {"seq": one.seq, "expected": one.expected, "found": one.found},
    }
