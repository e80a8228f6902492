"""Micro, the second level: the content of old tool results is cleared in place, many at once; the calls stay."""

from collections.abc import Sequence
from typing import Final

from looplatch.recovery.compression.cutting import Content, content_tokens
from looplatch.recovery.compression.edits import Edit
from looplatch.recovery.compression.exchanges import outline
from looplatch.recovery.compression.markers import cleared
from looplatch.recovery.compression.results import Result, results_of, with_content
from looplatch.recovery.compression.settings import Compression
from looplatch.recovery.compression.thinking import editable_from, with_thinking_dropped
from looplatch.recovery.weights import Message

LEAST_TOKENS: Final = 32  # below twice a marker's size, clearing is not worth it


def micro(messages: Sequence[Message], settings: Compression, window: int) -> tuple[Edit, ...]:
    """The edits that clear all results but the newest `keep_results` and those of the latest exchange.

    None where they would free less than `micro_frees` of the `window`, which is in tokens.
    """
    parts = outline(messages)
    floor = editable_from(messages, parts, settings)
    results = results_of(messages, parts.exchanges)
    unseen = parts.exchanges[-1].start if parts.exchanges else 0
    contents: list[tuple[Result, Content]] = []
    saved = 0
    for result in results[: max(0, len(results) - settings.keep_results)]:
        if floor <= result.place < unseen and result.direct:
            tokens = content_tokens(result.content)
            if tokens >= LEAST_TOKENS:
                marker = cleared(tokens)
                saved += tokens - content_tokens(marker)
                contents.append((result, marker))
    if not contents or saved < settings.micro_frees * window:
        return ()
    return with_thinking_dropped(messages, parts, with_content(messages, contents), settings)
