"""`looplatch check`: every configuration that a table allows, and what is wrong with it."""

import argparse
import importlib
import sys
import time
from pathlib import Path

import attrs

from looplatch.cli.exits import Exit
from looplatch.cli.screen import Screen, Style
from looplatch.states.check.explore import SMALL, explore
from looplatch.states.check.table import faults
from looplatch.states.counted import counted
from looplatch.states.errors import UsageError
from looplatch.states.limits import Limits
from looplatch.states.table import TABLE
from looplatch.states.transition import Table


def perform(given: argparse.Namespace) -> Exit:
    """Check the table's shape, explore it, and print the numbers; a fault is a finding."""
    table = TABLE if given.table is None else _table(given.table)
    limits = _limits(given.limit)
    screen, began = Screen(), time.perf_counter()
    screen.line(
        f"{counted(len(table), 'row')}, {counted(len(table.counters), 'counter')}, fingerprint {table.fingerprint}"
    )
    found = faults(table)
    if not found:
        if screen.terminal:
            screen.line("exploring every configuration: some ten seconds ...", Style.FAINT)
        explored = explore(table, limits)
        found = explored.faults
        longest = "without end" if explored.longest is None else f"at most {counted(explored.longest, 'move')}"
        screen.line(
            f"{counted(explored.configurations, 'configuration')}, {counted(explored.moves, 'move')} between them"
        )
        screen.line(
            f"a run that nobody interrupts: {longest}; bounded by {', '.join(explored.measure) or 'no counter'}"
        )
    for fault in found:
        screen.line(fault, Style.BAD)
    result = counted(len(found), "fault") if found else "sound"
    screen.line(f"{result}, {time.perf_counter() - began:.1f} s")
    return Exit.FAILED if found else Exit.GOOD


def _table(named: str) -> Table:
    """The table that `module:NAME` names, looked for in the current folder, too."""
    module, _, name = named.partition(":")
    sys.path.insert(0, str(Path.cwd()))
    try:
        table: object = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise UsageError("--table", f"{named} cannot be had ({error})", "Name one as module:NAME") from error
    finally:
        sys.path.pop(0)
    if not isinstance(table, Table):
        raise UsageError("--table", f"{named} is a {type(table).__name__}", "Name a looplatch.states.Table")
    return table


def _limits(given: list[str]) -> Limits:
    """Small limits, and what the caller wants otherwise, as NAME=NUMBER."""
    changes: dict[str, int] = {}
    for one in given:
        name, _, number = one.partition("=")
        if name not in attrs.fields_dict(Limits) or not number.isdecimal():
            known = ", ".join(attrs.fields_dict(Limits))
            raise UsageError("--limit", f"{one!r} is none", f"Give NAME=NUMBER with one of {known}")
        changes[name] = int(number)
    return attrs.evolve(SMALL, **changes)
