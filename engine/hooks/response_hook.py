"""The hook that is shown each whole answer."""

from looplatch.answering.answer import Answer
from looplatch.hooks import ResponseContext
from looplatch.hooks.calling import call_hook
from looplatch.hooks.points import hook_name
from looplatch.states.context import Context
from looplatch.workplace import Workplace


async def show_response(at: Workplace, context: Context, answer: Answer) -> None:
    """Show the answer to the hook, if there is one. Raises what the hook raises."""
    hook = at.plan.hooks.after_response
    if hook is None or answer.shown:
        return
    begin = at.journal.hook_begins("after_response", hook_name(hook))
    try:
        about = ResponseContext(
            run_id=at.journal.log.run,
            turn=context.turn,
            stop_reason=answer.stop_reason,
            content=answer.content(),
            usage=answer.usage(),
        )
        await call_hook(hook, about, clock=at.plan.clock)
    except BaseException as error:
        at.journal.ends(begin, type(error).__name__)
        raise
    at.journal.ends(begin, "ok")
