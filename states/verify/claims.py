"""What a new owner of a run takes over and changes, and who gave a call another input than the model's."""

from collections.abc import Collection
from typing import Any, Final

from looplatch.states.verify.findings import Findings
from looplatch.states.verify.values import is_list, is_object

_SETTINGS: Final = ("model", "system", "tools", "params", "limits", "table", "signed_by")
_OPTIONAL: Final = ("signed_by",)
_CLAIM: Final[dict[str, tuple[type, ...]]] = {
    "library": (str,),
    "sdk": (str,),
    "durability": (str,),
    "deadline_ms": (int, type(None)),
    "lost": (dict,),
    "changes": (dict,),
    "approvals": (list,),
}


_TEXT: Final = (str,)
_GENESIS: Final[dict[str, tuple[type, ...]]] = {
    "library": _TEXT,
    "sdk": _TEXT,
    "model": _TEXT,
    "system": (str, type(None)),
    "tools": _TEXT,
    "params": _TEXT,
    "durability": _TEXT,
    "payloads": _TEXT,
}
_PARENT: Final = {"run": str, "seq": int, "hash": str}


def check_genesis(findings: Findings, genesis: dict[str, Any]) -> None:
    """What the genesis says that the run is made of, and whose child it is."""
    wrong = [name for name, types in _GENESIS.items() if genesis.get(name, ...).__class__ not in types]
    if wrong:
        findings.add("I4", "the genesis does not say what it must", ", ".join(_GENESIS), f"without {', '.join(wrong)}")
    parent = genesis["parent"]
    if parent is not None and (
        not is_object(parent) or {name: value.__class__ for name, value in parent.items()} != _PARENT
    ):
        findings.add("P4", "the genesis does not name the parent", "its run, seq and hash", parent)


OF_CLAIMS: Final = frozenset(("RunResumed", "BudgetWithdrawn"))
"""Moves that not every run may make, nor at any time."""


class Claims:
    """Follows who owns the run: after each `resumed` record it must be taken up, before anything else is done."""

    def __init__(self, findings: Findings, genesis: dict[str, Any]) -> None:
        self._findings = findings
        self._settings = {name: genesis.get(name) if name in _OPTIONAL else genesis[name] for name in _SETTINGS}
        self._claimed = False
        self._is_inside = genesis.get("parent") is not None

    def claim(self, record: dict[str, Any]) -> None:
        """A new process owns the run; the changes that it was told to accept start from what the run had."""
        add = self._findings.add
        wrong = [name for name, types in _CLAIM.items() if record.get(name, ...).__class__ not in types]
        if wrong:
            add("R3", "the claim does not say what it must", ", ".join(_CLAIM), f"without {', '.join(wrong)}")
        self._claimed = True
        changes = record.get("changes")
        for name, change in changes.items() if is_object(changes) else ():
            if name not in self._settings or not is_object(change) or set(change) != {"was", "now"}:
                add("I6", "the change is none of a setting", ", ".join(_SETTINGS), {name: change})
                continue
            if name != "table" and change["was"] != self._settings[name]:  # of the table the chain is asked
                add("I6", f"the {name} that was changed is not the run's", self._settings[name], change["was"])
            self._settings[name] = change["now"]

    def move(self, event: str, *, paused: bool) -> None:
        """A move: the first one of a new owner takes the run up, and no other does, but for the end of a pause.

        Only of a run that answers a call of another one the budget can be withdrawn.
        """
        if event == "BudgetWithdrawn" and not self._is_inside:
            self._findings.add("P4", "the budget was withdrawn, and the run is nobody's", "a parent", event)
        if self._claimed and event != "RunResumed":
            self._findings.add("R3", "the run was claimed, and not taken up", "RunResumed", event)
        elif event == "RunResumed" and not self._claimed and not paused:
            self._findings.add("R3", "the run is taken up, and nobody has claimed it", "a resumed record", event)
        self._claimed = False

    def check_taken_up(self, effect: str) -> None:
        """An effect begins, or ends."""
        if self._claimed:
            self._findings.add("R3", "the run was claimed, and not taken up", "RunResumed", f"a {effect} effect")
            self._claimed = False


_VERDICTS: Final = ("Allow", "Deny", "Ask")


class Edits:
    """Who may have put another input in the place of the model's: the hook, someone who approved, a former process."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._allowed = 0  # times that the hook said yes, and no edit is known to be its
        self._asks = False  # the present process has a hook that is asked
        self._may_begin = 0  # calls that it has allowed, and that have not begun
        self._denied = False  # it has denied a call of the answer
        self._said: dict[str, dict[str, Any]] = {}  # what it said of which call, where that is on record
        self._given: set[str] = set()  # calls that were approved while the run was awake
        self._inputs: dict[str, str | None] = {}  # what those had that were approved when the run was resumed
        self._known: dict[str, str | None] = {}  # what a call had when it began before
        self._begun: set[str] = set()  # calls that the present process has begun

    def ask(self) -> None:
        """Another request is sent."""
        self._allowed = self._may_begin = 0
        self._known.clear()
        self._begun.clear()
        self._said.clear()
        self._denied = False

    def ask_hook(self) -> None:
        """The hook is asked before a tool begins."""
        self._asks = True

    def end_hook(self, call: str | None, record: dict[str, Any]) -> None:
        """It has said what it said."""
        outcome = record["outcome"]
        if call is not None:
            if outcome in _VERDICTS:
                if call in self._said:
                    message = f"the hook has said its word on {call}, and says another"
                    self._findings.add("T7", message, self._said[call]["outcome"], outcome)
                elif call in self._begun:
                    message = f"{call} is carried out, and the hook is asked afterwards"
                    self._findings.add("T7", message, "a verdict before", outcome)
                self._said[call] = record
        elif outcome == "Allow":
            self._allowed += 1
            self._may_begin += 1
        elif outcome == "Deny":
            self._denied = True

    def denied(self, call: str) -> bool:
        """Whether it has denied this call, and the run with it."""
        said = self._said.get(call)
        return self._denied if said is None else said["outcome"] == "Deny" and said.get("interrupt") is True

    def go_on(self, calls: Collection[str]) -> None:
        """The run goes on with the results of these calls."""
        for call in calls:
            if call in self._said and self.denied(call):
                self._findings.add("T7", "the hook has denied a call with the run, which goes on", "RunDenied", call)

    def approve(self, calls: list[str]) -> None:
        """Someone has decided on calls that waited."""
        self._given.update(calls)

    def claim(self, record: dict[str, Any]) -> None:
        """A new owner brings decisions along."""
        self._asks, self._may_begin = False, 0
        self._begun.clear()
        approvals = record.get("approvals")
        for approval in approvals if is_list(approvals) else ():
            self._inputs[approval["call"]] = approval.get("input")

    def begin(self, name: str, edited: str | None) -> None:
        """A tool begins, with an input that was edited or with the model's own."""
        if name in self._known:
            wanted, right = self._known[name], edited == self._known[name]
        elif name in self._inputs:
            wanted, right = self._inputs[name], edited == self._inputs[name]
        elif name in self._said:
            said = self._said[name]
            given = name in self._given  # somebody has decided meanwhile
            wanted, right = said.get("edited"), given or edited == said.get("edited")
            if not given and said["outcome"] != "Allow":
                message = f"{name} is carried out, and the hook has not allowed it"
                self._findings.add("T7", message, "Allow", said["outcome"])
        else:
            wanted, right = None, edited is None or name in self._given or self._allowed > 0
            self._allowed -= edited is not None and name not in self._given
            if self._asks and name not in self._given:
                self._may_begin -= 1
                if self._may_begin < 0 and right:
                    self._findings.add("T7", f"{name} is carried out, and the hook has not allowed it", "Allow", None)
        self._known[name] = edited
        self._begun.add(name)
        if not right:
            self._findings.add("T8", f"the input of {name} is edited, and nobody edited it so", wanted, edited)
