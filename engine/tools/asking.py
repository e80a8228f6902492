"""Asking whether a call may run, in such a way that the question can be left."""

import asyncio
from functools import partial

from looplatch.states.errors import HookCancelled, HookMisbehaved
from looplatch.tools.calls import Asked, Call, Denial
from looplatch.tools.context import AbortSignal
from looplatch.tools.entry import Permit
from looplatch.tools.leash import Timer, leashed

__all__ = ["ask"]


async def ask(
    permit: Permit, asked: Call, *, abort: AbortSignal, grace_s: float, timer: Timer | None
) -> Call | Denial | Asked | None:
    """The verdict on a call; None when it was called off before there was one.

    Raises what `permit` raises, and HookMisbehaved when its answer is none.
    """
    ending = await leashed(partial(permit, asked), abort=abort, grace_s=grace_s, timer=timer, name=f"permit {asked.id}")
    if ending.cancelled is not None:
        raise ending.cancelled
    if ending.stop is not None:
        return None
    match ending.value:
        case (Denial() | Asked()) as verdict if ending.finished:
            return verdict
        case Call(id=asked.id, name=asked.name, index=asked.index) as call:
            return call
        case _ if ending.finished:
            raise HookMisbehaved(f"permission for {asked.id}", ending.value, "the call, a Denial or Asked")
        case _ if isinstance(ending.error, asyncio.CancelledError):
            raise HookCancelled(f"permission for {asked.id}") from ending.error
        case _:
            raise ending.error or RuntimeError("the permission hook did not end")
