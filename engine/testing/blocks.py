"""Content blocks, as a script names them."""

import hashlib
import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn, TypeAlias

from attrs import frozen

from looplatch.states.brief import brief
from looplatch.testing.errors import ScriptError, check_kind
from looplatch.testing.shapes import is_object

Pieces: TypeAlias = int | Sequence[str] | None
"""How a text is cut into deltas: None is one delta, a number that many about equal ones, a list these very strings."""


@frozen(kw_only=True)
class Block:
    """One content block: `start` and `deltas` as the stream carries them, `whole` as an unstreamed answer holds it.

    `closed=False` leaves the `content_block_stop` out, as a stream does that was cut inside the block.
    """

    whole: Mapping[str, Any]
    start: Mapping[str, Any]
    deltas: tuple[Mapping[str, Any], ...] = ()
    closed: bool = True


BlockLike: TypeAlias = Block | str | Mapping[str, Any]


def text(
    value: str, pieces: Pieces = None, *, closed: bool = True, citations: Sequence[Mapping[str, Any]] = ()
) -> Block:
    """A text block; an empty `value` has no delta. `citations` come as `citations_delta` before the text."""
    check_kind("text(value)", value, str, "a text")
    check_kind("text(closed)", closed, bool, "True or False")
    check_kind("text(citations)", citations, list | tuple, "a list of dicts")
    start: dict[str, Any] = {"type": "text", "text": ""}
    if citations:
        start["citations"] = []
    deltas: list[Mapping[str, Any]] = [{"type": "citations_delta", "citation": citation} for citation in citations]
    deltas += [{"type": "text_delta", "text": piece} for piece in _cut(value, pieces)]
    whole = {**start, "text": value, **({"citations": list(citations)} if citations else {})}
    return Block(whole=whole, start=start, deltas=tuple(deltas), closed=closed)


def thinking(value: str, signature: str | None = None, pieces: Pieces = None, *, closed: bool = True) -> Block:
    """A thinking block. Without `signature` it gets one made from its text; with `""` it stays unsigned."""
    check_kind("thinking(value)", value, str, "a text")
    check_kind("thinking(signature)", signature, str | None, "a text, or None for one made from the thinking")
    check_kind("thinking(closed)", closed, bool, "True or False")
    if signature is None:
        signature = "sig_" + hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    deltas: list[Mapping[str, Any]] = [{"type": "thinking_delta", "thinking": piece} for piece in _cut(value, pieces)]
    if signature:
        deltas.append({"type": "signature_delta", "signature": signature})
    start = {"type": "thinking", "thinking": "", "signature": ""}
    whole = {"type": "thinking", "thinking": value, "signature": signature}
    return Block(whole=whole, start=start, deltas=tuple(deltas), closed=closed)


def redacted_thinking(data: str) -> Block:
    """A redacted thinking block; all of it comes in `content_block_start`."""
    check_kind("redacted_thinking(data)", data, str, "a text")
    return block({"type": "redacted_thinking", "data": data})


def tool_use(
    id: str,  # noqa: A002 - the API's own word
    name: str,
    input: Mapping[str, Any] | str | None = None,  # noqa: A002 - the API's own word
    pieces: Pieces = None,
    closed: bool = True,
    caller: Mapping[str, Any] | None = None,
) -> Block:
    """A call of a client tool.

    `input` is an object, or the raw JSON text that the deltas spell (which need not be valid), or None for a block
    without any delta. An empty object is one empty delta, as the API sends it.
    """
    return _call("tool_use", id, name, input, pieces, closed, _caller("tool_use", caller))


def server_tool_use(
    id: str,  # noqa: A002 - the API's own word
    name: str,
    input: Mapping[str, Any] | str | None = None,  # noqa: A002 - the API's own word
    pieces: Pieces = None,
    closed: bool = True,
    caller: Mapping[str, Any] | None = None,
) -> Block:
    """A call that the API runs itself; the arguments are those of `tool_use`."""
    return _call("server_tool_use", id, name, input, pieces, closed, _caller("server_tool_use", caller))


def block(whole: Mapping[str, Any], deltas: Iterable[Mapping[str, Any]] = (), *, closed: bool = True) -> Block:
    """Any other block: `whole` is its `content_block_start`, followed by `deltas` if there are any."""
    check_kind("block(whole)", whole, Mapping, "the block as a dict")
    check_kind("block(deltas)", deltas, Iterable, "a list of dicts")
    check_kind("block(closed)", closed, bool, "True or False")
    listed = tuple(deltas)
    for delta in listed:
        check_kind("block(deltas): one of them", delta, Mapping, "dicts")
    return Block(whole=dict(whole), start=dict(whole), deltas=listed, closed=closed)


def as_block(item: BlockLike) -> Block:
    """A string is a text block, a mapping is `block(mapping)`."""
    match item:
        case Block():
            return item
        case str():
            return text(item)
        case _:
            check_kind("a block", item, Mapping, "a text, a dict, or what text(), thinking(), tool_use() … return")
            return block(item)


def recorded_block(whole: Mapping[str, Any]) -> Block:
    """A block as an unstreamed answer held it, streamed as the API would."""
    match whole.get("type"):
        case "text":
            made = text(whole["text"], citations=whole.get("citations") or ())
        case "thinking":
            made = thinking(whole["thinking"], whole.get("signature") or "")
        case "tool_use" | "server_tool_use" | "mcp_tool_use" as kind:
            extra = {key: value for key, value in whole.items() if key not in ("type", "id", "name", "input")}
            made = _call(kind, whole["id"], whole["name"], whole["input"], None, True, extra)
        case _:
            made = block(whole)
    return Block(whole=dict(whole), start=made.start, deltas=made.deltas)


def _call(
    kind: str,
    call_id: str,
    name: str,
    value: Mapping[str, Any] | str | None,
    pieces: Pieces,
    closed: bool,
    extra: Mapping[str, Any],
) -> Block:
    for field, given in (("id", call_id), ("name", name)):
        check_kind(f"{kind}({field})", given, str, "a text")
    check_kind(f"{kind}(input)", value, Mapping | str | None, "a dict, the JSON text of one, or None")
    check_kind(f"{kind}(closed)", closed, bool, "True or False")
    _check_pieces(pieces)
    match value:
        case None | "":
            spelt: tuple[str, ...] = ()
        case str():
            spelt = _cut(value, pieces)
        case _ if not value:
            spelt = ("",)
        case _:
            spelt = _cut(json.dumps(value, ensure_ascii=False), pieces)
    start: dict[str, Any] = {"type": kind, "id": call_id, "name": name, "input": {}, **extra}
    deltas = tuple({"type": "input_json_delta", "partial_json": piece} for piece in spelt)
    return Block(whole={**start, "input": _object(value)}, start=start, deltas=deltas, closed=closed)


def _caller(kind: str, caller: Mapping[str, Any] | None) -> dict[str, Any]:
    check_kind(f"{kind}(caller)", caller, Mapping | None, "a dict, or None")
    return {} if caller is None else {"caller": dict(caller)}


def _object(value: Mapping[str, Any] | str | None) -> Mapping[str, Any]:
    """What an unstreamed answer holds as the input; text that is no JSON object cannot occur there."""
    if isinstance(value, str):
        try:
            parsed = json.loads(value, parse_constant=_refuse)
        except ValueError:
            return {}
        return parsed if is_object(parsed) else {}
    return dict(value or {})


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


def _check_pieces(pieces: Pieces) -> None:
    wanted = "a number of pieces, a list of them, or None"
    check_kind("pieces", pieces, Sequence | int | None, wanted)
    if isinstance(pieces, bool):
        raise ScriptError(f"pieces is {pieces}; give {wanted}")


def _cut(value: str, pieces: Pieces) -> tuple[str, ...]:
    _check_pieces(pieces)
    match pieces:
        case None:
            return (value,) if value else ()
        case int():
            if not 1 <= pieces <= max(1, len(value)):
                raise ScriptError(f"pieces={pieces}: a text of {len(value)} characters cannot be cut into that many")
            size, longer = divmod(len(value), pieces)
            ends = [number * size + min(number, longer) for number in range(pieces + 1)]
            return tuple(value[start:end] for start, end in itertools.pairwise(ends))
        case _:
            if not all(isinstance(piece, str) for piece in pieces) or "".join(pieces) != value:  # pyright: ignore[reportUnnecessaryIsInstance]
                raise ScriptError(f"pieces={brief(list(pieces))} do not join to {brief(value)}")
            return tuple(pieces)
