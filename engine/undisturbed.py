"""Waiting for work that has to be done to its end, whoever cancels those who wait for it."""

import asyncio
from typing import TypeVar

T = TypeVar("T")


async def undisturbed(work: "asyncio.Future[T]") -> T:
    """Wait for the end of `work`, whoever cancels the caller meanwhile; the cancellation is raised afterwards."""
    cancelled: asyncio.CancelledError | None = None
    while not work.done():
        try:
            await asyncio.wait([work])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        work.exception()
        raise cancelled
    return work.result()
