"""The result of a run: what it came to, in the words of the Agent SDK."""

from looplatch.audit import Log
from looplatch.driver import Driver
from looplatch.messages import SUBTYPES, ResultMessage, Subtype
from looplatch.pricing import cost_usd


def result_of(driver: Driver) -> ResultMessage:
    """The result of a run that has ended."""
    context, performer, terminal = driver.context, driver.performer, driver.terminal
    if terminal is None and performer.suspended:
        subtype = Subtype.SUSPENDED
    else:
        subtype = Subtype.ERROR_DURING_EXECUTION if terminal is None else SUBTYPES[terminal]
    totals = driver.at.budget.totals
    is_error = subtype not in (Subtype.SUCCESS, Subtype.SUSPENDED)
    return ResultMessage(
        subtype=subtype,
        is_error=is_error,
        num_turns=context.turn,
        total_cost_usd=cost_usd(driver.at.plan.pricer, driver.at.plan.parts.model, totals["cost_micro_usd"]),
        usage={
            "input_tokens": totals["input_tokens"],
            "output_tokens": totals["output_tokens"],
            "cache_read_input_tokens": totals["cache_read_tokens"],
            "cache_creation_input_tokens": totals["cache_write_tokens"],
        },
        result=performer.text,
        session_id=driver.at.journal.log.run,
        terminal=terminal,
        error=performer.error if is_error else None,
        pending=performer.pending,
        unsent=tuple(performer.unsent),
        messages=driver.at.history.messages(),
        log=Log.of(driver.at.journal.log),
    )
