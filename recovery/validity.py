"""Whether a list of messages is a history that the API takes: asked of what a caller hands in."""

from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any, Final, cast

from looplatch.recovery.closing import SERVER_CALLS
from looplatch.recovery.content import CACHE_MARKS, cache_marks, content_problems, is_object
from looplatch.recovery.naming import CALL_ID, TOOL_NAME
from looplatch.states.brief import brief

_ROLES: Final = ("user", "assistant", "system")


def history_problems(messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Every reason why the API would refuse `messages`, as text that names the message; none if it would not.

    Messages of one role in a row are allowed (the API joins them); a last message of the assistant's is, too.
    """
    if not messages:
        yield "there are no messages"
        return
    if messages[0].get("role") != "user" and not _is_compacted(messages[0]):
        yield f"messages.0: the first message must have the role user, not {brief(messages[0].get('role'))}"
    by_servers: set[str] = set()  # calls that a server tool made: they may have been answered on the server
    open_calls: list[str] = []
    served: list[str] = []  # calls of the server's own tools that have no result yet
    seen: set[str] = set()
    marks = 0
    ends_in: object = None  # the type of the last block of an answer that nothing was said to yet
    previous: str | None = None
    for place, message in enumerate(messages):
        role = message.get("role")
        if role not in _ROLES:
            yield f"messages.{place}: the role must be one of {', '.join(_ROLES)}, not {brief(role)}"
            continue
        blocks = _blocks(message.get("content"))
        if blocks is None:
            yield f"messages.{place}: the content must be a text or a list of content blocks"
            continue
        last = place == len(messages) - 1
        if not blocks and not (last and role == "assistant"):
            yield f"messages.{place}: the content must not be empty"
        yield from content_problems(place, str(role), blocks)
        marks += cache_marks(blocks)
        if role == "assistant":
            if open_calls and previous != "assistant":
                yield _unanswered(place - 1, open_calls)
                open_calls = []
            ends_in = blocks[-1]["type"] if blocks else ends_in
            uses = [block for block in blocks if block["type"] == "tool_use"]
            if previous != "assistant":
                seen = set()  # one turn may not use an id twice; in a later turn the API lets it come again
                served = []
            yield from _use_problems(place, uses, seen)
            answered = {block["tool_use_id"] for block in blocks if "tool_use_id" in block}
            served += [str(block.get("id")) for block in blocks if block["type"] in SERVER_CALLS]
            if served:
                served = [own for own in served if own not in answered]
            for block in uses:
                if "caller" in block and not _direct(block):
                    by_servers.add(str(block.get("id")))
                elif block.get("id") not in answered:
                    open_calls.append(str(block.get("id")))
        elif role == "user":
            if ends_in == "thinking":
                yield f"messages.{place - 1}: an answer must not end in thinking when something follows; leave it out"
            ends_in = None
            if served and any(block["type"] != "tool_result" for block in blocks):
                yield (
                    f"messages.{place}: the server's own calls {', '.join(served)} have no result, so nothing can be "
                    "said after them; leave them out"
                )
            # Users in a row are one message for the API: later ones may answer calls, too, but results come first.
            open_calls = yield from _result_problems(place, blocks, open_calls, by_servers, follows=previous)
        previous = cast("str", role)
    if open_calls:
        yield _unanswered(len(messages) - 1, open_calls)
    if marks > CACHE_MARKS:
        yield f"{marks} blocks carry cache_control; at most {CACHE_MARKS} may"


def _is_compacted(message: Mapping[str, Any]) -> bool:
    """Whether a message begins with the block in which the API itself has compacted what was before."""
    first = (_blocks(message.get("content")) or [{}])[0]
    return message.get("role") == "assistant" and first.get("type") == "compaction"


def _unanswered(place: int, calls: Sequence[str]) -> str:
    return (
        f"messages.{place}: tool_use without a tool_result in the next message: {', '.join(calls)}; "
        "add a user message that answers each of them"
    )


def _direct(block: Mapping[str, Any]) -> bool:
    caller = block.get("caller")
    return not is_object(caller) or cast("Mapping[str, Any]", caller).get("type") == "direct"


def _blocks(content: object) -> list[Mapping[str, Any]] | None:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if type(content) is not list and not isinstance(content, Sequence):
        return None
    items = cast("Sequence[Mapping[str, Any]]", content)
    for item in items:
        if not (is_object(item) and isinstance(item.get("type"), str)):
            return None
    return list(items)


def _use_problems(place: int, uses: Sequence[Mapping[str, Any]], seen: set[str]) -> Iterator[str]:
    for block in uses:
        own = block.get("id")
        if not isinstance(own, str) or not own:
            yield f"messages.{place}: a tool_use has no id"
            continue
        if own in seen:
            yield f"messages.{place}: the tool_use id {own} occurs twice in one turn"
        seen.add(own)
        name = block.get("name")
        if not (CALL_ID.fullmatch(own) and isinstance(name, str) and TOOL_NAME.fullmatch(name)):
            for field, pattern in (("id", CALL_ID), ("name", TOOL_NAME)):
                if isinstance(value := block.get(field), str) and pattern.fullmatch(value):
                    continue
                yield f"messages.{place}: the {field} {brief(value)} of a tool_use must match {pattern.pattern}"
        if not is_object(block.get("input")):
            yield f"messages.{place}: the input of the tool_use {own} must be an object"


def _result_problems(
    place: int, blocks: Sequence[Mapping[str, Any]], calls: list[str], by_servers: set[str], *, follows: str | None
) -> Generator[str, None, list[str]]:
    left = list(calls)
    others = False
    for block in blocks:
        if block["type"] != "tool_result":
            others = True
            continue
        answers = block.get("tool_use_id")
        if answers in by_servers:
            continue
        if answers not in left:
            yield f"messages.{place}: a tool_result answers {brief(answers)}, which no tool_use before it asks for"
            continue
        if others:
            yield f"messages.{place}: the tool_result for {answers} must come before all other content"
        left.remove(answers)
    if left and (others or follows == "user"):
        yield _unanswered(place - 1, left)
        left = []
    return left
