"""Whether a history is still one that the API takes once it has been edited, told by what the edits changed."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from looplatch.recovery.compression.edits import Edit, apply
from looplatch.recovery.compression.exchanges import THINKING
from looplatch.recovery.content import cache_marks, content_problems
from looplatch.recovery.validity import history_problems
from looplatch.recovery.weights import Message


def edit_problems(messages: Sequence[Message], edits: Sequence[Edit]) -> Iterator[str]:
    """Every reason why the API would refuse the edited `messages`, which it takes as they are.

    The same as `history_problems` of the edited history. That is not looked through where each edit only gives results
    another content or leaves thinking out: calls and results are then paired as before, and roles follow as they did.
    """
    if not all(_keeps_order(messages, edit) for edit in edits):
        yield from history_problems(apply(messages, edits))


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
