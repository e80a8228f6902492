"""Hooks, called on a leash: whatever they do, the run can end."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from looplatch.hooks import hook_name
from looplatch.ports import Clock
from looplatch.tools import AbortSignal
from looplatch.tools.leash import leashed


class HookLeft(Exception):
    """The hook was asked to end, and is not waited for any more."""


async def call_hook(
    hook: Callable[[Any], Awaitable[Any]], about: object, *, clock: Clock, abort: AbortSignal | None = None
) -> Any:
    """What the hook returns; raises what it raises.

    When the caller is cancelled, or `abort` is set (HookLeft is raised then), the hook is cancelled, and abandoned if
    it has not ended within the grace that tools have.
    """
    ending = await leashed(
        partial(hook, about), abort=abort or AbortSignal(), timer=clock.call_later, name=f"hook {hook_name(hook)}"
    )
    if ending.cancelled is not None:
        raise ending.cancelled
    if ending.stop is not None:
        raise HookLeft
    if ending.error is not None:
        raise ending.error
    return ending.value
