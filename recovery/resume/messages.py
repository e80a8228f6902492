"""The history as the message records make it, kept by what stands for its contents."""

from collections.abc import Sequence
from typing import assert_never

from looplatch.recovery.compression.edits import replaced
from looplatch.recovery.resume.past import Entry, Part, Skeleton
from looplatch.states.record import Record
from looplatch.states.vocabulary import Op


class MessageFold:
    """Follows the message records.

    ids: of every tool_use that ever joined. spoken: something was said on the user's side since the last move. base:
    the history before a compression that has no move yet, and in schema 2 may be cut in the middle; None where nothing
    was taken out since. There, every compression begins by taking something out.
    """

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self.ids: set[str] = set()
        self.spoken = False
        self.base: tuple[Entry, ...] | None = None

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The messages as they are now."""
        return tuple(self._entries)

    def settle(self) -> None:
        """What came before is whole: a move was made, or something was begun that goes by it."""
        self.base = None

    def moved(self) -> None:
        """A move was made."""
        self.settle()
        self.spoken = False

    def take(self, record: Record) -> None:
        """A message record. Raises IndexError or ValueError where it does not fit the history before it."""
        op = Op(record["op"])
        match op:
            case Op.EDIT:
                self._edit(record)
            case Op.LEAVE:
                self._leave(record["index"], record.get("count", 1))
            case Op.EXTEND:
                part, index = self._part(record, record["blocks"]), int(record["index"])
                last = self._entries[index]
                self._entries[index] = Entry(last.role, last.form, (*last.parts, part))
            case Op.JOIN:
                part, index = self._part(record, record["blocks"]), int(record["index"])
                if not 0 <= index <= len(self._entries):
                    raise IndexError(f"index {index} of {len(self._entries)}")
                self._entries.insert(index, Entry(record["role"], record["form"], (part,)))
            case _:
                assert_never(op)
        if op in (Op.JOIN, Op.EXTEND):
            self.spoken = self.spoken or record["role"] == "user"

    def _leave(self, index: int, count: int) -> None:
        """Messages went, one by one or together; up to schema 2."""
        stop = index + count
        if not 0 <= index < stop <= len(self._entries):
            raise IndexError(f"index {index} to {stop} of {len(self._entries)}")
        self.base = self.entries if self.base is None else self.base
        del self._entries[index:stop]

    def _edit(self, record: Record) -> None:
        """Messages gave way to others, all at once."""
        edited = replaced(
            self._entries,
            (
                (
                    edit["start"],
                    edit["stop"],
                    [Entry(one["role"], one["form"], (self._part(record, one["blocks"]),)) for one in edit["messages"]],
                )
                for edit in record["edits"]
            ),
        )
        self.base = self.entries if self.base is None else self.base
        self._entries = edited

    def _part(self, record: Record, blocks: Sequence[Skeleton]) -> Part:
        self.ids.update(block["id"] for block in blocks if block["type"] == "tool_use")
        return Part(record.hash, tuple(blocks))
