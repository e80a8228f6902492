"""Context collapse, the third level: summaries of finished spans are staged beside the history and applied when due."""

import hashlib
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import attrs

from looplatch.recovery.compression.edits import Edit, in_order, lowering
from looplatch.recovery.compression.exchanges import THINKING, Exchange, Outline, blocks_of, outline, said
from looplatch.recovery.compression.markers import SAID_MEANWHILE, SPAN_OPENING, is_cut
from looplatch.recovery.compression.prompts import SPAN_PROMPT, summary_prompt
from looplatch.recovery.compression.settings import Compression
from looplatch.recovery.compression.thinking import editable_from, with_thinking_dropped
from looplatch.recovery.weights import Message, encoded, weigh_all, weigh_json

LEAST_SPAN_TOKENS: Final = 256  # a summary of less would save nothing


@attrs.frozen
class Key:
    """What an exchange is known by, wherever it stands: its calls (or how it begins), all it says, and its results.

    Thinking does not count, and neither does what compression took out of the results since.
    """

    calls: tuple[str, ...]
    digest: str
    results: tuple[str, ...]


@attrs.frozen(kw_only=True)
class Span:
    """Finished exchanges in a row, `messages[start:stop]`; `keys` tells them again when they have moved."""

    start: int
    stop: int
    keys: tuple[Key, ...]


@attrs.frozen(kw_only=True)
class Staged:
    """The summary of a span, beside the history until it is applied."""

    span: Span
    summary: str


def next_span(
    messages: Sequence[Message],
    settings: Compression,
    staged: Sequence[Staged] = (),
    least_tokens: int = LEAST_SPAN_TOKENS,
) -> Span | None:
    """The oldest span of `span_exchanges` exchanges that has no summary yet; None where there is none to be had.

    A span that would save less than `least_tokens` takes more exchanges. The newest `keep_exchanges` are in none, and
    neither is what may not be edited now.
    """
    parts = outline(messages)
    floor = editable_from(messages, parts, settings)
    covered = {place for one in anchored(messages, parts, staged) for place in range(one.span.start, one.span.stop)}
    run: list[Exchange] = []
    weight = 0
    for exchange in parts.before_newest(settings.keep_exchanges):
        if not _may_go(exchange, messages, floor) or exchange.start in covered:
            run, weight = [], 0
            continue
        run.append(exchange)
        weight += _removable(messages[exchange.start : exchange.stop])
        if len(run) >= settings.span_exchanges and weight >= max(least_tokens, LEAST_SPAN_TOKENS):
            return Span(
                start=run[0].start,
                stop=run[-1].stop,
                keys=tuple(_key(messages[one.start : one.stop]) for one in run),
            )
    return None


def span_at(messages: Sequence[Message], start: int, stop: int) -> Span:
    """The span `messages[start:stop]`, which `next_span` found in these messages."""
    exchanges = [one for one in outline(messages).exchanges if start <= one.start < stop]
    return Span(start=start, stop=stop, keys=tuple(_key(messages[one.start : one.stop]) for one in exchanges))


def summary_request(messages: Sequence[Message], span: Span, budget_tokens: int | None = None) -> list[Message]:
    """The messages to send for the summary of a span: one, with a transcript of at most `budget_tokens` tokens."""
    return summary_prompt(SPAN_PROMPT, messages[span.start : span.stop], budget_tokens)


def moved(staged: Sequence[Staged], edits: Iterable[Edit]) -> tuple[Staged, ...]:
    """The staged summaries whose spans the edits have left standing, at the places where those stand then.

    Whether they still tell what is in the history is looked at when they are applied.
    """
    ordered = [edit for edit in in_order(edits) if not edit.is_of_one]  # the others move nothing
    return tuple(one for before in staged if (one := _moved(before, ordered)) is not None)


def _moved(staged: Staged, edits: Sequence[Edit]) -> Staged | None:
    start, stop = staged.span.start, staged.span.stop
    before = within = 0  # how many messages fewer
    for edit in edits:
        gone = edit.stop - edit.start
        if edit.stop <= start:
            before += gone - len(edit.messages)
        elif edit.start < stop:
            if gone != 1:
                return None
            within += gone - len(edit.messages)
    if not before and not within:
        return staged
    return attrs.evolve(staged, span=attrs.evolve(staged.span, start=start - before, stop=stop - before - within))


def anchored(messages: Sequence[Message], parts: Outline, staged: Sequence[Staged]) -> tuple[Staged, ...]:
    """The staged summaries that still tell what the history holds, at the places where it now stands.

    What has changed otherwise than by compression is left out: its summary must not be applied.
    """
    exchanges = parts.exchanges
    starts = {exchange.start: place for place, exchange in enumerate(exchanges)}
    places: dict[tuple[str, ...], list[int]] = {}  # by calls
    states: dict[int, _State] = {}

    def candidates(span: Span) -> Iterator[int]:
        """Where the span may be: where it was, and wherever its calls are."""
        if span.start in starts:
            yield starts[span.start]
        if not places:
            for place, exchange in enumerate(exchanges):
                places.setdefault(_calls(messages[exchange.start : exchange.stop]), []).append(place)
        yield from places.get(span.keys[0].calls, ())

    def holds(place: int, key: Key) -> bool:
        state = states.get(place)
        if state is None:
            exchange = exchanges[place]
            state = states[place] = _state(messages[exchange.start : exchange.stop])
        return state.digest == key.digest and all(
            _digest(content) == was or is_cut(content) for content, was in zip(state.results, key.results, strict=True)
        )

    found: list[Staged] = []
    taken: set[int] = set()
    for one in staged:
        keys = one.span.keys
        for first in candidates(one.span):
            run = range(first, first + len(keys))
            if run.stop <= len(exchanges) and taken.isdisjoint(run) and all(map(holds, run, keys)):
                taken.update(run)
                start, stop = exchanges[first].start, exchanges[run[-1]].stop
                found.append(attrs.evolve(one, span=attrs.evolve(one.span, start=start, stop=stop)))
                break
    return tuple(sorted(found, key=lambda one: one.span.start))


def drain(
    messages: Sequence[Message],
    staged: Sequence[Staged],
    settings: Compression,
) -> tuple[Edit, ...]:
    """The edits that put every staged summary in the place of its span, at the end of the user message before it.

    What the user's side said in a span beside results follows the summary, word by word. Summaries that are stale, or
    may not be applied now, or would make nothing shorter, are passed over.
    """
    parts = outline(messages)
    newest = len(parts.exchanges) - settings.keep_exchanges
    floor = editable_from(messages, parts, settings)
    barred = [
        exchange.start
        for place, exchange in enumerate(parts.exchanges)
        if place >= newest or not _may_go(exchange, messages, floor)
    ]
    applicable = [
        one
        for one in anchored(messages, parts, staged)
        if one.summary.strip() and bisect_left(barred, one.span.start) == bisect_left(barred, one.span.stop)
    ]
    edits = lowering(messages, [_edit(messages, group) for group in _groups(applicable)])
    return with_thinking_dropped(messages, parts, edits, settings)


def _may_go(exchange: Exchange, messages: Sequence[Message], floor: int) -> bool:
    """Whether an exchange may be summarised into the message before it."""
    before = exchange.start - 1
    return exchange.plain and before >= floor and messages[before]["role"] == "user"


def _groups(staged: Sequence[Staged]) -> Iterator[list[Staged]]:
    """The summaries of spans that follow one another without a gap: they go into the same message."""
    group: list[Staged] = []
    for one in staged:
        if group and group[-1].span.stop != one.span.start:
            yield group
            group = []
        group.append(one)
    if group:
        yield group


def _edit(messages: Sequence[Message], group: Sequence[Staged]) -> Edit:
    anchor = group[0].span.start - 1
    blocks = [*blocks_of(messages[anchor])]
    for one in group:
        kept = list(said(messages[one.span.start : one.span.stop]))
        text = f"{SPAN_OPENING}\n{one.summary.strip()}"
        if kept:
            text = f"{text}\n{SAID_MEANWHILE}"
        blocks += [{"type": "text", "text": text}, *kept]
    message = {**messages[anchor], "content": blocks}
    return Edit(start=anchor, stop=group[-1].span.stop, messages=(message,))


def _removable(messages: Sequence[Message]) -> int:
    return weigh_all(messages) - sum(weigh_json(encoded(block)) for block in said(messages))


# --- identity


def _key(messages: Sequence[Message]) -> Key:
    state = _state(messages)
    return Key(_calls(messages), state.digest, tuple(map(_digest, state.results)))


def _calls(messages: Sequence[Message]) -> tuple[str, ...]:
    """The ids of the calls of an exchange; where it has none, how it begins: what is cheap to tell it by."""
    answers = [message for message in messages if message["role"] == "assistant"]
    calls = [
        str(block.get("id")) for message in answers for block in blocks_of(message) if block.get("type") == "tool_use"
    ]
    if calls:
        return tuple(calls)
    texts = (block["text"] for message in answers for block in blocks_of(message) if block.get("type") == "text")
    return (next(texts, "")[:80],)


class _State(NamedTuple):
    """What an exchange holds: a digest of all but thinking and the content of results, and that content."""

    digest: str
    results: list[object]


def _state(messages: Sequence[Message]) -> _State:
    said_and_called: list[object] = []
    results: list[object] = []
    for message in messages:
        said_and_called.append(message["role"])
        for block in blocks_of(message):
            kind = block.get("type")
            if kind == "tool_result":
                results.append(block.get("content"))
                said_and_called.append((block.get("tool_use_id"), block.get("is_error")))
            elif kind not in THINKING:
                said_and_called.append(_without_cache_control(block))
    return _State(_digest(said_and_called), results)


def _without_cache_control(block: Mapping[str, Any]) -> Mapping[str, Any]:
    if "cache_control" not in block:
        return block
    return {name: value for name, value in block.items() if name != "cache_control"}


def _digest(value: object) -> str:
    return hashlib.blake2b(encoded(value), digest_size=16).hexdigest()
