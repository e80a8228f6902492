"""Whether a history is still one that the API takes once it has been edited, told by what the edits changed."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from looplatch.recovery.compression.edits import Edit, apply, in_order
from looplatch.recovery.compression.exchanges import THINKING, blocks_of
from looplatch.recovery.content import cache_marks, content_problems
from looplatch.recovery.validity import history_problems
from looplatch.recovery.weights import Message

_SAID: Final[Message] = {"role": "user", "content": "-"}


def edit_problems(messages: Sequence[Message], edits: Sequence[Edit]) -> Iterator[str]:
    """Every reason why the API would refuse the edited `messages`, which it takes as they are.

    The same as `history_problems` of the edited history. Where an edit only gives results another content or leaves
    thinking out, calls and results are paired as before, and roles follow as they did. Around each of the others, only
    the turns that it reaches are looked through; the whole history is where that does not do, to say what is wrong.
    """
    others = [edit for edit in edits if not _keeps_order(messages, edit)]
    if others and not _is_right_around(messages, edits, others):
        yield from history_problems(apply(messages, edits))


def _is_right_around(messages: Sequence[Message], edits: Sequence[Edit], others: Sequence[Edit]) -> bool:
    """Whether every run of whole turns with some of the `others` in it is taken by itself, and between those behind it.

    A turn that begins behind the user's side owes nothing to what is before it, but for results of calls that the
    server's tools made earlier, and the number of cache marks.
    """
    gone = [block for edit in others for message in messages[edit.start : edit.stop] for block in blocks_of(message)]
    new = [block for edit in others for message in edit.messages for block in blocks_of(message)]
    if any("caller" in block for block in gone) or cache_marks(new) > cache_marks(gone):
        return False
    for start, stop in _runs(messages, others):
        within = (Edit(a - start, b - start, new) for a, b, new in edits if start <= a and b <= stop)
        run = apply(messages[start:stop], within)
        if start and not (run and run[0]["role"] == "assistant"):
            return False
        if stop < len(messages) and not (run and run[-1]["role"] == "user"):
            return False
        if any(history_problems([_SAID, *run] if start else run)):
            return False
    return True


def _runs(messages: Sequence[Message], edits: Sequence[Edit]) -> Iterator[tuple[int, int]]:
    """The shortest runs of whole turns that have the edits in them: each begins where the model speaks anew."""
    run: tuple[int, int] | None = None
    for edit in in_order(edits):
        start, stop = edit.start, edit.stop
        while start > 0 and not _begins_turn(messages, start):
            start -= 1
        while stop < len(messages) and not _begins_turn(messages, stop):
            stop += 1
        if run is not None and run[1] <= start:
            yield run
        elif run is not None:
            start = run[0]
        run = start, stop
    if run is not None:
        yield run


def _begins_turn(messages: Sequence[Message], place: int) -> bool:
    """Whether the model speaks at a place behind the user's side."""
    return 0 < place < len(messages) and messages[place]["role"] == "assistant" != messages[place - 1]["role"]


def _keeps_order(messages: Sequence[Message], edit: Edit) -> bool:
    """Whether an edit leaves one message in its place that by itself is as good as the old one."""
    if not edit.is_of_one:
        return False
    [new] = edit.messages
    old = messages[edit.start]
    was: Sequence[Mapping[str, Any]] | str = old["content"]
    now: Sequence[Mapping[str, Any]] | str = new["content"]
    if new["role"] != old["role"] or isinstance(was, str) or isinstance(now, str):
        return False
    if old["role"] == "assistant":
        return _only_stops_thinking(was, now)
    if len(was) != len(now):
        return False
    for before, after in zip(was, now, strict=True):
        if before is not after and not _is_refilled(before, after):
            return False
    return True


def _only_stops_thinking(was: Sequence[Mapping[str, Any]], now: Sequence[Mapping[str, Any]]) -> bool:
    left = [block for block in was if block["type"] not in THINKING]
    return bool(now) and len(left) == len(now) and all(a is b for a, b in zip(left, now, strict=True))


def _is_refilled(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether a result answers the same call as before, with content that the API takes and no more cache marks."""
    if not old["type"] == "tool_result" == new["type"] or old["tool_use_id"] != new.get("tool_use_id"):
        return False
    if isinstance(new.get("content"), str) and new["content"] and "cache_control" not in new:
        return True
    return not any(content_problems(0, "user", (new,))) and cache_marks((new,)) <= cache_marks((old,))
