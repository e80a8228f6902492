"""The machine's own clock."""

import asyncio
import time
from collections.abc import Callable

from looplatch.ports import Timer


class SystemClock:
    """The Clock of runs outside tests."""

    now_ns = staticmethod(time.time_ns)
    monotonic_ns = staticmethod(time.monotonic_ns)

    async def sleep(self, seconds: float) -> None:
        """See `Clock.sleep`."""
        await asyncio.sleep(seconds)

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        """See `Clock.call_later`."""
        return asyncio.get_running_loop().call_later(seconds, callback)
