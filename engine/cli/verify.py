"""`looplatch verify`: whether a log is whole and legal."""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from looplatch.cleaning import cleaned
from looplatch.cli.exits import Exit
from looplatch.cli.reporting import as_json, as_sarif
from looplatch.cli.screen import Screen, Style
from looplatch.proving.verification import verify
from looplatch.states.errors import UsageError
from looplatch.states.secrets import Secrets


def perform(given: argparse.Namespace) -> Exit:
    """Print the report; a broken invariant is a finding."""
    secrets = Secrets(own=_patterns(given.secrets)) if given.secrets else None
    report = verify(given.log, expect=given.expect, key=given.key, secrets=secrets)
    screen = Screen()
    match given.format:
        case "json":
            screen.line(json.dumps(as_json(report)))
        case "sarif":
            screen.line(json.dumps(as_sarif(report, given.log), indent=2))
        case _:
            for line in cleaned(str(report)).split("\n"):
                screen.line(line, Style.PLAIN if report.ok else Style.BAD)
    return Exit.GOOD if report.ok else Exit.FAILED


def _patterns(given: Sequence[str]) -> dict[str, str]:
    """The patterns by their names: `NAME=REGEX`, or `@FILE` with a JSON object of such. Raises UsageError."""
    found: dict[str, str] = {}
    for one in given:
        name, equals, regex = one.partition("=")
        if one.startswith("@"):
            new = _read(Path(one[1:]))
        elif equals:
            new = {name: regex}
        else:
            raise UsageError("secrets", f"{one!r:.100} is no pattern", "Give NAME=REGEX, or @FILE")
        if twice := found.keys() & new.keys():
            raise UsageError("secrets", f"{min(twice)!r} is given twice", "Give each pattern its own name")
        found |= new
    return found


def _read(file: Path) -> dict[str, str]:
    """What a file has; a pattern may be a secret itself, which should not stand in a list of processes."""
    mend = 'Give a file with a JSON object, {"NAME": "REGEX"}'
    try:
        found: object = json.loads(file.read_text("utf-8"))
    except OSError as error:
        raise UsageError("secrets", f"{file} cannot be read ({error.strerror})", mend) from error
    except ValueError as error:  # without its text, in which a pattern may stand
        raise UsageError("secrets", f"{file} is no JSON", mend) from error
    patterns = cast("dict[str, object]", found) if isinstance(found, dict) else {}
    if not patterns or not all(isinstance(regex, str) for regex in patterns.values()):
        raise UsageError("secrets", f"{file} holds no patterns by name", mend)
    return cast("dict[str, str]", patterns)
