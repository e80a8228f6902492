"""The server that follows a log, over real sockets: who is answered, with what, and how much of it."""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest
from attrs import frozen

from looplatch.serving import Site, serve
from looplatch.serving import server as serving_server
from looplatch.serving import tail as serving_tail
from looplatch.serving.tail import CHUNK, Piece, Replaced, tail_of
from looplatch.states.errors import UsageError
from looplatch.testing import reply
from tests.playing import play


@frozen
class Got:
    """An answer: its status, its headers and its content."""

    status: int
    headers: dict[str, str]
    content: bytes


async def ask(port: int, target: str, *, method: str = "GET", host: str | None = None, more: str = "") -> Got:
    """Send one request and read its answer to the end."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    named = f"127.0.0.1:{port}" if host is None else host
    writer.write(f"{method} {target} HTTP/1.1\r\nHost: {named}\r\nConnection: close\r\n{more}\r\n".encode())
    head, _, content = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    await writer.wait_closed()
    first, *lines = head.decode().split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    return Got(int(first.split()[1]), headers, content)


def served(log: Path, use: Callable[[int, str], Awaitable[None]]) -> None:
    """Serve a log while `use` is given the port and the path with its token."""

    async def go() -> None:
        async with serve(Site(log, "<p>page")) as address:
            port = int(address.split(":")[2].partition("/")[0])
            await use(port, "/" + address.split("/", 3)[3])

    asyncio.run(go())


def size(path: Path) -> int:
    return path.stat().st_size


def shorten(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:100])


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "run.jsonl"
    play([reply("Hello.")], log=path)
    return path


def test_only_who_knows_the_address_is_answered(log: Path) -> None:
    async def use(port: int, path: str) -> None:
        page = await ask(port, path)
        assert (page.status, page.content) == (200, b"<p>page")
        assert page.headers["x-content-type-options"] == "nosniff"
        assert page.headers["cross-origin-resource-policy"] == "same-origin"
        assert page.headers["referrer-policy"] == "no-referrer"
        assert "access-control-allow-origin" not in page.headers
        assert (await ask(port, path, host=f"localhost:{port}")).status == 200
        for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", f"127.0.0.1:{port + 1}", ""):
            assert (await ask(port, path, host=host)).status == 403
        for other in ("/", "/records?after=0", "/wrong/records?after=0", f"/{'x' * len(path)}/", "//", f"/x{path}"):
            assert (await ask(port, other)).status in (404, 400)
            assert b"page" not in (await ask(port, other)).content
        for method in ("POST", "PUT", "OPTIONS", "HEAD"):
            assert (await ask(port, path, method=method)).status == 405

    served(log, use)


def test_records_payloads_and_the_verdict_are_those_of_the_log(log: Path) -> None:
    lines = log.read_bytes()

    async def use(port: int, path: str) -> None:
        got = await ask(port, f"{path}records?after=0")
        assert (got.status, got.content, got.headers["x-more"]) == (200, lines, "no")
        assert got.headers["x-next"] == str(len(lines))
        first = lines.index(b"\n") + 1
        assert (await ask(port, f"{path}records?after={first}")).content == lines[first:]
        block = next(json.loads(line) for line in lines.splitlines() if b'"role":"assistant"' in line)["blocks"][0]
        unknown = "0" * 64
        kept = await ask(port, f"{path}payloads?of={block['commitment']},{unknown}")
        assert json.loads(kept.content) == {block["commitment"]: '{"type":"text","text":"Hello."}', unknown: None}
        verdict = json.loads((await ask(port, f"{path}verdict")).content)
        assert (verdict["status"], verdict["violations"], verdict["count"]) == ("sealed", [], lines.count(b"\n"))

    served(log, use)


@pytest.mark.parametrize(
    "target",
    ["records", "records?after=", "records?after=-1", "records?after=1e9", "payloads?of=x", "payloads", "other",
     "a/b/c",     f"payloads?of={','.join(['0' * 64] * 65)}", "../run.jsonl", "%2e%2e/run.jsonl"],
)  # fmt: skip
def test_a_request_that_is_none_is_refused(log: Path, target: str) -> None:
    async def use(port: int, path: str) -> None:
        assert (await ask(port, path + target)).status in (400, 404)

    served(log, use)


def test_a_target_that_is_no_address_is_refused(log: Path) -> None:
    async def use(port: int, path: str) -> None:
        for target in ("//[x/", "http://[::1/", "//[v1.x]/"):
            assert (await ask(port, target)).status in (400, 404), target
        assert (await ask(port, "//[x/")).status == 400
        assert (await ask(port, path)).status == 200

    served(log, use)


def test_a_log_that_was_replaced_or_is_gone_is_said_to_be(log: Path) -> None:
    async def use(port: int, path: str) -> None:
        whole = size(log)
        shorten(log)
        assert (await ask(port, f"{path}records?after={whole}")).status == 410
        os.unlink(log)
        assert (await ask(port, f"{path}records?after=0")).status == 410
        assert (await ask(port, f"{path}verdict")).status == 500
        assert (await ask(port, path)).status == 200

    served(log, use)


def test_a_request_waits_for_what_is_written_next(log: Path) -> None:
    async def use(port: int, path: str) -> None:
        waiting = asyncio.create_task(ask(port, f"{path}records?after={size(log)}"))
        assert (await ask(port, path)).status == 200
        assert not waiting.done()
        with log.open("ab") as file:
            file.write(b'{"one":1}\n{"half')
        assert (await waiting).content == b'{"one":1}\n'

    served(log, use)


def test_what_speaks_no_http_and_sends_a_content_is_left(log: Path) -> None:
    async def use(port: int, path: str) -> None:
        for said in (b"\x16\x03\x01 no http\r\n\r\n", b"GET / HTTP/1.1\r\n" + b"x: y\r\n" * 20_000):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(said)
            with suppress(ConnectionError):
                assert await reader.read() == b""
            writer.close()
        assert (await ask(port, path)).status == 200

    served(log, use)


def test_connections_are_bounded(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving_server, "MOST", 2)

    async def use(port: int, path: str) -> None:
        held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
        for _, writer in held:
            writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
        for reader, _ in held:
            assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await reader.read() == b""
        for _, opened in [*held, (reader, writer)]:
            opened.close()

    served(log, use)


def test_a_port_that_is_taken_is_named(log: Path) -> None:
    async def use(port: int, path: str) -> None:
        with pytest.raises(UsageError, match=f"--port: {port} cannot be had"):
            async with serve(Site(log, ""), port):
                pass

    served(log, use)


# --- the tail


def test_the_tail_gives_whole_lines_in_bounded_pieces(tmp_path: Path) -> None:
    path = tmp_path / "log"
    line = b"x" * 9_999 + b"\n"
    path.write_bytes(line * 300 + b"torn")
    tail, place, got, mores = tail_of(path), 0, b"", list[bool]()
    for _ in range(3):
        piece = tail.piece(place)
        assert len(piece.lines) <= CHUNK
        got, place = got + piece.lines, piece.next
        mores.append(piece.more)
    assert got == line * 300
    assert mores == [True, True, False]
    assert tail.piece(place) == Piece(b"", place, more=False)


def test_a_line_longer_than_a_piece_comes_whole(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"y" * (3 * CHUNK) + b"\nnext\n")
    piece = tail_of(path).piece(0)
    assert (len(piece.lines), piece.next, piece.more) == (3 * CHUNK + 1, 3 * CHUNK + 1, True)


def test_the_tail_of_a_file_that_shrank_is_none(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"a\n")
    with pytest.raises(Replaced):
        tail_of(path).piece(3)


def test_a_database_is_followed_record_by_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.sqlite"
    log = play([reply("Hello.")], log=path).log
    monkeypatch.setattr(serving_tail, "ROWS", 8)
    tail, place, got = tail_of(path), 0, list[bytes]()
    while (piece := tail.piece(place)).lines:
        got += piece.lines.splitlines(keepends=True)
        assert piece.next == len(got) <= place + 8
        place = piece.next
    assert tuple(got) == log.lines

    async def use(port: int, path: str) -> None:
        answer = await ask(port, f"{path}records?after=2")
        assert (answer.content, answer.headers["x-next"]) == (b"".join(got[2:10]), "10")
        block = next(json.loads(line) for line in got if b'"role":"assistant"' in line)["blocks"][0]["commitment"]
        kept = await ask(port, f"{path}payloads?of={block}")
        assert json.loads(kept.content) == {block: '{"type":"text","text":"Hello."}'}
        assert json.loads((await ask(port, f"{path}verdict")).content)["status"] == "sealed"

    served(path, use)
