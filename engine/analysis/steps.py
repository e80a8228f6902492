"""The steps of a run, in a form in which two runs can be compared: what is another in each run is left out.

Left out are stamps, ids, salts and hashes, how long things took, and the order in which tools that ran side by side
began and ended. Contents stand in the place of their commitments, as long as they are kept.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, cast

import attrs

from looplatch.analysis.fields import list_in, object_in
from looplatch.analysis.quotes import Quotes
from looplatch.states.record import Kind, Record
from looplatch.states.state import State
from looplatch.states.vocabulary import EffectClass, Op

# Of the genesis: what the run was made of. The library and the SDK may be newer.
SETTINGS: Final = ("model", "system", "tools", "params", "limits", "table")
_TIMES: Final = frozenset({"delay_ms"})
# How many calls had begun when a whole answer ended is a matter of timing, and decides nothing.
_TIMELY: Final = {"ModelResponded": frozenset({"begun"})}
_REFERENCE: Final = re.compile(r"(kept as )[0-9a-f]{64}")


@attrs.frozen(kw_only=True)
class Step:
    """Something that happened, at the record `seq`: what it was, in words, and its fields by their paths."""

    seq: int
    what: str
    fields: Mapping[str, Any]


class Steps:
    """Makes steps of the records of one run, in order."""

    def __init__(self, quotes: Quotes) -> None:
        self._quotes = quotes
        self._calls: dict[str, str] = {}  # how the calls are named here, by their ids
        self._named: Counter[str] = Counter()  # how many calls of each tool there were
        self._tools: dict[str, Step] = {}  # that ran since the tools were last answered
        self._begun: dict[int, Record] = {}  # summaries and questions to the API that have not ended

    def take(self, record: Record) -> Iterator[Step]:
        """The steps that the next record brings."""
        match record.kind:
            case Kind.GENESIS:
                yield _step(record, "the beginning", {name: record.get(name) for name in SETTINGS})
            case Kind.TRANSITION | Kind.REJECTED:
                if record.source == State.ORCHESTRATE or record.terminal is not None:
                    yield from self._ran()
                yield self._move(record)
            case Kind.MESSAGE:
                yield self._message(record)
            case Kind.EFFECT_BEGIN:
                yield from self._begins(record)
            case Kind.EFFECT_END:
                yield from self._ends(record)
            case Kind.RESUMED:
                yield self._resumed(record)
            case Kind.TERMINAL:
                yield _step(record, "the seal", {"state": record.get("state"), "terminal": record.terminal})
            case Kind.CHECKPOINT | Kind.TOMBSTONE:
                pass

    def all(self, records: Iterable[Record]) -> Iterator[Step]:
        """The steps of all records, and those of tools that were never answered."""
        for record in records:
            yield from self.take(record)
        yield from self._ran()

    # --- kinds of records

    def _move(self, move: Record) -> Step:
        times = _TIMES | _TIMELY.get(str(move.event), frozenset())
        fields: dict[str, Any] = {k: v for k, v in object_in(move, "fields").items() if k not in times}
        for name in ("calls", "call"):
            if isinstance(fields.get(name), str):
                fields[name] = self._call(fields[name])
            elif isinstance(fields.get(name), list):
                fields[name] = [self._call(call) for call in list_in(fields, name)]
        compared = {
            "kind": str(move.kind),
            "state": move.source,
            "event": move.event,
            "event fields": fields,
            "verdicts": dict(list_in(move, "guards")),
            "target": move.target,
            "reason": move.reason,
            "strategy": move.strategy,
            "terminal": move.terminal,
            "context": object_in(move, "change"),
        }
        return _step(move, f"the move from {move.source}", compared)

    def _message(self, record: Record) -> Step:
        op = record["op"]
        if op == Op.EDIT:
            return _step(record, "the history", {"op": op, "edits": [self._edit(edit) for edit in record["edits"]]})
        role = record["role"]
        if op == Op.LEAVE:
            return _step(record, "the history", {"op": op, "place": record["index"], "count": record.get("count", 1)})
        fields = {"op": op, "place": record["index"], **self._content(record)}
        if "stop_reason" in record.data:
            fields["stop reason"] = record["stop_reason"]
        return _step(record, f"the {role} message {record['index']}", fields)

    def _edit(self, edit: Mapping[str, Any]) -> dict[str, Any]:
        """What gives way to what."""
        messages = [self._content(message) for message in edit["messages"]]
        return {"place": edit["start"], "until": edit["stop"], "messages": messages}

    def _content(self, message: Record | Mapping[str, Any]) -> dict[str, Any]:
        """Who says a message, and its blocks."""
        blocks: dict[str, Any] = {}
        for number, skeleton in enumerate(message["blocks"], 1):
            name, said = self._block(skeleton)
            blocks[f"{name}" if name not in blocks else f"{name} ({number})"] = said
        return {"role": message["role"], "form": message["form"], **blocks}

    def _block(self, skeleton: Mapping[str, Any]) -> tuple[str, Any]:
        """A block by a name, and what it says."""
        kind = skeleton["type"]
        if "id" in skeleton and "name" in skeleton:
            call = self._known(skeleton["id"], skeleton["name"])
            return f"call of {call}", self._said(skeleton, frozenset({"id"}))
        if "tool_use_id" in skeleton:
            return f"result of {self._call(skeleton['tool_use_id'])}", self._said(skeleton, frozenset({"tool_use_id"}))
        return str(kind), self._said(skeleton)

    def _said(self, skeleton: Mapping[str, Any], ids: frozenset[str] = frozenset()) -> Any:
        value = self._quotes.value(skeleton["commitment"])
        match value:
            case None:
                return {"not kept, bytes": skeleton["bytes"]}
            case dict():
                return {name: item for name, item in cast("dict[str, Any]", value).items() if name not in ids}
            case _:
                return value

    def _begins(self, begin: Record) -> Iterator[Step]:
        match begin.effect_class:
            case EffectClass.MODEL:
                names = ("model", "max_tokens", "attempt", "differs")
                fields = {name: begin.get(name) for name in names}
                count = object_in(begin, "sent").get("count")
                yield _step(begin, "the request", {**fields, "message records": count})
            case EffectClass.TOOL:
                for block in list_in(begin, "blocks"):
                    if "id" in block and "name" in block:
                        self._known(block["id"], block["name"])
                call = self._known(begin["tool_use_id"], begin["name"])
                edited = begin.get("edited")
                fields = {
                    "tool": begin["name"],
                    "access": begin["access"],
                    "edited input": None if edited is None else self._quotes.value(edited) or "not kept",
                }
                self._tools[call] = _step(begin, f"the start of {call}", fields)
            case EffectClass.SUMMARY | EffectClass.COUNT | EffectClass.SIZE | EffectClass.HOOK:
                self._begun[begin["effect"]] = begin
            case EffectClass.SLEEP | EffectClass.NOTE | None:
                pass

    def _ends(self, end: Record) -> Iterator[Step]:
        begin = self._begun.pop(end["effect"], None)
        if begin is None:
            return
        match begin.effect_class:
            case EffectClass.SUMMARY:
                asked = {name: begin.get(name) for name in ("model", "level", "by", "max_tokens", "span")}
                text = None if end.get("result") is None else self._quotes.value(end["result"])
                yield _step(begin, "the summary", {**asked, "outcome": end["outcome"], "text": text})
            case EffectClass.HOOK if begin["point"] in ("stop", "after_response"):
                reason = None if end.get("reason") is None else self._quotes.value(end["reason"])
                yield _step(
                    begin,
                    f"the {begin['point']} hook {begin['name']}",
                    {"hook": begin["name"], "verdict": end["outcome"], "reason": reason},
                )
            case EffectClass.HOOK:
                pass  # those around tools show in what the tools did, and were answered
            case _:
                answered = {name: end.get(name) for name in ("outcome", "tokens", "window", "output")}
                yield _step(begin, f"the API's {begin['class']}", answered)

    def _resumed(self, record: Record) -> Step:
        approvals: dict[str, Any] = {}
        for given in list_in(record, "approvals"):
            message, changed = given.get("message"), given.get("input")
            approvals[self._call(given["call"])] = {
                "allowed": given.get("allowed"),
                "interrupt": given.get("interrupt"),
                "message": None if message is None else self._quotes.value(message),
                "input": None if changed is None else self._quotes.value(changed),
            }
        return _step(record, "the resumption", {"approvals": approvals})

    def _ran(self) -> Iterator[Step]:
        """The tools that ran, in the order of the calls."""
        tools, self._tools = self._tools, {}
        yield from (tools[call] for call in sorted(tools))

    # --- names

    def _known(self, call: str, name: str) -> str:
        """How a call is named here: by its tool, and which call of it in this run it is."""
        if call not in self._calls:
            self._named[name] += 1
            self._calls[call] = f"{name} #{self._named[name]}"
        return self._calls[call]

    def _call(self, call: object) -> str:
        return self._calls.get(str(call), "an unknown call")


def _step(record: Record, what: str, fields: Mapping[str, Any]) -> Step:
    return Step(seq=record.seq, what=what, fields=fields)


@attrs.frozen(kw_only=True)
class Unlike:
    """Where two values part: the path of it, and both."""

    path: str
    one: Any
    other: Any


def unlike(one: Any, other: Any, path: str = "") -> Unlike | None:
    """The first place where two values of plain data are not the same; None where they are."""
    ours, theirs = _parts(one), _parts(other)
    if ours is None or theirs is None or isinstance(one, list) is not isinstance(other, list):
        same = type(one) is type(other) and _bare(one) == _bare(other)
        return None if same else Unlike(path=path, one=one, other=other)
    for name in dict.fromkeys([*ours, *theirs]):
        inner = f"{path}{name}" if name.startswith("[") or not path else f"{path}.{name}"
        mine, its = ours.get(name, _MISSING), theirs.get(name, _MISSING)
        if mine is _MISSING or its is _MISSING:
            return Unlike(path=inner, one=mine, other=its)
        if (found := unlike(mine, its, inner)) is not None:
            return found
    return None


def _parts(value: Any) -> Mapping[str, Any] | None:
    """The parts of an object or a list, by their names or places; None for what has none."""
    if isinstance(value, Mapping):
        return cast("Mapping[str, Any]", value)
    if isinstance(value, list):
        return {f"[{place}]": item for place, item in enumerate(cast("list[object]", value))}
    return None


class _Missing:
    def __repr__(self) -> str:
        return "nothing"


_MISSING: Final = _Missing()


def _bare(value: Any) -> Any:
    """A value without the references to contents that a text may have: they are others in each run."""
    return _REFERENCE.sub(r"\1…", value) if isinstance(value, str) else value
