"""Legality: every move a row of the table, every guard asked again, and the context folded from the rows."""

from operator import itemgetter
from typing import Any, Final

from looplatch.states.counted import counted
from looplatch.states.decisions import Decisions
from looplatch.states.limits import Limits
from looplatch.states.reasons import Continue
from looplatch.states.state import State
from looplatch.states.trouble import TroubleKind
from looplatch.states.verify.change import Change, take
from looplatch.states.verify.findings import Findings
from looplatch.states.verify.plan import SAID, Alternatives, EventPlan, Fact, Plan, RowPlan, is_circle
from looplatch.states.verify.values import is_list, is_object

_PREPARE, _DECIDE, _RECOVER = str(State.PREPARE), str(State.DECIDE), str(State.RECOVER)
_DECIDING: Final = frozenset({"ToolsRequested", "TurnPaused", "OutputTruncated", "ContextExceeded", "Refused",
                              "AnswerGiven", "StopReasonUnknown"})  # fmt: skip

_said_of: Final = itemgetter(*SAID)
_NOTHING: Final = frozenset[str]()
_CONTINUED: Final = str(Continue.TOKEN_BUDGET_CONTINUATION)
_TOLD: Final[dict[TroubleKind, tuple[str, ...]]] = {  # what `TroubleNamed` tells of each trouble
    TroubleKind.TRUNCATED: ("trouble", "output_limit"),
    TroubleKind.TRANSIENT: ("trouble", "delay_ms", "fallback"),
    TroubleKind.HOOK_BLOCKED: ("trouble", "new_tokens"),
    TroubleKind.TARGET_UNMET: ("trouble", "new_tokens"),
    TroubleKind.OVERFLOW: ("trouble", "staged", "can_summarise", "breaker_cooled"),
    TroubleKind.FATAL: ("trouble",),
    TroubleKind.REFUSED: ("trouble",),
}


class Moves:
    """Follows a run from move to move. Where a record is wrong it is noted and then believed, so that one fault is one
    finding and not a hundred."""

    def __init__(self, plan: Plan, findings: Findings) -> None:
        self.state = plan.initial
        self.context = plan.fold(Limits())
        self.started = False
        self.ended = False
        self.lost = False  # in a state that there is not: no further move can be judged
        self.paused = False
        self.external = False  # the last event came from outside the loop
        self.terminal: str | None = None
        self.awaited: frozenset[str] | None = _NOTHING  # None where a wrong record left it open
        self.response: dict[str, Any] | None = None  # the fields of the last ModelResponded
        self._open = _NOTHING  # the events that may follow, of which nothing else is to be asked than their row
        self._fact = Fact({})
        self._plan = plan
        self._findings = findings
        self._change = Change(plan, findings)
        self._saved: tuple[str, frozenset[str] | None, dict[str, Any]] | None = None
        self._steps = self._span = 0
        self._outputs = 0  # output tokens at the last continuation towards the target

    def begin(self, limits: dict[str, Any]) -> None:
        """Take the run's limits from its genesis. Raises TypeError or UsageError where they are none."""
        self.context = self._plan.fold(_limits(limits))

    def judge_by(self, plan: Plan) -> None:
        """Another table holds from here on."""
        self._plan = plan
        self._change = Change(plan, self._findings)

    @property
    def decisions(self) -> Decisions:
        """What follows an answer, by the table that holds."""
        return self._plan.decisions

    def limit(self, limits: dict[str, Any]) -> None:
        """Other limits hold from here on. Raises TypeError or UsageError where they are none."""
        self.context.limits = _limits(limits)

    # --- transitions

    def move(self, record: dict[str, Any], kind: str | None) -> dict[str, Any] | None:
        """Check a transition; returns the event's fields as guards read them, None where they cannot be judged.

        kind: the common kind that the record was read as, None where it was read as none. Most moves are right: that is
        asked first, all at once, and only of the others what is wrong with them.
        """
        if kind is None:
            return self._move_closely(record, kind)
        source, name = record["source"], record["event"]
        known = self._plan.alternatives.get((source, name))
        if known is None or kind != known.event.kind or source != self.state or name not in self._open:
            return self._move_closely(record, kind)
        event, fields, outcome = known.event, record["fields"], known.constant
        if event.named:
            fields = event.told(fields)
        if outcome is None:
            context, fact = self.context, self._fact
            fact.__dict__ = fields
            outcome = known.outcome(tuple([test(context, fact) for test in known.tests]))
        row = outcome.row
        if row is None or record["guards"] != outcome.pairs or _said_of(record) != row.says:
            return self._move_closely(record, kind)
        if name in _DECIDING and source == _DECIDE and self.response is not None:
            self._check_decision(name, record["fields"])
        return self._take(record, event, row, fields)

    def _move_closely(self, record: dict[str, Any], kind: str | None) -> dict[str, Any] | None:
        """Check a transition of which it is not known that it is right."""
        if self.lost:
            return None
        source, name, target = record["source"], record["event"], record["target"]
        if (self.ended or not self.started or source != self.state or target not in self._plan.states) and (
            not self._stands(source, target)
        ):
            return None
        known = self._plan.alternatives.get((source, name))
        self.state = target
        if known is None or target not in known.targets:
            legal = sorted(event for state, event in self._plan.alternatives if state == source)
            found = f"{source} --{name}--> {target}"
            self._findings.add("M3", "there is no such row in the table", f"an event of {', '.join(legal)}", found)
            return self._believe(record)
        event, given = known.event, record["fields"]
        if source == _DECIDE or not self.started or self.awaited is None or name not in self.awaited:
            self._check_asked(event, source, record)
        fields = event.told(given) if kind is not None and kind == event.kind else event.read(given)
        if fields is None:
            self._findings.add("M5", f"the fields are not those of {name}", f"{name}'s own", given)
            return self._believe(record)
        row = self._row(record, known, target, fields)
        if row is None:
            return self._believe(record)
        self._check_names(record, row, source)
        return self._take(record, event, row, fields)

    def _take(self, record: dict[str, Any], event: EventPlan, row: RowPlan, fields: dict[str, Any]) -> dict[str, Any]:
        """A row was taken."""
        name = event.name
        if name == "TroubleNamed" and record["source"] == _RECOVER:
            self._check_trouble(fields)
        elif name == "StopHooksPassed":
            self._check_new_tokens(name, fields["new_tokens"])
        elif name == "ModelResponded":
            self.response = record["fields"]
        if row.changes or record["change"] != {}:
            self._change.apply(record, row, fields, self.context)
            if row.reason == _CONTINUED:
                self._outputs = vars(self.context)["output_tokens"]
        self.state, self.awaited, self.terminal, self.external = row.target, row.awaited, row.terminal, event.external
        self.ended = row.ends
        self._open = _NOTHING if row.ends else row.awaited
        self.paused = name == "RunPaused"
        self._check_measure(event.external)
        return fields

    def _stands(self, source: str, target: str) -> bool:
        """Whether the move starts where the run stands, and ends in a state that there is."""
        add = self._findings.add
        if self.ended:
            add("M9", "a move after the final state", "nothing", f"{source} -> {target}")
            return False
        if not self.started and source != self._plan.initial:
            add("M1", "the run does not start in the initial state", self._plan.initial, source)
        elif self.started and source != self.state:
            add("M2", "the move does not start where the one before ended", self.state, source)
        for state in (source, target):
            if state not in self._plan.states:
                add("M12", "the table has no such state", ", ".join(sorted(self._plan.states)), state)
                self.lost, self._open = True, _NOTHING
                return False
        return True

    def _check_asked(self, event: EventPlan, source: str, record: dict[str, Any]) -> None:
        """An event of the loop's own must answer what the move before ordered, and the answer's stop reason."""
        add = self._findings.add
        if event.name == "RunStarted" and self.started:
            add("M1", "the run starts twice", "RunStarted once, first", event.name)
        self.started = True
        asked = self.awaited is None or event.external or event.name in self.awaited
        if not asked:
            wanted = ", ".join(sorted(self.awaited or ())) or "an event from outside"
            add("M13" if source == _DECIDE else "M3", "no command in hand brings this event", wanted, event.name)
        elif event.name in _DECIDING and source == _DECIDE and self.response is not None:
            self._check_decision(event.name, record["fields"])

    def _check_decision(self, name: str, fields: dict[str, Any]) -> None:
        assert self.response is not None
        reason, calls = self.response["stop_reason"], len(self.response["calls"])
        wanted = self.decisions.event(reason, calls).__name__
        if name != wanted:
            found = f"{name} after the stop reason {reason} with {counted(calls, 'call')}"
            self._findings.add("M13", "the stop reason and the calls lead to another event", wanted, found)
            return
        told = {"calls": calls, "begun": self.response["begun"], "stop_reason": reason}
        for field, value in fields.items():
            if field in told and value != told[field]:
                self._findings.add("M13", f"{name}.{field} is not what the answer said", told[field], value)

    def _row(self, record: dict[str, Any], known: Alternatives, target: str, fields: dict[str, Any]) -> RowPlan | None:
        """The row that was taken, or None where it cannot be told."""
        verdicts = self._verdicts(record.get("guards"), known, fields)
        if verdicts is None:
            fitting = [row for row in known.rows if row.target == target]
            return fitting[0] if len(fitting) == 1 else None
        if verdicts.count(True) != 1:
            found = [list(pair) for pair in record["guards"]]
            self._findings.add("M6", "not exactly one guard holds", "one true verdict", found)
            return None
        row = known.rows[verdicts.index(True)]
        if row.target != target:
            self._findings.add("M4", "the row taken is not the one whose guard holds", row.target, target)
            return None
        return row

    def _verdicts(self, guards: Any, known: Alternatives, fields: dict[str, Any]) -> list[bool] | None:
        """The recorded verdicts, after comparing them with the guards asked again; None where they are no verdicts."""
        context, fact = self.context, Fact(fields)
        real = [test(context, fact) for test in known.tests]
        wanted = [list(pair) for pair in zip(known.names, real, strict=True)]
        if is_list(guards):
            guards = [list(pair) if pair.__class__ is tuple else pair for pair in guards]
        if guards == wanted and [pair[1].__class__ for pair in guards] == known.bools:
            return real
        add = self._findings.add
        if not is_list(guards) or [pair[0] for pair in guards] != known.names:
            add("M4", "the verdict of every alternative must be there, in row order", wanted, guards)
            return None
        verdicts = [pair[1] for pair in guards]
        if not all(type(verdict) is bool for verdict in verdicts) or any(len(pair) != 2 for pair in guards):
            add("M4", "a verdict is no boolean", wanted, guards)
            return None
        if verdicts != real and verdicts.count(True) == 1:
            add("M5", "the guards, asked again, say something else", wanted, guards)
        return verdicts

    def _check_names(self, record: dict[str, Any], row: RowPlan, source: str) -> None:
        """Reason, strategy and terminal reason are the row's."""
        add = self._findings.add
        reason, strategy, terminal = record["reason"], record["strategy"], record["terminal"]
        if reason != row.reason:
            add("M7", "the reason to go on is not the row's", row.reason, reason)
        if strategy != row.strategy:
            lacking = source == _RECOVER and strategy is None
            add("M8" if lacking else "M7", "the strategy is not the row's", row.strategy, strategy)
        if terminal != row.terminal:
            add("M8" if source == _RECOVER else "M9", "the terminal reason is not the row's", row.terminal, terminal)

    def _check_trouble(self, fields: dict[str, Any]) -> None:
        """The trouble is the one at hand, and no more is said of it than belongs to its kind."""
        trouble = fields["trouble"]
        if trouble != vars(self.context)["trouble"]:
            wanted = vars(self.context)["trouble"]
            self._findings.add("M8", "the trouble named is not the one at hand", str(wanted), str(trouble))
        told = _TOLD[trouble]
        for name, value in fields.items():
            if value and name not in told:
                self._findings.add("M8", f"nothing is to be said of {name} at {trouble}", "nothing", value)
            elif value.__class__ is int and value < 0:
                self._findings.add("M8", f"{name} is below 0", "at least 0", value)
        if "new_tokens" in told:
            self._check_new_tokens("TroubleNamed", fields["new_tokens"])

    def _check_new_tokens(self, event: str, told: int) -> None:
        wanted = vars(self.context)["output_tokens"] - self._outputs
        if told != wanted:
            message = f"{event}.new_tokens is not the output since the last continuation"
            self._findings.add("C4", message, wanted, told)

    def _check_measure(self, external: bool) -> None:
        """By itself a run never stands twice where it stood: Brent's way to see that with one place remembered."""
        if external:
            self._saved, self._steps, self._span = None, 0, 1
            return
        saved, state = self._saved, self.state
        if saved is not None and saved[:2] == (state, self.awaited) and is_circle(saved[2], vars(self.context)):
            self._findings.add("C3", "the run goes in a circle: no counter rose", "a counter that rises", state)
        self._steps += 1
        if self._steps >= self._span:
            self._saved = (state, self.awaited, vars(self.context).copy())
            self._steps, self._span = 0, 2 * self._span or 1

    def _believe(self, record: dict[str, Any]) -> dict[str, Any] | None:
        """Go on from what a wrong record says."""
        self.awaited, self._open = None, _NOTHING
        self.started = True
        self.ended = self.state in self._plan.final
        self.terminal = record.get("terminal")
        change = record.get("change")
        if is_object(change):
            own = vars(self.context)
            for name, value in change.items():
                take(name, value, own)
        return None

    # --- rejected events

    def reject(self, record: dict[str, Any]) -> None:
        """Check a refused event: nothing moves, and the verdicts are those of the guards."""
        if self.lost:
            return
        add, state = self._findings.add, self.state
        if (record["source"], record["target"]) != (state, state):
            add(
                "M10",
                "a refused event moves nothing",
                f"{state} -> {state}",
                f"{record['source']} -> {record['target']}",
            )
        for name in ("reason", "strategy", "terminal"):
            if record[name] is not None:
                add("M10", f"a refused event has no {name}", None, record[name])
        if record["change"] != {}:
            add("M10", "a refused event changes nothing", {}, record["change"])
        event = self._plan.events.get(record["event"])
        known = self._plan.alternatives.get((state, record["event"]))
        fields = None if event is None else event.read(record["fields"])
        if event is None or known is None:
            if record["guards"] != []:
                add("M4", "the event has no row here, so no guard was asked", [], record["guards"])
        elif fields is not None:
            self._verdicts(record["guards"], known, fields)


def _limits(told: dict[str, Any]) -> Limits:
    """The limits that a record holds: each of them, and as they are written."""
    limits = Limits.read(told)
    wanted = limits.fields()
    if (
        not is_object(told)
        or told != wanted
        or any(told[name].__class__ is not wanted[name].__class__ for name in told)
    ):
        raise TypeError(f"the limits are {wanted}")
    return limits
