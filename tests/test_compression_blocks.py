"""Blocks of every kind in histories, through each level and each pair of levels: valid, shorter, and at rest after."""

import itertools
from typing import Any

import pytest

from looplatch.recovery.compression.collapse import Staged, drain, next_span
from looplatch.recovery.compression.compact import compact
from looplatch.recovery.compression.edits import Edit, apply, is_worth_it
from looplatch.recovery.compression.fitting import fit_newest
from looplatch.recovery.compression.micro import micro
from looplatch.recovery.compression.settings import Compression, ThinkingRule
from looplatch.recovery.compression.snip import snip
from looplatch.recovery.validity import history_problems
from looplatch.recovery.weights import weigh_all
from tests.histories import Message, assistant, call, picture, result, text, user

LONG = "x" * 9_000
LINK = {"type": "image", "source": {"type": "url", "url": "https://example.com/y.png"}}
PLAIN = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "d" * 40_000}}
PARTS = {"type": "document", "source": {"type": "content", "content": [text("c" * 40_000), picture()]}}
FOUND = {"type": "search_result", "source": "s", "title": "t", "content": [text("s" * 20_000)]}


def of(*contents: Any, **given: Any) -> list[Message]:
    """Exchanges whose results have these contents, in turn."""
    return [
        message
        for number in range(9)
        for message in (
            assistant(call(f"t{number}", "read", **given)),
            user(result(f"t{number}", contents[number % len(contents)])),
        )
    ]


HISTORIES: dict[str, list[Message]] = {
    "pictures alone": of([picture()]),
    "links": of([LINK]),
    "documents and search results": of([PLAIN], [PARTS, text("beside")], [FOUND]),
    "signs beyond the first plane": of("\U0001f600é中" * 3_000),
    "half pairs": of("\ud800" * 2_000),
    "no content": of(""),
    "paths that are no text": of(LONG, path={"a": [1]}),
    "numbers beyond 64 bits": of(LONG, path="p", number=2**70),
    "texts that look like markers": of("[… 5 tokens left out …] " * 900),
}


def edits_of(level: str, messages: list[Message], settings: Compression) -> tuple[Edit, ...]:
    match level:
        case "snip":
            return snip(messages, settings)
        case "micro":
            return micro(messages, settings, 8_000)
        case "collapse":
            staged: list[Staged] = []
            while (span := next_span(messages, settings, staged)) is not None:
                staged.append(Staged(span=span, summary="It was done."))
            return drain(messages, staged, settings)
        case "compact":
            return compact(messages, "It was done.", settings)
        case _:
            return fit_newest(messages, 100)


@pytest.mark.parametrize("rule", ["drop", "keep", "drop_block"])
@pytest.mark.parametrize("name", HISTORIES)
def test_each_pair_of_levels_leaves_a_history_that_the_api_takes(name: str, rule: ThinkingRule) -> None:
    settings = Compression(thinking=rule, keep_results=1, micro_frees=0, span_exchanges=2, long_result_tokens=300)
    for pair in itertools.permutations(("snip", "micro", "collapse", "compact", "newest"), 2):
        messages = [user("Go."), *HISTORIES[name]]
        for level in pair:
            edits = edits_of(level, messages, settings)
            edited = apply(messages, edits)
            assert list(history_problems(edited)) == [], pair
            assert weigh_all(edited) < weigh_all(messages) if edits else edited == messages, pair
            if level in ("snip", "micro"):
                assert not is_worth_it(edited, edits_of(level, edited, settings)), "nothing is done twice"
            messages = edited
