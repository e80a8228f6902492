"""Rewriting the history: how the edits of compression get into it, and into the log."""

from collections.abc import Sequence
from typing import Any

from looplatch.encoding import encode
from looplatch.journal import Journal
from looplatch.recovery.compression.edits import Edit, in_order
from looplatch.recovery.compression.revising import edit_problems
from looplatch.recovery.weights import Message
from looplatch.requests.history import History, Joining, Rewrite
from looplatch.requests.kept import Kept
from looplatch.states.errors import LooplatchError
from looplatch.workplace import Workplace

Part = dict[str, Any] | str
"""A content block, or the text that is all the content of a message."""


class InvalidCompression(LooplatchError):
    """A change of the history made one that the API would refuse; nothing was changed. A fault of looplatch's."""

    def __init__(self, what: str, problems: Sequence[str]) -> None:
        super().__init__(f"{what} made an invalid history, please report it: {'; '.join(problems)}")
        self.what = what
        self.problems = tuple(problems)


def rewrite(at: Workplace, what: str, messages: Sequence[Message], edits: Sequence[Edit]) -> None:
    """Change the history by `edits`, which count in `messages`, and write all of it down as one record.

    Raises InvalidCompression, and changes nothing, where the API would refuse what comes of it; `what` made the edits.
    """
    if at.journal.has_redacted:
        edits = [_without_halves(at, messages, edit) for edit in edits]
    if problems := list(edit_problems(messages, edits)):
        raise InvalidCompression(what, problems)
    ordered = in_order(edits)
    kept = _kept(at.journal, at.history, messages, ordered)
    rewrites = [
        Rewrite(edit.start, edit.stop, [_joining(message, kept) for message in edit.messages]) for edit in ordered
    ]
    at.history.rewrite(rewrites, at.journal.edits(rewrites).hash)


def _without_halves(at: Workplace, messages: Sequence[Message], edit: Edit) -> Edit:
    """An edit that leaves no half of a secret where it cuts a text."""
    places = range(edit.start, edit.stop)
    commitments = (str(part["commitment"]) for place in places for part in at.history.skeletons(place))
    made = at.journal.without_halves(edit.messages, messages[edit.start : edit.stop], commitments)
    return edit if made is edit.messages else edit._replace(messages=tuple(made))


def _kept(journal: Journal, history: History, messages: Sequence[Message], edits: Sequence[Edit]) -> dict[int, Kept]:
    """All parts of the new messages, by who they are: the very same objects as before keep the commitment they have.

    Of a result that has got another content, the record says what it said before, but for that.
    """
    kept: dict[int, Kept] = {}
    new: dict[int, Part] = {}
    told: dict[int, dict[str, Any]] = {}  # of those that are new
    for edit in edits:
        if edit.is_of_one and len(now := _parts(edit.messages[0])) == len(old := _parts(messages[edit.start])):
            for part, was, skeleton in zip(now, old, history.skeletons(edit.start), strict=True):
                if part is was:
                    kept[id(part)] = Kept(encode(part), skeleton)
                else:
                    new[id(part)] = part
                    if _answers_as_before(was, part):
                        told[id(part)] = skeleton
            continue
        parts = {id(part): part for message in edit.messages for part in _parts(message)}
        for place in range(edit.start, edit.stop):
            if not parts.keys().isdisjoint(map(id, old := _parts(messages[place]))):
                for part, skeleton in zip(old, history.skeletons(place), strict=True):
                    if id(part) in parts:
                        kept[id(part)] = Kept(encode(part), skeleton)
        new.update((own, part) for own, part in parts.items() if own not in kept)
    kept.update(zip(new, journal.keep_all(list(new.values()), list(map(told.get, new))), strict=True))
    return kept


def _answers_as_before(was: Part, now: Part) -> bool:
    """Whether a result is told of as another one was, but for its content."""
    if isinstance(was, str) or isinstance(now, str) or not was["type"] == "tool_result" == now["type"]:
        return False
    return was["tool_use_id"] == now["tool_use_id"] and was.get("is_error") is now.get("is_error")


def _joining(message: Message, kept: dict[int, Kept]) -> Joining:
    form = "text" if isinstance(message["content"], str) else "blocks"
    return Joining(message["role"], form, [kept[id(part)] for part in _parts(message)])


def _parts(message: Message) -> Sequence[Part]:
    content: str | list[dict[str, Any]] = message["content"]
    return (content,) if isinstance(content, str) else content
