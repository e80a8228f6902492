"""The stop hooks of a run, asked in order when the model is done."""

from collections.abc import Sequence
from typing import Any, cast

import attrs

from looplatch.hooks import Block, Halt, Pass, StopContext, StopHook
from looplatch.hooks.calling import call_hook
from looplatch.hooks.points import hook_name
from looplatch.states import events as on
from looplatch.states.context import Context
from looplatch.states.errors import HookMisbehaved
from looplatch.states.event import Event
from looplatch.workplace import Workplace


@attrs.frozen(kw_only=True)
class StopDecision:
    """What the stop hooks said: the event that follows, the reason they gave, and both in words."""

    event: Event
    reason: str = ""
    message: str | None = None


Said = Pass | Block | Halt


async def ask_stop_hooks(
    at: Workplace, context: Context, text: str, new_tokens: int, said: Sequence[tuple[str, Said]] = ()
) -> StopDecision:
    """Ask the hooks; the first that does not pass decides. Raises what a hook raises.

    said: what the first of them said to an earlier process, with their names: they are not asked again.
    """
    for place, hook in enumerate(at.plan.hooks.stop):
        name = hook_name(hook)
        known = said[place][1] if place < len(said) and said[place][0] == at.journal.names.of(name) else None
        match known or await _ask(at, hook, name, context, text):
            case Pass():
                pass
            case Block(reason=reason):
                message = f"the stop hook {name} blocked: {reason}"
                return StopDecision(event=on.StopHooksBlocked(hook=name), reason=reason, message=message)
            case Halt(reason=reason):
                message = f"the stop hook {name} halted the run: {reason}"
                return StopDecision(event=on.StopHooksHalted(hook=name), reason=reason, message=message)
    return StopDecision(event=on.StopHooksPassed(new_tokens=new_tokens))


async def _ask(at: Workplace, hook: StopHook, name: str, context: Context, text: str) -> Said:
    begin = at.journal.hook_begins("stop", name)
    about = StopContext(
        run_id=at.journal.log.run,
        turn=context.turn,
        text=text,
        stop_hook_active=context.blocks > 0,
        messages=at.history.messages,
    )
    try:
        verdict: Any = await call_hook(hook, about, clock=at.plan.clock)
        if not isinstance(cast("object", verdict), Said):
            raise HookMisbehaved(name, verdict, "Pass, Block or Halt")
    except BaseException as error:
        at.journal.ends(begin, type(error).__name__)
        raise
    reason = None if isinstance(verdict, Pass) else at.journal.keep_value(verdict.reason)
    more = {"reason": None if reason is None else reason.hex, "bytes": 0 if reason is None else reason.size}
    at.journal.ends(begin, type(verdict).__name__, more)
    return cast("Said", verdict)
