"""The end of a run: its seal, and its result."""

import contextlib

from looplatch.audit import AuditError, Log
from looplatch.driver import Driver
from looplatch.messages import SUBTYPES, ResultMessage, Subtype, SystemMessage
from looplatch.pricing import cost_usd
from looplatch.states.event import Event


async def finish(driver: Driver, event: Event | None) -> None:
    """End the run by `event` unless it has ended by itself, seal its log (unless it is suspended) and close it.

    Raises what stood in the way; the log is closed even then. A log that has failed before is only closed.
    """
    log = driver.at.journal.log
    try:
        await driver.performer.noting.end()
        try:
            if event is not None and driver.terminal is None:
                await driver.end(event)
        finally:
            await _close_tools(driver)
            if driver.terminal is not None:
                log.finish(driver.state, driver.terminal, driver.at.history.sent)
            if driver.terminal is not None or driver.performer.suspended:
                await log.sync()
    except BaseException:
        with contextlib.suppress(AuditError):
            log.close()
        raise
    log.close()


async def _close_tools(driver: Driver) -> None:
    """End what the tools hold for this run; what goes wrong there is told, and changes nothing else."""
    at = driver.at
    for error in await at.plan.toolbox.close(at.journal.log.run, timer=at.plan.clock.call_later):
        at.outbox.push(SystemMessage(subtype="error", data={"error": f"{type(error).__name__}: {error}"}))


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
