"""Playbooks: scripts in files, JSON Lines that a person can read and change. `Recorder` writes them.

The first line is `{"playbook": 1}`. Then each answer has a head and, a line each, the pieces that came one by one::

    {"answer": 1, "model": "claude-sonnet-4-5", "messages": 1, "status": 200, "headers": {"content-type": ...}}
    {"event": {"type": "message_start", "message": ...}}
    {"event": {"type": "message_stop"}}
    {"answer": 2, "model": "claude-sonnet-4-5", "messages": 3, "status": 529, "headers": {"retry-after": "2"}}
    {"body": {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}}
    {"answer": 3, "model": "claude-sonnet-4-5", "messages": 3, "ends": "disconnected"}

`event` is a server-sent event by its data, `body` a JSON document, `text` anything else, as it is. `{"ends": "cut"}`
behind the pieces says that the connection broke there (or was let go). `model` and `messages`, how many a request had,
are for the reader alone.
"""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

import attrs
import orjson

from looplatch.testing.answers import Answer, cut, disconnected, raw
from looplatch.testing.errors import ScriptError, check_kind
from looplatch.testing.shapes import is_object
from looplatch.testing.wire import encode, event

VERSION: Final = 1
HEADERS: Final = frozenset({"content-type", "request-id", "retry-after", "retry-after-ms", "x-should-retry"})
"""The headers of an answer that mean something to a client; all others stay out of a playbook."""

_JSON: Final = "application/json"


@attrs.frozen(kw_only=True)
class Heard:
    """An answer as it came from a server. status: None where none came. whole: it came to its end."""

    status: int | None = None
    headers: Mapping[str, str] = {}
    pieces: Sequence[bytes] = ()
    whole: bool = False


HEAD: Final = encode({"playbook": VERSION}) + b"\n"
"""The first line of a playbook."""


def spelled(number: int, request: Mapping[str, Any], heard: Heard) -> list[dict[str, Any]]:
    """The lines of one answer, as values."""
    shown = {"answer": number, "model": request.get("model"), "messages": len(request.get("messages", ()))}
    if heard.status is None:
        return [{**shown, "ends": "disconnected"}]
    headers = {name: value for name, value in heard.headers.items() if name in HEADERS}
    pieces = [_piece(piece, headers.get("content-type", "")) for piece in heard.pieces]
    return [{**shown, "status": heard.status, "headers": headers}, *pieces, *([] if heard.whole else [{"ends": "cut"}])]


def _piece(piece: bytes, kind: str) -> dict[str, Any]:
    """A piece by what it means, where that gives the same again; else as it is."""
    if kind.startswith(_JSON):
        value = _decoded(piece)
        return {"text": _text(piece)} if value is None else {"body": value}
    lines = piece.decode("utf-8", "replace").splitlines()
    if len(lines) == 3 and lines[1].startswith("data:") and piece.endswith(b"\n\n"):
        value = _decoded(lines[1][5:].encode())
        if is_object(value) and event(value).splitlines()[0].decode() == lines[0]:
            return {"event": value}
    return {"text": _text(piece)}


def _decoded(content: bytes) -> Any:
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError:
        return None


def _text(piece: bytes) -> str:
    return piece.decode("utf-8", "surrogateescape")


# --- reading


def read_playbook(path: str | os.PathLike[str]) -> list[Answer]:
    """The script in the playbook `path`: an answer for each request, to be played or changed.

    Raises ScriptError, which names the line, where it is no playbook.
    """
    check_kind("read_playbook(path)", path, str | os.PathLike, "the path of a playbook")
    file = Path(path)
    try:
        lines = file.read_bytes().splitlines()
    except OSError as error:
        raise ScriptError(f"{file}: the playbook cannot be read ({error})") from error
    if not lines or _object(file, 1, lines[0]) != {"playbook": VERSION}:
        raise ScriptError(f'{file}, line 1: a playbook begins with {{"playbook": {VERSION}}}')
    answers: list[_Spelled] = []
    for number, line in enumerate(lines[1:], 2):
        value = _object(file, number, line)
        if "answer" in value:
            answers.append(_Spelled(file, number, value))
        elif answers:
            answers[-1].add(number, value)
        else:
            raise ScriptError(f'{file}, line {number}: an answer begins with a line that has "answer"')
    return [one.answer() for one in answers]


def _object(file: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        value: Any = json.loads(line)
    except ValueError as error:
        raise ScriptError(f"{file}, line {number}: this is no JSON ({error})") from error
    if not isinstance(value, dict):
        raise ScriptError(f"{file}, line {number}: this is no JSON object")
    return cast("dict[str, Any]", value)


@attrs.define
class _Spelled:
    """An answer as its lines come."""

    file: Path
    number: int
    head: dict[str, Any]
    items: list[Mapping[str, Any] | bytes] = attrs.field(factory=list[Mapping[str, Any] | bytes])
    ended: bool = False

    def add(self, number: int, line: dict[str, Any]) -> None:
        match line:
            case _ if self.ended:
                raise self._wrong(number, "the answer has ended before")
            case {"event": data} if is_object(data):
                self.items.append(data)
            case {"body": body}:
                self.items.append(encode(body))
            case {"text": str(text)}:
                self.items.append(text.encode("utf-8", "surrogateescape"))
            case {"ends": "cut"}:
                self.ended = True
            case _:
                raise self._wrong(number, 'a piece of an answer has "event", "body" or "text"; the last may be "ends"')

    def answer(self) -> Answer:
        match self.head:
            case {"ends": "disconnected"} if not self.items:
                return disconnected()
            case {"status": int(status)}:
                given: Any = self.head.get("headers", {})
                if not isinstance(given, dict):
                    raise self._wrong(self.number, '"headers" are an object')
                headers = cast("dict[str, str]", given)
                whole = raw(self.items, status=status, headers=headers)
                return cut(whole, after=len(self.items), clean=False) if self.ended else whole
            case _:
                raise self._wrong(self.number, 'an answer has a "status", or "ends": "disconnected" and no pieces')

    def _wrong(self, number: int, why: str) -> ScriptError:
        return ScriptError(f"{self.file}, line {number}: {why}")
