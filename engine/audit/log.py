"""Log: an audit log that is read, not written."""

import itertools
import os
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import attrs

from looplatch.audit.children import child_files
from looplatch.audit.history import Message, rebuild
from looplatch.audit.places import place_of, whole_lines
from looplatch.audit.protocol import AuditLog, PayloadSource
from looplatch.audit.reader import parse
from looplatch.states.counted import counted
from looplatch.states.record import Kind, Record
from looplatch.states.state import INITIAL


@attrs.frozen
class Effect:
    """Something done in the world: the record of its begin, and of its end (None: it was never recorded)."""

    begin: Record
    end: Record | None

    @property
    def kind(self) -> str:
        """What was done: "model", "tool", "hook", "summary", "sleep", "count", "size" or "note"."""
        kind: str = self.begin["class"]
        return kind


class Log:
    """What a log held at one moment. Reading checks no chain and no move: `looplatch.verify` does.

    payloads: where contents are found. file: where the log stands, None if in memory. torn: what came after the last
    newline, left of a write that a crash broke off. child_logs: those of sub-agents, where they are in memory.
    """

    def __init__(
        self,
        lines: Iterable[bytes],
        payloads: PayloadSource,
        *,
        file: Path | None = None,
        torn: bytes = b"",
        child_logs: Mapping[str, AuditLog] | None = None,
    ) -> None:
        self._unread = lines
        self.child_logs = child_logs or {}
        self.payloads = payloads
        self.file = file
        self.torn = torn

    @classmethod
    def of(cls, log: AuditLog) -> "Log":
        """What `log` holds now; it may go on being written. Costs nothing until it is looked into."""
        return cls(log.lines(), log.payloads, file=log.file, child_logs=log.children)

    @cached_property
    def lines(self) -> tuple[bytes, ...]:
        """The records as they stand in the log, each with its newline."""
        return tuple(self._unread)

    @cached_property
    def records(self) -> tuple[Record, ...]:
        """All records, in order. Raises LogDamaged where a line is none."""
        return tuple(parse(line, number, self.file) for number, line in enumerate(self.lines, 1))

    def __repr__(self) -> str:
        end = "open" if self.terminal is None else self.terminal.terminal
        return f"<Log of run {self.run}, {counted(len(self), 'record')}, {end}>"

    def _repr_svg_(self) -> str | None:
        from looplatch.diagrams.notebook import machine_svg

        return machine_svg(self)

    def _repr_html_(self) -> str | None:
        from looplatch.diagrams.notebook import run_html

        return run_html(self)

    def __len__(self) -> int:
        return len(self.records)

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records)

    @property
    def run(self) -> str | None:
        """The run's id; None for a log without a record."""
        return self.records[0].run if self.records else None

    @property
    def genesis(self) -> Record | None:
        """The first record, which says what the run was made of; None where that is missing."""
        return self.records[0] if self.records and self.records[0].kind is Kind.GENESIS else None

    @property
    def parent_run(self) -> str | None:
        """The id of the run that this one is a sub-agent of."""
        parent: dict[str, Any] | None = None if self.genesis is None else self.genesis.get("parent")
        return None if parent is None else str(parent["run"])

    @property
    def terminal(self) -> Record | None:
        """The seal; None while the run is open."""
        last = next((record for record in reversed(self.records) if record.kind is not Kind.TOMBSTONE), None)
        return last if last is not None and last.kind is Kind.TERMINAL else None

    @cached_property
    def transitions(self) -> tuple[Record, ...]:
        """The moves, without the refused ones."""
        return tuple(record for record in self.records if record.kind is Kind.TRANSITION)

    @cached_property
    def path(self) -> tuple[str, ...]:
        """The states the run was in, from the initial one on; a move that stays adds none."""
        entered = (str(move.target) for move in self.transitions if move.target != move.source)
        return (str(INITIAL), *entered)

    @cached_property
    def reasons(self) -> tuple[str, ...]:
        """Why the loop went round again, each time that it did."""
        return tuple(move.reason for move in self.transitions if move.reason is not None)

    @cached_property
    def effects(self) -> tuple[Effect, ...]:
        """What was done, in the order in which it began."""
        ends = {record["effect"]: record for record in self.records if record.kind is Kind.EFFECT_END}
        return tuple(
            Effect(record, ends.get(record.seq)) for record in self.records if record.kind is Kind.EFFECT_BEGIN
        )

    @cached_property
    def children(self) -> dict[str, "Log"]:
        """The logs of sub-agents, by the call that each answers; of those in files the ones that are there now.

        Raises LogDamaged where one of them is none.
        """
        if self.file is None:
            return {call: Log.of(log) for call, log in self.child_logs.items()}
        found: dict[str, Log] = {}
        for record in self.records:
            if record.kind is Kind.EFFECT_BEGIN and record["class"] == "tool":
                for file in itertools.takewhile(Path.exists, child_files(self.file, record["tool_use_id"])):
                    log = read(file)
                    if log.parent_run == self.run:
                        found[record["tool_use_id"]] = log
        return found

    @property
    def messages(self) -> list[Message]:
        """The history as plain API dicts, a new copy each time; blocks whose payload is not kept any more say so.

        Raises LogDamaged where the records tell of no history, or a payload is not the one that was recorded.
        """
        return rebuild(self.records, self.payloads, self.file)


def read(path: str | os.PathLike[str]) -> Log:
    """Read the log in the file `path`. Raises UsageError where it cannot be read, LogDamaged where a line is no record.

    A torn last line is no damage: it is kept aside as `torn`.
    """
    log = as_it_is(path)
    _ = log.records  # damage shows here, not later
    return log


def as_it_is(path: str | os.PathLike[str]) -> Log:
    """The log in the file `path`, damaged or not: its lines can be had. Raises UsageError where it cannot be read."""
    place = place_of(path)
    lines, torn = whole_lines(place)
    return Log(lines, place.payloads, file=place.file, torn=torn)
