"""What the API refuses of thinking that comes back: forged, changed, left out, or with nothing behind it."""

from collections.abc import Iterator, Mapping
from typing import Any

from looplatch.testing.history_rules import Turn, turns
from looplatch.testing.issued import Issued

_PAGE = "https://docs.claude.com/en/docs/build-with-claude/extended-thinking"


def violations(body: Mapping[str, Any], issued: Issued | None) -> Iterator[str]:
    """Everything wrong with the thinking of a request whose history is right."""
    talk = turns(body["messages"])
    answers = [turn for turn in talk if turn.role == "assistant"]
    for turn in answers:
        if turn is not talk[-1] and turn.blocks and turn.blocks[-1][1]["type"] == "thinking":
            yield f"messages.{turn.index}: The final block in an assistant message cannot be `thinking`."
        if issued is not None:
            yield from _genuine(turn, issued, latest=turn is answers[-1])
    if issued is not None and answers and talk[-1].leading_results:
        yield from _led(body, answers[-1], issued)


def _genuine(turn: Turn, issued: Issued, *, latest: bool) -> Iterator[str]:
    for place, block in turn.blocks:
        match block["type"]:
            case "thinking" if block["signature"] not in issued.thinking or not block["signature"]:
                yield f"{place}: Invalid `signature` in `thinking` block"
            case "thinking" if issued.thinking[block["signature"]] != block["thinking"]:
                if latest:
                    yield (
                        f"{place}: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be "
                        "modified. These blocks must remain as they were in the original response."
                    )
                yield f"{place}: Invalid `signature` in `thinking` block"
            case "redacted_thinking" if block["data"] not in issued.redacted:
                yield f"{place}: Invalid `data` in `redacted_thinking` block"
            case _:
                pass


def _led(body: Mapping[str, Any], turn: Turn, issued: Issued) -> Iterator[str]:
    """Where thinking is enabled, the answer whose tools are running must still open with the thinking it came with."""
    asked: dict[str, Any] = body.get("thinking") or {}
    if asked.get("type") != "enabled" or not turn.blocks:
        return
    place, first = turn.blocks[0]
    thoughtful = any(block["id"] in issued.thoughtful for _, block in turn.of_type("tool_use"))
    if thoughtful and first["type"] not in ("thinking", "redacted_thinking"):
        yield (
            f"{place}.type: Expected `thinking` or `redacted_thinking`, but found `{first['type']}`. "
            "When `thinking` is enabled, a final `assistant` message must start with a thinking block "
            "(preceeding the lastmost set of `tool_use` and `tool_result` blocks). "
            "We recommend you include thinking blocks from previous turns. To avoid this requirement, "
            f"disable `thinking`. Please consult our documentation at {_PAGE}"
        )
