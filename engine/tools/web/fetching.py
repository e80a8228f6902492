"""One address of the web, fetched: redirects followed, size bounded."""

import zlib
from collections.abc import AsyncIterator, Mapping
from typing import Final

import attrs
import httpcore2
import httpx2

from looplatch.states.errors import LooplatchError
from looplatch.tools.web.addresses import Allowed
from looplatch.tools.web.connection import GuardedBackend

__all__ = ["FetchFailed", "Fetched", "fetched"]

_MAX_REDIRECTS: Final = 5
_MAX_URL: Final = 8_000
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_HEADERS: Final[Mapping[bytes | str, bytes | str]] = {
    "User-Agent": "looplatch (a tool of a language model)",
    "Accept": "text/html,text/markdown,text/plain,application/json;q=0.9,*/*;q=0.5",
    "Accept-Encoding": "gzip",
}


class FetchFailed(LooplatchError):
    """Nothing was fetched; `url` is the last address that was asked."""

    def __init__(self, url: str, problem: str) -> None:
        super().__init__(f"{url[:300]} could not be fetched: {problem}")
        self.url = url
        self.problem = problem


@attrs.frozen(kw_only=True)
class Fetched:
    """What came: from `url`, where redirects led in the end. `complete` is False where only its beginning was taken."""

    url: str
    status: int
    media_type: str
    charset: str | None
    data: bytes = attrs.field(repr=False)
    complete: bool


async def fetched(url: str, *, allowed: Allowed, max_bytes: int) -> Fetched:
    """Fetch an address. Raises AddressRefused and FetchFailed."""
    backend = GuardedBackend(allowed)
    async with httpcore2.AsyncConnectionPool(network_backend=backend, retries=0) as pool:
        at = _parsed(url, None)
        for _ in range(_MAX_REDIRECTS + 1):
            try:
                answer = await _asked(pool, at, max_bytes)
            except (httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.TimeoutException) as error:
                raise FetchFailed(str(at), str(error) or type(error).__name__) from error
            if isinstance(answer, Fetched):
                return answer
            at = _parsed(answer, at)
        raise FetchFailed(str(at), f"it was redirected more than {_MAX_REDIRECTS} times")


def _parsed(text: str, base: httpx2.URL | None) -> httpx2.URL:
    if len(text) > _MAX_URL:
        raise FetchFailed(text, "the address is too long")
    try:
        url = httpx2.URL(text) if base is None else base.join(text)
    except httpx2.InvalidURL as error:
        raise FetchFailed(text, str(error)) from error
    if url.scheme not in ("http", "https") or not url.host:
        raise FetchFailed(text, "only addresses that begin with http:// or https:// can be")
    if url.userinfo:
        raise FetchFailed(url.host, "the address holds a user's name")
    return url.copy_with(fragment=None)


async def _asked(pool: httpcore2.AsyncConnectionPool, url: httpx2.URL, max_bytes: int) -> Fetched | str:
    """What came, or where to ask instead."""
    port = url.port if url.port is not None else {"http": 80, "https": 443}[url.scheme]
    raw = httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=port, target=url.raw_path)
    host = url.netloc
    async with pool.stream("GET", raw, headers={"Host": host, **_HEADERS}) as response:
        headers = {name.lower(): value.decode("latin-1") for name, value in response.headers}
        if response.status in _REDIRECTS and b"location" in headers:
            return headers[b"location"]
        encoding = headers.get(b"content-encoding", "identity").strip().lower()
        if encoding not in ("identity", "gzip", "x-gzip", "deflate", ""):
            raise FetchFailed(str(url), f"it came in an encoding that was not asked for: {encoding[:50]}")
        packed = encoding not in ("identity", "")
        data, complete = await _taken(response.aiter_stream(), max_bytes, url, packed=packed)
        media_type, charset = _content_type(headers.get(b"content-type", ""))
        return Fetched(
            url=str(url), status=response.status, media_type=media_type, charset=charset, data=data, complete=complete
        )


async def _taken(pieces: AsyncIterator[bytes], max_bytes: int, url: httpx2.URL, *, packed: bool) -> tuple[bytes, bool]:
    """At most `max_bytes` of a body, unpacked, and whether that is all of it."""
    data = bytearray()
    unpacker = zlib.decompressobj(47)  # gzip or zlib, as it says itself
    try:
        async for piece in pieces:
            room = max_bytes + 1 - len(data)
            data += unpacker.decompress(piece, room) if packed else piece[:room]
            if len(data) > max_bytes:
                return bytes(data[:max_bytes]), False
    except zlib.error as error:
        raise FetchFailed(str(url), f"what came cannot be unpacked: {error}") from error
    return bytes(data), True


def _content_type(text: str) -> tuple[str, str | None]:
    media_type, *parameters = (part.strip() for part in text.split(";"))
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset":
            return media_type.lower(), value.strip().strip('"') or None
    return media_type.lower(), None
