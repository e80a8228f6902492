"""The machine's own clock."""

import asyncio
from collections.abc import Callable

from looplatch.audit.stamps import SystemTime
from looplatch.ports import Timer


class SystemClock(SystemTime):
    """The Clock of runs outside tests."""

    async def sleep(self, seconds: float) -> None:
        """See `Clock.sleep`."""
        await asyncio.sleep(seconds)

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        """See `Clock.call_later`."""
        return asyncio.get_running_loop().call_later(seconds, callback)
