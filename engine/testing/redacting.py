"""Redacting a playbook: what looks like a secret is taken out of an answer, also where its pieces spell it together."""

import copy
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from looplatch.states.errors import UsageError
from looplatch.states.patterns import NAMED, may_be_in
from looplatch.states.secrets import Secrets, marker
from looplatch.testing.shapes import is_object
from looplatch.testing.wire import encode

_SHORTEST_KEY: Final = 8  # characters: of a shorter one, any text may have a piece
_INPUT: Final = "partial_json"
_SPELLED: Final = ("text", "thinking", _INPUT)  # the fields that deltas spell
_BLOCKS: Final = ("message", "content_block", "delta", "body")  # what holds content blocks, or is one
_HALF_ESCAPE: Final = re.compile(r"(?<!\\)((?:\\\\)*)\\(?:u[0-9a-fA-F]{0,3})?\Z")
_Piece = tuple[dict[str, Any], str]  # where a piece stands: in which object, and in which of its fields


class Redacting:
    """Takes secrets out of the lines of answers.

    secrets: what is looked for. keys: the caller's own, which stand in no answer either.
    """

    def __init__(self, secrets: Secrets, keys: Iterable[str]) -> None:
        self._secrets = secrets
        for key in keys:
            if len(key) >= _SHORTEST_KEY:
                try:
                    own = Secrets(own={"api_key": re.escape(key)}, known=False)
                except UsageError:  # a word of the API is no key
                    continue
                self._secrets = self._secrets.with_those_of(own)

    def lines(self, lines: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """The lines of one answer without secrets; what several pieces spell is cut out of each of them."""
        copies = [dict(copy.deepcopy(line)) for line in lines]
        for field, places in _spelled(copies):
            pieces = [holder[name] for holder, name in places]
            clean = self._input(pieces) if field == _INPUT else self._secrets.taken_out_of_pieces(pieces)[0]
            for (holder, name), piece in zip(places, clean, strict=True):
                holder[name] = piece
        return [self._line(line) for line in copies]

    def _line(self, line: dict[str, Any]) -> dict[str, Any]:
        event = line.get("event")
        return {**line, "event": self._fields(event)} if is_object(event) else self._fields(line)

    def _fields(self, outer: Mapping[str, Any]) -> dict[str, Any]:
        secrets = self._secrets
        clean = {name: secrets.taken_out_of_block(outer[name])[0] for name in outer if name in _BLOCKS}
        others: dict[str, Any] = secrets.taken_out({name: outer[name] for name in outer if name not in clean})[0]
        return others | clean

    def _input(self, pieces: Sequence[str]) -> Sequence[str]:
        """The JSON text of an input is searched for what it says."""
        text = "".join(pieces)
        try:
            clean, found = self._secrets.taken_out(json.loads(text))
        except ValueError:
            return self._broken(pieces, text)
        return [encode(clean).decode(), *("" for _ in pieces[1:])] if found else pieces

    def _broken(self, pieces: Sequence[str], text: str) -> Sequence[str]:
        """Of one that has no end, and where it says a secret, or that cannot be told, only that it began stays."""
        for closed in _closed(text):
            try:
                said: Any = json.loads(closed)
            except ValueError:
                continue
            found = self._secrets.taken_out(said)[1]
            break
        else:
            found = self._secrets.taken_out_of_pieces(pieces)[1]
            if not found and self._secrets.known and may_be_in(text.encode(errors="replace")):
                found = (NAMED,)
        return ['{"' + marker(found[0]), *("" for _ in pieces[1:])] if found else pieces


def _spelled(lines: Iterable[dict[str, Any]]) -> Iterator[tuple[str, Sequence[_Piece]]]:
    """What pieces spell together, with the name of its field: of each block, and of lines that are no events."""
    found: dict[tuple[object, str], list[_Piece]] = {}
    for line in lines:
        index, holder = _place(line)
        for field in _SPELLED:
            if isinstance(holder.get(field), str):
                found.setdefault((index, field), []).append((holder, field))
    for (_, field), places in found.items():
        yield field, places


def _place(line: dict[str, Any]) -> tuple[object, dict[str, Any]]:
    """Which block a line adds to, and what of the line does; None: no block."""
    event: Any = line.get("event")
    if not is_object(event):
        return None, line
    holder: Any = event.get("delta", event.get("content_block"))
    return event.get("index"), holder if is_object(holder) else {}


def _closed(text: str) -> Iterator[str]:
    """The beginning of a JSON text with what it may lack at its end."""
    open_: list[str] = []
    in_text = escaped = False
    for character in text:
        if in_text:
            in_text = escaped or character != '"'
            escaped = not escaped and character == "\\"
        elif character == '"':
            in_text = True
        elif character in "{[":
            open_.append("}" if character == "{" else "]")
        elif character in "}]" and open_:
            open_.pop()
    begun = _HALF_ESCAPE.sub(r"\1", text) + '"' if in_text else text.rstrip().removesuffix(",")
    for missing in ("", "null", ":null"):
        yield begun + missing + "".join(reversed(open_))
