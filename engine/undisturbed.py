"""Waiting for work that has to be done to its end, whoever cancels those who wait for it."""

import asyncio
from typing import TypeVar

T = TypeVar("T")


async def undisturbed(work: "asyncio.Future[T]") -> T:
    """Wait for the end of `work`, whoever cancels the caller meanwhile; the cancellation is raised afterwards.

    What `work` raised is then the cause of the cancellation.
    """
    cancelled: asyncio.CancelledError | None = None
    while not work.done():
        try:
            await asyncio.wait([work])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled from None if work.cancelled() else work.exception()
    return work.result()
