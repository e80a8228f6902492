"""What the messages of a history weigh as it goes on, from the sizes that records give."""

from typing import Any

from looplatch.analysis.fields import list_in
from looplatch.audit import LogDamaged
from looplatch.states.brief import brief
from looplatch.states.record import Kind, Record
from looplatch.states.vocabulary import Op


class Weights:
    """The bytes of each message of the history after the records that were taken."""

    def __init__(self) -> None:
        self._messages: list[int] = []

    def take(self, record: Record) -> dict[str, int] | None:
        """Take the next record; of an edit of the history, what it did: how many messages and bytes, and for what.

        Raises LogDamaged for a record that tells of no message.
        """
        if record.kind is not Kind.MESSAGE:
            return None
        try:
            return self._taken(record)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise LogDamaged(None, record.seq + 1, f"it is not what its kind must be ({brief(error)})") from error

    def _taken(self, record: Record) -> dict[str, int] | None:
        match record.get("op"), record.get("index"):
            case Op.EDIT, _:
                return self._edited(list_in(record, "edits"))
            case Op.JOIN, int(index):
                self._messages.insert(index, _weight(list_in(record, "blocks")))
            case Op.EXTEND, int(index) if 0 <= index < len(self._messages):
                self._messages[index] += _weight(list_in(record, "blocks"))
            case Op.LEAVE, int(index):
                count = record.get("count")
                del self._messages[index : index + (count if isinstance(count, int) else 1)]
            case _:
                pass
        return None

    def _edited(self, edits: list[Any]) -> dict[str, int]:
        change: dict[str, int] = dict.fromkeys(("messages_before", "messages_after", "bytes_before", "bytes_after"), 0)
        for edit in reversed(edits):  # places count in the history before all of them
            start, stop = int(edit["start"]), int(edit["stop"])
            after = [_weight(message["blocks"]) for message in edit["messages"]]
            before, self._messages[start:stop] = self._messages[start:stop], after
            change["messages_before"] += len(before)
            change["messages_after"] += len(after)
            change["bytes_before"] += sum(before)
            change["bytes_after"] += sum(after)
        return change


def _weight(blocks: list[Any]) -> int:
    return sum(int(block["bytes"]) for block in blocks)
