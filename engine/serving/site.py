"""What the server answers: the page, the records after a place, payloads, and the verdict on the log so far.

Other pages in the browser must not read the log, and other machines cannot: the server is bound to the loopback, takes
only requests that name it as such (a foreign name that is made to lead here is refused), and every address begins with
a secret that only the printed one holds.
"""

import asyncio
import json
import re
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import attrs

from looplatch.audit.payloads import payloads_of
from looplatch.audit.places import place_of
from looplatch.proving.verification import verify
from looplatch.serving.tail import Replaced, awaited, tail_of

MOST: Final = 4 << 20  # bytes of payloads in one answer, but for the first
_AT_ONCE: Final = 64  # payloads that one request may ask for
_PLACE: Final = re.compile(r"[0-9]{1,15}").fullmatch
_COMMITMENT: Final = re.compile(r"[0-9a-f]{64}").fullmatch


@attrs.frozen(kw_only=True)
class Answer:
    """A status, a content and its type; `headers` beside those that every answer has."""

    status: int = 200
    type: str = "text/plain; charset=utf-8"
    content: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()


class Site:
    """The site that shows the log in the file `log` by `page`. `token` is the secret in its addresses."""

    def __init__(self, log: Path, page: str) -> None:
        self.token = secrets.token_urlsafe(18)
        self._log = log
        self._page = page.encode()
        self._tail = tail_of(log)
        self._place = place_of(log)
        self._payloads = self._place.payloads
        self._payloads_at: object = None  # how large the files were when the payloads were looked through
        self._reading = asyncio.Lock()  # payloads, and the verifier, one request at a time
        self._verdict: tuple[object, bytes] = (None, b"")

    async def answer(self, method: str, target: str, host: str, port: int) -> Answer:
        """Answer a request for `target` that was sent to `host`; the server listens on `port`. Never raises."""
        if host not in (f"127.0.0.1:{port}", f"localhost:{port}"):
            return _refusal(403, "this server answers only to 127.0.0.1 and localhost")
        if method != "GET":
            return _refusal(405, "only GET is answered", ("allow", "GET"))
        try:
            address = urlsplit(target)
        except ValueError:
            return _refusal(400, "this is no address")
        _, token, *rest = [*address.path.split("/"), ""][:4]
        if not secrets.compare_digest(token.encode(), self.token.encode()):
            return _refusal(404, "there is nothing here; open the address that was printed, with its secret")
        asked = {name: values[0] for name, values in parse_qs(address.query).items()}
        try:
            return await self._part("/".join(rest).rstrip("/"), asked)
        except Replaced:
            return _refusal(410, "the log was replaced, or is gone")
        except Exception as error:  # a file that cannot be read must not end the server
            return _refusal(500, f"the log cannot be read: {error}")

    async def _part(self, name: str, asked: dict[str, str]) -> Answer:
        match name:
            case "":
                return Answer(type="text/html; charset=utf-8", content=self._page)
            case "records" if _PLACE(asked.get("after", "")):
                piece = await awaited(self._tail, int(asked["after"]))
                if not piece.lines:
                    return Answer(status=204)
                headers = (("x-next", str(piece.next)), ("x-more", "yes" if piece.more else "no"))
                return Answer(type="application/octet-stream", content=piece.lines, headers=headers)
            case "payloads":
                wanted = asked.get("of", "").split(",")
                if len(wanted) > _AT_ONCE or not all(map(_COMMITMENT, wanted)):
                    return _refusal(400, f"ask for at most {_AT_ONCE} payloads, by their commitments")
                return await self._read(lambda: self._found(wanted))
            case "verdict":
                return await self._read(self._judged)
            case _:
                return _refusal(404, "there is nothing here")

    async def _read(self, work: Callable[[], bytes]) -> Answer:
        async with self._reading:
            return Answer(type="application/json", content=await asyncio.to_thread(work))

    def _found(self, wanted: list[str]) -> bytes:
        """The payloads as JSON texts by their commitments, null for one that is not kept; the first few megabytes."""
        found: dict[str, str | None] = {}
        held = 0
        for commitment in wanted:
            payload = self._payload(commitment)
            held += 0 if payload is None else len(payload)
            if found and held > MOST:
                break
            found[commitment] = None if payload is None else payload.decode(errors="replace")
        return json.dumps(found).encode()

    def _payload(self, commitment: str) -> bytes | None:
        kept = self._payloads.find(commitment)
        if kept is None and (sizes := self._sizes()) != self._payloads_at:
            self._payloads, self._payloads_at = self._place.payloads, sizes
            kept = self._payloads.find(commitment)
        return None if kept is None else kept[1]

    def _judged(self) -> bytes:
        """The report of the verifier as JSON; the same as before where nothing was written since."""
        sizes = self._sizes()
        if sizes != self._verdict[0]:
            report: dict[str, Any] = attrs.asdict(verify(self._log))
            self._verdict = (sizes, json.dumps(report).encode())
        return self._verdict[1]

    def _sizes(self) -> tuple[int, ...]:
        """How large the files of the log are: while none of them grows, nothing was written."""
        beside = (payloads_of(self._log), self._log.with_name(f"{self._log.name}-wal"))
        return tuple(map(_size, (self._log, *beside)))


def _refusal(status: int, why: str, *headers: tuple[str, str]) -> Answer:
    return Answer(status=status, content=f"{why}\n".encode(errors="replace"), headers=headers)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
