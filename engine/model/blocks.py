"""One content block of an answer: what has come of it so far, and what it is when it is finished."""

from typing import Any, Final

import attrs

from looplatch.encoding import EncodeError, copied, encode, mend, mend_surrogates
from looplatch.model.inputs import ParsedInput, parse_input, why_unsendable
from looplatch.model.known import fits_delta, problem_of, with_texts
from looplatch.model.shapes import is_array
from looplatch.recovery.failure import BadStream

_INPUT_DELTA: Final = "input_json_delta"
# The deltas that come in large numbers, and the field that each carries.
STREAMED: Final = {"text_delta": "text", "thinking_delta": "thinking", _INPUT_DELTA: "partial_json"}
# Which of them a block may have; a block of a type that is not listed may have all.
_OWN_DELTA: Final = {
    "text": "text_delta",
    "thinking": "thinking_delta",
    "tool_use": _INPUT_DELTA,
    "server_tool_use": _INPUT_DELTA,
    "mcp_tool_use": _INPUT_DELTA,
}
_WITH_INPUT: Final = frozenset(kind for kind, delta in _OWN_DELTA.items() if delta == _INPUT_DELTA)


@attrs.frozen(kw_only=True)
class ParsedCall:
    """A tool call of the model's, read once and strictly.

    `input` is None when it is unusable, and `error` says why then; it is the very object that the block holds, so copy
    it before it goes to code that might change it. `raw` is the JSON text as it came. `empty`: nothing came of the
    input, which is a call without arguments or one that was cut before it began; only what follows in the answer can
    tell. `direct`: the model itself calls, not a server tool. `toolset`: the toolset that the call is an action of.
    """

    id: str
    name: str
    input: dict[str, Any] | None
    raw: str
    error: str | None
    empty: bool
    direct: bool
    toolset: str | None = None


@attrs.frozen(kw_only=True)
class FinishedBlock:
    """A whole content block, as the API takes it back; `call` is set for `tool_use` blocks.

    `sendable` is False for what the API refuses or cannot check: a text block without text, thinking without signature,
    redacted thinking without data.
    """

    index: int
    block: dict[str, Any]
    call: ParsedCall | None
    sendable: bool


class OpenBlock:
    """A content block that is being written."""

    __slots__ = ("_block", "_pieces", "index", "sinks", "type")

    def __init__(self, index: int, start: dict[str, Any]) -> None:
        """`start` is the block as `content_block_start` gives it; it is not changed.

        Raises BadStream when it has no type.
        """
        kind = start.get("type")
        if not isinstance(kind, str):
            raise BadStream(f"content block {index} has no type")
        self.index = index
        self.type = kind
        self._block: dict[str, Any] = copied(start)
        self._pieces: dict[str, list[str]] = {}
        own = _OWN_DELTA.get(kind)
        deltas = STREAMED if own is None else (own,)
        self.sinks: dict[str, tuple[str, list[str]]] = {
            delta: (STREAMED[delta], self._pieces_of(STREAMED[delta])) for delta in deltas
        }
        """For each delta type that comes often: the field that it carries, and the list that its pieces go to."""

    def merge(self, delta: dict[str, Any]) -> int:
        """Take a delta that is none of the frequent ones; return roughly how many characters it added."""
        match delta:
            case {"type": "citations_delta", "citation": citation}:
                self._check_fit("citations_delta", "citations")
                return self._merge_field("citations", [copied(citation)])
            case {"type": "signature_delta", "signature": str(signature)}:
                self._check_fit("signature_delta", "signature")
                self._block["signature"] = signature  # it comes whole, so it is no piece of one
                return len(signature)
            case {"type": str(kind)} if kind in STREAMED:
                raise self._misfit(kind)
            case _:
                fields = {field: value for field, value in delta.items() if field != "type"}
                for field in fields:
                    self._check_fit(f"{delta.get('type')!s:.100}", field)
                return sum(self._merge_field(field, copied(value)) for field, value in fields.items())

    def _check_fit(self, delta: str, field: str) -> None:
        if not fits_delta(self.type, field):
            raise self._misfit(delta)

    def _misfit(self, delta: str) -> BadStream:
        return BadStream(f"a {delta} does not fit content block {self.index}, which is a {self.type} block")

    def finish(self) -> FinishedBlock:
        """Return the block as it is now, as a finished one, which shares what it holds with this one.

        Raises BadStream when it is not what its type must be.
        """
        block = dict(self._block)
        for field, pieces in self._pieces.items():
            if pieces and field != "partial_json":
                block[field] = "".join(pieces)
        block = with_texts(block)
        if (problem := problem_of(block)) is not None:
            raise BadStream(f"content block {self.index} is a {self.type} {problem}")
        raw = mend_surrogates("".join(self._pieces.get("partial_json", ())))
        call: ParsedCall | None = None
        if self.type in _WITH_INPUT or raw:
            parsed = parse_input(raw, block.get("input"))
            block["input"] = parsed.sendable
            if self.type == "tool_use":
                call = self._call(block, parsed)
        if (problem := why_unsendable({**block, "input": None} if self.type in _WITH_INPUT else block)) is not None:
            raise BadStream(f"content block {self.index} cannot be sent back: it {problem}")
        try:
            block = mend(block)
        except EncodeError as error:
            raise BadStream(f"content block {self.index} cannot be sent back: {error.problem}") from None
        return FinishedBlock(index=self.index, block=block, call=call, sendable=_is_sendable(block))

    def _call(self, block: dict[str, Any], parsed: ParsedInput) -> ParsedCall:
        match block.get("caller"):
            case None | {"type": "direct"}:
                direct = True
            case _:
                direct = False
        return ParsedCall(
            id=mend_surrogates(block["id"]),
            name=mend_surrogates(block["name"]),
            input=parsed.value,
            raw=parsed.raw,
            error=parsed.error,
            empty=parsed.empty,
            direct=direct,
            toolset=mend_surrogates(toolset) if isinstance(toolset := self._block.get("toolset_name"), str) else None,
        )

    def _pieces_of(self, field: str) -> list[str]:
        """The list of the pieces of a text field; what the block began with comes first."""
        pieces = self._pieces.get(field)
        if pieces is None:
            begun = self._block.get(field)
            pieces = self._pieces[field] = [begun] if isinstance(begun, str) and begun else []
        return pieces

    def _merge_field(self, field: str, value: object) -> int:
        """Texts are joined, lists extended; of anything else the last one holds, and null changes nothing."""
        current = self._block.get(field)
        if value is None:
            self._block.setdefault(field, None)
            return 0
        if isinstance(value, str) and (current is None or isinstance(current, str)):
            self._pieces_of(field).append(value)
            return len(value)
        if is_array(value) and is_array(current):
            current += value
        else:
            self._block[field] = value
        return size_of(value)


def size_of(value: object) -> int:
    """Return roughly how many characters `value` has as JSON. Raises BadStream when it cannot be sent back."""
    try:
        return len(encode(value))
    except EncodeError as error:
        raise BadStream(f"a content block cannot be sent back: {error.problem}") from None


def _is_sendable(block: dict[str, Any]) -> bool:
    match block.get("type"):
        case "text":
            return bool(block.get("text"))
        case "thinking":
            return bool(block.get("signature"))
        case "redacted_thinking":
            return bool(block.get("data"))
        case _:
            return True
