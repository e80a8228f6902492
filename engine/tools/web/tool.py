"""The web-fetch tool."""

import importlib.util
from collections.abc import Iterable
from functools import partial
from typing import Annotated, Final

from looplatch.states.errors import UsageError
from looplatch.tools.decorator import tool
from looplatch.tools.threads import run_in_thread
from looplatch.tools.tool import Tool
from looplatch.tools.web.addresses import Allowed

__all__ = ["web_fetch"]

MAX_BYTES: Final = 2 * 1024 * 1024
"""The most bytes that are taken of one page, unpacked, unless the caller says otherwise."""
TIMEOUT_S: Final = 30.0
"""How long one fetch may take, redirects and all, unless the caller says otherwise, in seconds."""


def web_fetch(
    *,
    name: str = "web_fetch",
    allow: Iterable[str] = (),
    max_bytes: int = MAX_BYTES,
    timeout_s: float | None = TIMEOUT_S,
) -> Tool:
    """A tool that fetches pages of the web: HTML as Markdown, texts as they are, images and PDFs as such.

    It only reads. It refuses addresses that are not public (private, loopback, link-local, those where clouds tell a
    machine its secrets ...), whether they are given, looked up or redirected to, and connects to nothing but the
    addresses that it has judged. It takes no account of proxies, which would look names up themselves.
    allow: hosts, addresses and networks that may be fetched from all the same, such as "intranet.example" or
    "10.0.0.0/8". Needs `looplatch[web]`. Raises UsageError without it, and for what cannot be allowed.
    """
    what = f"tool {name!r}"
    if importlib.util.find_spec("html_to_markdown") is None or importlib.util.find_spec("httpcore2") is None:
        raise UsageError(what, "it needs packages that are not installed", "Install them: pip install 'looplatch[web]'")
    if max_bytes < 1:
        raise UsageError(what, f"max_bytes is {max_bytes}", "Give at least 1")
    allowed = Allowed.of(allow)

    @tool(name=name, read_only=True, timeout_s=timeout_s)
    async def fetch(
        url: Annotated[str, "The address of the page, with http:// or https://."],
    ) -> object:
        """Fetch a page of the web and return what it says."""
        from looplatch.tools.web.fetching import fetched
        from looplatch.tools.web.pages import shown

        page = await fetched(url, allowed=allowed, max_bytes=max_bytes)
        return await run_in_thread(partial(shown, page), name=f"tool {name}")

    return fetch
