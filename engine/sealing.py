"""The end of a run: its tools, its history, its last move and its seal."""

import contextlib

from looplatch.audit import AuditError
from looplatch.driver import Driver
from looplatch.messages import SystemMessage
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
