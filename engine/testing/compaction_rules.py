"""What the API refuses of compaction: its block out of place, doubled or made up, and requests that cannot have one."""

from collections.abc import Iterator, Mapping
from typing import Any

from looplatch.testing.history_rules import turns
from looplatch.testing.issued import Issued


def violations(body: Mapping[str, Any], issued: Issued | None) -> Iterator[str]:
    """Everything wrong with the compaction of a request whose history is right."""
    talk = turns(body["messages"])
    # Those without a signature come of the API's own edits and stay where they were made.
    blocks = (place for turn in talk for place in turn.of_type("compaction"))
    made = [place for place in blocks if place[1].get("content") and place[1].get("signature") is not None]
    if len(made) > 1:
        yield f"{made[1][0]}: `messages` holds more than one `compaction` block with content"
    for place, block in made:
        if block is not talk[0].blocks[0][1]:
            yield f"{place}: the `compaction` block is not the first block of the conversation"
        if issued is not None and issued.compactions.get(str(block.get("signature"))) != block["content"]:
            yield f"{place}: the `compaction` block's `signature` does not verify"
    if body.get("compaction") is None:
        return
    if body.get("context_management") is not None:
        yield "compaction: cannot be combined with `context_management`"
    if body.get("stop_sequences") is not None:
        yield "compaction: cannot be combined with `stop_sequences`"
    if talk[-1].role == "assistant" and not made:
        yield "compaction: the conversation ends on an `assistant` turn that is not finished"
