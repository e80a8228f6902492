"""The web-fetch tool against a server on this machine: what it fetches, follows, refuses and bounds."""

import asyncio
import gzip
import importlib.util
import tracemalloc
import zlib
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from looplatch.states.errors import UsageError
from looplatch.tools import AbortSignal, Cause, Outcome, Tool, Toolbox
from looplatch.tools.execution import execute
from looplatch.tools.web import web_fetch

HTML = {"Content-Type": "text/html; charset=utf-8"}


def answer(body: bytes = b"", /, status: int = 200, **headers: Any) -> bytes:
    lines = [f"HTTP/1.1 {status} Told", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


def page(text: str, status: int = 200) -> bytes:
    return answer(text.encode(), status, Content_Type="text/html; charset=utf-8")


Site = dict[str, bytes] | Callable[[str], bytes]


class Server:
    """Answers by path, and keeps what it was asked."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.asked: list[str] = []
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.asked.append(request)
        path = request.split(" ")[1]
        writer.write(self.site(path) if callable(self.site) else self.site[path])
        await writer.drain()
        writer.close()


@asynccontextmanager
async def served(site: Site) -> AsyncGenerator[Server]:
    server = Server(site)
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.port = listening.sockets[0].getsockname()[1]
    async with listening:
        yield server


async def fetch(url: str, tool: Tool, abort: AbortSignal | None = None) -> Outcome:
    call = Toolbox([tool]).call(tool_use_id="toolu_1", name=tool.name, given={"url": url}, index=0)
    assert call.read_only
    return await execute(call, run_id="run_1", abort=abort or AbortSignal())


def fetched(site: Site, path: str = "/", **options: Any) -> tuple[Outcome, str]:
    """The outcome, and the address of the server."""

    async def scenario() -> tuple[Outcome, str]:
        async with served(site) as server:
            base = f"http://127.0.0.1:{server.port}"
            return await fetch(f"{base}{path}", web_fetch(allow=["127.0.0.1"], **options)), base

    return asyncio.run(scenario())


def text_of(site: Site, path: str = "/", **options: Any) -> str:
    outcome, base = fetched(site, path, **options)
    assert not outcome.is_error, outcome.content
    return str(outcome.content).replace(base, "BASE")


def error_of(site: Site, path: str = "/", **options: Any) -> str:
    outcome, base = fetched(site, path, **options)
    assert outcome.is_error
    return str(outcome.content).replace(base, "BASE")


def test_a_page_is_told_as_markdown_with_its_links() -> None:
    html = "<title>News</title><h1>Rain</h1><p>It <b>rains</b>. <a href='/more'>More</a></p><script>evil()</script>"
    text = text_of({"/": page(html)})
    assert text.startswith("BASE/\n\n")
    assert "# Rain" in text
    assert "It **rains**. [More](BASE/more)" in text
    assert "News" in text
    assert "evil" not in text


@pytest.mark.parametrize(
    ("body", "headers", "text"),
    [
        (b'{"a": 1}', {"Content_Type": "application/json"}, '{"a": 1}'),
        ("ä".encode("latin-1"), {"Content_Type": "text/plain; charset=ISO-8859-1"}, "ä"),
        ("ä".encode(), {"Content_Type": 'text/plain; charset="utf-8"'}, "ä"),
        (b"\xe4", {"Content_Type": "text/plain; charset=nonsense"}, "\ufffd"),
        (b"\xe4", {"Content_Type": "text/plain; charset=zip"}, "\ufffd"),
        ("<meta charset=latin-1>ä".encode("latin-1"), {"Content_Type": "text/html"}, "ä"),
        (b"plain", {}, "plain"),
        (gzip.compress(b"packed", mtime=0), {"Content_Type": "text/plain", "Content_Encoding": "gzip"}, "packed"),
        (zlib.compress(b"packed"), {"Content_Type": "text/plain", "Content_Encoding": "deflate"}, "packed"),
    ],
)
def test_text_is_told_as_it_is(body: bytes, headers: dict[str, Any], text: str) -> None:
    assert text_of({"/": answer(body, **headers)}).strip() == f"BASE/\n\n{text}"


def test_pictures_and_documents_come_as_blocks() -> None:
    picture, _ = fetched({"/": answer(b"png", Content_Type="image/png")})
    document, _ = fetched({"/": answer(b"%PDF", Content_Type="application/pdf")})
    assert picture.content == [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "cG5n"}}
    ]
    assert document.content == [
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERg=="}}
    ]


def test_what_is_no_text_is_told_by_its_type() -> None:
    site = {"/": answer(b"\0" * 10, Content_Type="application/zip"), "/none": answer(b"\0\1")}
    assert error_of(site) == "BASE/ is 10 bytes of application/zip, not text"
    assert error_of(site, "/none") == "BASE/none is 2 bytes of an unknown type, not text"


def test_an_error_of_the_server_is_one_with_its_page() -> None:
    assert error_of({"/": page("gone", 404)}) == "BASE/ (HTTP status 404)\n\ngone\n"


def test_redirects_are_followed_and_the_last_address_is_told() -> None:
    site = {
        "/": answer(status=302, Location="/a"),
        "/a": answer(status=301, Location="b?c=1#d"),
        "/b?c=1": answer(b"here", Content_Type="text/plain"),
    }
    assert text_of(site) == "BASE/b?c=1\n\nhere"


def test_redirects_end() -> None:
    assert "redirected more than 5 times" in error_of(lambda path: answer(status=302, Location=f"{path}x"))


@pytest.mark.parametrize(
    "target",
    [
        "file:///etc/passwd",
        "gopher://x",
        "javascript:alert(1)",
        "ftp://x/y",
        "data:text/plain,x",
        "http://",
        "http://[::",
    ],
)
def test_neither_an_address_nor_a_redirect_leads_to_anything_but_http(target: str) -> None:
    asked = asyncio.run(fetch(target, web_fetch()))
    assert asked.is_error
    assert "could not be fetched" in str(asked.content)
    assert "could not be fetched" in error_of({"/": answer(status=302, Location=target)})


def test_names_and_passwords_are_not_sent() -> None:
    outcome = asyncio.run(fetch("http://user:word@example.com/", web_fetch()))
    assert "the address holds a user's name" in str(outcome.content)
    assert "word" not in str(outcome.content)


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "127.1", "0", "[::1]", "[::ffff:127.0.0.1]", "①②⑦.0.0.1"]
)
def test_this_machine_is_refused_whatever_it_is_called(host: str) -> None:
    async def scenario() -> None:
        async with served({"/": page("secret")}) as server:
            outcome = await fetch(f"http://{host}:{server.port}/", web_fetch())
            assert outcome.is_error
            assert "secret" not in str(outcome.content)
            assert server.asked == []

    asyncio.run(scenario())


def test_a_redirect_to_what_is_refused_is_not_followed() -> None:
    async def scenario() -> None:
        async with served({"/secret": page("secret")}) as inner:
            there = {
                "/taken": answer(status=307, Location=f"http://localhost:{inner.port}/secret"),
                "/other": answer(status=307, Location=f"http://127.0.0.2:{inner.port}/secret"),
                "/cloud": answer(status=307, Location="http://169.254.169.254/latest/meta-data/"),
            }
            async with served(there) as outer:
                base = f"http://127.0.0.1:{outer.port}"
                tool = web_fetch(allow=["127.0.0.1", "localhost"])
                assert "secret" in str((await fetch(f"{base}/taken", tool)).content)
                inner.asked.clear()
                for path, address in (("/other", "127.0.0.2"), ("/cloud", "169.254.169.254")):
                    outcome = await fetch(f"{base}{path}", tool)
                    assert outcome.is_error
                    assert f"{address} is no public address, so nothing was fetched" in str(outcome.content)
            assert inner.asked == []

    asyncio.run(scenario())


def test_a_name_is_looked_up_once_and_judged_by_what_is_connected_to() -> None:
    """A name server that answers in two ways gets one chance."""

    class Rebinding(asyncio.SelectorEventLoop):
        async def getaddrinfo(self, host: Any, port: Any, **options: Any) -> Any:
            if host != "rebinding.example":
                return await super().getaddrinfo(host, port, **options)
            return [(2, 1, 6, "", (address, port)) for address in ("93.184.215.14", "127.0.0.1")]

    async def scenario() -> None:
        async with served({"/": page("secret")}) as server:
            outcome = await fetch(f"http://rebinding.example:{server.port}/", web_fetch())
            assert "rebinding.example (127.0.0.1) is no public address" in str(outcome.content)
            assert server.asked == []
            outcome = await fetch(f"http://rebinding.example:{server.port}/", web_fetch(allow=["rebinding.example"]))
            assert "secret" in str(outcome.content)
            assert f"Host: rebinding.example:{server.port}" in server.asked[0]

    with asyncio.Runner(loop_factory=Rebinding) as runner:
        runner.run(scenario())


def test_a_proxy_of_the_environment_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    assert "here" in text_of({"/": page("here")})


def test_a_long_page_is_cut() -> None:
    text = text_of({"/": answer(b"x" * 5_000, Content_Type="text/plain")}, max_bytes=1_000)
    assert text == f"BASE/\n\n{'x' * 1_000}\n[... the page is longer than this ...]"


def test_a_page_that_unpacks_to_more_than_anyone_wants_is_cut_before_it_does() -> None:
    bomb = gzip.compress(b"\0" * 200_000_000, 9)
    site = {"/": answer(bomb, Content_Type="text/plain", Content_Encoding="gzip")}
    text_of({"/": page("first")})  # loads the packages, which are not to be counted
    tracemalloc.start()
    try:
        assert len(text_of(site, max_bytes=1_000)) < 1_200
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (answer(b"no gzip", Content_Encoding="gzip"), "what came cannot be unpacked"),
        (answer(b"x", Content_Encoding="br"), "in an encoding that was not asked for: br"),
        (b"nonsense\r\n\r\n", "could not be fetched"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nx", "could not be fetched"),
        (b"", "could not be fetched"),
    ],
)
def test_what_comes_broken_is_a_failure_that_says_so(raw: bytes, problem: str) -> None:
    assert problem in error_of({"/": raw})


def test_a_page_that_never_ends_can_be_left() -> None:
    async def scenario() -> None:
        asked, over, abort = asyncio.Event(), asyncio.Event(), AbortSignal()

        async def stall(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nbegin")
            asked.set()
            await reader.read()  # until the other side hangs up
            over.set()
            writer.close()

        async with await asyncio.start_server(stall, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            url = f"http://127.0.0.1:{port}/"
            fetching = asyncio.create_task(fetch(url, web_fetch(allow=["127.0.0.1"]), abort))
            await asked.wait()
            abort.set()
            outcome = await fetching
            assert outcome.cause is Cause.INTERRUPTED_NO_EFFECT
            await over.wait()

    asyncio.run(scenario())


def test_the_time_is_bounded() -> None:
    assert web_fetch().timeout_s == 30
    assert web_fetch(timeout_s=5, name="look").timeout_s == 5


def test_without_its_packages_it_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(name: str) -> None:
        return None

    monkeypatch.setattr(importlib.util, "find_spec", nothing)
    with pytest.raises(UsageError, match=r"looplatch\[web\]"):
        web_fetch()


def test_a_bound_of_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="max_bytes is 0"):
        web_fetch(max_bytes=0)
