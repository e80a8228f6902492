"""The base of every error that looplatch raises, and those that more than one of its parts raise.

One base, leaves that say whose fault it is, and fields beside the text, so that a program can act on what a person
reads. An exception that is not one of these, raised by looplatch, is a bug in looplatch.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from looplatch.states.brief import brief


class LooplatchError(Exception):
    """The base of all errors of looplatch. It can be pickled where its fields can."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _without_init, (type(self), self.args), self.__dict__


def _without_init(kind: type[LooplatchError], args: tuple[object, ...]) -> LooplatchError:
    """An error with this text; its fields are set by whoever asked for it. `__init__` takes other arguments."""
    return kind.__new__(kind, *args)


class UsageError(LooplatchError):
    """The caller asked for something that cannot be done, and none of it was begun: nothing was sent or written for it.

    `what` names the argument or setting, `problem` says what is wrong with it, `mend` says what to do.
    """

    def __init__(self, what: str, problem: str, mend: str) -> None:
        super().__init__(f"{what}: {problem}. {mend}")
        self.what = what
        self.problem = problem
        self.mend = mend


class HookMisbehaved(LooplatchError, TypeError):
    """A hook gave something that it may not give; the run has ended as `internal_error`.

    `hook` is its name, `returned` what it gave, `allowed` says what it may give.
    """

    def __init__(self, hook: str, returned: object, allowed: str) -> None:
        super().__init__(f"the hook {hook} returned {brief(returned)}. It must return {allowed}")
        self.hook = hook
        self.returned = returned
        self.allowed = allowed


class HookCancelled(LooplatchError, RuntimeError):
    """A hook cancelled itself, though nobody had cancelled the run; that has ended as `internal_error`.

    `hook` is its name.
    """

    def __init__(self, hook: str) -> None:
        super().__init__(
            f"the hook {hook} was cancelled from inside: it raised CancelledError, and the run was not cancelled. "
            "Catch it in the hook, or raise an error of its own"
        )
        self.hook = hook


class TableError(LooplatchError):
    """A transition table breaks a rule; `faults` lists every one found."""

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__("the table is not valid:\n" + "\n".join(f"  - {fault}" for fault in faults))
        self.faults = tuple(faults)


class RefusedEvent(LooplatchError):
    """An event that the machine did not accept; the state, the context and the history are unchanged."""

    def __init__(self, text: str, state: str, event: str, verdicts: Mapping[str, bool], legal: Sequence[str]) -> None:
        super().__init__(text)
        self.state = state
        self.event = event
        self.verdicts = dict(verdicts)
        self.legal = tuple(legal)


class IllegalTransition(RefusedEvent):
    """No row of the table leads from this state by this event; `legal` names the events that are legal there."""

    def __init__(self, state: str, event: str, legal: Sequence[str]) -> None:
        allowed = ", ".join(legal) or "none: the state is final"
        super().__init__(
            f"no transition from {state} by {event}; legal events there: {allowed}", state, event, {}, legal
        )


class NoGuardPassed(RefusedEvent):
    """The event is legal in this state, but the guards did not single out one row; `verdicts` has their answers."""

    def __init__(self, state: str, event: str, verdicts: Mapping[str, bool], legal: Sequence[str]) -> None:
        asked = ", ".join(f"{name}={verdict}" for name, verdict in verdicts.items())
        super().__init__(
            f"in {state}, {event} needs exactly one guard to hold, but: {asked}; "
            f"check the fields of the event, or the guards of the table (legal events there: {', '.join(legal)})",
            state,
            event,
            verdicts,
            legal,
        )
