"""A client for the scripted API where it is served over the loopback interface."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic


def loopback_client(url: str) -> "AsyncAnthropic":
    """A real SDK client for the server at `url`, the value of `ScriptedAPI.serve`; it is the caller's to close.

    It goes there directly: the environment may name a proxy, which knows nothing of servers on this machine.
    """
    import anthropic

    direct = anthropic.DefaultAsyncHttpxClient(trust_env=False)
    return anthropic.AsyncAnthropic(base_url=url, api_key="scripted", http_client=direct)
