"""Connections that are made to addresses that were looked up and judged, and to no other."""

import asyncio
import socket
from collections.abc import Iterable
from typing import cast

import httpcore2

from looplatch.tools.web.addresses import AddressRefused, Allowed

__all__ = ["GuardedBackend"]


class GuardedBackend(httpcore2.AsyncNetworkBackend):
    """Looks each host up once, judges all of its addresses, and connects to one of these.

    Whatever a name server answers the next time, and wherever a redirect leads: what was judged is what is used.
    """

    def __init__(self, allowed: Allowed) -> None:
        self._allowed = allowed
        self._inner = cast("httpcore2.AsyncNetworkBackend", httpcore2.AnyIOBackend())

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 -- httpcore's signature
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Connect. Raises AddressRefused, or what httpcore raises."""
        try:
            found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise httpcore2.ConnectError(f"{host} was not found: {error}") from error
        addresses = self._allowed.checked(host, (str(sockaddr[0]) for *_, sockaddr in found))
        failure: Exception = httpcore2.ConnectError(f"{host} has no address")
        for address in addresses:
            try:
                return await self._inner.connect_tcp(address, port, timeout, local_address, socket_options)
            except httpcore2.NetworkError as error:
                failure = error
        raise failure

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ASYNC109 -- httpcore's signature
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Never: it leads into this machine."""
        raise AddressRefused(path, path)

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)
