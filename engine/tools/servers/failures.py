"""What goes wrong with an MCP server."""

from typing import cast

from looplatch.states.errors import LooplatchError

__all__ = ["ServerFailed", "described"]

_MAX_TOLD = 2_000


class ServerFailed(LooplatchError):
    """An MCP server cannot be reached, or did not answer as it should; `server` names it, `problem` says how."""

    def __init__(self, server: str, problem: str) -> None:
        super().__init__(f"MCP server {server}: {problem}")
        self.server = server
        self.problem = problem


def described(error: BaseException) -> str:
    """What an exception says, or those in a group of them."""
    if isinstance(error, BaseExceptionGroup):
        inner = cast("BaseExceptionGroup[BaseException]", error).exceptions
        return "; ".join(dict.fromkeys(described(one) for one in inner))
    return (str(error) or type(error).__name__)[:_MAX_TOLD]
