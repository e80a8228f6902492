"""Rewriting the history: how the edits of compression get into it, and into the log."""

from collections.abc import Callable, Sequence
from typing import Any

from looplatch.encoding import encode
from looplatch.history import Joining, Rewrite
from looplatch.kept import Kept
from looplatch.recovery.compression.edits import Edit, apply, in_order
from looplatch.recovery.compression.revising import edit_problems
from looplatch.recovery.weights import Message
from looplatch.states.errors import LooplatchError
from looplatch.workplace import Workplace


class InvalidCompression(LooplatchError):
    """A change of the history made one that the API would refuse; nothing was changed. A fault of looplatch's."""

    def __init__(self, what: str, problems: Sequence[str]) -> None:
        super().__init__(f"{what} made an invalid history, please report it: {'; '.join(problems)}")
        self.what = what
        self.problems = tuple(problems)


def rewrite(at: Workplace, what: str, messages: Sequence[Message], edits: Sequence[Edit]) -> list[Message]:
    """Change the history by `edits`, which count in `messages`, and record each message that leaves or joins it.

    Returns the messages as they are then. Raises InvalidCompression, and changes nothing, where the API would refuse
    what comes of it; `what` made the edits.
    """
    if problems := list(edit_problems(messages, edits)):
        raise InvalidCompression(what, problems)
    ordered = in_order(edits)
    # From the end, so that the places of those before still hold.
    at.history.rewrite([_recorded(at, messages, edit) for edit in reversed(ordered)][::-1])
    return apply(messages, edits)


def _recorded(at: Workplace, messages: Sequence[Message], edit: Edit) -> Rewrite:
    """Record an edit. What it leaves as it was, the very same objects, keeps the commitment that it has."""
    journal, history = at.journal, at.history
    known: dict[int, dict[str, Any]] = {}
    for place in range(edit.start, edit.stop):
        content = messages[place]["content"]
        was: list[Any] = [content] if isinstance(content, str) else content
        known.update((id(part), skeleton) for part, skeleton in zip(was, history.skeletons(place), strict=True))
    if edit.stop > edit.start:
        journal.leaves(edit.start, edit.stop, history.role(edit.start))
    joining: list[Joining] = []
    for place, message in enumerate(edit.messages, edit.start):
        role, content = message["role"], message["content"]
        form = "text" if isinstance(content, str) else "blocks"
        parts: list[Any] = [content] if isinstance(content, str) else content
        keep: Callable[[Any], Kept] = journal.keep_text if form == "text" else journal.keep
        kept = [Kept(encode(part), known[id(part)]) if id(part) in known else keep(part) for part in parts]
        record = journal.message("join", place, role, form, kept, **_answer_fields(role))
        joining.append(Joining(role, form, kept, record.hash))
    return Rewrite(edit.start, edit.stop, joining)


def _answer_fields(role: str) -> dict[str, None]:
    """The fields that the record of an assistant's message has; this one is no answer of the model's."""
    return dict.fromkeys(("message_id", "model", "stop_reason")) if role == "assistant" else {}
