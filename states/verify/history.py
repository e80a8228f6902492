"""The history that the message records make: what each request names of it, and what its calls and results say."""

import hashlib
from collections.abc import Iterator
from typing import Any, Final

import attrs
import orjson

from looplatch.states.record import ZEROS
from looplatch.states.verify.answers import Answers
from looplatch.states.verify.findings import Findings
from looplatch.states.verify.turns import Part, Turns, parts_of

_EDITED_FROM: Final = 3  # the first schema in which compression is one record; before, messages leave and join
_FORMS: Final = ("text", "blocks")
_ANSWERED, _FAILED, _TIMED_OUT = "answered", "failed", "timed_out"
_CAUSES: Final = {
    access: (_ANSWERED, _FAILED, "invalid_input", "not_started", _TIMED_OUT, interrupted)
    for access, interrupted in (("read", "interrupted_no_effect"), ("write", "interrupted_effect_unknown"))
}


class Entries:
    """The messages of the history: of each its role, the hashes of its records, and what counts of its blocks.

    They stay as long as the run goes on, so they are kept as bytes, which take little.
    """

    def __init__(self) -> None:
        self._packed: list[bytes] = []

    def __len__(self) -> int:
        return len(self._packed)

    def __iter__(self) -> Iterator[tuple[str, list[str], tuple[Part, ...]]]:
        for packed in self._packed:
            role, hashes, parts = orjson.loads(packed)
            yield role, hashes, tuple((kind, name) for kind, name in parts)

    def insert(self, index: int, role: str, own: str, parts: tuple[Part, ...]) -> None:
        """A message joins in front of the one that stands there."""
        self._packed.insert(index, _pack((role, (own,), parts)))

    def extend(self, own: str, parts: tuple[Part, ...]) -> str:
        """The last message goes on; returns the role that it has."""
        first, hashes, before = orjson.loads(self._packed[-1])
        self._packed[-1] = _pack((first, (*hashes, own), (*before, *parts)))
        known: str = first
        return known

    def leave(self, index: int, stop: int) -> None:
        """Messages leave, up to the one at `stop`."""
        del self._packed[index:stop]

    def edit(self, edits: list[dict[str, Any]], own: str) -> int | None:
        """Messages give way to others. Returns the place of the first edit that does not fit, None where all do."""
        packed, edited, place = self._packed, list[bytes](), 0
        for edit in edits:
            start, stop = edit["start"], edit["stop"]
            if not (start.__class__ is stop.__class__ is int and place <= start <= stop <= len(packed)):
                return place
            edited += packed[place:start]
            edited += [_pack((one["role"], (own,), parts_of(one["blocks"]))) for one in edit["messages"]]
            place = stop
        self._packed = edited + packed[place:]
        return None


def _pack(entry: tuple[str, tuple[str, ...], tuple[Part, ...]]) -> bytes:
    packed = orjson.dumps(entry)
    return packed[:-1] + packed[-1:]  # a copy, which has no room to spare


_ENDED_BY_ITSELF: Final = (_ANSWERED, _FAILED)  # only what a tool returned can be too long to be sent
_ENDED_BY_OTHERS: Final = (_TIMED_OUT, "interrupted_no_effect", "interrupted_effect_unknown")
_OF_A_RESULT: Final = frozenset(("result", "full", "abandoned"))


@attrs.define
class Ran:
    """A call that was carried out in this turn. `failed`, `result`, `size`: of its end, None before that."""

    name: str
    input: str
    access: str
    failed: bool | None = None
    result: str | None = None
    size: int | None = None


class History:
    """Follows the message records, and compares them with what was sent and what was carried out."""

    def __init__(self, findings: Findings) -> None:
        self.calls: list[str] = []  # of the answer that joined last, in order
        self.answered: list[str] = []  # the calls that have tool_results since then, and how many are errors
        self.errors = 0
        self._findings = findings
        self._entries = Entries()
        self._given: set[str] = set()  # the ids of the calls that the run started from
        self._turns = Turns(findings, self._given)
        self._digest = ZEROS
        self._records = 0
        self.changed = False  # something else happened than messages and blocks at the end
        self._ran: dict[str, Ran] = {}
        self._doubted: set[str] = set()  # calls that were in flight when a process died
        self._asked: dict[str, dict[str, Any]] = {}  # the skeletons of `calls`
        self.answers = Answers(findings)

    # --- messages

    def change(self, record: dict[str, Any], *, begun: bool, compressing: bool) -> bool:
        """A message record. `begun`: the run has started. `compressing`: the state allows more than appending.

        Returns whether the history goes on at its end, and is otherwise what it was.
        """
        op, entries, last = record["op"], self._entries, len(self._entries) - 1
        if op == "edit":
            self._edit(record, compressing)
            return False
        index, role, former = record["index"], record["role"], record["v"] < _EDITED_FROM
        if op == "leave" and former:
            stop = index + record.get("count", 1)  # so many messages from there on leave
            if self._may_change(compressing, op, index) and 0 <= index < stop <= last + 1:
                entries.leave(index, stop)
            else:
                self._misplaced(op, f"0 to {last}", index)
            return False
        parts = parts_of(record["blocks"])
        self._check_content(record, parts)
        if op == "join" and index == last + 1:
            entries.insert(index, role, record["hash"], parts)
        elif op == "extend" and index == last and last >= 0:
            first = entries.extend(record["hash"], parts)
            if role != first:
                self._findings.add("E6", "a message is extended by another role", first, role)
        elif op == "join" and former and 0 <= index <= last:
            if self._may_change(compressing, op, index):
                entries.insert(index, role, record["hash"], parts)
            return False
        else:
            self._misplaced(op, last + 1 if op == "join" else last, index)
            return False
        self._append(record, role, parts, begun)
        return True

    def _edit(self, record: dict[str, Any], compressing: bool) -> None:
        """Messages give way to others, all at once."""
        edits, count = record["edits"], len(self._entries)
        for edit in edits:
            for message in edit["messages"]:
                self._check_content(message, parts_of(message["blocks"]))
        if not edits or any(edit["start"] == edit["stop"] and not edit["messages"] for edit in edits):
            self._findings.add("E6", "the edit changes nothing", "messages that leave or join", "none")
        if (refused := self._entries.edit(edits, record["hash"])) is not None:
            self._misplaced("edit", f"{refused} to {count}", [(edit["start"], edit["stop"]) for edit in edits])
        self._may_change(compressing, "edit", edits[0]["start"] if edits else 0)

    def _check_content(self, message: dict[str, Any], parts: tuple[Part, ...]) -> None:
        form = message["form"]
        if not parts or (form == "text" and parts != (("other", "text"),)) or form not in _FORMS:
            wanted = "blocks; in the form text, one text"
            self._findings.add("E6", "a message needs content", wanted, (form, message["blocks"]))

    def _append(self, record: dict[str, Any], role: str, parts: tuple[Part, ...], begun: bool) -> None:
        called = [name for kind, name in parts if kind in ("call", "served")]
        if not begun:
            self._given.update(called)
        elif called and (again := self._given.intersection(called)):
            self._findings.add("T1", "a tool_use id was given already", "a new id", ", ".join(sorted(again)))
        self._digest = hashlib.sha256((self._digest + record["hash"]).encode()).hexdigest()
        self._records += 1
        if self.changed:
            return  # what takes the place of other messages is no answer, and no result of a tool's
        self._turns.read(role, parts)
        if begun and role == "assistant":
            self.answers.join(record)
            self._join_answer(record["blocks"])
        elif begun:
            for block in record["blocks"]:
                if block["type"] == "tool_result":
                    self._check_result(block)

    def _may_change(self, compressing: bool, op: str, index: int) -> bool:
        if not compressing:
            found = f"{op} at {index} of {len(self._entries)}"
            self._findings.add(
                "E6", "the history is changed where nothing compresses it", "join or extend at the end", found
            )
        self.changed = True
        return True

    def _misplaced(self, op: str, wanted: object, index: object) -> None:
        self._findings.add("E6", f"the {op} does not fit the history before it", f"index {wanted}", index)

    # --- what a request names

    def check_sent(self, sent: dict[str, Any]) -> None:
        """The request must name exactly the message records that make the history, and every call must be answered."""
        self.check_named(sent, "the request")
        self.check_end("before the next request")
        self.answers.ask()
        self._ran.clear()
        self._doubted.clear()
        self.calls = []
        self._asked = {}
        self.answered = []
        self.errors = 0

    def check_named(self, named: Any, who: str) -> None:
        """The message records that `who` names, as a count and a digest, must be those that make the history."""
        if self.changed:
            self.changed = False
            self._turns = Turns(self._findings, self._given)
            for role, _, parts in self._entries:
                self._turns.read(role, parts)
            self._digest, self._records = self._chain()
        wanted = {"count": self._records, "digest": self._digest}
        if named != wanted:
            self._findings.add("E6", f"{who} does not name the message records that make the history", wanted, named)

    def _chain(self) -> tuple[str, int]:
        chained = ZEROS
        hashes = [own for _, record_hashes, _ in self._entries for own in record_hashes]
        for own in hashes:
            chained = hashlib.sha256((chained + own).encode()).hexdigest()
        return chained, len(hashes)

    def check_end(self, when: str) -> None:
        """Every call has its result, and nothing was carried out that the history does not show."""
        self._turns.check_answered(when)
        for name in self._ran:
            if name not in self._asked:
                self._findings.add(
                    "T9", f"a call was carried out that is not in the history {when}", "its tool_use", name
                )

    # --- calls

    def begin(self, record: dict[str, Any]) -> None:
        """A tool begins: it must be what the model asked for."""
        name = record["tool_use_id"]
        self.answers.name(record["blocks"])
        self._ran[name] = Ran(record["name"], record["input"], record["access"])
        self._doubted.discard(name)
        named = [block for block in record["blocks"] if block["type"] == "tool_use" and block["id"] == name]
        asked = self._asked.get(name) or (named[0] if named else None)
        if asked is not None:
            self._compare(name, asked)

    def resume(self) -> None:
        """A new process: how the tools ended that were in flight is not known, unless they run again."""
        self._doubted |= {name for name, ran in self._ran.items() if ran.failed is None}

    def end(self, name: str, record: dict[str, Any]) -> None:
        """A tool ended."""
        ran = self._ran.get(name)
        if ran is None:
            return
        if "is_error" not in record:  # an error that is no tool's own ended it, and the run with it; or it waits
            ran.failed = True
            if found := sorted(_OF_A_RESULT.intersection(record)):
                self._findings.add("T7", f"{name} has no result, and more is said of that", "nothing", found)
            return
        ran.failed, ran.result, ran.size = record["is_error"], record["result"], record["bytes"]
        outcome = record["outcome"]
        causes = _CAUSES.get(ran.access, _CAUSES["write"])
        if outcome not in causes:
            self._findings.add("T7", f"a {ran.access} that ran cannot end so", ", ".join(causes), outcome)
        elif ran.failed is not (outcome != _ANSWERED):
            wanted = f"is_error {outcome != _ANSWERED}"
            self._findings.add("T7", f"how {name} ended and its mark differ", f"{outcome}, {wanted}", ran.failed)
        if ran.result is None:
            self._findings.add("T7", f"{name} has no result", "a commitment", None)
        if record["full"] is not None and outcome not in _ENDED_BY_ITSELF:
            self._findings.add("T7", f"{name} has returned nothing that can be too long", None, record["full"])
        if record["abandoned"] is not False and outcome not in _ENDED_BY_OTHERS:
            self._findings.add("T7", f"{name} was not abandoned: it has ended", False, record["abandoned"])

    def _join_answer(self, blocks: list[dict[str, Any]]) -> None:
        for block in blocks:
            if block["type"] == "tool_use":
                self.calls.append(block["id"])
                self._asked[block["id"]] = block
                if block["id"] in self._ran:
                    self._compare(block["id"], block)

    def _compare(self, name: str, asked: dict[str, Any]) -> None:
        ran, wanted = self._ran[name], (asked["name"], asked["commitment"])
        if (ran.name, ran.input) != wanted:
            message = f"what was carried out for {name} is not what the model asked for"
            self._findings.add("T8", message, wanted, (ran.name, ran.input))

    def _check_result(self, block: dict[str, Any]) -> None:
        name, failed = block["tool_use_id"], block["is_error"]
        self.answered.append(name)
        self.errors += failed is True
        ran = self._ran.get(name)
        add = self._findings.add
        if name not in self._asked:
            return
        if ran is None and failed is not True:
            add("T7", f"{name} was not carried out, and its result is no error", "is_error", failed)
        elif ran is not None and ran.failed is not None:
            if ran.failed is not failed:
                add("T7", f"the result of {name} is marked otherwise than the tool ended", ran.failed, failed)
            elif ran.result is not None and (ran.result != block["commitment"] or ran.size != block["bytes"]):
                told = block["commitment"], block["bytes"]
                add("T7", f"the result of {name} is not what the tool returned", (ran.result, ran.size), told)
        elif name in self._doubted and failed is not True:
            add("T7", f"how {name} ended is not known, and its result is no error", "is_error", failed)
