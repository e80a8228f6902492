"""What a tool of the SDK holds open, and the runs that use it."""

import inspect
from typing import Any

from looplatch.states.errors import LooplatchError

__all__ = ["Resource", "ResourceSpent"]


class ResourceSpent(LooplatchError):
    """A tool of the SDK was called after its context manager had been left; the call was not made. `tool` names it."""

    def __init__(self, tool: str) -> None:
        super().__init__(
            f"tool {tool!r}: what it works with was closed at the end of an earlier run and cannot be opened again. "
            "Make the SDK's tool anew for each run; for its agent toolset use looplatch.tools.agent, which does"
        )
        self.tool = tool


class Resource:
    """Closes a tool when the last run that has called it ends.

    The SDK's tools belong to no run: several may share one. A `close` of the tool's own is called after each such run;
    a context manager can be left only once.
    """

    def __init__(self, name: str, tool: Any) -> None:
        self._name = name
        self._tool = tool
        self._users: set[str] = set()
        self._spent = False

    def use(self, run_id: str) -> None:
        """A run calls the tool. Raises ResourceSpent where it works no more."""
        if self._spent:
            raise ResourceSpent(self._name)
        self._users.add(run_id)

    async def leave(self, run_id: str) -> None:
        """A run has ended. Raises what the tool raises when it is closed, after all of it has been tried."""
        if run_id not in self._users:
            return
        self._users.discard(run_id)
        if self._users:
            return
        try:
            await self._close()
        finally:
            await self._exit()

    async def _close(self) -> None:
        closer = getattr(self._tool, "aclose", None) or getattr(self._tool, "close", None)
        if closer is not None:
            closed = closer()
            if inspect.isawaitable(closed):
                await closed

    async def _exit(self) -> None:
        manager = getattr(self._tool, "_context_manager", None)
        if manager is None:
            return
        self._spent = True
        if hasattr(manager, "__aexit__"):
            await manager.__aexit__(None, None, None)
        else:
            manager.__exit__(None, None, None)
