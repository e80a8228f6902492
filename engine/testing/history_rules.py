"""What the API refuses between messages: calls without results, results without calls, a prefilled answer's end.

Neighbours of one role are one turn, as the API merges them, and its texts count turns; a `system` message on the way
is a turn that no rule speaks of.
"""

from collections.abc import Iterator
from typing import Any

from attrs import define, field


@define
class Turn:
    """The merged messages of one role: each block with its place, as the API names it."""

    role: str
    index: int
    blocks: list[tuple[str, dict[str, Any]]] = field(factory=list[tuple[str, dict[str, Any]]])

    def of_type(self, kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """The blocks of a type, with their places."""
        return ((place, block) for place, block in self.blocks if block["type"] == kind)

    @property
    def leading_results(self) -> list[str]:
        """The ids answered by the tool results that open the turn."""
        answered: list[str] = []
        for _, block in self.blocks:
            if block["type"] != "tool_result":
                break
            answered.append(block["tool_use_id"])
        return answered


def turns(messages: list[dict[str, Any]]) -> list[Turn]:
    """The messages merged by role; content given as a string is one text block."""
    merged: list[Turn] = []
    asides = 0
    for message in messages:
        role, content = message["role"], message["content"]
        if role == "system":
            asides += 1
            continue
        if not merged or merged[-1].role != role:
            merged.append(Turn(role, len(merged) + asides))
        turn = merged[-1]
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            turn.blocks.append((f"messages.{turn.index}.content.{len(turn.blocks)}", block))
    return merged


def violations(messages: list[dict[str, Any]]) -> Iterator[str]:
    """Everything wrong between messages whose own shape is right."""
    talk = turns(messages)
    yield from _roles(talk)
    yield from _unique(talk)
    for turn, following in zip(talk, [*talk[1:], None], strict=True):
        yield from _unanswered(turn, following)
        yield from _deferred(turn, following)
    for before, turn in zip([None, *talk], talk, strict=False):
        yield from _uncalled(before, turn)
    yield from _trailing_space(talk[-1])
    compacted = talk[0].blocks and talk[0].blocks[0][1]["type"] == "compaction"
    if talk[0].role != "user" and not (talk[0].role == "assistant" and compacted):
        yield 'messages: first message must use the "user" role'


def _roles(talk: list[Turn]) -> Iterator[str]:
    for turn in talk:
        for kind, role in (("tool_use", "assistant"), ("tool_result", "user"), ("thinking", "assistant")):
            if turn.role != role and any(True for _ in turn.of_type(kind)):
                yield f"messages.{turn.index}: `{kind}` blocks can only be in `{role}` messages"


def _unique(talk: list[Turn]) -> Iterator[str]:
    """One turn may not use an id twice; over a whole talk the API lets an id come again."""
    for turn in talk:
        seen: set[str] = set()
        for place, block in turn.of_type("tool_use"):
            if block["id"] in seen:
                yield f"{place}: `tool_use` ids must be unique"
            seen.add(block["id"])


def _unanswered(turn: Turn, following: Turn | None) -> Iterator[str]:
    answered = [] if following is None else following.leading_results
    missing = [block["id"] for _, block in turn.of_type("tool_use") if block["id"] not in answered]
    if missing:
        yield (
            f"messages.{turn.index}: `tool_use` ids were found without `tool_result` blocks immediately after: "
            f"{', '.join(missing)}. Each `tool_use` block must have a corresponding `tool_result` block "
            "in the next message."
        )


def _uncalled(before: Turn | None, turn: Turn) -> Iterator[str]:
    called = {block["id"] for _, block in before.of_type("tool_use")} if before else set[str]()
    answered: set[str] = set()
    for place, block in turn.of_type("tool_result"):
        call = block["tool_use_id"]
        if call not in called:
            yield (
                f"{place}: unexpected `tool_use_id` found in `tool_result` blocks: {call}. Each `tool_result` block "
                "must have a corresponding `tool_use` block in the previous message."
            )
        if call in answered:
            yield (
                f"{place}: each tool_use must have a single result. Found multiple `tool_result` blocks with id: {call}"
            )
        answered.add(call)


def _deferred(turn: Turn, following: Turn | None) -> Iterator[str]:
    """A server tool that waits for the client's results keeps waiting only if nothing else is said."""
    if following is None or all(block["type"] == "tool_result" for _, block in following.blocks):
        return
    done = [block.get("tool_use_id") for _, block in turn.blocks]
    for _, block in turn.of_type("server_tool_use"):
        caller: dict[str, Any] = block.get("caller") or {"type": "direct"}
        if caller["type"] == "direct" and block["id"] not in done:
            yield (
                f"messages.{turn.index}: `{block['name']}` tool use with id `{block['id']}` was found without "
                f"a corresponding `{block['name']}_tool_result` block"
            )


def _trailing_space(turn: Turn) -> Iterator[str]:
    """Of a turn that the server itself paused, too: nothing that is published takes it out."""
    if turn.role == "assistant" and turn.blocks:
        _, block = turn.blocks[-1]
        if block["type"] == "text" and block["text"] != block["text"].rstrip():
            yield "messages: final assistant content cannot end with trailing whitespace"
