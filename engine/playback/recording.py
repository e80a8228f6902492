"""A recording: a log cut into the parts that one process each made, with what came to each of them from outside."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import attrs

from looplatch.analysis.fields import list_in, object_in
from looplatch.hooks import Allow, Deny
from looplatch.playback.report import CannotReplay
from looplatch.recovery.resume.errors import CannotResume
from looplatch.recovery.resume.past import SUSPENDED
from looplatch.resuming.contents import Contents
from looplatch.states.record import Kind, Record
from looplatch.states.vocabulary import EffectClass

# What ends a part, and comes from outside: nobody knows how far the work before it had come.
OUTSIDE: Final = frozenset({"RunAborted", "DeadlinePassed", "RunClosed", "DriverFailed", "RunPaused"})
_MOVED: Final = (Kind.TRANSITION, Kind.REJECTED)


@attrs.frozen(kw_only=True)
class Part:
    """What one process did of a run. start: how many records came before. records: its own, in order."""

    start: int
    records: Sequence[Record] = attrs.field(repr=False)

    @property
    def moves(self) -> list[Record]:
        """Its moves, up to the first that came from outside."""
        found: list[Record] = []
        for record in self.records:
            if record.kind in _MOVED:
                if record.event in OUTSIDE:
                    break
                found.append(record)
        return found

    @property
    def all_moves(self) -> int:
        """How many moves it has, those from outside counted."""
        return sum(record.kind in _MOVED for record in self.records)

    @property
    def changed(self) -> bool:
        """Whether it goes on with another loop than the part before it."""
        return self.records[0].kind is Kind.RESUMED and bool(object_in(self.records[0], "changes"))

    def before(self, move: Record) -> list[Record]:
        """The records between `move` and the move before it."""
        found: list[Record] = []
        for record in self.records:
            if record is move:
                return found
            if record.kind in _MOVED:
                found.clear()
            else:
                found.append(record)
        return found


def parts_of(records: Sequence[Record]) -> list[Part]:
    """The parts of a run, in order."""
    starts = [place for place, record in enumerate(records) if place == 0 or record.kind is Kind.RESUMED]
    return [
        Part(start=start, records=records[start:stop])
        for start, stop in zip(starts, [*starts[1:], len(records)], strict=True)
    ]


@attrs.frozen(kw_only=True)
class Call:
    """A call of the model, or a summary, that is on record: begun, with the tools that began meanwhile, and ended."""

    begin: Record
    end: Record | None
    tools: tuple[Record, ...] = ()

    @property
    def blocks(self) -> list[Any]:
        """What records say of the finished blocks of the answer."""
        end = [] if self.end is None else list_in(self.end, "blocks")
        return [*(block for tool in self.tools for block in list_in(tool, "blocks")), *end]

    @property
    def begun(self) -> frozenset[str]:
        """The calls whose tools had begun when the answer was over."""
        return frozenset(str(tool["tool_use_id"]) for tool in self.tools)


def calls_of(records: Sequence[Record], *classes: EffectClass) -> Iterator[Call]:
    """The effects of some classes, in the order in which they began."""
    ends = {record["effect"]: record for record in records if record.kind is Kind.EFFECT_END}
    for begin in records:
        if begin.kind is not Kind.EFFECT_BEGIN or begin.effect_class not in classes:
            continue
        end = ends.get(begin.seq)
        last = records[-1].seq if end is None else end.seq
        tools = tuple(
            record
            for record in records[begin.seq - records[0].seq : last - records[0].seq + 1]
            if record.kind is Kind.EFFECT_BEGIN and record.effect_class is EffectClass.TOOL
        )
        yield Call(begin=begin, end=end, tools=tools if begin.effect_class is EffectClass.MODEL else ())


def check_contents(records: Sequence[Record], contents: Contents) -> None:
    """Raise CannotReplay where a content that is needed is not kept, or stands in another log."""
    if records[0].get("payloads") != "keep":
        problem = "its log keeps no contents (payloads='digest')"
        raise CannotReplay(problem, "Record the run with payloads='keep', which is the default")
    for record in records:
        if (
            record.kind is Kind.EFFECT_END
            and record.effect_class is EffectClass.TOOL
            and record["outcome"] == SUSPENDED
        ):
            problem = f"record {record.seq}: a sub-agent waited for an approval, and its own run is not played"
            raise CannotReplay(problem, "Play the logs of its sub-agents instead, each through its own loop")
        for wanted in _needed(record):
            try:
                contents.payload(wanted)
            except CannotResume as error:
                raise CannotReplay(f"record {record.seq}: {error.problem}", "Record the run anew") from error


def _needed(record: Record) -> Iterator[str]:
    for name in ("blocks", "unfinished"):
        yield from (block["commitment"] for block in list_in(record, name))
    if record.kind is Kind.EFFECT_END and record.get("result") is not None:
        yield record["result"]


def approvals_in(resumed: Record, contents: Contents) -> dict[str, Allow | Deny]:
    """The decisions that a resumption brought."""
    given: dict[str, Allow | Deny] = {}
    for approval in list_in(resumed, "approvals"):
        message, changed = approval.get("message"), approval.get("input")
        if approval["allowed"]:
            given[approval["call"]] = Allow(None if changed is None else contents.value(changed))
        else:
            text = "" if message is None else str(contents.value(message))
            given[approval["call"]] = Deny(text, interrupt=bool(approval.get("interrupt")))
    return given
