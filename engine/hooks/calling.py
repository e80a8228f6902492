"""Hooks, called on a leash: whatever they do, the run can end."""

import asyncio
import copy
import inspect
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from looplatch.hooks import ToolOutcomeContext
from looplatch.hooks.points import hook_name
from looplatch.ports import Clock
from looplatch.states.errors import HookCancelled, HookMisbehaved
from looplatch.states.record import Record
from looplatch.tools import AbortSignal, Outcome
from looplatch.tools.leash import leashed


def context_of(outcome: Outcome, run: str, turn: int) -> ToolOutcomeContext:
    """What a hook is told of a call that has ended; it is the hook's own, whatever it does with it."""
    call = outcome.call
    return ToolOutcomeContext(
        run_id=run,
        turn=turn,
        tool_use_id=call.id,
        name=call.name,
        input=copy.deepcopy(call.input),
        cause=str(outcome.cause),
        content=copy.deepcopy(outcome.content),
        is_error=outcome.is_error,
    )


class HookLeft(Exception):
    """The hook was asked to end, and is not waited for any more."""


def begun(hook: Callable[[Any], Awaitable[Any]], about: object) -> Awaitable[Any]:
    """What is to be awaited of a hook. Raises HookMisbehaved where that is nothing, and what the hook raises."""
    awaited: object = hook(about)
    if not inspect.isawaitable(awaited):
        raise HookMisbehaved(hook_name(hook), awaited, "an awaitable: make it an async function")
    return awaited


def show_move(hook: Callable[[Record], object], record: Record) -> None:
    """Show the record of a move to `Hooks.on_transition`; raises what that raises.

    Raises HookMisbehaved where it wants to be awaited, HookCancelled where it raises CancelledError.
    """
    try:
        shown = hook(record)
    except asyncio.CancelledError as error:  # its own: nobody can be cancelled while nothing is awaited
        raise HookCancelled(hook_name(hook)) from error
    if inspect.isawaitable(shown):
        if inspect.iscoroutine(shown):
            shown.close()
        raise HookMisbehaved(hook_name(hook), shown, "at once: it is no async function")


async def call_hook(
    hook: Callable[[Any], Awaitable[Any]], about: object, *, clock: Clock, abort: AbortSignal | None = None
) -> Any:
    """What the hook returns; raises what it raises, and HookCancelled for a cancellation of its own.

    When the caller is cancelled, or `abort` is set (HookLeft is raised then), the hook is cancelled, and abandoned if
    it has not ended within the grace that tools have.
    """
    ending = await leashed(
        partial(begun, hook, about),
        abort=abort or AbortSignal(),
        timer=clock.call_later,
        name=f"hook {hook_name(hook)}",
    )
    if ending.cancelled is not None:
        raise ending.cancelled
    if ending.stop is not None:
        raise HookLeft
    if isinstance(ending.error, asyncio.CancelledError):
        raise HookCancelled(hook_name(hook)) from ending.error
    if ending.error is not None:
        raise ending.error
    return ending.value
