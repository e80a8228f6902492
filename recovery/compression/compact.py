"""Auto compact, the fourth level: one summary takes the place of everything before the latest exchange."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from looplatch.recovery.compression.cutting import cut_content
from looplatch.recovery.compression.edits import Edit, Weights, lowering
from looplatch.recovery.compression.exchanges import Exchange, Outline, blocks_of, outline, said
from looplatch.recovery.compression.markers import CONVERSATION_OPENING, QUOTE_OPENING, is_summary
from looplatch.recovery.compression.prompts import CONVERSATION_PROMPT, summary_prompt
from looplatch.recovery.compression.settings import Compression
from looplatch.recovery.compression.thinking import bound_turn, without_thinking
from looplatch.recovery.compression.transcript import transcript
from looplatch.recovery.weights import Message, encoded, weigh_json

FIRST_PROMPT_TOKENS: Final = 2_000  # of the task as it was first put: up to here it is kept word by word


def may_compact(messages: Sequence[Message], settings: Compression) -> bool:
    """Whether there is something to summarise before the latest exchange, and it may be done now."""
    return _plan(messages, settings) is not None


def compaction_request(
    messages: Sequence[Message], settings: Compression, budget_tokens: int | None = None
) -> list[Message]:
    """The messages to send for the summary: one, with a transcript of at most `budget_tokens` tokens.

    Empty where there is nothing to summarise before the latest exchange, or it may not be done now.
    """
    plan = _plan(messages, settings)
    return [] if plan is None else summary_prompt(CONVERSATION_PROMPT, messages[: plan.start], budget_tokens)


def compact(
    messages: Sequence[Message], summary: str, settings: Compression, weights: Weights = None
) -> tuple[Edit, ...]:
    """The edit that puts one user message, with the first prompt and the summary, before the latest exchange.

    That exchange and a pending answer stay as they are. Where the exchange holds thinking that the API wants back as
    it was, and so cannot stay behind an edit, it is quoted as text after the summary. Messages of the role system stay
    behind the summary. None where nothing gets shorter, or it may not be done now.
    """
    plan = _plan(messages, settings)
    if plan is None or not summary.strip():
        return ()
    head = [*_first_prompt(messages, plan.first), _text(f"{CONVERSATION_OPENING}\n{summary.strip()}")]
    if plan.quoted is not None:
        head += _quote(messages[plan.quoted.start : plan.quoted.stop])
    systems = [message for message in messages[: plan.stop] if message["role"] == "system"]
    behind = [message for message in plan.behind if message["role"] != "system"]
    new: tuple[Message, ...] = ({"role": "user", "content": head}, *systems, *behind)
    return lowering(messages, (Edit(start=0, stop=plan.stop, messages=new),), weights)


def compacted_messages(messages: Sequence[Message], settings: Compression) -> Sequence[Message]:
    """What the API's own compaction request is to compact: all before the latest exchange. Empty as above."""
    plan = _plan(messages, settings)
    return () if plan is None else messages[: plan.start]


def compact_signed(
    messages: Sequence[Message], block: Mapping[str, Any], settings: Compression, weights: Weights = None
) -> tuple[Edit, ...]:
    """The edit that puts the API's signed block before the latest exchange, as `compact` does with a summary.

    The block is the conversation's first, as the API wants it, and says all that the messages before it said.
    """
    plan = _plan(messages, settings)
    if plan is None:
        return ()
    head: list[Message] = [{"role": "assistant", "content": [dict(block)]}]
    if plan.quoted is not None:
        head.append({"role": "user", "content": _quote(messages[plan.quoted.start : plan.quoted.stop])})
    behind = [message for message in plan.behind if message["role"] != "system"]
    systems = [message for message in messages[plan.start : plan.stop] if message["role"] == "system"]
    return lowering(messages, (Edit(start=0, stop=plan.stop, messages=(*head, *systems, *behind)),), weights)


@attrs.frozen(kw_only=True)
class _Plan:
    """What a summary replaces: `messages[:start]`; and, up to `stop`, what the latest exchange becomes.

    `first`: where the first prompt ends. `quoted`: the latest exchange, where it is to be quoted. `behind`: its
    messages without their thinking, where that is dropped.
    """

    first: int
    start: int
    stop: int
    quoted: Exchange | None = None
    behind: tuple[Message, ...] = ()


def _plan(messages: Sequence[Message], settings: Compression) -> _Plan | None:
    parts = outline(messages)
    if not parts.exchanges:
        return None
    first, latest = parts.exchanges[0].start, parts.exchanges[-1]
    if len(parts.exchanges) == 1 and not _is_worth_it(messages[:first], settings):
        return None
    if parts.compacted > latest.start:
        return None
    plan = _Plan(first=first, start=latest.start, stop=latest.start)
    if settings.thinking == "drop_block":
        return plan
    if parts.thinks(range(parts.pending, parts.count)):
        return None
    if not parts.thinks(range(latest.start, latest.stop)):
        return plan
    behind = _stripped(messages, parts, latest) if settings.thinking == "drop" else None
    if behind is None:
        return attrs.evolve(plan, stop=latest.stop, quoted=latest)
    return attrs.evolve(plan, stop=latest.stop, behind=behind)


def _is_worth_it(messages: Sequence[Message], settings: Compression) -> bool:
    """Whether what is before the only exchange can be said shorter: it can if it is more than prompt and summary."""
    rest = list(itertools.dropwhile(lambda block: not is_summary(block), said(messages)))
    if any(not str(block.get("text")).startswith(CONVERSATION_OPENING) for block in rest):
        return True
    return sum(weigh_json(encoded(block)) for block in rest) > settings.summary_max_tokens


def _stripped(messages: Sequence[Message], parts: Outline, latest: Exchange) -> tuple[Message, ...] | None:
    """The latest exchange without its thinking; None where that must not be, or would leave no answer."""
    if latest.start in bound_turn(messages, parts):
        return None
    kept: list[Message] = []
    for role, run in itertools.groupby(messages[latest.start : latest.stop], key=lambda message: message["role"]):
        turn = [left for message in run if (left := without_thinking(message)) is not None]
        if not turn and role == "assistant":
            return None
        kept += turn
    return tuple(kept)


def _first_prompt(messages: Sequence[Message], stop: int) -> list[Mapping[str, Any]]:
    """What the user's side said first: the task. Too long a one is cut, for the summary tells of it, too."""
    blocks = list(itertools.takewhile(lambda block: not is_summary(block), said(messages[:stop])))
    if sum(weigh_json(encoded(block)) for block in blocks) <= FIRST_PROMPT_TOKENS:
        return blocks
    texts = [_text(block["text"]) for block in blocks if block.get("type") == "text"]
    cut = cut_content(texts, FIRST_PROMPT_TOKENS // 2)
    return [*cut] if isinstance(cut, list) else []


def _quote(messages: Sequence[Message]) -> list[Mapping[str, Any]]:
    """An exchange as the content of a user message: its calls and results as text, pictures and files beside it."""
    results = [block for message in messages for block in blocks_of(message) if block.get("type") == "tool_result"]
    media = [
        item
        for block in results
        if not isinstance(content := block.get("content") or (), str)
        for item in content
        if item.get("type") in ("image", "document")
    ]
    spoken = [message for message in messages if message["role"] != "system"]
    quoted = transcript([_without_said(message) for message in spoken])
    step = [_text(f"{QUOTE_OPENING}\n{quoted}")] if quoted else []
    return [*step, *media, *said(messages)]


def _without_said(message: Message) -> Message:
    """A message less what is kept beside the quote."""
    if message["role"] != "user":
        return message
    return {**message, "content": [block for block in blocks_of(message) if block.get("type") == "tool_result"]}


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}
