"""Rewriting the history: how the edits of compression get into it, and into the log."""

from collections.abc import Sequence
from typing import Any

import attrs

from looplatch.encoding import encode
from looplatch.history import History, Joining, Rewrite
from looplatch.journal import Journal
from looplatch.kept import Kept
from looplatch.recovery.compression.edits import Edit, apply, in_order
from looplatch.recovery.compression.revising import edit_problems
from looplatch.recovery.weights import Message
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


def rewrite(at: Workplace, what: str, messages: Sequence[Message], edits: Sequence[Edit]) -> list[Message]:
    """Change the history by `edits`, which count in `messages`, and write all of it down as one record.

    Returns the messages as they are then. Raises InvalidCompression, and changes nothing, where the API would refuse
    what comes of it; `what` made the edits.
    """
    edits = [_without_halves(at, messages, edit) for edit in edits]
    if problems := list(edit_problems(messages, edits)):
        raise InvalidCompression(what, problems)
    ordered = in_order(edits)
    kept = _kept(at.journal, at.history, messages, ordered)
    rewrites = [
        Rewrite(edit.start, edit.stop, [_joining(message, kept) for message in edit.messages]) for edit in ordered
    ]
    at.history.rewrite(rewrites, at.journal.edits(rewrites).hash)
    return apply(messages, ordered)


def _without_halves(at: Workplace, messages: Sequence[Message], edit: Edit) -> Edit:
    """An edit that leaves no half of a secret where it cuts a text."""
    places = range(edit.start, edit.stop)
    commitments = (str(part["commitment"]) for place in places for part in at.history.skeletons(place))
    made = at.journal.without_halves(edit.messages, messages[edit.start : edit.stop], commitments)
    return edit if made is edit.messages else attrs.evolve(edit, messages=tuple(made))


def _kept(journal: Journal, history: History, messages: Sequence[Message], edits: Sequence[Edit]) -> dict[int, Kept]:
    """All parts of the new messages, by who they are: the very same objects as before keep the commitment they have."""
    parts: dict[int, Part] = {id(part): part for edit in edits for message in edit.messages for part in _parts(message)}
    kept: dict[int, Kept] = {}
    for edit in edits:
        for place in range(edit.start, edit.stop):
            old = _parts(messages[place])
            if not parts.keys().isdisjoint(map(id, old)):
                for part, skeleton in zip(old, history.skeletons(place), strict=True):
                    if id(part) in parts:
                        kept[id(part)] = Kept(encode(part), skeleton)
    new = [part for own, part in parts.items() if own not in kept]
    kept.update(zip(map(id, new), journal.keep_all(new), strict=True))
    return kept


def _joining(message: Message, kept: dict[int, Kept]) -> Joining:
    form = "text" if isinstance(message["content"], str) else "blocks"
    return Joining(message["role"], form, [kept[id(part)] for part in _parts(message)])


def _parts(message: Message) -> Sequence[Part]:
    content: str | list[dict[str, Any]] = message["content"]
    return (content,) if isinstance(content, str) else content
