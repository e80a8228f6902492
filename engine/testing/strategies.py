"""Hypothesis strategies for scripts: what models, networks and servers do to a loop.

`scripts()` draws whole scripts for `ScriptedAPI`; the strategies it is made of are public too. A drawn script may do
anything to a loop but stall it, and says nothing of how its run must end.
"""

import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, TypeAlias, cast

from attrs import evolve, frozen
from hypothesis import strategies as st

from looplatch.testing.answers import (
    Answer,
    Cut,
    Failing,
    Reply,
    cut,
    disconnected,
    error,
    event_count,
    failing,
    reply,
)
from looplatch.testing.blocks import Block, block, redacted_thinking, server_tool_use, text, thinking, tool_use

STOP_REASONS: Final = (
    "end_turn",
    "max_tokens",
    "stop_sequence",
    "tool_use",
    "pause_turn",
    "refusal",
    "model_context_window_exceeded",
)
"""The stop reasons that the API documents."""

TRUNCATIONS: Final = ("max_tokens", "model_context_window_exceeded", "refusal")
"""The stop reasons that may end an answer inside a block."""

UNKNOWN_STOP_REASON: Final = "stop_reason_of_tomorrow"
UNKNOWN_TOOL: Final = "no_such_tool"

TRANSIENT: Final = (
    (408, "timeout_error"),
    (409, "api_error"),
    (429, "rate_limit_error"),
    (500, "api_error"),
    (504, "timeout_error"),
    (529, "overloaded_error"),
)
"""Errors after which the same request may succeed, as (status, type)."""

FATAL: Final = (
    (400, "invalid_request_error"),
    (401, "authentication_error"),
    (403, "permission_error"),
    (404, "not_found_error"),
)
"""Errors that the same request meets again, as (status, type)."""

BROKEN_INPUTS: Final = ('{"n": 1}}', '{"n": 1', '["n"]', "1", "null", '{"n": NaN}', "{'n': 1}", '{"n": 1} x', '"n"')
"""Raw tool inputs that are no JSON object, though a lenient parser takes some for one."""

TEXTS: Final = st.text(min_size=1, max_size=12) | st.sampled_from([" ", "\n", "\ud83d", "\U0001f600", "x" * 500])
"""Texts of a model, with the awkward ones: white space, half a surrogate pair, an emoji."""

Inputs: TypeAlias = st.SearchStrategy[dict[str, Any]]

INPUTS: Final[Inputs] = st.dictionaries(
    st.sampled_from(["n", "path", "s"]), st.integers(0, 9) | st.text(max_size=8) | st.none() | st.booleans(), max_size=3
)
"""Objects for tools that take anything; give your own to `scripts` where a schema is stricter."""


def _text_block(value: str, pieces: int) -> Block:
    return text(value, min(pieces, len(value)) or None)


def _opening(thoughts: list[Block], said: list[Block]) -> list[Block]:
    return [*thoughts, *said]


TEXT_BLOCKS: Final = st.builds(_text_block, TEXTS | st.just(""), st.integers(1, 3))
"""Text blocks, in one delta or several; rarely empty."""

_THOUGHTS: Final = st.text(max_size=12) | st.sampled_from([" ", "\U0001f600"])
# Half a surrogate pair is left out: nobody could send it back as it was signed.

THOUGHTS: Final = st.builds(thinking, _THOUGHTS) | st.builds(redacted_thinking, st.sampled_from(["aa", "bb"]))
"""Thinking blocks: plain, empty but for the signature, redacted."""

_OPENINGS: Final = st.builds(_opening, st.lists(THOUGHTS, max_size=2), st.lists(TEXT_BLOCKS, max_size=2))
_KINDS: Final = st.sampled_from(["tool_use", "tool_use", "tool_use", "end_turn", "cut", "cut", "other", "other"])
_PINGS: Final = st.lists(st.integers(0, 40), max_size=2)
_NOVELTY: Final = block({"type": "block_of_tomorrow", "data": {"n": 1}}, [{"type": "novel_delta", "data": {"n": 2}}])


def search_result(search: str) -> Block:
    """What the server's own search with this id found: nothing."""
    return block({"type": "web_search_tool_result", "tool_use_id": search, "content": []})


@frozen
class Calls:
    """Draws calls of some tools, with ids that count up."""

    names: Sequence[str]
    inputs: Inputs
    ids: Iterator[str]

    def complete(self, draw: st.DrawFn) -> Block:
        """A complete call of a tool, known or not, its input usable or not, with or without deltas."""
        name = draw(st.sampled_from([*self.names, *self.names, UNKNOWN_TOOL]))
        value: dict[str, Any] | str = draw(self.inputs)
        match draw(_SPELLINGS):
            case "object":
                pass
            case "odd":
                value = draw(_ODD_INPUTS)
            case spelling:
                value = json.dumps(value, ensure_ascii=spelling == "ascii")
        pieces = draw(st.integers(1, min(4, len(value)))) if isinstance(value, str) and value else None
        return tool_use(next(self.ids), name, value, pieces, caller=draw(_CALLERS))

    def unfinished(self, draw: st.DrawFn) -> Block:
        """A block that the stop reason cuts: a text, unsigned thinking, or a call inside (or before) its JSON."""
        closed = draw(st.booleans())
        match draw(_UNFINISHED):
            case "text":
                return text(draw(TEXTS), closed=closed)
            case "thinking":
                return thinking(draw(TEXTS), "", closed=closed)
            case _:
                whole = json.dumps(draw(self.inputs))
                written = whole[: draw(st.integers(0, len(whole) - 1))]
                return tool_use(next(self.ids), draw(st.sampled_from(self.names)), written, closed=closed)

    def group(self, draw: st.DrawFn, least: int, most: int) -> list[Block]:
        """Calls side by side; rarely, the last takes the id of the first."""
        called = [self.complete(draw) for _ in range(draw(st.integers(least, most)))]
        if len(called) < 2 or draw(st.integers(0, 9)) < 9:
            return called
        first, last = called[0].start["id"], called[-1]
        return [*called[:-1], evolve(last, start={**last.start, "id": first}, whole={**last.whole, "id": first})]


_SPELLINGS: Final = st.sampled_from(["object", "ascii", "utf-8", "odd"])
_ODD_INPUTS: Final = st.sampled_from([*BROKEN_INPUTS, "", r'{"s": "\ud83a"}'])
_CALLERS: Final = st.sampled_from([None, None, {"type": "direct"}])
_UNFINISHED: Final = st.sampled_from(["call", "call", "text", "thinking"])


@st.composite
def replies(draw: st.DrawFn, calls: Calls) -> Reply:
    """Whole answers of every kind: all stop reasons and one to come, each with what may stand before it."""
    opening = draw(_OPENINGS)
    match draw(_KINDS):
        case "tool_use":
            made = reply(*opening, *calls.group(draw, 1, 5), *draw(st.lists(TEXT_BLOCKS, max_size=1)))
        case "end_turn":
            made = reply(*opening, stop=draw(st.sampled_from(["end_turn", "end_turn", "stop_sequence"])))
        case "cut":
            stop = draw(st.sampled_from(TRUNCATIONS))
            last = [calls.unfinished(draw)] if draw(st.booleans()) else []
            details = {"type": "refusal", "category": None} if stop == "refusal" else None
            made = reply(*opening, *calls.group(draw, 0, 2), *last, stop=stop, stop_details=details)
        case _:
            searching = f"srv{next(calls.ids)}"
            search = server_tool_use(searching, "web_search", {"query": "q"})
            stop = draw(st.sampled_from([*STOP_REASONS, UNKNOWN_STOP_REASON]))
            match draw(st.sampled_from(["search", "novelty", "open"])):
                case "search":
                    made = reply(*opening, search, search_result(searching), *calls.group(draw, 0, 1), stop=stop)
                case "novelty":
                    made = reply(*opening, _NOVELTY, *calls.group(draw, 0, 1), stop=stop)
                case _:
                    made = reply(*opening, search, stop="pause_turn")
    return evolve(made, pings=tuple(sorted(place for place in draw(_PINGS) if place <= event_count(made))))


@st.composite
def troubles(draw: st.DrawFn, answers: st.SearchStrategy[Reply]) -> Answer:
    """What goes wrong instead of an answer, or in the middle of one."""
    status, kind = draw(st.sampled_from([*TRANSIENT, *TRANSIENT, *FATAL]))
    match draw(st.sampled_from(["error", "failing", "failing", "cut", "cut", "disconnected"])):
        case "error":
            headers = draw(st.sampled_from([{}, {"retry-after": "2"}, {"retry-after-ms": "150"}]))
            return error(status, kind, "scripted", headers)
        case "disconnected":
            return disconnected()
        case where:
            answer = draw(answers)
            after = draw(st.integers(0, event_count(answer) - 1))
            if where == "failing":
                return failing(answer, after=after, error_type=kind, message="scripted")
            return cut(answer, after=after, clean=draw(st.booleans()))


@st.composite
def scripts(
    draw: st.DrawFn,
    *,
    reads: Sequence[str] = ("read",),
    writes: Sequence[str] = ("write",),
    inputs: Inputs = INPUTS,
    min_size: int = 1,
    max_size: int = 8,
    healthy: bool = False,
) -> list[Answer]:
    """Scripts of `min_size` to `max_size` answers, calling the tools named; `healthy` ones have no errors and no cuts.

    Tool ids are unique but for the duplicates drawn on purpose, in about one of ten groups of calls.
    """
    ids = (f"toolu_{number:04d}" for number in itertools.count(1))
    answer = replies(Calls([*reads, *writes], inputs, ids))
    either: st.SearchStrategy[Answer] = answer if healthy else st.one_of(answer, answer, answer, troubles(answer))
    return list(_searches_finished(draw(st.lists(either, min_size=min_size, max_size=max_size))))


def _searches_finished(script: Iterable[Answer]) -> Iterator[Answer]:
    """The answers, each search that a paused turn left open finished at the head of the next whole answer."""
    left_open: list[str] = []
    for answer in script:
        results = [search_result(search) for search in left_open]
        yield _headed(answer, results)
        if isinstance(answer, Reply) and answer.stop_reason not in TRUNCATIONS:
            answered = {item.whole.get("tool_use_id") for item in answer.blocks}
            searches = [item.whole["id"] for item in answer.blocks if item.whole["type"] == "server_tool_use"]
            left_open = [search for search in searches if search not in answered]


def _headed(answer: Answer, blocks: Sequence[Block]) -> Answer:
    match answer:
        case Reply():
            return evolve(answer, blocks=(*blocks, *answer.blocks))
        case Failing() | Cut():
            return evolve(answer, answer=cast("Any", _headed(answer.answer, blocks)))
        case _:
            return answer
