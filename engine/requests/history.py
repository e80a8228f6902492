"""The history of a run, kept as the bytes that are sent: nothing is copied or encoded again from turn to turn."""

import re
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple, cast

import attrs
import orjson

from looplatch.blocks import blocks_of
from looplatch.encoding import decode, encode
from looplatch.names import LONGEST
from looplatch.recovery.closing import open_server_calls
from looplatch.recovery.naming import CALL_ID, TOOL_NAME
from looplatch.recovery.weights import BYTES_PER_TOKEN
from looplatch.requests.kept import Kept
from looplatch.requests.request import marks_in
from looplatch.states.record import ZEROS, digest

# What a picture or a document weighs for the estimate of tokens: its base64 text says nothing of that.
_BASE64 = re.compile(rb'"data":"[A-Za-z0-9+/=]{512,}"')
_BASE64_WEIGHT = 6_400

_THINKING = ("thinking", "redacted_thinking")

_NEITHER = re.compile(r"[^a-zA-Z0-9_-]")


@attrs.define
class _Entry:
    """A message: where its bytes begin, and the hashes and skeletons that its records hold, packed.

    media: what its pictures and documents weigh beyond their bytes, below 0 where that is less. marks: its blocks that
    are marked for prompt caching.
    """

    start: int
    role: str
    form: str
    hashes: bytes
    skeletons: bytes
    media: int
    marks: int


class Joining(NamedTuple):
    """A message that takes a place in the history."""

    role: str
    form: str
    kept: Sequence[Kept]


class Rewrite(NamedTuple):
    """The messages from `start` to before `stop` give way to others."""

    start: int
    stop: int
    joining: Sequence[Joining]


class History:
    """Messages, in order, each encoded once. `messages()` decodes them, so what it shows is what is sent."""

    def __init__(self) -> None:
        self._body = bytearray()
        self._entries: list[_Entry] = []
        self._digest = ZEROS  # the chain over the records that make the history
        self._records = 0
        self.marks = 0  # blocks that are marked for prompt caching
        self.weight = 0  # bytes, with pictures and documents at a flat rate
        self.tool_use_ids: set[str] = set()

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def last_role(self) -> str | None:
        """The role of the last message."""
        return self._entries[-1].role if self._entries else None

    @property
    def sent(self) -> dict[str, Any]:
        """What a request names of its messages: how many records they have, and the chain over their hashes."""
        return {"count": self._records, "digest": self._digest}

    def join(self, joining: Joining, hash_: str) -> None:
        """Append a message; `hash_` is that of its record."""
        encoded = _message(*joining)
        if self._entries:
            self._body += b","
        entry = _entry(len(self._body), joining, encoded, bytes.fromhex(hash_))
        self._entries.append(entry)
        self._body += encoded
        self.weight += len(encoded) + entry.media
        self.marks += entry.marks
        self._chain(hash_)

    def extend(self, kept: Sequence[Kept], hash_: str) -> None:
        """Append content blocks to the last message."""
        entry = self._entries[-1]
        last = bytes(memoryview(self._body)[entry.start :])
        del self._body[entry.start :]
        self.weight -= len(last) + entry.media
        self.marks -= entry.marks
        if entry.form == "text":
            content = cast("dict[str, Any]", decode(last))["content"]
            last = _blocks(entry.role, [encode({"type": "text", "text": content})])
            entry.form = "blocks"
        longer = b"%b,%b]}" % (last[:-2], b",".join(k.encoded for k in kept))
        self._body += longer
        entry.media, entry.marks = weight_of(longer) - len(longer), marks_in(longer)
        self.weight += len(longer) + entry.media
        self.marks += entry.marks
        entry.hashes += bytes.fromhex(hash_)
        entry.skeletons = _packed([*orjson.loads(entry.skeletons), *(k.skeleton for k in kept)])
        self._chain(hash_)

    def rewrite(self, rewrites: Sequence[Rewrite], hash_: str) -> None:
        """Put other messages in the place of some, as the record of this hash says.

        `rewrites` are in order, and count in the history as it is.
        """
        own, old, body = bytes.fromhex(hash_), self._entries, memoryview(self._body)
        entries: list[_Entry] = []
        pieces: list[bytes | memoryview] = []  # of the new body, to be joined by commas
        place = begin = length = 0  # begin: where the message at `place` begins in the old body
        for start, stop, joining in (*rewrites, Rewrite(len(old), len(old), ())):
            if place < start:
                end = old[start].start - 1 if start < len(old) else len(body)
                pieces.append(body[begin:end])
                kept = old[place:start]
                if (moved := length - begin) != 0:
                    for entry in kept:
                        entry.start += moved
                entries += kept
                length += end + 1 - begin
                begin = end + 1
            begin = old[stop].start if stop < len(old) else len(body) + 1
            for one in joining:
                encoded = _message(*one)
                entries.append(_entry(length, one, encoded, own))
                pieces.append(encoded)
                length += len(encoded) + 1
            place = stop
        self._entries, self._body = entries, bytearray(b",").join(pieces)
        self.weight = length - len(entries) + sum([entry.media for entry in entries])
        self.marks = sum([entry.marks for entry in entries])
        self._rechain()

    def _rechain(self) -> None:
        """Make the chain over the records anew."""
        hashes = b"".join([entry.hashes for entry in self._entries]).hex().encode()
        chained = ZEROS
        for place in range(0, len(hashes), 64):
            chained = digest(chained.encode() + hashes[place : place + 64])
        self._digest, self._records = chained, len(hashes) // 64

    @property
    def takes_text(self) -> bool:
        """Whether something may be said after the results of the last turn.

        Nothing may where that turn waits for tools of the server's, too: it would refuse their calls then.
        """
        return self.last_role == "user" and not open_server_calls(self.answer_blocks)

    @property
    def answer_blocks(self) -> list[dict[str, Any]]:
        """The blocks of the assistant's last turn, whether or not the user's side has said something to it."""
        turn: list[dict[str, Any]] = []
        for index in reversed(range(len(self) - (self.last_role == "user"))):
            if self._entries[index].role != "assistant":
                break
            turn = [*blocks_of(self.message(index)), *turn]
        return turn

    @property
    def is_mid_turn(self) -> bool:
        """Whether the last thing said are results of tools."""
        return self.last_role == "user" and "tool_result" in self._types(-1)

    @property
    def turn_thinks(self) -> bool:
        """Whether an answer of the last turn holds thinking; a turn begins where the user said something else."""
        for index in reversed(range(len(self))):
            types = self._types(index)
            if self._entries[index].role == "assistant":
                if not types.isdisjoint(_THINKING):
                    return True
            elif "tool_result" not in types:
                return False
        return False

    def _types(self, index: int) -> set[str]:
        return {skeleton["type"] for skeleton in self.skeletons(index)}

    def role(self, index: int) -> str:
        """The role of the message at `index`."""
        return self._entries[index].role

    def skeletons(self, index: int) -> list[dict[str, Any]]:
        """What records say of the blocks of the message at `index`."""
        return cast("list[dict[str, Any]]", orjson.loads(self._entries[index].skeletons))

    def skeletons_at(self, places: Sequence[int]) -> list[list[dict[str, Any]]]:
        """The same of the messages at these places."""
        told = b",".join([self._entries[place].skeletons for place in places])
        return cast("list[list[dict[str, Any]]]", orjson.loads(b"[%b]" % told))

    def weight_from(self, index: int) -> int:
        """What the messages from `index` on weigh."""
        entries = self._entries[index:]
        return len(self._body) - entries[0].start + sum([entry.media for entry in entries])

    def weights(self) -> list[int]:
        """What each message weighs, in tokens, as the levels of compression weigh it."""
        entries = self._entries
        ends = [*(entry.start - 1 for entry in entries[1:]), len(self._body)]
        return [(end - entry.start + entry.media) // BYTES_PER_TOKEN for entry, end in zip(entries, ends, strict=False)]

    def message(self, index: int) -> dict[str, Any]:
        """The message at `index` as a plain API dict, made anew."""
        start = self._entries[index].start
        end = self._entries[index + 1].start - 1 if index + 1 < len(self._entries) else len(self._body)
        return cast("dict[str, Any]", decode(bytes(memoryview(self._body)[start:end])))

    def kept(self, index: int) -> list[Kept]:
        """The blocks of the message at `index`, with what their records say of them."""
        entry = self._entries[index]
        end = _end(self._entries, self._body, index)
        content = cast("dict[str, Any]", decode(bytes(self._body[entry.start : end])))["content"]
        blocks = [content] if entry.form == "text" else content
        return [
            Kept(encode(block), skeleton) for block, skeleton in zip(blocks, orjson.loads(entry.skeletons), strict=True)
        ]

    def body(self) -> bytearray:
        """Every message, as the JSON text between the brackets of a request's `messages`.

        It is the history's own, and changes with it: copied once, into the request that is made of it.
        """
        return self._body

    def messages(self) -> list[dict[str, Any]]:
        """Every message as plain API dicts, made anew."""
        return cast("list[dict[str, Any]]", decode(b"".join((b"[", self._body, b"]"))))

    def own_id(self, wanted: str, taken: Collection[str]) -> str:
        """The id that a new tool_use gets: the wanted one, or one made of it where that is taken or not allowed.

        Taken are the ids of the history and those in `taken`.
        """
        fits = len(wanted) <= LONGEST and CALL_ID.fullmatch(wanted)  # a record would not keep all of a longer one
        base = wanted if fits else _NEITHER.sub("_", wanted)[:200] or "toolu"
        own, n = base, 2
        while own in self.tool_use_ids or own in taken:
            own, n = f"{base}_{n}", n + 1
        return own

    def _chain(self, hash_: str) -> None:
        self._digest = digest((self._digest + hash_).encode())
        self._records += 1


def own_name(wanted: str) -> str:
    """The name that a new tool_use gets: the wanted one, or one made of it where the API would not take it back."""
    return wanted if TOOL_NAME.fullmatch(wanted) else _NEITHER.sub("_", wanted)[:128] or "_"


def _end(entries: Sequence[_Entry], body: bytearray, index: int) -> int:
    """Where the bytes of an entry end."""
    return entries[index + 1].start - 1 if index + 1 < len(entries) else len(body)


def _entry(start: int, joining: Joining, encoded: bytes, hashes: bytes) -> _Entry:
    packed = _packed([skeleton for _, skeleton in joining.kept])
    media, marks = weight_of(encoded) - len(encoded), marks_in(encoded)
    return _Entry(start, joining.role, joining.form, hashes, packed, media, marks)


def _message(role: str, form: str, kept: Sequence[Kept]) -> bytes:
    if form == "text":
        return b'{"role":"%b","content":%b}' % (role.encode(), kept[0].encoded)
    return _blocks(role, [encoded for encoded, _ in kept])


def _blocks(role: str, blocks: Sequence[bytes]) -> bytes:
    return b'{"role":"%b","content":[%b]}' % (role.encode(), b",".join(blocks))


def _packed(skeletons: Sequence[dict[str, Any]]) -> bytes:
    return b"".join((orjson.dumps(skeletons), b""))  # a copy that takes what it needs, as of `encode`


def weight_of(encoded: bytes) -> int:
    """The bytes of an encoded message, with each picture or document at a flat rate."""
    weight = len(encoded)
    if encoded.find(b"base64") >= 0:
        for data in _BASE64.finditer(encoded):
            weight += _BASE64_WEIGHT - len(data.group())
    return weight
