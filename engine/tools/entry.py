"""A call in the scheduler's hands."""

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import attrs

from looplatch.tools.calls import Asked, Call, Denial, Outcome
from looplatch.tools.context import AbortSignal
from looplatch.tools.order import Access

__all__ = ["CallBroken", "Entry", "Permit", "Start"]

Start = Callable[[Call, AbortSignal], Coroutine[Any, Any, Outcome | Asked | None]]
"""Carries a call out, ending early when the signal is set.

`Asked`: it waits for someone's word, and is not over. None: it has not begun, since the scheduler holds. May raise
`CallBroken`.
"""

Permit = Callable[[Call], Awaitable[Call | Denial | Asked]]
"""Whether a call may run: the call itself, the call with another input, a denial, or a question to someone."""


class CallBroken(Exception):
    """What went on around a call raised `fault`, after the call had ended as `outcome` says."""

    def __init__(self, outcome: Outcome, fault: BaseException) -> None:
        super().__init__()
        self.outcome = outcome
        self.fault = fault


@attrs.define(eq=False)
class Entry:
    """A call and how far it is: waiting, running (permission or `start`), begun (`start` was called), or ended.

    `moved_on`: the model has. `permitted`: it may run. `awaited`: someone's approval is awaited.
    """

    call: Call
    moved_on: bool
    abort: AbortSignal = attrs.field(factory=AbortSignal)
    running: bool = False
    permitted: bool = False
    awaited: bool = False
    begun: bool = False
    outcome: Outcome | None = None

    @property
    def access(self) -> Access:
        """How it may run."""
        return self.call.access

    @property
    def decided(self) -> bool:
        """Whether it is certain that the model made the call."""
        return self.moved_on or not self.call.undecided

    @property
    def ready(self) -> bool:
        """Whether it may start as far as the model and its permission go."""
        if self.awaited or self.running:
            return False
        return self.decided if self.call.access is Access.READ else self.moved_on
