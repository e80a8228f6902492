"""Effects: each begun and ended once, in its state, within time; calls overlap only as they may."""

from typing import Any, Final

import attrs

from looplatch.states.context import TOTALS
from looplatch.states.record import MAX_INT
from looplatch.states.state import FINAL, State
from looplatch.states.verify.answers import Answers
from looplatch.states.verify.findings import Findings
from looplatch.states.verify.plan import totals_of

MAX_PARALLEL: Final = 10  # read-only tools that may run at once
MOST_LOST: Final = 10  # effects whose cost may still be told after a resume, in any combination
GRACE_NS: Final = 100_000_000  # between the clock's look at a deadline, or its wake-up, and the record
_MS: Final = 1_000_000

_TOOLS_MAY_RUN: Final = frozenset(map(str, (State.STREAM, State.DECIDE, State.ORCHESTRATE)))
_MAY_BEGIN: Final[dict[str, frozenset[str]]] = {
    "model": frozenset({str(State.STREAM)}),
    "tool": frozenset(map(str, (State.STREAM, State.ORCHESTRATE))),
    "hook": frozenset(map(str, (State.STREAM, State.DECIDE, State.ORCHESTRATE, State.SUSPENDED))),
    "summary": frozenset(map(str, (State.PREPARE, State.RECOVER))),
    "sleep": frozenset({str(State.RECOVER)}),
    "count": frozenset({str(State.PREPARE)}),
    "size": frozenset(map(str, (State.PREPARE, State.RECOVER))),
    "note": frozenset({str(State.ORCHESTRATE)}),
}

_NOWHERE: Final = frozenset[str]()
_FINAL: Final = frozenset(map(str, FINAL))
_STREAM: Final = str(State.STREAM)
_ACCESSES: Final = ("read", "write")
_PASSED: Final = "StopHooksPassed"
_SAID: Final = {_PASSED: "Pass", "StopHooksBlocked": "Block", "StopHooksHalted": "Halt"}
_MODELS: Final = ("model", "summary")
_SPENDS: Final = (*_MODELS, "note")
_SUSPENDED: Final = "suspended"  # how a call ends, for now, whose own run waits for someone's word
_DECIDING: Final = frozenset({str(State.DECIDE)})
_POINTS: Final = {  # of hooks, and the states that each may begin in
    "after_response": _DECIDING,
    "stop": _DECIDING,
    "before_tool": _MAY_BEGIN["hook"],
    "after_tool": _MAY_BEGIN["hook"],
}
_SAYING_WHY: Final = ("Block", "Halt")
_HEX: Final = frozenset("0123456789abcdef")
_BEFORE_TOOL: Final = "before_tool"
_OF_VERDICTS: Final = {"interrupt": (_BEFORE_TOOL, "Deny"), "edited": (_BEFORE_TOOL, "Allow")}
_AROUND_TOOLS: Final = (_BEFORE_TOOL, "after_tool")  # hooks that go on as long as tools may
_BESIDE: Final = "note"  # goes on beside the run, whatever its state is


@attrs.define
class Running:
    """An effect that has begun."""

    kind: str
    mono_ns: int
    access: str | None = None
    tool_use_id: str | None = None
    delay_ms: int = 0
    with_tools: bool = False  # in flight as long as tools may be
    point: str | None = None  # of a hook: what it is asked for
    call: str | None = None  # and about which call
    name: str | None = None


class Effects:
    """Follows the effect records, and compares them with the moves around them."""

    def __init__(self, findings: Findings, run: str, genesis: dict[str, Any]) -> None:
        self.running: dict[int, Running] = {}
        self.begun = 0  # tool calls of the current answer
        self.unfinished = False  # the answer that is being written has no end on record, or was stopped from outside
        self.spent: dict[str, int] = dict.fromkeys(TOTALS, 0)  # since the last event that brings tokens
        self._findings = findings
        self._run = run
        self._keys: set[str] = set()
        self._former: frozenset[str] = frozenset()  # calls that ended while former owners had the run
        self._parallel = genesis.get("max_parallel", MAX_PARALLEL)
        self._reads: list[str] | None = genesis.get("reads")  # the tools of which a call may be a read; None: not told
        deadline = genesis["deadline_ms"]
        self._deadline = None if deadline is None else genesis["mono_ns"] + deadline * _MS
        self._epoch = genesis["epoch"]
        self._parts: list[dict[str, int]] = []  # what makes `spent`
        self._lost: list[dict[str, int]] = []  # the parts that a process died with before an event told of them
        self._verdicts: list[tuple[str | None, str]] = []  # stop hooks, and what they said of the answer
        self._owned = 0  # how many of them spoke to former processes, whose hooks may be others
        self._delay: tuple[int, ...] = ()  # what the last move said of the wait that follows

    # --- records

    def begin(self, record: dict[str, Any], state: str) -> str:
        """An effect begins; returns its class."""
        add = self._findings.add
        kind, own = record["class"], record["effect"]
        if own != record["seq"] or type(own) is not int:
            add("E1", "an effect is named by the number of its own record", record["seq"], own)
        if state not in _MAY_BEGIN.get(kind, _NOWHERE):
            add("E2", f"a {kind} effect begins in {state}", ", ".join(sorted(_MAY_BEGIN.get(kind, ()))), state)
        if (
            self._deadline is not None
            and record["epoch"] == self._epoch
            and record["mono_ns"] > self._deadline + GRACE_NS
        ):
            add("C6", "an effect begins after the deadline", f"before {self._deadline} ns", record["mono_ns"])
        if self.running and kind in _MODELS and any(other.kind in _MODELS for other in self.running.values()):
            add("E3", "a model call begins while another is in flight", "one at a time", record["seq"])
        begun = Running(kind, record["mono_ns"], tool_use_id=record.get("tool_use_id"))
        if kind == "model":
            self._begin_request()
        elif kind == "tool":
            self._begin_tool(record)
            begun.access, begun.with_tools = record["access"], True
        elif kind == "sleep":
            begun.delay_ms = record["delay_ms"]
            self._begin_sleep(begun.delay_ms)
        elif kind == "hook":
            self._begin_hook(record, state)
            begun.point, begun.call, begun.name = record["point"], record.get("call"), record["name"]
            begun.with_tools = begun.point in _AROUND_TOOLS
        self.running[record["seq"]] = begun
        return str(kind)

    def end(self, record: dict[str, Any]) -> Running | None:
        """An effect ends; returns what began, None where nothing did."""
        add = self._findings.add
        begun = self.running.pop(record["effect"], None)
        if begun is None:
            add("E1", "an effect ends that is not in flight", sorted(self.running) or "no end", record["effect"])
            return None
        if record["class"] != begun.kind:
            add("E1", "an effect ends as another class than it began", begun.kind, record["class"])
        if begun.kind in _SPENDS or "usage" in record:
            usage: dict[str, int] = record["usage"] or {}
            for name, value in usage.items():
                self.spent[name] = min(self.spent[name] + value, MAX_INT)
            self._parts.append(usage)
        if begun.kind == "tool" and record["outcome"] == _SUSPENDED:
            self._keys.discard(str(begun.tool_use_id))  # the run inside goes on under the same key
        if begun.kind == "model":
            self.unfinished = record["outcome"] == "interrupted"
        elif begun.kind == "hook":
            self._end_hook(begun, record)
        elif begun.kind == "sleep" and record["outcome"] == "ok":
            slept = record["mono_ns"] - begun.mono_ns + GRACE_NS
            if slept < begun.delay_ms * _MS:
                add("C5", "the wait was cut short", f"{begun.delay_ms} ms", f"{slept // _MS} ms")
        return begun

    def resume(self, record: dict[str, Any]) -> None:
        """A new process: what was in flight is in doubt, and may run again under its key.

        What was spent and told of by no event yet may still be told, or the effect is asked for again. The time that is
        left is what the record says.
        """
        self._keys -= {effect.tool_use_id for effect in self.running.values() if effect.tool_use_id}
        self._former = frozenset(self._keys)
        self.running.clear()
        self._owned = len(self._verdicts)
        self._lost += self._parts
        self._settle()
        left = record.get("deadline_ms")
        self._deadline = None if left is None else record["mono_ns"] + left * _MS
        self._epoch = record["epoch"]
        self._reads = record.get("reads")

    def _begin_request(self) -> None:
        self._verdicts.clear()
        self._owned = 0
        self.begun = 0
        self.unfinished = True

    def _begin_tool(self, record: dict[str, Any]) -> None:
        add, name, access = self._findings.add, record["tool_use_id"], record["access"]
        if access not in _ACCESSES:
            add("T5", "a tool neither reads nor writes", " or ".join(_ACCESSES), access)
        if access == "read" and self._reads is not None and record["name"] not in self._reads:
            add("T5", "a tool that writes is said to read", "write", access)
        tools = [effect.access for effect in self.running.values() if effect.kind == "tool"]
        if tools and (access != "read" or "read" not in tools or len(set(tools)) > 1):
            add(
                "T5",
                "a write overlaps another tool",
                "nothing else in flight",
                f"{access} beside {', '.join(map(str, tools))}",
            )
        elif len(tools) >= self._parallel:
            add("T5", "too many tools run at once", f"at most {self._parallel}", len(tools) + 1)
        if record["idempotency_key"] != f"{self._run}:{name}":
            add(
                "E4",
                "the idempotency key is not the run's and the call's",
                f"{self._run}:{name}",
                record["idempotency_key"],
            )
        elif name in self._former:
            add("R2", "a call that had ended is carried out again", "no second time", record["idempotency_key"])
        elif name in self._keys:
            add("E4", "a call is carried out a second time", "each key once", record["idempotency_key"])
        self._keys.add(name)
        self.begun += 1

    def _begin_sleep(self, delay: int) -> None:
        if self._delay and delay != self._delay[0]:
            self._findings.add("C5", "the wait is not what the move said", self._delay[0], delay)

    def _begin_hook(self, record: dict[str, Any], state: str) -> None:
        add, point, name = self._findings.add, record["point"], record["name"]
        if type(name) is not str or not name:
            add("I4", "the hook has no name", "a text", name)
        states = _POINTS.get(point)
        if states is None:
            add("I4", "there is no such point at which hooks are asked", ", ".join(_POINTS), point)
        elif state not in states:
            add("E2", f"a hook of the point {point} begins in {state}", ", ".join(sorted(states)), state)

    def _end_hook(self, begun: Running, record: dict[str, Any]) -> None:
        """Stop hooks say why the run goes on or halts, and what is asked before tools why it denies a call."""
        outcome: str = record["outcome"]
        if type(outcome) is not str or not outcome:
            self._findings.add("I4", "the hook has not said anything", "what it returned or raised", outcome)
        if begun.point == "stop":
            self._verdicts.append((begun.name, outcome))
        reason, size = record.get("reason"), record.get("bytes", 0)
        denial = begun.point == _BEFORE_TOOL and outcome == "Deny" and "reason" in record
        if denial or (begun.point == "stop" and outcome in _SAYING_WHY):
            right = type(reason) is str and len(reason) == 64 and set(reason) <= _HEX
            right, wanted = right and type(size) is int and size > 0, "a commitment, and the size of what it is to"
        else:
            right, wanted = reason is None and type(size) is int and size == 0, "no reason"
        if not right:
            self._findings.add("I4", f"the reason of the hook is not that of {outcome}", wanted, (reason, size))
        for field, (point, said) in _OF_VERDICTS.items():
            if field in record and (begun.point, outcome) != (point, said):
                self._findings.add("I4", f"{field} is no word of this hook", f"{point}: {said}", (begun.point, outcome))

    # --- moves

    def move(self, event: str, source: str, target: str, fields: dict[str, Any]) -> None:
        """A move was made: nothing may be left behind that the new state has no place for."""
        if self._delay or "delay_ms" in fields:
            self._delay = (fields["delay_ms"],) if "delay_ms" in fields else ()
        if target == _STREAM != source:
            self.begun, self.unfinished = 0, False
        if event in _SAID:
            self._check_verdict(event, fields)
        if "cost_micro_usd" in fields:
            self._check_spent(fields)
        elif target in _FINAL:
            self._settle()
        if self.running and target != source:
            self._check_left(source, target)

    def check_begun(self, event: str, source: str, told: int, answer: Answers) -> None:
        """How many calls an answer had begun: all, and of an answer that is whole nothing is left to resume."""
        add = self._findings.add
        if event == "RunResumed" and (not self.unfinished or source != _STREAM):
            if told:
                add("M13", "no answer is unfinished of which calls had begun", 0, told)
        elif told < self.begun:
            add("M13", "more calls had begun than the event says", f"at least {self.begun}", told)
        elif told > self.begun and event != "RunResumed" and told > (most := answer.calls):
            add("M13", "fewer calls are in the answer than had begun", f"at most {most}", told)

    def check_deadline(self, mono_ns: int) -> None:
        """The deadline has passed."""
        if self._deadline is None or mono_ns < self._deadline - GRACE_NS:
            wanted = "no deadline" if self._deadline is None else f"from {self._deadline} ns on"
            self._findings.add("C6", "the deadline is said to have passed", wanted, mono_ns)

    def _check_verdict(self, event: str, fields: dict[str, Any]) -> None:
        """The stop hooks were asked: the first that did not pass is the last that was asked, and decides."""
        if event == _PASSED:
            told, wanted = [one for one in self._verdicts[self._owned :] if one[1] != "Pass"], []
        else:
            told, wanted = self._verdicts[-1:], [(fields["hook"], _SAID[event])]
        if told != wanted:
            self._findings.add("M13", f"the stop hooks did not say what {event} tells", wanted, told)
        self._verdicts.clear()
        self._owned = 0

    def _check_left(self, source: str, target: str) -> None:
        for seq, effect in self.running.items():
            stays = effect.kind == _BESIDE or (
                effect.with_tools and target in _TOOLS_MAY_RUN and source != State.ORCHESTRATE
            )
            if not stays:
                found = f"the {effect.kind} of record {seq} is in flight"
                self._findings.add(
                    "E2", f"{source} is left for {target} with work in flight", "nothing in flight", found
                )

    def _check_spent(self, fields: dict[str, Any]) -> None:
        if totals_of(fields) != totals_of(self.spent):
            told = {name: fields[name] for name in TOTALS}
            if not self._is_spent_with_lost(told):
                self._findings.add("C4", "the tokens of the event are not those of its calls", self.spent, told)
        self._settle()
        if self._lost:
            self._lost = []

    def _settle(self) -> None:
        """What was spent until now is told, or will not be."""
        if self._parts:
            self.spent, self._parts = dict.fromkeys(TOTALS, 0), []

    def _is_spent_with_lost(self, told: dict[str, int]) -> bool:
        """Whether the event tells of its own calls, and of some of those that a process died with."""
        sums = {tuple(self.spent.values())}
        for part in self._lost[-MOST_LOST:]:
            cost = [part.get(name, 0) for name in TOTALS]
            sums |= {tuple(min(a + b, MAX_INT) for a, b in zip(one, cost, strict=True)) for one in sums}
        return tuple(told.values()) in sums
