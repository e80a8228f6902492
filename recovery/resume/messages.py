"""The history as the message records make it, kept by what stands for its contents."""

from collections.abc import Sequence

from looplatch.recovery.compression.edits import replaced
from looplatch.recovery.resume.past import Entry, Part, Skeleton
from looplatch.states.record import Record


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
        entries, op = self._entries, record["op"]
        if op == "edit":
            self._edit(record)
            return
        index: int = record["index"]
        if op == "leave":
            stop = index + record.get("count", 1)
            if not 0 <= index < stop <= len(entries):
                raise IndexError(f"index {index} to {stop} of {len(entries)}")
            self.base = self.entries if self.base is None else self.base
            del entries[index:stop]
            return
        part = self._part(record, record["blocks"])
        if op == "extend":
            last = entries[index]
            entries[index] = Entry(last.role, last.form, (*last.parts, part))
        elif op == "join":
            if not 0 <= index <= len(entries):
                raise IndexError(f"index {index} of {len(entries)}")
            entries.insert(index, Entry(record["role"], record["form"], (part,)))
        else:
            raise ValueError(f"unknown op {op!r}")
        self.spoken = self.spoken or record["role"] == "user"

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
