"""Rewriting the history: how the edits of compression get into it, and into the log."""

from collections.abc import Iterator, Sequence
from itertools import islice
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

_NOTHING_TOLD: dict[str, Any] = {}


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
    ordered = in_order(edits)
    if at.journal.has_redacted:
        ordered = tuple(_without_halves(at, messages, edit) for edit in ordered)
    if problems := list(edit_problems(messages, ordered)):
        raise InvalidCompression(what, problems)
    rewrites = _rewrites(at.journal, at.history, messages, ordered)
    at.history.rewrite(rewrites, at.journal.edits(rewrites).hash)


def _without_halves(at: Workplace, messages: Sequence[Message], edit: Edit) -> Edit:
    """An edit that leaves no half of a secret where it cuts a text."""
    places = range(edit.start, edit.stop)
    commitments = (str(part["commitment"]) for place in places for part in at.history.skeletons(place))
    made = at.journal.without_halves(edit.messages, messages[edit.start : edit.stop], commitments)
    return edit if made is edit.messages else edit._replace(messages=tuple(made))


def _rewrites(journal: Journal, history: History, messages: Sequence[Message], edits: Sequence[Edit]) -> list[Rewrite]:
    """What the edits put into the history. Parts that are the very same objects as before keep their commitment.

    Of a result that has got another content, the record says what it said before, but for that.
    """
    now: list[Part] = []  # every part of the new messages
    was: list[Part | None] = []  # what stood in its place: itself where it stays, None where it is something new
    told: list[dict[str, Any]] = []  # what records say of that
    skeletons = iter(history.skeletons_at([edit.start for edit in edits if edit.is_of_one]))
    for edit in edits:
        if edit.is_of_one:
            before, parts, skeletons_before = _parts(messages[edit.start]), _parts(edit.messages[0]), next(skeletons)
            if len(before) == len(parts):
                now += parts
                was += before
                told += skeletons_before
                continue
        stood = _stood(history, messages, edit)
        for part in (part for message in edit.messages for part in _parts(message)):
            now.append(part)
            was.append(part if id(part) in stood else None)
            told.append(stood.get(id(part), _NOTHING_TOLD))
    triples = list(zip(now, was, told, strict=True))
    made = iter(
        journal.keep_all(
            [part for part, before, _ in triples if part is not before],
            [_of_result(part, before, skeleton) for part, before, skeleton in triples if part is not before],
        )
    )
    kept = iter([Kept(encode(part), skeleton) if part is before else next(made) for part, before, skeleton in triples])
    return [Rewrite(edit.start, edit.stop, [_joining(message, kept) for message in edit.messages]) for edit in edits]


def _stood(history: History, messages: Sequence[Message], edit: Edit) -> dict[int, dict[str, Any]]:
    """What records say of those parts of an edit's new messages that stood in the old ones, by who they are."""
    new = {id(part) for message in edit.messages for part in _parts(message)}
    stood: dict[int, dict[str, Any]] = {}
    for place in range(edit.start, edit.stop):
        if not new.isdisjoint(map(id, parts := _parts(messages[place]))):
            told = zip(parts, history.skeletons(place), strict=True)
            stood.update((id(part), skeleton) for part, skeleton in told if id(part) in new)
    return stood


def _of_result(now: Part, was: Part | None, told: dict[str, Any]) -> dict[str, Any] | None:
    """What is told of a result, where it is the one that is told of now as well, but for its content."""
    if was is None or isinstance(was, str) or isinstance(now, str):
        return None
    if not was["type"] == "tool_result" == now["type"] or was["tool_use_id"] != now["tool_use_id"]:
        return None
    return told if was.get("is_error") is now.get("is_error") else None


def _joining(message: Message, kept: Iterator[Kept]) -> Joining:
    """A message that joins, of as many parts as it has."""
    content: str | list[dict[str, Any]] = message["content"]
    if isinstance(content, str):
        return Joining(message["role"], "text", [next(kept)])
    return Joining(message["role"], "blocks", list(islice(kept, len(content))))


def _parts(message: Message) -> Sequence[Part]:
    content: str | list[dict[str, Any]] = message["content"]
    return (content,) if isinstance(content, str) else content
