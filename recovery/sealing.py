"""What of an unfinished answer stays in the history, so that the history can be sent as it is."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from looplatch.recovery.closing import SERVER_CALLS


class Finished(Protocol):
    """A finished content block of an answer."""

    @property
    def index(self) -> int:
        """Its position in the answer."""
        ...

    @property
    def block(self) -> dict[str, Any]:
        """The block, as the API takes it back."""
        ...

    @property
    def sendable(self) -> bool:
        """Whether the API takes it back at all."""
        ...


F = TypeVar("F", bound=Finished)


def sealed_prefix(finished: Sequence[F], last_begun: int) -> list[F]:
    """The blocks of a cut answer up to the last call that began; the rest of the answer did not happen."""
    return _closed([block for block in finished if block.index <= last_begun])


def whole_answer(finished: Iterable[F], *, text_follows: bool, paused: bool) -> list[F]:
    """The blocks of an answer that came to its end; of a paused one all, as it goes back as it came.

    But for white space at its very end, which is `trimmed` before.
    """
    kept = [block for block in finished if block.sendable]
    return kept if text_follows or paused else _without_last_thoughts(kept)


def stopped_answer(finished: Sequence[F], *, text_follows: bool) -> list[F]:
    """The finished blocks of an answer that was stopped from outside; its calls get their true results."""
    kept = _closed(finished)
    return kept if text_follows else _without_last_thoughts(kept)


def _without_last_thoughts(blocks: list[F]) -> list[F]:
    """Without the thinking at the end: the API refuses an assistant's message, before another one, that ends in it."""
    kept = list(blocks)
    while kept and kept[-1].block.get("type") in ("thinking", "redacted_thinking"):
        kept.pop()
    return kept


def spoken_text(finished: Sequence[F]) -> list[F]:
    """The text blocks of a cut answer: what a request to go on keeps of it."""
    return [block for block in finished if block.sendable and block.block.get("type") == "text"]


def trimmed(texts: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Texts at the end of an answer without the white space at their ends, and without those that are nothing else.

    The API refuses a last message of the assistant's that ends in white space.
    """
    cut = ({**block, "text": str(block["text"]).rstrip()} for block in texts)
    return [block for block in cut if block["text"]]


def _closed(blocks: Iterable[F]) -> list[F]:
    """Without what the API would refuse: empty text, unsigned thinking, server-side calls whose result never came."""
    sendable = [block for block in blocks if block.sendable]
    answered = {block.block.get("tool_use_id") for block in sendable}
    return [block for block in sendable if not _is_servers(block.block) or block.block.get("id") in answered]


def _is_servers(block: Mapping[str, Any]) -> bool:
    """Whether the server answers this call: its own tools', and ours where one of its tools calls them."""
    match block:
        case {"type": str(kind)} if kind in SERVER_CALLS:
            return True
        case {"type": "tool_use", "caller": {"type": str(caller)}}:
            return caller != "direct"
        case _:
            return False
